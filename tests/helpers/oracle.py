"""The arithmetic of the kernels in plain NumPy, written from the formulas alone."""

import numpy as np


def totals(X, labels, k, weights=None):
    """Weighted sums and counts of the observed entries, cluster by column."""
    weights = np.ones(len(X)) if weights is None else weights
    sums, counts = np.zeros((k, X.shape[1])), np.zeros((k, X.shape[1]))
    for row, label, weight in zip(X, labels, weights, strict=True):
        if label >= 0:
            sums[label] += weight * np.nan_to_num(row)
            counts[label] += weight * ~np.isnan(row)
    return sums, counts


def centers(X, labels, k, weights=None):
    sums, counts = totals(X, labels, k, weights)
    all_sums, all_counts = totals(X, np.zeros(len(X), int), 1, weights)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / np.where(counts > 0, counts, 1), all_sums / all_counts)


def distances(X, centers):
    """Squared partial distances (n, k)."""
    return np.nansum((X[:, None, :] - centers[None]) ** 2, axis=2)


def assign(X, centers):
    labels = distances(X, centers).argmin(axis=1)
    labels[np.isnan(X).all(axis=1)] = -1
    return labels


def loss(X, labels, centers, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    own = distances(X, centers)[np.arange(len(X)), labels]
    return float((weights * own)[labels >= 0].sum())


def loss_of_labels(X, labels, k, weights=None):
    return loss(X, labels, centers(X, labels, k, weights), weights)


def lloyd(X, start, n_iter, weights=None):
    """Lloyd for a fixed number of iterations, or until no row changes."""
    now, labels = start, None
    for _ in range(n_iter):
        new = assign(X, now)
        now = centers(X, new, len(start), weights)
        if labels is not None and np.array_equal(labels, new):
            break
        labels = new
    return labels, now


def best_single_move(X, labels, k, weights=None):
    """How much the best move of one row lowers the loss, by computing every loss anew."""
    before = loss_of_labels(X, labels, k, weights)
    lowered = 0.0
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    for i in np.flatnonzero(labels >= 0):
        if sizes[labels[i]] <= 1 or (weights is not None and weights[i] == 0):
            continue
        for label in range(k):
            moved = labels.copy()
            moved[i] = label
            lowered = max(lowered, before - loss_of_labels(X, moved, k, weights))
    return lowered
