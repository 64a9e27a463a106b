r"""Skewed columns: whether a monotone transform by column makes the values of each cluster more normal.

Gaussian clusters of several spreads describe a long tail on one side well, and are no evidence of groups. So
columns are asked what the power transform of Yeo & Johnson (2000),
:math:`T(x) = ((1 + x)^\lambda - 1) / \lambda` for :math:`x \ge 0` and
:math:`-((1 - x)^{2 - \lambda} - 1) / (2 - \lambda)` below, adds to the log-likelihood of their entries, given
the clusters, each of which has a mean and a variance of its own.
"""

from __future__ import annotations

import numpy as np

from kpod._common.typing import Floats, Labels

POWERS = np.linspace(-2.0, 4.0, 13)  # 1 leaves a column as it is
SMALLEST_VARIANCE = 1e-3  # of a cluster, as a share of the column's own


def power_transform(x: Floats, power: float) -> Floats:
    """That of Yeo & Johnson."""
    size = np.log1p(np.abs(x))
    of = np.where(x >= 0, power, 2 - power)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(np.abs(of) > 1e-9, np.expm1(of * size) / of, size)
    return np.copysign(found, x)


def gain_of_transforms(values: Floats, labels: Labels, weights: Floats) -> float:
    """What the best transform of each column adds to the log-likelihood of an entry.

    `values` is a dense table with NaN; rows of label -1 count for nothing.
    """
    total = gained = 0.0
    for column in values.T:
        seen = ~np.isnan(column) & (labels >= 0) & (weights > 0)
        x, w, of = column[seen], weights[seen], labels[seen]
        total += float(w.sum())
        # The spread of a constant is not 0 once it is rounded; of two values, any transform is a line.
        if len(x) and x.min() < x.max() and not ((x == x.min()) | (x == x.max())).all():
            mean = np.average(x, weights=w)
            z = (x - mean) / np.sqrt(np.average((x - mean) ** 2, weights=w))
            size = float(w @ (np.sign(z) * np.log1p(np.abs(z))))
            found = [log_density(power_transform(z, power), of, w) + (power - 1) * size for power in POWERS]
            gained += max(found) - log_density(z, of, w)
    return max(0.0, gained) / max(total, 1e-300)


def log_density(x: Floats, labels: Labels, weights: Floats) -> float:
    """Of values in normal clusters with means and variances of their own, but for a constant."""
    counts = np.maximum(np.bincount(labels, weights), 1e-300)
    means = np.bincount(labels, weights * x) / counts
    squares = np.bincount(labels, weights * (x - means[labels]) ** 2)
    middle = float(weights @ x) / float(weights.sum())
    least = SMALLEST_VARIANCE * float(weights @ (x - middle) ** 2) / float(weights.sum())
    return -0.5 * float(counts @ np.log(squares / counts + least))
