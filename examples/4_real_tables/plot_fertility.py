"""
Countries by the course of their birth rates
============================================

The World Bank's fertility rates of 219 countries and groups of countries from 1960 to 2011. One entry in
eight is missing in the original table: small states report late or not at all. No country is dropped, and
no value is imputed.
"""

import numpy as np
import statsmodels.api as sm
from matplotlib import pyplot as plt

from kpod import KPOD

table = sm.datasets.fertility.load_pandas().data
years = [str(year) for year in range(1960, 2012)]
X = table[years].to_numpy(float)
known = ~np.isnan(X).all(axis=1)
X, names = X[known], table.loc[known, "Country Name"].to_numpy()

# %%
# All columns share a unit, births per woman, so nothing is standardised.

model = KPOD(5, random_state=0).fit(X)
order = np.argsort(-np.nanmean(model.cluster_centers_, axis=1))
figure, axes = plt.subplots(1, 5, figsize=(13, 3.8), sharey=True, layout="constrained")
for ax, cluster, colour in zip(axes, order, plt.rcParams["axes.prop_cycle"].by_key()["color"], strict=False):
    rows = model.labels_ == cluster
    ax.plot(range(1960, 2012), X[rows].T, color=colour, alpha=0.25, linewidth=0.8)
    ax.plot(range(1960, 2012), model.cluster_centers_[cluster], color="black", linewidth=2)
    distances = np.nanmean((X - model.cluster_centers_[cluster]) ** 2, axis=1)
    typical = [name for name in names[np.argsort(np.where(rows, distances, np.inf))] if len(name) < 16][:3]
    ax.set_title(f"{rows.sum()} countries\n" + "\n".join(typical), fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("births per woman")
plt.show()

# %%
# Countries with gaps are assigned by the years they have:

gappy = np.argsort(-np.isnan(X).sum(axis=1))[:5]
for row in gappy:
    years_known = int((~np.isnan(X[row])).sum())
    print(f"{names[row]}: {years_known} of 52 years known, cluster {model.labels_[row]}")
