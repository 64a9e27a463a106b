"""
One fit, step by step
=====================

Two columns, so that every step can be drawn. A row with both values is a point. A row with only one value
is a short line on the axis of the value it has: it is compared with the centers along that axis only.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from kpod import KPOD

rng = np.random.default_rng(4)
middles = np.array([[-3.0, 0.0], [2.0, 3.0], [3.0, -3.0]])
X = np.repeat(middles, 60, axis=0) + rng.normal(size=(180, 2))
gaps = rng.random(X.shape) < 0.3
gaps[gaps.all(axis=1), 0] = False
X[gaps] = np.nan

# %%
# `max_iter` stops the fit after a given number of iterations, so each panel is a fit that was stopped
# earlier. The start is chosen badly on purpose.

warnings.simplefilter("ignore", ConvergenceWarning)
start = np.array([[-4.0, 3.0], [-4.0, -3.0], [1.0, 0.0]])
colours = np.array(["#0072B2", "#D55E00", "#009E73"])


def draw(ax, centers, labels, title):
    both = ~np.isnan(X).any(axis=1)
    only_x, only_y = np.isnan(X[:, 1]), np.isnan(X[:, 0])
    ax.scatter(*X[both].T, c=colours[labels[both]], s=14, alpha=0.7, linewidths=0)
    ax.scatter(X[only_x, 0], np.full(only_x.sum(), -6.2), c=colours[labels[only_x]], marker="|", s=60)
    ax.scatter(np.full(only_y.sum(), -6.8), X[only_y, 1], c=colours[labels[only_y]], marker="_", s=60)
    ax.scatter(*centers.T, c=colours, s=170, marker="X", edgecolors="black")
    ax.set(title=title, xlim=(-7.2, 6.5), ylim=(-6.6, 6.5), xlabel="x", ylabel="y")


figure, axes = plt.subplots(2, 2, figsize=(9, 8.5), layout="constrained", sharex=True, sharey=True)
first = KPOD(3, init=start, algorithm="lloyd", max_iter=1, tol=0).fit(X)
nearest = np.nansum((X[:, None] - start) ** 2, axis=2).argmin(axis=1)
draw(axes[0, 0], start, nearest, "the start: every row goes to the nearest center")
draw(axes[0, 1], first.cluster_centers_, nearest, "centers move to the mean of their rows")
for ax, iterations in zip(axes[1], (3, 20), strict=True):
    model = KPOD(3, init=start, algorithm="lloyd", max_iter=iterations, tol=0).fit(X)
    title = f"after {model.n_iter_} iterations, loss {model.inertia_:.0f}"
    draw(ax, model.cluster_centers_, model.labels_, title)
plt.show()

# %%
# A missing value adds nothing to the distance and nothing to a mean. That is the whole method; with no gaps
# it is k-means.
