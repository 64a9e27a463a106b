"""Augmented deletion: k-means over the complete columns with soft constraints from the others.

Wagstaff & Laidler (2005), Making the most of missing values: object clustering with partial data in
astronomy. With V the sum of squares over the complete columns and s_ij^2 the squared distance of two rows
over the incomplete columns that both observe, what is minimised is

    (1 - w) V / V_1  +  w (sum of s_ij^2 over pairs in one cluster) / (sum of s_ij^2 over all pairs),

V_1 being V for a single cluster. Rows are assigned one after the other, then the centers move, until no row
does. There is no way to choose the weight w, so every one of a range has its row. Where no column is
complete there is nothing to begin with, as for deletion: MAR only.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from paper.datasets import Problem
from paper.methods import RESTS_ON_SKLEARN, Clustering, Method, MethodError, timed

WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
STARTS = 10
MOST_PASSES = 100


def fit(problem: Problem) -> list[Clustering]:
    complete = ~np.isnan(problem.X).any(axis=0)
    if not complete.any():
        raise MethodError("no column is complete")
    return [Clustering(*timed(lambda: best(problem, complete, weight))) for weight in WEIGHTS]  # noqa: B023


def best(problem: Problem, complete: np.ndarray, weight: float) -> np.ndarray:
    """The labels of the best of ten starts, each from k-means over the complete columns."""
    X = problem.X[:, complete]
    apart = squared_distances(problem.X[:, ~complete])
    found = []
    for start in range(STARTS):
        kmeans = KMeans(problem.n_clusters, n_init=1, random_state=problem.seed + start)
        found.append(descend(X, apart, kmeans.fit_predict(X), problem.n_clusters, weight))
    return min(found, key=lambda labels: objective(X, apart, labels, problem.n_clusters, weight))


def squared_distances(Z: np.ndarray) -> np.ndarray:
    """Between all rows, over the columns that both observe; 0 where there are none."""
    seen, filled = (~np.isnan(Z)).astype(float), np.nan_to_num(Z)
    squares = filled**2
    return np.maximum(squares @ seen.T + seen @ squares.T - 2 * filled @ filled.T, 0)


def descend(X: np.ndarray, apart: np.ndarray, labels: np.ndarray, k: int, weight: float) -> np.ndarray:
    values, pairs = (1 - weight) / ((X - X.mean(axis=0)) ** 2).sum(), weight / max(apart.sum() / 2, 1e-300)
    labels = labels.copy()
    together = np.stack([apart[:, labels == c].sum(axis=1) for c in range(k)], axis=1)
    for _ in range(MOST_PASSES):
        before = labels.copy()
        centers = np.stack([X[labels == c].mean(axis=0) for c in range(k)])
        near = values * ((X[:, None] - centers) ** 2).sum(axis=2)
        size = np.bincount(labels, minlength=k)
        for i in range(len(X)):
            old, new = labels[i], int(np.argmin(near[i] + pairs * together[i]))
            if new != old and size[old] > 1:
                labels[i] = new
                size[[old, new]] += -1, 1
                together[:, old] -= apart[i]
                together[:, new] += apart[i]
        if (labels == before).all():
            break
    return labels


def objective(X: np.ndarray, apart: np.ndarray, labels: np.ndarray, k: int, weight: float) -> float:
    inside = sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in range(k))
    pairs = sum(apart[np.ix_(labels == c, labels == c)].sum() for c in range(k))
    total = ((X - X.mean(axis=0)) ** 2).sum()
    return float((1 - weight) * inside / total + weight * pairs / max(apart.sum(), 1e-300))


METHOD = Method(
    "soft",
    {f"soft-{weight}": f"soft constraints, weight {weight}" for weight in WEIGHTS},
    fit,
    RESTS_ON_SKLEARN,
    mechanisms=("MAR",),
)
