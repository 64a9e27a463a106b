"""
Which clusters are stable?
==========================

`stability` clusters 50 bootstrap samples of the rows, with some entries hidden, and compares. A cluster
with a mean Jaccard similarity above 0.75 is stable; one below 0.6 should not be relied on.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

import kpod
from kpod.datasets import load_incomplete_wine

X = StandardScaler().fit_transform(load_incomplete_wine().data)
figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True, layout="constrained")
for ax, k in zip(axes, (3, 4, 6), strict=True):
    model = kpod.KPOD(k, random_state=0).fit(X)
    found = kpod.stability(model, X, random_state=0)
    order = np.argsort(-found.jaccard_)
    sizes = np.bincount(model.labels_)[order]
    colours = ["#009E73" if j > 0.75 else "#E69F00" if j > 0.6 else "#D55E00" for j in found.jaccard_[order]]
    bars = ax.bar(range(k), found.jaccard_[order], color=colours)
    ax.bar_label(bars, [f"{size} rows" for size in sizes], fontsize=8)
    ax.axhline(0.75, color="#8c959f", linestyle="--", linewidth=1)
    ax.axhline(0.6, color="#8c959f", linestyle=":", linewidth=1)
    ax.set(title=f"{k} clusters", xticks=[], ylim=(0, 1.05))
axes[0].set_ylabel("mean Jaccard similarity, 50 samples")
plt.show()

# %%
# Three clusters are stable. With more, some are pieces that another sample cuts differently.

print(kpod.stability(kpod.KPOD(6, random_state=0).fit(X), X, random_state=0))
