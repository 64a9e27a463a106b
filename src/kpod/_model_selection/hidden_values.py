"""Mixtures on a table with hidden entries, and their predictions of these.

The value of an entry is hidden, not that it was observed: where gaps count, columns are added that shadow
others, with an entry wherever the value of the other is hidden. It has the same value in all rows, so that
nothing is learnt from it but that it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import csr_of
from kpod._engine.executors import Executor
from kpod._engine.table import Table, make_table
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import from_labels, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Parameters, Prior
from kpod._mixture.em.prediction import Observed, add_factors, predict_entries
from kpod._model_selection import holdout

STEPS = 20
TOL = 3e-3  # of log-likelihood a row
SMALLEST_VARIANCE = 1e-6  # of a column's own
LOADING_ROWS = 1.0  # without correlation, behind every loading

PLAIN = Shape("tied_diag")


class HiddenEntries(NamedTuple):
    """Entries that a fold hides, row by row."""

    rows: Positions
    columns: Positions
    values: Floats


NOTHING_HIDDEN = HiddenEntries(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))


@dataclass(frozen=True)
class Covered:
    """A table without what is hidden, for mixtures whose clusters have variances in common."""

    entries: Entries
    within: Constraints
    observed: Observed
    groups: ColumnGroups  # of the table's own columns

    @classmethod
    def of(
        cls,
        values: Any,
        weights: Floats | None,
        hidden: HiddenEntries | None,
        groups: ColumnGroups,
        seen_rates: Floats | None,
        executor: Executor,
    ) -> Covered:
        """Of an array with NaN or a CSR array; `seen_rates` of its columns where gaps count, else None."""
        n_columns = values.shape[1]
        shadowed = np.zeros(0, np.intp)
        if seen_rates is not None and hidden is not None:
            shadowed = np.flatnonzero((seen_rates > 0) & (seen_rates < 1) & groups.first)
        values = without(values, hidden or NOTHING_HIDDEN, shadowed)
        table = make_table(values, Executor(), weights=weights)
        floor = smallest_variances(table.variances, table.live, SMALLEST_VARIANCE)
        floor[n_columns:] = 1.0
        observed = None
        if seen_rates is not None:
            informative = (seen_rates > 0) & (seen_rates < 1) & groups.first
            observed = np.where(informative, seen_rates, 0.5)
            observed = np.concatenate([observed, observed[shadowed]])
        within = Constraints(
            floor, table.fallback, Prior(), observed=observed, shadowed=shadowed, loading_rows=LOADING_ROWS
        )
        rows, columns, own = holdout.entries(values)
        live = table.live[columns]
        observed_entries = rows[live], columns[live], in_units(table, own[live], columns[live])
        return cls(Entries(table, executor), within, observed_entries, groups)

    def from_labels(self, labels: Labels, k: int) -> Parameters:
        """Clusters with independent columns, from labels."""
        return from_labels(self.entries, PLAIN, np.ascontiguousarray(labels, np.int32), k, self.within)

    def round_from_labels(self, labels: Labels, k: int) -> Parameters:
        """The same, with one variance for all columns."""
        parameters, counts = self.from_labels(labels, k), self.entries.table.about.weights
        p = len(self.groups.source)
        total = float(parameters.variances[0, :p] @ counts[:p]) / max(
            float(counts[:p][self.groups.first].sum()), 1e-300
        )
        variances = np.maximum(total, self.within.floor)
        variances[p:] = 1.0
        return replace(parameters, variances=np.tile(variances, (k, 1)))

    def settled(self, parameters: Parameters, shape: Shape) -> Parameters:
        return run(self.entries, shape, parameters, self.within, STEPS, TOL).parameters

    def with_factors(self, parameters: Parameters, n_more: int) -> Parameters:
        more = add_factors(self.entries, self.observed, parameters, n_more)
        return self.settled(more, Shape("tied", more.q))

    def with_own_loadings(self, parameters: Parameters) -> Parameters:
        return self.settled(parameters, Shape("tied_diag", parameters.q))

    def predict(self, parameters: Parameters, rows: Positions, columns: Positions) -> Floats:
        """Expected values of hidden entries, in the table's own units."""
        units = self.entries.table.units
        of_rows = self.entries.expected(parameters, factors=True)
        found = predict_entries(of_rows, parameters, rows, columns) / units.scale + units.shift[columns]
        return np.where(np.isnan(found), 0.0, found)

    def posterior(self, parameters: Parameters) -> Floats:
        """Probability of each cluster for each row (n, k)."""
        return self.entries.posterior(parameters)[0]


def in_units(table: Table, values: Floats, columns: Positions) -> Floats:
    return np.asarray((values - table.units.shift[columns]) * table.units.scale)


def without(values: Any, hidden: HiddenEntries, shadowed: Positions) -> Any:
    """A table without the hidden entries, and with the columns that shadow some."""
    place = np.full(values.shape[1], -1)
    place[shadowed] = np.arange(len(shadowed))
    here = place[hidden.columns] >= 0
    rows, columns = hidden.rows[here], place[hidden.columns[here]]
    if not sparse.issparse(values):
        covered = np.array(values, np.float64)
        covered[hidden.rows, hidden.columns] = np.nan
        shadows = np.full((len(values), len(shadowed)), np.nan)
        shadows[rows, columns] = 0.0
        return np.ascontiguousarray(np.hstack([covered, shadows]))
    n_columns = values.shape[1]
    at, column, data = holdout.entries(values)
    kept = ~np.isin(at * n_columns + column, hidden.rows * n_columns + hidden.columns)
    at, column, data = (
        np.concatenate([at[kept], rows]),
        np.concatenate([column[kept], n_columns + columns]),
        np.concatenate([data[kept], np.zeros(len(rows))]),
    )
    order = np.lexsort((column, at))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=values.shape[0]))])
    parts = data[order], column[order].astype(np.int32), indptr.astype(np.int64)
    shape = values.shape[0], n_columns + len(shadowed)
    return csr_of(*parts, shape)
