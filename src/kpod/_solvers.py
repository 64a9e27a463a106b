"""The loops that lower the loss: `lloyd`, `hartigan` and the paper's `mm`.

    loss(labels, centers) = sum over rows i and observed columns j
                            of  w_i * (x_ij - centers[labels_i, j])^2

A solver takes a table, initial centers and settings, and returns one `Solution`. All of
them end with the exact centers of their labels, and report the loss of that pair.

With shrinkage the objective is

    loss + shrinkage * sum over clusters l and columns j of (centers[l, j] - mean_j)^2

which is that of `shrinkage` more units of weight in every cluster and column, at the
column's mean, that never move. They are part of the totals here; no formula knows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kpod._blocks import SINGLE, AnyFloats, DenseTable, Floats, Labels, Positions, Span, Table, Totals
from kpod._kernels import chunks

# Up to this many observed entries, sweeps of single-row moves go on until no row moves. Beyond,
# they are a polish: one that gains little is the last, and so is the sixtieth, because columns
# that few rows observe give the bounds nothing to hold on to and each may read the whole table.
MANY_ENTRIES = 300_000
MAX_SWEEPS = 60

# Many gaps make Lloyd creep: centers take hundreds of small steps in one direction. Beyond this
# many iterations they get momentum, in tables of more than so many observed entries: smaller ones
# take no time, and there Lloyd is what the textbook says.
CREEP = 20
CREEPING_ENTRIES = 100_000

# A factor beyond any that occurs, whose root single precision still holds.
LARGE = 1e30

# A drift that no bound survives, and single precision holds.
FARTHEST = 1e38


@dataclass(frozen=True)
class Settings:
    """When to stop, and whom to tell: `report` hears the loss after every iteration.

    Lloyd rests when a step moves the centers by no more than `tol` times the mean variance of the
    columns (squared, in all); with 0, when no row changes. Single-row moves rest when no row
    moves; in a table of more than `MANY_ENTRIES`, also when a sweep lowers the loss by no more
    than a tenth of `tol` of it.
    """

    max_iter: int = 300
    tol: float = 0.0
    shrinkage: float = 0.0
    report: Callable[[str, int, float], None] | None = None
    bounded: bool = True


@dataclass(frozen=True)
class Start:
    """Initial centers, less the table's shift; labels too where the seeding has its own."""

    centers: Floats
    labels: Labels | None = None


@dataclass(frozen=True)
class Solution:
    """Labels (-1: nothing observed), their exact centers and counts, and how they came.

    `loss` is the plain loss, `objective` the same with what shrinkage adds, `trace` the
    objective after each iteration.
    """

    labels: Labels
    centers: Floats
    counts: Floats
    loss: float
    objective: float
    trace: list[float]
    n_iter: int
    converged: bool


@dataclass
class Descent:
    """A clustering on its way down: labels, totals, centers, and bounds on distances.

    `upper` is at least the distance of a row to its own center, `lower` at most that to
    any other. For a fixed row, partial distance is a seminorm of the center, so a center
    that moves by d over all columns changes it by at most d: the bounds are carried from
    one step to the next by the drift of the centers, and rows they settle are not read.
    """

    table: Table
    centers: Floats
    settings: Settings
    trace: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        table, k = self.table, len(self.centers)
        self.k = k
        self.labels: Labels = np.full(table.n_rows, -1, np.int32)
        self.upper = np.where(table.observed == 0, np.float32(0), np.float32(np.inf))
        self.lower = np.where(table.observed == 0, np.float32(np.inf), np.float32(0))
        self.prior = prior_totals(table, k, self.settings.shrinkage)
        self.totals = Totals(*(part.copy() for part in self.prior))
        self.deltas: dict[Span, Floats] = {}
        self.drift = np.zeros(k, np.float32)
        self.others = np.zeros(k, np.float32)
        self.max_weight = 1.0 if table.weights is None else float(table.weights.max())
        self.epsilon = float(np.finfo(table.dtype).eps) / 2

    def start_from(self, labels: Labels) -> None:
        """Begin with these labels, which a row then leaves only for a nearer center."""
        self.labels[...] = labels
        self.upper[...] = np.inf
        self.totals = with_prior(self.table.totals(self.labels, self.k), self.prior)

    def assign(self, *, add_up: bool = True) -> None:
        """Give every row its nearest center.

        Without `add_up` the totals, and all that rests on them, are left behind.
        """
        table = self.table
        panel, offsets = table.panel(self.centers), table.offsets(self.k)
        single, single_offsets = panel, offsets
        if table.dtype != SINGLE:  # for a first look
            single, single_offsets = table.panel(self.centers, SINGLE), table.offsets(self.k, SINGLE)
        few, longest = table.few(self.k), self.longest()
        tie = self.tie(longest)
        if not self.settings.bounded:
            np.copyto(self.upper, np.float32(np.inf), where=table.observed > 0)

        def run(block: Span, space: chunks.Workspace) -> tuple[int, Floats]:
            totals = self.delta(block) if add_up else np.empty((2, 0, table.n_columns))
            changed = 0
            for piece in table.pieces(block, self.k):
                changed += chunks.assign(
                    table.rows, *piece, panel, offsets, single, single_offsets, longest,
                    few, self.epsilon, tie, self.drift, self.others,
                    self.labels, self.upper, self.lower, totals[0], totals[1], space,
                )  # fmt: skip
            return changed, totals

        results = table.map_distances(run, self.k)
        for changed, delta in results:
            if changed and add_up:
                self.totals.sums[...] += delta[0]
                self.totals.counts[...] += delta[1]

    def longest(self) -> float:
        """Norm of the longest center; infinite if its square is, which leaves every row in doubt."""
        with np.errstate(over="ignore"):
            return float(np.sqrt((self.centers**2).sum(axis=1).max()))

    def tie(self, longest: float) -> float:
        """How far the rounding of its totals may move a center, in double precision.

        In single precision no distance is that exact.
        """
        if self.table.dtype == SINGLE or not np.isfinite(longest):
            return 0.0
        return 16 * self.epsilon * longest

    def delta(self, block: Span) -> Floats:
        """Zeros for what an assignment adds to the totals; the memory is used again."""
        if block not in self.deltas:
            self.deltas[block] = np.zeros((2, self.k, self.table.n_columns))
        else:
            self.deltas[block].fill(0)
        return self.deltas[block]

    def update(self) -> float:
        """Put the centers where their rows are; returns the squared distance they moved."""
        before = self.centers
        self.centers = exact_centers(self.table, self.totals)
        weight = (self.totals.counts - self.prior.counts).sum(axis=1)
        empty = np.flatnonzero(weight <= self.table.tiny)
        if len(empty):
            self.relocate(empty)
        return self.carry_bounds(before)

    def carry_bounds(self, before: Floats) -> float:
        """Note how far the centers moved from `before`, for the bounds to be carried by.

        Rows are compared with centers rounded to the table's precision, so that is what counts;
        returned is the squared distance without rounding.
        """
        dtype = self.table.dtype
        with np.errstate(over="ignore"):
            moved = float(((self.centers - before) ** 2).sum())
            seen = self.centers.astype(dtype).astype(np.float64) - before.astype(dtype)
            distance = np.sqrt((seen**2).sum(axis=1)) * (1 + 1e-6)
        self.drift = np.minimum(distance, FARTHEST).astype(np.float32)
        farthest = int(self.drift.argmax())
        self.others = np.full(self.k, self.drift[farthest], np.float32)
        self.others[farthest] = np.partition(self.drift, -2)[-2] if self.k > 1 else 0
        return moved

    def relocate(self, empty: Positions) -> None:
        """Give each empty cluster the row that loses most where it is, if that helps."""
        losses = self.table.losses(self.labels, self.centers)
        farthest = np.argsort(-losses, kind="stable")[: len(empty)]
        weights = 1.0 if self.table.weights is None else self.table.weights[farthest]
        farthest = farthest[losses[farthest] > weights * self.tie(self.longest()) ** 2]
        for cluster, row in zip(empty, farthest, strict=False):
            donor = int(self.labels[row])
            entries = self.table.entries(np.array([row]))[0].astype(np.float64)
            weight = 1.0 if self.table.weights is None else float(self.table.weights[row])
            observed = ~np.isnan(entries)
            z = entries[observed]
            leaves, joins = self.totals.counts[donor, observed], self.totals.counts[cluster, observed]
            others = np.where(leaves > weight * (1 + 1e-9), leaves - weight, np.inf)
            gain = (leaves / others * (z - self.centers[donor, observed]) ** 2).sum()
            cost = (joins / (joins + weight) * (z - self.centers[cluster, observed]) ** 2).sum()
            if gain <= cost:
                continue
            for label, sign in ((donor, -1), (cluster, 1)):
                self.totals.sums[label, observed] += sign * weight * z
                self.totals.counts[label, observed] += sign * weight
            self.labels[row] = cluster
            self.upper[row], self.lower[row] = np.inf, 0
            self.centers = exact_centers(self.table, self.totals)

    def objective(self) -> float:
        """The objective of the labels with their exact centers, from the totals alone."""
        sums, counts = self.totals
        explained = np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
        prior = (self.prior.sums * self.table.fallback).sum()
        return max(float(self.table.squares.sum() + prior - explained.sum()), 0.0)

    def lloyd(self) -> bool:
        """Assignment and update in turn; whether they came to rest within `max_iter`.

        Where Lloyd creeps, each center goes on beyond the mean of its rows by a share of its last
        step: Nesterov's momentum, which grows with every step and starts anew when the steps turn
        round or the objective rises. If it rises, the step is taken back: the next assignment is
        from the means. The last one always is.
        """
        settings, table = self.settings, self.table
        slow = table.has_gaps and table.n_observed > CREEPING_ENTRIES
        creeping = range(CREEP, settings.max_iter - 1) if slow else range(0)
        means, run = self.centers, 0  # how many steps the centers have been going one way
        for iteration in range(1, settings.max_iter + 1):
            before = self.centers
            self.assign()
            moved = self.update()
            objective = self.objective()
            if run > 1 and objective > self.trace[-1]:
                self.note("lloyd", iteration, self.trace[-1])
                self.centers, run = means, 0
                self.carry_bounds(before)
                continue
            self.note("lloyd", iteration, objective)
            if moved <= settings.tol * table.variance:
                return True
            step, means = self.centers - means, self.centers
            if iteration not in creeping or ((means - before) * step).sum() < 0:
                run = 0
            run += 1
            if run > 1:
                self.centers = means + momentum(run) * step
                self.carry_bounds(before)
        return False

    def note(self, step: str, iteration: int, loss: float) -> None:
        self.trace.append(loss)
        if self.settings.report is not None:
            self.settings.report(step, iteration, loss)

    def hartigan(self) -> bool:
        """Sweeps of single-row moves until none lowers the loss, or the centers rest."""
        members = self.labels >= 0
        if self.table.weights is not None:
            members &= self.table.weights > 0
        sizes = np.bincount(self.labels[members], minlength=self.k).astype(np.int64)
        found = np.empty(self.table.n_rows, np.intp)
        many = self.table.n_observed > MANY_ENTRIES
        n_sweeps = min(self.settings.max_iter, MAX_SWEEPS) if many else self.settings.max_iter
        for sweep in range(1, n_sweeps + 1):
            before = self.centers.copy()
            moves, lowered = self.move(self.screen(found), sizes)
            if moves == 0:
                return True
            self.carry_bounds(before)
            self.note("moves", sweep, self.trace[-1] - lowered)
            if many and lowered <= 0.1 * self.settings.tol * self.trace[-1]:
                return True
        return n_sweeps < self.settings.max_iter

    def screen(self, found: Positions) -> Positions:
        """Rows that a move may pay for, in order."""
        table, weight = self.table, self.max_weight
        counts, centers = np.maximum(self.totals.counts, 0), self.centers  # weights may cancel to less
        with np.errstate(divide="ignore", invalid="ignore"):
            joining = counts / (counts + weight)
            # A column that the row alone supports gains nothing; with unequal weights, whether it
            # does depends on the row, and any gain is possible.
            leaving = np.where(counts > weight, counts / (counts - weight), 0.0)
        if table.weights is not None:
            leaving[(counts > 0) & (counts <= weight)] = LARGE
        live = ~np.isnan(table.shift)
        panels = table.panel(centers), table.panel(joining), table.offsets(self.k)
        own = np.stack([centers, leaving], axis=2)
        bounds = (
            np.sqrt(np.maximum(leaving.max(axis=1), 1) * (1 + 1e-6)).astype(np.float32),
            float(np.sqrt(np.nan_to_num(joining[:, live]).min() * (1 - 1e-6))),
        )

        def run(block: Span, space: chunks.Workspace) -> Positions:
            n = 0
            for piece in table.pieces(block, self.k):
                n += chunks.screen(
                    table.rows, *piece, *panels, self.epsilon, self.drift, self.others, *bounds,
                    self.labels, self.upper, self.lower, own,
                    found[block.start + n : block.stop], space,
                )  # fmt: skip
            return found[block.start : block.start + n]

        return np.concatenate(table.map_distances(run, self.k))

    def move(self, candidates: Positions, sizes: NDArray[np.int64]) -> tuple[int, float]:
        """Try the candidates one by one; returns the number of moves and what they gained."""
        table = self.table
        labels = self.labels[candidates]
        moves, lowered = 0, 0.0
        space = chunks.Workspace(table.longest_row, 1, 1)
        step = table.rows_per_call(8 * self.k)  # one at a time is slower than side by side
        for at in range(0, len(candidates), step):
            some = candidates[at : at + step]
            n, gain = chunks.move(
                table.rows, some, table.like, table.fallback, self.labels, self.centers,
                *self.totals, sizes, space,
            )  # fmt: skip
            moves += n
            lowered += gain
        moved = candidates[self.labels[candidates] != labels]
        self.upper[moved], self.lower[moved] = np.inf, 0
        return moves, lowered

    def finish(self, n_iter: int, converged: bool) -> Solution:
        """The exact centers and loss of the labels, free of what rounding piled up."""
        if self.table.weights is not None:
            weightless = self.table.weights == 0
            if weightless.any():
                self.labels[weightless] = nearest(self.table, self.centers)[weightless]
        return solution(self.table, self.labels, self.prior, self.trace, n_iter, converged)


def momentum(run: int) -> float:
    """The share of the last step that centers go on by when they take their `run`-th one way."""
    return (run - 1) / (run + 2)


def prior_totals(table: Table, k: int, shrinkage: float) -> Totals:
    """The weight that never moves: `shrinkage` at the mean of every column of every cluster."""
    live = ~np.isnan(table.shift)
    counts = np.tile(np.where(live, shrinkage, 0.0), (k, 1))
    return Totals(counts * table.fallback, counts)


def with_prior(totals: Totals, prior: Totals) -> Totals:
    return Totals(totals.sums + prior.sums, totals.counts + prior.counts)


def exact_centers(table: Table, totals: Totals) -> Floats:
    """Mean of the observed entries of each cluster; the column's mean where it has none."""
    fallback = np.broadcast_to(table.fallback, totals.sums.shape).copy()
    return np.divide(totals.sums, totals.counts, out=fallback, where=totals.counts > table.tiny)


def solution(
    table: Table, labels: Labels, prior: Totals, trace: list[float], n_iter: int, converged: bool
) -> Solution:
    """The exact centers of the labels, added up afresh, and the loss of that pair."""
    totals = table.totals(labels, len(prior.counts))
    centers = exact_centers(table, with_prior(totals, prior))
    loss = table.loss(labels, centers)
    objective = loss + float((prior.counts * (centers - table.fallback) ** 2).sum())
    trace = [*trace[:-1], objective]
    return Solution(labels, centers, totals.counts, loss, objective, trace, n_iter, converged)


def nearest(table: Table, centers: Floats) -> Labels:
    """The label of every row's nearest center, -1 where nothing is observed."""
    descent = Descent(table, centers, Settings())
    descent.assign(add_up=False)
    return descent.labels


def lloyd(table: Table, start: Start, settings: Settings) -> Solution:
    """Assign every row to its nearest center, move the centers to their rows, repeat."""
    descent = Descent(table, start.centers, settings)
    converged = descent.lloyd()
    return descent.finish(len(descent.trace), converged)


def hartigan(table: Table, start: Start, settings: Settings) -> Solution:
    """Lloyd until it rests, then single rows for as long as moving one lowers the loss."""
    descent = Descent(table, start.centers, settings)
    descent.lloyd()
    n_iter = len(descent.trace)
    converged = descent.hartigan()
    return descent.finish(n_iter, converged)


def mm(table: Table, start: Start, settings: Settings) -> Solution:
    """Algorithm 1 of the paper: fill the gaps from each row's center, run k-means, repeat.

    The k-means inside is Lloyd followed by single-row moves on the filled table, as R's
    `kmeans` (Hartigan-Wong), which the authors used, amounts to.
    """
    members = np.flatnonzero(table.observed > 0)
    entries = table.entries(members)
    gaps = np.isnan(entries)
    centers = start.centers
    labels = nearest(table, centers) if start.labels is None else start.labels
    weights = None if table.weights is None else table.weights[members]
    trace: list[float] = []
    converged = False
    while len(trace) < settings.max_iter and not converged:
        filled = np.where(gaps, centers[labels[members]], entries).astype(table.dtype)
        inner = Descent(complete_table(table, filled, weights, len(centers)), centers, Settings())
        inner.start_from(labels[members])
        inner.lloyd()
        inner.hartigan()
        converged = np.array_equal(labels[members], inner.labels)
        labels = labels.copy()
        labels[members] = inner.labels
        centers = inner.centers
        trace.append(table.loss(labels, centers))
        if settings.report is not None:
            settings.report("mm", len(trace), trace[-1])
    return solution(table, labels, prior_totals(table, len(centers), 0.0), trace, len(trace), converged)


def complete_table(table: Table, filled: AnyFloats, weights: Floats | None, k: int) -> Table:
    """A table without gaps, whose shift is zero because `table`'s was taken off already."""
    zeros = np.zeros(table.n_columns)
    return DenseTable(filled, table.executor, n_clusters=k, weights=weights, column_means=zeros)


Solver = Callable[[Table, Start, Settings], Solution]
SOLVERS: Mapping[str, Solver] = MappingProxyType({"hartigan": hartigan, "lloyd": lloyd, "mm": mm})
