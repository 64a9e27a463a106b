"""Hold out observed entries, and measure how well a fit to the rest predicts them.

Errors on the same folds are compared entry by entry; `race.py` fits the folds in several ways. Which entries
a fold hides is a function of row, column and seed alone: a dense table and the same table as CSR hide the
same entries. The indicators of a category are hidden together, and counted as one entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import Hidden
from kpod._engine.executors import Executor
from kpod._engine.table import Table

N_FOLDS = 10
SHARE = 0.1  # of the observed entries a fold hides
KEPT_IN_COLUMN = 2  # observed entries that a fold leaves of every column

Setting = TypeVar("Setting", int, float)


@dataclass(frozen=True)
class Fold:
    """A table with some of its observed entries hidden, and these entries, row by row.

    `values` are in the table's own units.
    """

    table: Table
    rows: Positions
    columns: Positions
    values: Floats

    @property
    def n_hidden(self) -> int:
        """How many entries are hidden; the indicators of a category are one."""
        return int(self.table.groups.first[self.columns].sum())

    def squared_errors(self, labels: Labels, centers: Floats) -> Floats:
        """The squared error of each hidden entry, each row at the center of its cluster."""
        predicted = self.table.units.back(centers)[labels[self.rows], self.columns]
        return (self.values - predicted) ** 2


def folds(
    table: Table, executor: Executor, seed: int, *, n_folds: int = N_FOLDS, share: float = SHARE
) -> list[Fold]:
    """`n_folds` disjoint folds, each hiding about `share` of the observed entries of a table.

    Every row keeps an entry (of one that would lose all, the one that hashes highest stays) and every
    column at least two: a fold that would leave fewer hides nothing of that column.
    """

    def made(fold: int) -> Fold:
        hidden = Hidden(seed, fold * share, (fold + 1) * share)
        covered = table.hiding(hidden, executor)
        at = covered.hidden_entries()
        n_hidden = np.bincount(at[1], minlength=table.n_columns)
        short = np.flatnonzero((n_hidden > 0) & (table.column_counts - n_hidden < KEPT_IN_COLUMN))
        if len(short):
            covered = table.hiding(replace(hidden, spared=tuple(short.tolist())), executor)
            at = covered.hidden_entries()
        return Fold(covered, *at)

    if executor.remote:
        return [made(fold) for fold in range(n_folds)]
    return executor.map(made, range(n_folds))


def entries(X: Any) -> tuple[Positions, Positions, Floats]:
    """Row, column and value of the observed entries of a dense or CSR table, row by row."""
    if sparse.issparse(X):
        stored = ~np.isnan(X.data)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return rows[stored], X.indices[stored].astype(np.intp), X.data[stored].astype(np.float64)
    rows, columns = np.nonzero(~np.isnan(X))
    return rows, columns, X[rows, columns].astype(np.float64)


@dataclass(frozen=True)
class Errors:
    """Weighted squared errors on hidden entries, summed over the folds by row and by column.

    `by_row` and `by_column` are sums over the hidden entries, `count` and `column_counts` their
    weights, where `count` has the indicators of a category but once. `rows` are those of which something
    was hidden. `first` are those of the first fold alone, of the first two, and so on, where wanted.
    """

    by_row: Floats
    by_column: Floats
    count: float
    column_counts: Floats
    rows: Positions
    first: tuple[Errors, ...] = ()

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

    def plus(self, more: Floats) -> Errors:
        """With something to add for each row of the table."""
        by_row = np.array(more, dtype=np.float64)
        by_row[self.rows] += self.by_row
        return replace(self, by_row=by_row, rows=np.arange(len(by_row)))

    def above(self, other: Errors) -> tuple[float, float]:
        """The difference of the mean from another's, and its paired standard error."""
        difference = self.by_row - other.by_row
        return float(difference.sum() / self.count), spread_of_sum(difference) / self.count


def spread_of_sum(a: Floats) -> float:
    """Standard error of a sum over independent rows."""
    if len(a) < 2:
        return float("inf")
    size = float(np.abs(a).max()) or 1.0  # squares of squared errors would overflow
    return size * float(np.sqrt(len(a) * np.var(a / size, ddof=1)))


def above(errors: Errors, other: Errors) -> float:
    """By how many standard errors one is above the other."""
    difference, error = errors.above(other)
    if difference == 0:
        return 0.0
    return difference / error if error > 0 else float(np.copysign(np.inf, difference))


def lowest(errors: Iterable[Errors]) -> Errors:
    """Those with the smallest mean."""
    return min(errors, key=lambda e: e.mean)


def smallest_within(curve: Mapping[Setting, Errors], noise: float) -> Setting:
    """The smallest setting whose error is within so many standard errors of the smallest error."""
    best = lowest(curve.values())
    return min(setting for setting in curve if above(curve[setting], best) <= noise)


def add_up(
    shape: tuple[int, int],
    folds: Sequence[Any],
    squared: Sequence[Floats],
    weights: Floats | None = None,
    groups: ColumnGroups | None = None,
) -> Errors:
    """The errors of all folds: the squared errors of the entries that each fold hides."""
    n_rows, n_columns = shape
    first = (groups or ColumnGroups.none(n_columns)).first
    rows = np.concatenate([fold.rows for fold in folds])
    columns = np.concatenate([fold.columns for fold in folds])
    weight = np.ones(len(rows)) if weights is None else weights[rows]
    all_squared = np.concatenate(squared) * weight
    # A row of which nothing was hidden, or without weight, is no observation of the error.
    by_row = np.bincount(rows, all_squared, n_rows).astype(np.float64)
    counted = np.flatnonzero(np.bincount(rows, weight, n_rows) > 0)
    return Errors(
        by_row[counted],
        np.bincount(columns, all_squared, n_columns).astype(np.float64),
        float(weight[first[columns]].sum()),
        np.bincount(columns, weight, n_columns).astype(np.float64),
        counted,
    )
