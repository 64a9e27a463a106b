"""Means over the rows that have a cluster, which the sentences on clusters give.

    mean_kj = sum of w_i x_ij over the rows i with label k that have column j, over the sum of their w_i

Centers are something else where a row counts for several clusters (mixtures), where the fit stopped by `tol`,
and with `shrinkage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kpod._common.typing import Floats, Positions
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._findings.fitted_clusters.clustering import Clustering


@dataclass(frozen=True)
class RowMeans:
    """Means of the rows of each cluster, in the units of the table.

    Attributes
    ----------
    means, others : ndarray of shape (k, n_columns)
        Of the rows of a cluster, and of those of all other clusters; NaN for none.
    differences : ndarray of shape (k, n_columns)
        From the mean of the column, in its standard deviations.
    counts : ndarray of shape (k, n_columns)
        The entries behind each mean.
    left_out : ndarray of shape (n_columns,)
        Entries that no cluster of a mixture expects, which are in none of the means.
    """

    means: Floats
    others: Floats
    differences: Floats
    counts: Positions
    left_out: Positions


def row_means(c: Clustering) -> RowMeans:
    """The means, on the scale on which columns were clustered where that is logarithms or clipped values."""
    sums, sizes = c.measured.sums_by_group(c.labels, c.k, c.weights)
    cells = c.outlier_cells[c.labels[c.outlier_cells[:, 0]] >= 0]
    at, entries = (c.labels[cells[:, 0]], cells[:, 1]), entries_at(c, cells)
    weights = np.ones(len(cells)) if c.weights is None else c.weights[cells[:, 0]]
    counts = c.entries.astype(np.int64)
    for totals, parts in ((sums, weights * entries), (sizes, weights), (counts, 1)):
        np.subtract.at(totals, at, parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / sizes
        others = (sums.sum(axis=0) - sums) / (sizes.sum(axis=0) - sizes)
        middle, spread = overall(c)
        differences = np.nan_to_num((means - middle) / spread, nan=0.0, posinf=0.0, neginf=0.0)
    if c.is_bent:
        means, others = (np.asarray(c.in_units(points), np.float64) for points in (means, others))
    left_out = np.bincount(cells[:, 1], minlength=len(c.names)).astype(np.int64)
    return RowMeans(means, others, differences, counts, left_out)


def entries_at(c: Clustering, cells: Positions) -> Floats:
    """The entries at rows and columns (m, 2)."""
    rows, at = np.unique(cells[:, 0], return_inverse=True)
    return c.measured.rows(rows)[at, cells[:, 1]] if len(rows) else np.empty(0)


def overall(c: Clustering) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; of a mixture its own, in which outlying cells are gaps."""
    if not is_mixture(c.kpod):
        return c.measured.moments
    means, stds = c.kpod._moments()
    if c.is_bent:
        return means, stds
    middle, above = c.in_units(np.vstack([means, means + stds]))
    return middle, np.abs(above - middle)
