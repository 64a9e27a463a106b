"""What is minimised.

Over labels l and centers c, it is

    sum over rows i and observed columns j of  w_i (z_ij - c[l_i, j])^2
      + shrinkage * sum over clusters l and columns j of  (c[l, j] - mean_j)^2

The second part is that of `shrinkage` more units of weight in every cluster and column, at the
column's mean, that never move: they are added to the totals here, and no other formula knows of
them. Every formula that the objective takes part in is in this file; another term in what rows
are compared by is another class like this one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kpod._engine.step import Drift
from kpod._engine.table import Table
from kpod._kernels import lloyd as comparing
from kpod._kernels import rows as kernels
from kpod._kernels.panel import Panel, side_by_side
from kpod._kernels.rows import Sums
from kpod._typing import AnyFloats, Floats, Singles

# A factor beyond any that occurs, whose root single precision still holds.
ANY_GAIN = 1e30


class Means(NamedTuple):
    """The best centers of some labels, and the weight behind each entry of them."""

    centers: Floats
    counts: Floats


class MoveFactors(NamedTuple):
    """What squared differences cost and gain when a row moves, as `step.Screen` takes them."""

    joining: AnyFloats
    own: Floats
    largest_gains: Singles
    smallest_cost: float


class Objective:
    """The loss over observed entries, with shrinkage.

    Parameters
    ----------
    table : Table
    k : int
    shrinkage : float
    """

    def __init__(self, table: Table, k: int, shrinkage: float = 0.0) -> None:
        self.table, self.k = table, k
        weight = np.where(table.live, float(shrinkage), 0.0)
        self.prior: Floats = np.stack([weight, weight * table.fallback])
        self.max_weight = 1.0 if table.weights is None else float(table.weights.max())

    def empty_sums(self) -> Sums:
        """Totals of nothing, in the units of the table's sums."""
        return Sums(self.k, *self.table.sums_units)

    def means(self, totals: Sums) -> Means:
        """The centers that are best for the totals: the mean of what each cluster observed.

        A column of which it observed nothing has the column's mean.
        """
        means = Means(np.empty((self.k, self.table.n_columns)), np.empty((self.k, self.table.n_columns)))
        kernels.means(totals, self.prior, self.table.fallback, *means)
        return means

    def counts(self, totals: Sums) -> Floats:
        """The weight of the observed entries alone."""
        return totals.counts[::-1].sum(axis=0)

    def is_empty(self, totals: Sums) -> Any:
        """Whether nothing that was observed is in a cluster."""
        return ~(totals.counts > 0).any(axis=(0, 2))

    def excess(self, means: Means, centers: Floats) -> float:
        """How much higher the objective is at other centers than at the best ones."""
        return float((means.counts * (centers - means.centers) ** 2).sum())

    def penalty(self, centers: Floats) -> float:
        """What the objective adds to the loss."""
        return float((self.prior[0] * (centers - self.table.fallback) ** 2).sum())

    def panel(self, centers: Floats) -> Panel:
        """What rows are compared with."""
        return Panel(centers)

    def drift(self, before: Panel, after: Panel) -> Drift:
        """How far centers moved."""
        drift = Drift.none(self.k)
        comparing.drift(before.centers, after.centers, *drift)
        return drift

    def moving_gain(self, z: Floats, weight: float, means: Means, now: int, to: int) -> float:
        """By how much moving one row lowers the objective, exactly.

        With n the count of a cluster in a column, leaving gains w n / (n - w) (z - c)^2 there and
        joining costs w n / (n + w) (z - c)^2; a column that the row alone supports gains nothing,
        one that nobody supports costs nothing.
        """
        seen = ~np.isnan(z)
        leaves, joins = means.counts[now, seen], means.counts[to, seen]
        others = np.where(leaves > weight * (1 + 1e-9), leaves - weight, np.inf)
        gain = (leaves / others * (z[seen] - means.centers[now, seen]) ** 2).sum()
        cost = (joins / (joins + weight) * (z[seen] - means.centers[to, seen]) ** 2).sum()
        return float(weight * (gain - cost))

    def move_factors(self, means: Means) -> MoveFactors:
        """The factors of `moving_gain` for rows of the largest weight, which bound all others'."""
        counts, weight = means.counts, self.max_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            joining = np.nan_to_num(counts / (counts + weight))
            leaving = np.where(counts > weight, counts / (counts - weight), 0.0)
        if self.table.weighted:  # whether the row alone supports a column depends on the row
            leaving[(counts > 0) & (counts <= weight * (1 + 1e-9))] = ANY_GAIN
        live = self.table.live
        return MoveFactors(
            side_by_side(joining, self.table.dtype),
            np.stack([means.centers, leaving], axis=2),
            np.sqrt(np.maximum(leaving.max(axis=1), 1) * (1 + 1e-6)).astype(np.float32),
            float(np.sqrt(joining[:, live].min() * (1 - 1e-6))),
        )
