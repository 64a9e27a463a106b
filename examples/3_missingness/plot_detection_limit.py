"""
Informative missingness: a detection limit
==========================================

An instrument cannot measure below its detection limit, so low values are missing, and which values those
are is informative about the row. Ignoring that, as the published method does, loses the clusters.
"""

import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

import kpod
from kpod.datasets import make_perturbed_wine
from kpod.missingness import diagnose, nmar

complete, cultivars = make_perturbed_wine(0)
names = [name.split("/")[0].replace("_", " ") for name in load_wine().feature_names]
X = pd.DataFrame(nmar(complete, 0.35, 0), columns=names)  # without the lowest 35 % of every column
X = (X - X.mean()) / X.std()

ignored = kpod.KPOD(3, random_state=0).fit(X)
found = diagnose(X, ignored.labels_)
kpod.plot.DiagnosisDisplay.from_diagnosis(found)
plt.show()

# %%
# Rows that lack one measurement are low in others: the gaps are not random. `missingness="auto"` checks
# whether using them would help, and says why it did or did not:

auto = kpod.KPOD(3, missingness="auto", random_state=0).fit(X)
print(auto.missingness_decision_)

# %%
# What that changes:

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, model, title in zip(axes, (ignored, auto), ("gaps ignored", "gaps used"), strict=True):
    table = pd.crosstab(cultivars, model.labels_).to_numpy()
    table = table[:, table.argmax(axis=0).argsort(kind="stable")]
    ax.imshow(table, cmap="Blues", vmin=0, vmax=70)
    for (row, column), count in pd.DataFrame(table).stack().items():
        ax.text(
            column, row, f"{count:.0f}", ha="center", va="center", color="white" if count > 40 else "black"
        )
    score = adjusted_rand_score(cultivars, model.labels_)
    ax.set(title=f"{title}: adjusted Rand score {score:.2f}", xlabel="cluster", xticks=[0, 1, 2])
    ax.set(yticks=[0, 1, 2])
axes[0].set_ylabel("cultivar")
plt.show()
