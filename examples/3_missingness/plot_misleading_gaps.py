"""
Misleading missingness: skipped modules
=======================================

A questionnaire with modules: whole blocks of questions are skipped at random. The gaps have a strong
pattern, and it has nothing to do with the groups. Three ways to treat four kinds of gaps.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD, missingness

rng = np.random.default_rng(1)
truth = rng.integers(4, size=600)
complete = rng.normal(size=(4, 20))[truth] * 0.9 + rng.normal(size=(600, 20))
tables = {
    "at random": missingness.mcar(complete, 0.3, 0),
    "below a detection limit": missingness.detection_limit(complete, 0.3, 0),
    "in modules": missingness.modules(complete, 0.3, 0),
    "driven by one column": missingness.by_driver(complete, 0.3, 0, slope=3),
}


def score(X, how):
    kept = ~np.isnan(X).all(axis=1)
    return adjusted_rand_score(truth[kept], KPOD(4, missingness=how, random_state=0).fit_predict(X[kept]))


scores = {how: [score(X, how) for X in tables.values()] for how in ("ignore", "informative", "auto")}

figure, axes = plt.subplots(2, 1, figsize=(9, 6.4), layout="constrained", height_ratios=[1, 1.3])
places = np.arange(len(tables))
for shift, (how, found) in enumerate(scores.items()):
    bars = axes[1].bar(places + 0.27 * (shift - 1), found, width=0.25, label=f'missingness="{how}"')
    axes[1].bar_label(bars, fmt="{:.2f}", fontsize=8)
axes[1].set(xticks=places, xticklabels=tables, ylabel="adjusted Rand score", ylim=(0, 1.15), xlim=(-0.5, 3.5))
axes[1].legend(ncols=3, loc="upper center", fontsize=9)
side_by_side = np.concatenate([np.isnan(X[:60]) for X in tables.values()], axis=1)
axes[0].imshow(side_by_side, cmap="Greys", aspect="auto", interpolation="nearest")
axes[0].set(xticks=[], yticks=[], ylabel="60 rows")
for edge in (20, 40, 60):
    axes[0].axvline(edge - 0.5, color="#D55E00", linewidth=2)
axes[0].set_title("the gaps of the four tables (dark)", fontsize=10.5)
plt.show()

# %%
# Using the gaps helps below a detection limit, and ruins the result in modules. "auto" tests whether
# clusters found with the gaps predict left-out columns better.
