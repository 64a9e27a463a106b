"""Columns that put the rows in nearly the same order: a rank beside its score, raw beside adjusted values.

The correlation of their ranks (Spearman) is near 1 or -1. Together they count several times.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse.csgraph import connected_components

from kpod._common.typing import Floats

NEARLY = 0.99
LEAST_ROWS = 20
LEAST_VALUES = 10
"""Different values; of fewer, two columns are in the same order by chance."""
MOST_COLUMNS = 200
MOST_ROWS = 2_000


def nearly_the_same(columns: Mapping[str, Floats]) -> list[list[str]]:
    """Groups of columns, each of which puts the rows in nearly the order of another one of its group."""
    picked = {name: some(values) for name, values in columns.items()}
    names = [name for name, values in picked.items() if n_values(values) >= LEAST_VALUES]
    if not 1 < len(names) <= MOST_COLUMNS:
        return []
    same = np.abs(rank_correlations(np.column_stack([picked[name] for name in names]))) >= NEARLY
    _, of = connected_components(same, directed=False)
    sizes = np.bincount(of)
    kept = [group for group in dict.fromkeys(of.tolist()) if sizes[group] > 1]
    return [[names[j] for j in np.flatnonzero(of == group)] for group in kept]


def some(values: Floats) -> Floats:
    """The values of some rows, from all of the table."""
    if len(values) <= MOST_ROWS:
        return values
    return values[np.linspace(0, len(values) - 1, MOST_ROWS).astype(np.intp)]


def n_values(values: Floats) -> int:
    return len(np.unique(values[np.isfinite(values)]))


def rank_correlations(X: Floats) -> Floats:
    """Of every two columns, over the rows that have both; 0 where these are few."""
    from scipy.stats import rankdata  # takes a while to load

    known = np.isfinite(X)
    ranks = np.zeros(X.shape)
    for j, column in enumerate(X.T):
        ranks[known[:, j], j] = rankdata(column[known[:, j]])
    seen = known.astype(np.float64)
    n = seen.T @ seen
    sums, squares, products = ranks.T @ seen, (ranks**2).T @ seen, ranks.T @ ranks
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum(n * squares - sums**2, 0))
        found = (n * products - sums * sums.T) / (spread * spread.T)
    return np.asarray(np.where((n >= LEAST_ROWS) & np.isfinite(found), found, 0.0))
