"""
How sure is the cluster of a row?
=================================

`probability=True` fits the mixture of round clusters behind k-means, and `predict_proba` gives the
probability of each cluster for each row. The cluster of a row with few observed entries is less
certain.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import linear_sum_assignment

from kpod import KPOD
from kpod.missingness import mcar

rng = np.random.default_rng(0)
truth = rng.integers(4, size=4000)
complete = rng.normal(size=(4, 8))[truth] * 1.1 + rng.normal(size=(4000, 8))
X = mcar(complete, 0.4, random_state=0)
kept = ~np.isnan(X).all(axis=1)
X, truth = X[kept], truth[kept]
model = KPOD(4, probability=True, random_state=0).fit(X)
probability = model.predict_proba(X)
sure = probability.max(axis=1)

# %%
# Are the probabilities right? Of the rows with a probability of 80 %, 80 % should truly be in that
# cluster: the line on the right.

agree = np.zeros((4, 4))
np.add.at(agree, (truth, probability.argmax(axis=1)), 1)
group_of = np.empty(4, dtype=int)
found, matched = linear_sum_assignment(-agree)
group_of[matched] = found
right = group_of[probability.argmax(axis=1)] == truth

figure, (left, middle) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
observed = (~np.isnan(X)).sum(axis=1)
groups = [sure[observed == m] for m in range(1, 9)]
parts = left.violinplot(groups, positions=range(1, 9), showextrema=False, showmedians=True, widths=0.85)
left.set(xlabel="observed entries of the row (of 8)", ylabel="probability of its cluster", ylim=(0.2, 1.02))
edges = np.linspace(0.3, 1.0, 11)
bins = np.clip(np.digitize(sure, edges) - 1, 0, 9)
points = [
    (sure[bins == b].mean(), right[bins == b].mean(), (bins == b).sum())
    for b in range(10)
    if (bins == b).any()
]
x, y, n = np.array(points).T
middle.plot([0.25, 1], [0.25, 1], color="#8c959f", linestyle="--")
middle.scatter(x, y, s=n / 3 + 15, zorder=3)
middle.set(xlabel="probability given", ylabel="share that is right", xlim=(0.25, 1.03), ylim=(0.25, 1.03))
middle.set_title("the area is the number of rows", fontsize=10)
plt.show()
