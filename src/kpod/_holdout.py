"""Hold observed entries out, fit on the rest, and see how well the centers predict what was hidden.

Which entries a fold hides is a function of row, column and seed alone, so that a fold need not be
stored, and is the same for a dense table and for the same table as CSR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kpod._typing import Floats, Labels, Positions

N_FOLDS = 10
SHARE = 0.1  # of the observed entries a fold hides
KEPT_IN_COLUMN = 2  # observed entries of a column that no fold hides


@dataclass(frozen=True)
class Fold:
    """A table with some of its observed entries hidden, and the hidden entries.

    `table` is a copy of the table with the hidden entries missing; `rows`, `columns` and `values`
    are the entries that were hidden, row by row.
    """

    table: Any
    rows: Positions
    columns: Positions
    values: Floats

    def squared_errors(self, predicted: Floats) -> Floats:
        """The squared error of each hidden entry."""
        return (self.values - predicted) ** 2


def uniform(rows: Positions, columns: Positions, seed: int) -> Floats:
    """A number in [0, 1) for each entry, by mixing row, column and seed (splitmix64)."""
    with np.errstate(over="ignore"):
        key = _mixed(np.uint64(seed & (2**64 - 1)) + rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        key = _mixed(key + (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03))
    return (key >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: Any) -> Any:
    """The finalizer of splitmix64 (Steele, Lea & Flood 2014): every bit depends on every other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def entries(X: Any) -> tuple[Positions, Positions, Floats]:
    """Row, column and value of the observed entries of a dense or CSR table, row by row."""
    if sparse.issparse(X):
        stored = ~np.isnan(X.data)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return rows[stored], X.indices[stored].astype(np.intp), X.data[stored].astype(np.float64)
    rows, columns = np.nonzero(~np.isnan(X))
    return rows, columns, X[rows, columns].astype(np.float64)


def folds(X: Any, seed: int, *, n_folds: int = N_FOLDS, share: float = SHARE) -> Iterator[Fold]:
    """`n_folds` disjoint folds, each hiding about `share` of the observed entries of X.

    Fold f hides the entries whose number u(row, column, seed) lies in [f * share, (f + 1) * share). Of
    a row that would lose all its entries that way, the one with the largest u stays; of a column that
    would keep fewer than two, the two with the largest u stay.
    """
    rows, columns, values = entries(X)
    u = uniform(rows, columns, seed)
    last_of_row, last_of_column = _largest(rows, u, 1), _largest(columns, u, KEPT_IN_COLUMN)
    for fold in range(n_folds):
        hidden = (u >= fold * share) & (u < (fold + 1) * share)
        for groups, size, least, last in (
            (rows, X.shape[0], 1, last_of_row),
            (columns, X.shape[1], KEPT_IN_COLUMN, last_of_column),
        ):
            short = np.bincount(groups[~hidden], minlength=size) < least
            hidden[last[short[groups[last]]]] = False
        at = rows[hidden], columns[hidden]
        yield Fold(without(X, hidden, at), *at, values[hidden])


def _largest(groups: Positions, u: Floats, number: int) -> Positions:
    """Where each group has its `number` largest u."""
    order = np.lexsort((-u, groups))
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else np.zeros(0, int)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return order[rank < number]


def without(X: Any, hidden: Any, at: tuple[Positions, Positions]) -> Any:
    """A copy of X in which some of the observed entries are missing.

    The one place where a fold takes memory: `hidden` marks them in the order of `entries`.
    """
    if not sparse.issparse(X):
        table = X.copy()
        table[at] = np.nan
        return table
    stored = ~np.isnan(X.data)
    keep = np.ones(X.nnz, bool)
    keep[np.flatnonzero(stored)[hidden]] = False
    indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr]
    return sparse.csr_array((X.data[keep], X.indices[keep], indptr), shape=X.shape)


@dataclass(frozen=True)
class Errors:
    """Weighted squared errors on hidden entries, summed over the folds by row and by column.

    `by_row` and `by_column` are sums over the hidden entries, `count` and `column_counts` their
    weights.
    """

    by_row: Floats
    by_column: Floats
    count: float
    column_counts: Floats

    @property
    def mean(self) -> float:
        """Mean squared error of a hidden entry."""
        return float(self.by_row.sum() / self.count)

    @property
    def standard_error(self) -> float:
        """Standard error of the mean: rows are independent, the entries of a row are not."""
        return spread_of_sum(self.by_row) / self.count

    @property
    def column_means(self) -> Floats:
        """Mean squared error by column; NaN where nothing was hidden."""
        with np.errstate(invalid="ignore"):
            return np.where(self.column_counts > 0, self.by_column / self.column_counts, np.nan)

    def above(self, other: Errors) -> tuple[float, float]:
        """By how much the mean lies above another's, and the standard error of that (paired)."""
        difference = self.by_row - other.by_row
        return float(difference.sum() / self.count), spread_of_sum(difference) / self.count


def spread_of_sum(a: Floats) -> float:
    """Standard error of a sum over independent rows."""
    if len(a) < 2:
        return float("inf")
    size = float(np.abs(a).max()) or 1.0  # squares of squared errors would overflow
    return size * float(np.sqrt(len(a) * np.var(a / size, ddof=1)))


def add_up(
    X_shape: tuple[int, int], folds: list[Fold], errors: list[Floats], weights: Floats | None = None
) -> Errors:
    """The errors of all folds: a list with the squared errors of each fold's hidden entries."""
    n_rows, n_columns = X_shape
    rows = np.concatenate([fold.rows for fold in folds])
    columns = np.concatenate([fold.columns for fold in folds])
    weight = np.ones(len(rows)) if weights is None else weights[rows]
    squared = np.concatenate(errors) * weight
    # A row of which nothing was hidden, or without weight, is no observation of the error.
    by_row = np.bincount(rows, squared, n_rows).astype(np.float64)
    return Errors(
        by_row[np.bincount(rows, weight, n_rows) > 0],
        np.bincount(columns, squared, n_columns).astype(np.float64),
        float(weight.sum()),
        np.bincount(columns, weight, n_columns).astype(np.float64),
    )


def center_predictions(fold: Fold, labels: Labels, centers: Floats) -> Floats:
    """What the centers say of the hidden entries, each row at the center of its cluster."""
    return np.asarray(centers[labels[fold.rows], fold.columns], dtype=np.float64)
