r"""Whether clusters are set apart, or cut a continuum into pieces.

Along the line from the center of one cluster to that of another, a row lies at

.. math:: t_i = \frac{\sum_{j \in O_i} (x_{ij} - a_j) (b_j - a_j)}{\sum_{j \in O_i} (b_j - a_j)^2}

0 at the one center, 1 at the other, 1/2 at the border. Rows of two groups are thin at the border. Rows of one
group that was cut in two, of a curve or a trend, lie there as densely as around the centers.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from kpod._common.typing import Floats, Labels
from kpod._mixture.em.chunks import chunks
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._mixture.tails import log_densities

AS_DENSE = 0.9  # of the density around the centers: at the border of two groups it is less
AT_BORDER, AROUND = 0.15, (0.35, 0.65)  # from the border, in distances of the centers
FEWEST = 8  # rows of two clusters, below which they are not judged


def n_apart(X: Any, labels: Labels, centers: Floats) -> int:
    """How many groups are left when clusters without a thin border between them are taken together.

    `X` is an array with NaN in the gaps or a CSR array, `centers` are in its units. Of two clusters, rows
    count that observe of what sets these apart about as much as most do.
    """
    k = len(centers)
    means = np.nan_to_num(centers).mean(axis=0)
    offsets = np.nan_to_num(centers - means)
    parts = list(chunks(X, means))
    distances = np.vstack([mask @ (offsets**2).T - 2 * (values @ offsets.T) for values, mask in parts])
    group = np.arange(k)
    for a in range(k):
        for b in range(a + 1, k):
            rows = np.flatnonzero((labels == a) | (labels == b))
            if group[a] == group[b] or len(rows) < FEWEST:
                continue
            between = np.concatenate([mask @ (offsets[a] - offsets[b]) ** 2 for _, mask in parts])[rows]
            enough = between >= 0.8 * np.median(between)
            rows, between = rows[enough], np.maximum(between[enough], 1e-300)
            from_border = np.abs(distances[rows, a] - distances[rows, b]) / (2 * between)
            if border_density(from_border, labels[rows] == a) > AS_DENSE:
                group[group == group[b]] = group[a]
    return len(np.unique(group))


def n_apart_in_shape(values: Floats, labels: Labels, parameters: Parameters) -> int:
    """The same for the clusters of a mixture, along the line that separates two of them.

    `values` are dense with NaN, in the units of the parameters.
    """
    group = np.arange(parameters.k)
    for a, b in combinations(range(parameters.k), 2):
        if group[a] != group[b] and pair_apart(values, labels, parameters, a, b) is False:
            group[group == group[b]] = group[a]
    return len(np.unique(group))


def any_apart_in_shape(values: Floats, labels: Labels, parameters: Parameters) -> bool:
    """Whether any two clusters of a mixture are separate, though others may lie between them."""
    pairs = combinations(range(parameters.k), 2)
    return any(pair_apart(values, labels, parameters, a, b) for a, b in pairs)


def pair_apart(values: Floats, labels: Labels, parameters: Parameters, a: int, b: int) -> bool | None:
    """Whether two clusters of a mixture are separate; None where they have too few rows to tell."""
    rows = np.flatnonzero((labels == a) | (labels == b))
    if len(rows) < FEWEST:
        return None
    return bool(apart_in_shape(values[rows], labels[rows] == a, a, b, parameters))


def apart_in_shape(values: Floats, of_one: Any, a: int, b: int, parameters: Parameters) -> bool:
    """Whether two clusters of a mixture have a thin border, by their rows.

    The line is that of their mean covariance. The border is as far from both centers, in standard deviations
    of either; where that is less than one of them, the two make a single hill.
    """
    own = [parameters.covariance(cluster) for cluster in (a, b)]
    common = (own[0] + own[1]) / 2
    means = parameters.means[[a, b]]
    line = np.linalg.lstsq(common, means[1] - means[0])[0]  # a column without entries has no variance
    spreads = [float(np.sqrt(line @ covariance @ line)) for covariance in own]
    if float(line @ (means[1] - means[0])) <= sum(spreads):
        return False
    no_loadings = np.zeros((1, values.shape[1], 0))

    def log_density(rows: Floats, mean: Floats) -> Floats:
        one = Parameters(np.ones(1), mean[None], np.ones((1, len(mean))), no_loadings, common[None])
        return log_densities(rows, one)

    first, second = (np.where(np.isnan(values), np.nan, mean) for mean in means)
    between = np.maximum(2 * (log_density(first, means[0]) - log_density(second, means[0])), 1e-300)
    along = 0.5 + (log_density(values, means[1]) - log_density(values, means[0])) / between
    enough = between >= 0.8 * np.median(between)
    border = spreads[0] / sum(spreads)
    off = along[enough] - border
    from_border = 0.5 * np.where(off < 0, -off / border, off / (1 - border))
    return border_density(from_border, of_one[enough]) <= AS_DENSE


def border_density(from_border: Floats, of_one: Any) -> float:
    """The density of rows at the border over that around the centers; both clusters count the same.

    Few rows at the border may be few by chance, so that the density is a standard error higher than counted.
    """
    at_border = from_border < AT_BORDER
    around = (from_border > AROUND[0]) & (from_border < AROUND[1])
    sides = [side for side in (of_one, ~of_one) if side.any()]
    border, inside = (sum(float(where[side].mean()) for side in sides) for where in (at_border, around))
    if not border:
        return 0.0
    by_chance = 1 + 1 / np.sqrt(at_border.sum())
    return by_chance * border / AT_BORDER / max(inside / (AROUND[1] - AROUND[0]), 1e-12)
