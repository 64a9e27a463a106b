"""The objective, and its terms.

Over labels l and centers c, it is

    sum over rows i and observed columns j of  w_i (z_ij - c[l_i, j])^2
      + shrinkage * sum over clusters l and columns j of  (c[l, j] - mean_j)^2

The second part is that of `shrinkage` more units of weight in every cluster and column, at the
column's mean, that never move: they are added to the totals here, and no other formula has
them. Every formula that the objective takes part in is in this file; another term in what rows
are compared by is another class like this one: `GapObjective` has one for the gaps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.step import Drift, MoveFactors
from kpod._engine.table import Table
from kpod._kernels import descent, gap_likelihood
from kpod._kernels import lloyd as comparing
from kpod._kernels import rows as kernels
from kpod._kernels.gap_likelihood import GapLikelihood
from kpod._kernels.moves import Gaps
from kpod._kernels.panel import Panel, side_by_side
from kpod._kernels.rows import Sums

# A factor beyond any that occurs, whose root single precision still holds.
ANY_GAIN = 1e30


class Means(NamedTuple):
    """The best centers of some labels, and the weight behind each entry of them."""

    centers: Floats
    counts: Floats


class GapModel(NamedTuple):
    """How the gaps of a row depend on its cluster: fitted by `GapObjective`.

        `missing_rates` (k, p): the share of a cluster's rows that lack a column, 0 or 1 in all clusters
    where missingness is not informative; `shares` (k,) of the rows in each cluster; `variance` of an entry
        within its cluster, in the units of the centers.
    """

    missing_rates: Floats
    shares: Floats
    variance: float


def panel_of(centers: Floats, gaps: GapModel | None = None) -> Panel:
    """What rows are compared with: squared partial distances D, or where gaps count D + variance * T.

    T is -2 sum over columns of ln P(observed or not | cluster) - 2 ln share.
    """
    if gaps is None:
        return Panel(centers)
    rates, shares = np.ascontiguousarray(gaps.missing_rates), np.ascontiguousarray(gaps.shares)
    return Panel(centers, *gap_likelihood.terms(rates, shares, gaps.variance))


class Objective:
    """The loss over observed entries, with shrinkage.

    Parameters
    ----------
    table : Table
    k : int
    shrinkage : float
    """

    likelihood: GapLikelihood | None = None  # of the gaps, where they count

    def __init__(self, table: Table, k: int, shrinkage: float = 0.0) -> None:
        self.table, self.k = table, k
        self.shrinks = shrinkage > 0
        weight = np.where(table.live, float(shrinkage), 0.0)
        self.prior: Floats = np.array([weight, weight * table.fallback])
        self.max_weight = 1.0 if table.weights is None else float(table.weights.max())

    def empty_sums(self) -> Sums:
        """Totals of nothing, in the units of the table's sums."""
        return Sums(self.k, *self.table.sums_units)

    def means(self, totals: Sums) -> Means:
        """The best centers for the totals: the means of the observed entries of each cluster.

        A column of which it observed nothing has the column's mean.
        """
        means = self.empty_means()
        kernels.means(totals, self.prior, self.table.fallback, *means)
        return means

    def empty_means(self) -> Means:
        """Room for the centers of k clusters."""
        return Means(*np.empty((2, self.k, self.table.n_columns)))

    def counts(self, totals: Sums) -> Floats:
        """The weight of the observed entries alone."""
        return totals.counts[::-1].sum(axis=0)

    def is_empty(self, totals: Sums) -> Any:
        """Whether nothing that was observed is in a cluster."""
        return ~(totals.counts > 0).any(axis=(0, 2))

    def excess(self, means: Means, centers: Floats) -> float:
        """How much higher the objective is at other centers than at the best ones."""
        return descent.excess(means.counts, centers, means.centers)

    def penalty(self, centers: Floats) -> float:
        """What the objective adds to the loss."""
        if not self.shrinks:
            return 0.0
        return float((self.prior[0] * (centers - self.table.fallback) ** 2).sum())

    def value(self, loss: float, totals: Sums) -> float:
        """What is minimised, from the loss (with its penalty) of the best centers of the totals."""
        return loss

    def in_own_units(self, value: Any) -> Any:
        """Values of the objective in the units of the table instead of those that are computed with."""
        return value / self.table.units.scale / self.table.units.scale

    def little_fall(self, share: float, value: float) -> float:
        """What falls by a share of the objective come to: smaller ones are too little to go on."""
        return share * value

    def start(self) -> GapModel | None:
        """What else rows are compared by in the first iteration, where a start does not say."""
        return None

    def model(self, totals: Sums, loss: float) -> GapModel | None:
        """What else rows are compared by, best for the totals."""
        return None

    def drift(self, before: Panel, after: Panel) -> Drift:
        """How far centers, and what else rows are compared by, moved.

        What a row is compared by is the squared norm of its differences from a center and of the
        roots of all terms that apply to it, one of two for each column; so its root changes by no
        more than the norm of all changes, the larger of the two for each column.
        """
        drift, more = Drift.none(self.k), None
        if before.roots is not None or after.roots is not None:
            none = np.zeros((3, self.k, self.table.n_columns))
            roots = (none if panel.roots is None else panel.roots for panel in (before, after))
            more = gap_likelihood.distance_moved(*roots)
        comparing.drift(before.centers, after.centers, more, *drift)
        return drift

    def moving_gain(self, z: Floats, weight: float, means: Means, now: int, to: int) -> float:
        """By how much moving one row lowers the objective, exactly.

        With n the count of a cluster in a column, leaving gains w n / (n - w) (z - c)^2 there and
        joining costs w n / (n + w) (z - c)^2; a column that the row alone supports gains nothing,
        one without observations costs nothing.
        """
        seen = ~np.isnan(z)
        leaves, joins = means.counts[now, seen], means.counts[to, seen]
        others = np.where(leaves > weight * (1 + 1e-9), leaves - weight, np.inf)
        gain = (leaves / others * (z[seen] - means.centers[now, seen]) ** 2).sum()
        cost = (joins / (joins + weight) * (z[seen] - means.centers[to, seen]) ** 2).sum()
        return float(weight * (gain - cost))

    def gap_gain(self, z: Floats, weight: float, totals: Sums, loss: float, now: int, to: int) -> float:
        """What the row's gaps add to that."""
        return 0.0

    def gaps_moving(self, totals: Sums, loss: float) -> Gaps | None:
        """What the gaps of a row gain and cost when it moves, where they count."""
        return None

    def moving_panel(self, means: Means, factors: MoveFactors) -> Panel:
        """What rows are compared with by `step.Screen`."""
        gaps = factors.gaps
        return Panel(means.centers) if gaps is None else Panel(means.centers, gaps.join_offsets, gaps.join)

    def move_factors(self, means: Means, totals: Sums, loss: float) -> MoveFactors:
        """The factors of `moving_gain` for rows of the largest weight, which bound all others'."""
        counts, weight = means.counts, self.max_weight
        joining = counts / (counts + weight)
        leaving = np.zeros_like(counts)
        np.divide(counts, counts - weight, out=leaving, where=counts > weight)
        if self.table.weighted:  # whether the row alone supports a column depends on the row
            leaving[(counts > 0) & (counts <= weight * (1 + 1e-9))] = ANY_GAIN
        own = np.empty((*counts.shape, 2))
        own[..., 0], own[..., 1] = means.centers, leaving
        live = self.table.live
        smallest = joining.min() if live.all() else joining[:, live].min()
        return MoveFactors(
            side_by_side(joining, self.table.dtype),
            own,
            np.sqrt(np.maximum(leaving.max(axis=1), 1) * (1 + 1e-6)).astype(np.float32),
            math.sqrt(smallest * (1 - 1e-6)),
            self.gaps_moving(totals, loss),
        )


def least_variance(table: Table) -> float:
    """What the variance of an entry within its cluster is taken to be at the least, where gaps count."""
    return max(1e-9 * table.variance, 1e-30)


class GapObjective(Objective):
    """The same with informative missingness.

    Given its cluster l, a row's observed entries have variance s2 around c[l, j], column j is
    observed with probability r[l, j], and the cluster has share pi[l] (MNARz of Sportisse et al.
    2021). Minus twice the classification log-likelihood, with the best c, r, pi and s2, is

        F = loss / s2 + (N - K) ln s2  -  2 sum over l, j of h(M + q) + h(W - M + 1 - q) - h(W + 1)
              -  2 sum over l of h(W + 1)

    with h(u) = u ln u; W the weight of the rows of a cluster, M of those that observe a column, and
    q the share of all that do, which counts as one row more in every cluster; N the weight of all
    observed entries; K = min(k * columns, N / 2) the degrees of freedom of the centers. No weight is
    to be chosen: s2 is the weight of a gap. The indicators of a category are one column: they are missing
    together, and the first of them stands for all.
    """

    def __init__(self, table: Table, k: int, shrinkage: float = 0.0) -> None:
        super().__init__(table, k, shrinkage)
        self.weight = float(table.n_rows if table.weights is None else table.weights.sum())
        share = table.about.weights / self.weight
        # Rounding must not make a gap of none.
        share = np.where((share > 1e-12) & (share < 1 - 1e-12), share, np.round(share))
        self.observed = np.where(table.groups.first, share, 1.0)
        self.n_observed = float(table.about.weights[table.groups.first].sum())
        self.degrees = self.n_observed - min(k * float(table.n_live), self.n_observed / 2)
        floor = least_variance(table)
        self.likelihood: GapLikelihood = GapLikelihood(self.observed, k, self.weight, self.degrees, floor)

    def is_empty(self, totals: Sums) -> Any:
        """Whether no row is in a cluster: one of rows with nothing observed is not."""
        return ~(totals.weights > 0).any(axis=0)

    def start(self) -> GapModel:
        """What rows are compared by where nothing is known of the gaps: they say nothing."""
        return GapModel(np.zeros((self.k, self.table.n_columns)), np.ones(self.k), 1.0)

    def variance(self, loss: float) -> float:
        return self.likelihood.variance(loss)

    def model(self, totals: Sums, loss: float) -> GapModel:
        return GapModel(*self.likelihood.rates(totals), self.variance(loss))

    def value(self, loss: float, totals: Sums) -> float:
        return self.likelihood.value(totals, loss)

    def in_own_units(self, value: Any) -> Any:
        """A table in other units has another F, by a constant."""
        return value - 2 * np.log(self.table.units.scale) * self.degrees

    def little_fall(self, share: float, value: float) -> float:
        """As of the loss: what lowers that by a share of it lowers F by this share of the degrees."""
        return share * self.degrees

    def gap_gain(self, z: Floats, weight: float, totals: Sums, loss: float, now: int, to: int) -> float:
        seen, gaps = ~np.isnan(z), Gaps(totals, self.observed, self.variance(loss), weight)
        gain = gaps.leave_offsets[now] + gaps.leave[now, seen].sum()
        cost = gaps.join_offsets[to] + gaps.join[to, seen].sum()
        return float(weight * (gain - cost))

    def gaps_moving(self, totals: Sums, loss: float) -> Gaps:
        return Gaps(totals, self.observed, self.variance(loss))
