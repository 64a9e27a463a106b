"""`lloyd`: assign every row to its nearest center, move the centers to their rows, repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine import step
from kpod._engine.executors import Executor
from kpod._engine.objective import GapModel, GapObjective, Means, Objective, panel_of
from kpod._engine.sizes import CALL_WORK, CREEP
from kpod._engine.solvers.interface import Settings, Snapshot, Solution, Start
from kpod._engine.solvers.nearest import by_size, labels_of, loss_of
from kpod._engine.step import Assign, Drift, Partial, Recall, Relabelled, State
from kpod._engine.table import Table
from kpod._kernels import descent
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Sums

# Rounds of assignment and update after which labels that ties pass to and fro are left alone.
MOST_ROUNDS = 10


@dataclass
class Descent:
    """A clustering on its way down: states of the blocks, totals, centers.

    `loss` is that at the best centers of the labels, with what shrinkage adds. It is followed by
    what each step takes off it, which cancels nowhere. `value` is the objective, which is the same
    unless gaps count; `falls` keeps what each iteration took off it, and the trace is made of them
    backwards from the final value, which is computed afresh.
    """

    table: Table
    executor: Executor
    centers: Floats
    settings: Settings = field(default_factory=Settings)
    model: GapModel | None = None  # what rows are compared by beside the centers

    def __post_init__(self) -> None:
        self.k = len(self.centers)
        of = GapObjective if self.settings.gaps else Objective
        self.objective = of(self.table, self.k, self.settings.shrinkage)
        self.model = self.model or self.objective.start()
        self.states: list[Any] = [None] * len(self.table.blocks)
        self.totals = self.objective.empty_sums()
        self.panel: Panel | None = None  # what bounds and lost states refer to
        self.relabelled: dict[int, int] = {}  # rows that changed their label since that panel
        self.numbers: Labels | None = None  # of the clusters, if they were numbered anew since
        self.means: Means | None = None
        self.loss = np.inf
        self.falls: list[float] = []
        self.losses: list[float] = []
        self.labels_unchanged = False  # whether the last thing done changed no label
        self.spaces = step.Spaces()
        self.iteration = 0
        self.lowest = self.value
        self.path = self.centers  # the means after each iteration, which momentum follows
        self.run = 0  # how many steps they have been going one way

    def snapshot(self) -> Snapshot:
        """What the rest of the descent depends on; states are not, as long as labels are a cache."""
        assert self.panel is not None
        recall = self.recall().relabelled
        panel = {
            f"panel_{name}": getattr(self.panel, name)
            for name in ("centers", "offsets", "terms", "roots")
            if getattr(self.panel, name) is not None
        }
        return {
            **panel,
            **{f"totals_{name}": getattr(self.totals, name).copy() for name in ("sums", "counts", "weights")},
            "centers": self.centers.copy(),
            "path": self.path.copy(),
            "falls": np.array(self.falls),
            "losses": np.array(self.losses),
            "numbers": np.array([self.loss, self.lowest]),
            "counted": np.array([self.iteration, self.run]),
            "relabelled": recall.rows,
            "relabelled_as": recall.labels,
        }

    def restore(self, kept: Snapshot) -> None:
        """Go on from a snapshot."""
        parts = (kept.get(f"panel_{name}") for name in ("offsets", "terms", "roots"))
        self.panel = Panel(kept["panel_centers"], *parts)
        for name in ("sums", "counts", "weights"):
            getattr(self.totals, name)[...] = kept[f"totals_{name}"]
        self.centers, self.path = kept["centers"], kept["path"]
        self.falls, self.losses = kept["falls"].tolist(), kept["losses"].tolist()
        self.loss, self.lowest = kept["numbers"].tolist()
        self.iteration, self.run = kept["counted"].tolist()
        self.relabelled = dict(zip(kept["relabelled"].tolist(), kept["relabelled_as"].tolist(), strict=True))
        self.means = self.objective.means(self.totals)

    def keep(self, more: Callable[[], Snapshot] = dict) -> None:
        """Pass a snapshot to the checkpoint, if there is one."""
        if self.settings.keep is not None:
            self.settings.keep(lambda: self.snapshot() | more())

    @property
    def value(self) -> float:
        """The objective at the best centers of the labels."""
        return self.objective.value(self.loss, self.totals) if np.isfinite(self.loss) else np.inf

    def recall(self) -> Recall:
        """What a state that is lost now would be made again from."""
        rows = sorted(self.relabelled)
        labels = np.array([self.relabelled[row] for row in rows], np.int32)
        return Recall(self.panel, Relabelled(np.array(rows, np.intp), labels), self.numbers)

    def labels(self) -> Labels:
        """The labels of all rows."""
        return labels_of(self.table, self.executor, self.states, self.recall())

    def settle_relabelled(self) -> None:
        """Write labels that rows were given since the last assignment into the states."""
        if not self.relabelled:
            return
        recall = self.recall()
        for number, block in enumerate(self.table.blocks):
            with block.rows() as rows:
                self.states[number] = recall(block, rows, self.states[number], self.spaces)
        self.relabelled = {}

    def drift_to(self, panel: Panel) -> Drift:
        if self.panel is None:
            return Drift.none(self.k)
        before = self.panel if self.numbers is None else permuted(self.panel, np.argsort(self.numbers))
        return self.objective.drift(before, panel)

    def assign(self) -> int:
        """Give every row its nearest center, and bring totals and value up to date.

        Returns how many rows changed their label.
        """
        if self.means is not None:
            self.model = self.objective.model(self.totals, self.loss)
        panel = panel_of(self.centers, self.model)
        self.states, found = self.executor.accumulate(
            Assign(panel, self.drift_to(panel), self.recall(), self.settings.bounded, self.spaces),
            self.table.blocks,
            self.states,
            partial(Partial.empty, self.k, *self.table.sums_units),
        )
        self.panel, self.relabelled, self.numbers = panel, {}, None
        at_centers = -found.gain
        if self.means is None:
            at_centers += self.objective.penalty(self.centers)
        else:
            at_centers += self.loss + self.objective.excess(self.means, self.centers)
        if found.changed or self.means is None:
            self.totals.add(found.sums)  # type: ignore[arg-type]
            self.means = self.objective.means(self.totals)
        self.loss = at_centers - self.objective.excess(self.means, self.centers)
        return found.changed

    def update(self) -> float:
        """Put the centers where their rows are; returns the squared distance they moved."""
        assert self.means is not None
        before = self.centers
        empty = np.flatnonzero(self.objective.is_empty(self.totals))
        if len(empty):
            self.relocate(empty)
        self.centers = self.means.centers
        return descent.squared_distance(self.centers, before)

    def relocate(self, empty: Positions) -> None:
        """Move the row with the largest loss to each empty cluster, if that lowers the loss."""
        self.states, worst = self.executor.accumulate(
            step.Worst(self.means.centers, len(empty), self.recall()),  # type: ignore[union-attr]
            self.table.blocks,
            self.states,
            step.WorstRows,
        )
        for cluster, row in zip(empty, worst.first(len(empty)), strict=False):
            if row.loss == 0:  # nothing to gain; and a row without weight can gain nothing
                continue
            gain = self.objective.moving_gain(row.entries, row.weight, self.means, row.label, int(cluster))  # type: ignore[arg-type]
            more = self.objective.gap_gain(
                row.entries, row.weight, self.totals, self.loss, row.label, int(cluster)
            )
            if gain + more <= 1e-12 * row.loss:
                continue
            transfer(self.totals, row.entries, row.weight, row.label, int(cluster))
            self.relabelled[row.row] = int(cluster)
            self.means = self.objective.means(self.totals)
            self.loss -= gain

    @property
    def is_simple(self) -> bool:
        """Whether there is nothing but one block of rows, without a callback or a checkpoint."""
        settings = self.settings
        callbacks = (settings.iteration_callback, settings.keep, settings.resume)
        local = len(self.table.blocks) == 1 and not self.executor.remote
        return local and settings.bounded and callbacks == (None, None, None)

    @property
    def creeping(self) -> range:
        """The iterations after which centers that still move get momentum."""
        settings = self.settings
        may = self.table.has_gaps and not settings.gaps
        return range(CREEP, settings.max_iter - 1) if may else range(0)

    def descend(self) -> tuple[int, int | None]:
        """The iterations from the first in compiled code: the same steps as below.

        Returns why it stopped, and where a cluster is empty, how many rows its last assignment changed.
        """
        (block,), k, objective = self.table.blocks, self.k, self.objective
        self.states = [State.unknown(block.n_rows, scratch=block.scratch)]
        self.panel = panel_of(self.centers.copy(), self.model)
        self.centers = np.array(self.centers, np.float64, order="C")
        self.means, self.path = objective.empty_means(), self.centers.copy()
        most, creeping = self.settings.max_iter, self.creeping
        penalty, little = objective.penalty(self.centers), self.settings.tol * self.table.variance
        little_fall = objective.little_fall(self.settings.tol, 0.0)
        at_once = max(1, CALL_WORK // (k * max(1, block.n_entries)))
        why, changed = descent.GOING, 0
        with block.rows() as rows, self.spaces.of(rows, step.widest(self.panel), rows.chunk) as space:
            while why == descent.GOING and self.iteration < most:
                falls, losses = np.empty((2, min(at_once, most - self.iteration)))
                state = self.states[0]
                why, n, changed, self.loss, self.lowest, self.run = descent.descend(
                    rows, self.panel, objective.likelihood, self.totals, objective.prior, self.table.fallback,
                    self.centers, *self.means, state.labels, state.upper, state.lower, self.loss, self.lowest,
                    penalty, little, little_fall, self.path, self.run, self.iteration, creeping.start,
                    creeping.stop, falls, losses, space,
                )  # fmt: skip
                self.falls += falls[:n].tolist()
                self.losses += losses[:n].tolist()
                self.iteration += n
        return why, changed if why == descent.EMPTY else None

    def lloyd(self) -> bool:
        """Assignment and update in turn; whether they converged within `max_iter`.

        Beyond `CREEP` iterations on a table with gaps, each center goes on beyond the mean of its
        rows by a share of its last step: Nesterov's momentum, which grows with every step and
        starts anew when the steps turn round or the objective rises. If it rises, the step is
        taken back: the next assignment is from the means. The last one always is.
        """
        settings, table, creeping = self.settings, self.table, self.creeping
        why, pending = descent.GOING, None
        if self.is_simple:
            why, pending = self.descend()
        if why in (descent.UNCHANGED, descent.LITTLE):
            self.labels_unchanged = why == descent.UNCHANGED
            return True
        for iteration in range(self.iteration + 1, settings.max_iter + 1):
            self.iteration = iteration
            before = self.centers
            changed, pending = self.assign() if pending is None else pending, None
            moved = self.update()
            value = self.value
            fall = self.lowest - value
            if self.run > 1 and fall < 0:
                self.note("lloyd", iteration, 0.0)
                self.centers, self.run = self.path, 0
                self.keep()
                continue
            self.note("lloyd", iteration, max(fall, 0.0))
            self.lowest = value
            if self.run <= 1 and ((changed == 0 and not self.relabelled) or fall <= 0):
                self.labels_unchanged = True
                return True
            if moved <= settings.tol * table.variance and (
                not settings.gaps or fall <= self.objective.little_fall(settings.tol, value)
            ):
                return True
            step_, self.path = self.centers - self.path, self.centers
            if iteration not in creeping or descent.along(self.path, before, step_) < 0:
                self.run = 0
            self.run += 1
            if self.run > 1:
                self.centers = np.empty_like(self.path)
                descent.go_beyond(self.centers, self.path, step_, self.run)
            self.keep()
        return False

    def note(self, what: str, iteration: int, fall: float) -> None:
        """Record an iteration, and call the callback."""
        self.falls.append(fall)
        self.losses.append(max(self.loss, 0.0))  # a difference, which rounding may take below 0
        if self.settings.iteration_callback is not None:
            self.settings.iteration_callback(what, iteration, self.value)

    def order_by_size(self) -> Positions:
        """The clusters from the largest to the smallest, by the rows that get a label."""
        table = self.table
        if table.weighted:
            count = step.CountLabels(self.recall(), self.spaces)
            none = partial(step.LabelCounts.none, self.k)
            sizes = self.executor.accumulate(count, table.blocks, self.states, none)[1].n
        else:
            sizes = self.totals.weights[::-1].sum(axis=0)
        if not self.settings.gaps:  # a row with nothing observed is at the first center
            sizes[0] -= table.n_empty
        return by_size(sizes, self.centers)

    def is_by_size(self) -> bool:
        return np.array_equal(self.order_by_size(), np.arange(self.k))

    def renumber(self, order: Positions) -> None:
        """Give the clusters other numbers; labels follow with the next assignment."""
        assert self.means is not None
        self.centers = self.centers[order]
        self.means = Means(*(values[order] for values in self.means))
        for values in (self.totals.sums, self.totals.counts, self.totals.weights):
            values[...] = values[:, order]
        self.numbers = np.argsort(order).astype(np.int32)

    def finish(self, n_iter: int, converged: bool) -> Solution:
        """Consistent labels, centers and loss; clusters numbered by size, if requested.

        Centers are rounded to what is kept of them, and rows assigned to that, so that whoever
        assigns them again gets the same labels. Centers that converged are those of their labels:
        where ties pass a row on, they follow it. Of centers at the same distance a row goes to the first, and
        so to that of the larger cluster: clusters are numbered before rows are assigned.
        """
        objective, in_order = self.objective, np.arange(self.k)
        for number in range(MOST_ROUNDS):
            self.centers = rounded(self.centers, self.table)
            order = self.order_by_size() if self.settings.by_size else in_order
            if not np.array_equal(order, in_order):
                self.renumber(order)
            value = self.value
            changed = self.assign()
            settled = not changed or not self.labels_unchanged or (number and self.value >= value)
            numbered = not changed or not self.settings.by_size or self.is_by_size()
            if (settled and numbered) or number == MOST_ROUNDS - 1:
                break  # or else labels would not be those of the centers
            if not settled:
                self.centers = self.means.centers  # type: ignore[union-attr]
        loss = loss_of(self.table, self.executor, self.states, self.centers, self.recall())
        for state in self.states:  # two thirds of what a row takes, before labels are copied
            if isinstance(state, State):
                state.drop_bounds()
        value = objective.value(loss + objective.penalty(self.centers), self.totals)
        return Solution(
            self.labels() if self.settings.labels else np.empty(0, np.int32),
            self.centers,
            objective.counts(self.totals),
            loss,
            value,
            trace_of(self.falls, value),
            n_iter,
            converged,
            [*self.losses[:-1], loss + objective.penalty(self.centers)],
            self.model,
        )


def permuted(panel: Panel, order: Positions) -> Panel:
    """The panel with its centers in another order."""
    offsets, terms = (None if part is None else part[order] for part in (panel.offsets, panel.terms))
    roots = None if panel.roots is None else np.ascontiguousarray(panel.roots[:, order])
    return Panel(panel.centers[order], offsets, terms, roots)


def trace_of(falls: list[float], end: float) -> list[float]:
    """The objective after each iteration, from the decreases and the final value."""
    trace = [end]
    for fall in falls[:0:-1]:
        trace.append(trace[-1] + fall)
    return trace[::-1]


def rounded(centers: Floats, table: Table) -> Floats:
    """Centers as they are kept, in the table's own units and precision, back in the engine's."""
    return table.units.to(table.units.back(centers).astype(table.dtype))


def transfer(totals: Sums, z: Floats, weight: float, now: int, to: int) -> None:
    """Move one row from one cluster to another in the totals, as the kernels would."""
    seen = ~np.isnan(z)
    parts = split(weight * z[seen], totals.anchors[:, seen])
    n_levels = len(totals.counts)
    weights: list[Any] = [weight] if n_levels == 1 else split(weight, totals.weight_anchors)
    for label, sign in ((now, -1), (to, 1)):
        for level, part in enumerate(parts):
            totals.sums[level, label, seen] += sign * part
        for level, part in enumerate(weights):
            totals.counts[level, label, seen] += sign * part
            totals.weights[level, label] += sign * part


def split(value: Any, anchors: Floats) -> list[Any]:
    """A value split into whole multiples of the units of the anchors, coarse to fine."""
    parts = []
    for anchor in anchors:
        parts.append((value + anchor) - anchor)
        value = value - parts[-1]
    return parts


def lloyd(table: Table, executor: Executor, start: Start, settings: Settings) -> Solution:
    """Assign every row to its nearest center, move the centers to their rows, repeat."""
    descent = Descent(table, executor, start.centers, settings, start.gaps)
    if settings.resume is not None:
        descent.restore(settings.resume)
    converged = descent.lloyd()
    return descent.finish(len(descent.falls), converged)
