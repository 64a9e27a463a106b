"""Mini-batches: a few rows at a time move the centers, and are then forgotten.

A center is the running mean of the entries its cluster was given, column by column: columns with few
entries take long steps where those with many take short ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.executors import Executor
from kpod._engine.objective import Objective
from kpod._engine.sizes import POOL_ENTRIES, ROWS_PER_LOOK, STRETCH_ENTRIES
from kpod._engine.solvers.nearest import labels_of
from kpod._engine.step import Assign, Drift, Loss, LossSum, Partial, Recall
from kpod._engine.table import Table
from kpod._kernels.panel import Panel


@dataclass(frozen=True)
class Pace:
    """How fast the past fades, and when a center is starved.

    Parameters
    ----------
    half_life : rows after which what was learnt counts half, or None for never
    reassignment_ratio : share of the mean weight of a cluster below which its center is moved
    """

    half_life: float | None = None
    reassignment_ratio: float = 0.01


@dataclass
class Running:
    """What the batches so far have left, in the table's own units.

    Parameters
    ----------
    centers : (k, p), NaN for entries without observations so far
    counts : (k, p) the weight behind each entry of them
    column_means, column_weights : (p,) of the observed entries of each column
    recent : (k,) the weight each cluster got since starved centers were last looked for
    n_rows : rows since then
    """

    centers: Floats
    counts: Floats
    column_means: Floats
    column_weights: Floats
    recent: Floats
    n_rows: int = 0

    @classmethod
    def at(cls, centers: Floats, counts: Floats | None = None) -> Running:
        """At these centers, with the weight behind them, if any."""
        k, p = centers.shape
        return cls(
            np.array(centers, np.float64),
            np.zeros((k, p)) if counts is None else np.array(counts, np.float64),
            np.full(p, np.nan),
            np.zeros(p),
            np.zeros(k),
        )

    @property
    def filled(self) -> Floats:
        """The centers, with the column's mean where there are no observations."""
        return np.where(np.isnan(self.centers), self.column_means, self.centers)

    def copy(self) -> Running:
        return Running(
            self.centers.copy(),
            self.counts.copy(),
            self.column_means.copy(),
            self.column_weights.copy(),
            self.recent.copy(),
            self.n_rows,
        )

    def add_columns(self, n: int) -> None:
        """Add columns without any observations yet."""
        k = len(self.centers)
        self.centers = np.hstack([self.centers, np.full((k, n), np.nan)])
        self.counts = np.hstack([self.counts, np.zeros((k, n))])
        self.column_means = np.append(self.column_means, np.full(n, np.nan))
        self.column_weights = np.append(self.column_weights, np.zeros(n))

    def renumber(self, order: Positions) -> None:
        """Give the clusters other numbers."""
        self.centers, self.counts, self.recent = self.centers[order], self.counts[order], self.recent[order]

    def learn(self, table: Table, executor: Executor, pace: Pace, rng: np.random.Generator) -> float:
        """Move the centers by the rows of one batch; returns the loss of its rows before.

        With N the weight behind an entry of a center, n the weight of the batch's entries there and
        m their mean, the entry moves by n / (N + n) of its distance to m, and N grows by n.
        """
        if pace.half_life is not None:
            fading = 2.0 ** (-table.n_rows / pace.half_life)
            self.counts *= fading
            self.column_weights *= fading
        self.learn_columns(table)
        before, k = self.filled, len(self.centers)
        objective, panel = Objective(table, k), Panel(table.units.to(before))
        states, found = executor.accumulate(
            Assign(panel, Drift.none(k)),
            table.blocks,
            [None] * len(table.blocks),
            partial(Partial.empty, k, *table.sums_units),
        )
        assert found.sums is not None
        means, counts = objective.means(found.sums).centers, objective.counts(found.sums)
        self.counts += counts
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = before + counts / self.counts * (table.units.back(means) - before)
        self.centers = np.where(counts > 0, moved, self.centers)
        labels = labels_of(table, executor, states, Recall(panel))
        self._note(table, labels)
        if self.n_rows >= ROWS_PER_LOOK * k:
            starved = np.flatnonzero(self.recent < pace.reassignment_ratio * self.recent.mean())
            self._reassign(starved, table, rng)
            self.recent[:], self.n_rows = 0, 0
        return -found.gain / table.units.scale / table.units.scale

    def learn_columns(self, table: Table) -> None:
        """Bring the means of the columns up to date."""
        weights = table.about.weights
        self.column_weights += weights
        before = np.where(np.isnan(self.column_means), 0.0, self.column_means)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = before + weights / self.column_weights * (table.column_means - before)
        self.column_means = np.where(table.live, after, self.column_means)

    def _note(self, table: Table, labels: Labels) -> None:
        """Remember what each cluster got."""
        usable = table.usable
        weights = None if table.weights is None else table.weights[usable]
        self.recent += np.bincount(labels[usable], weights, len(self.centers))
        self.n_rows += int(usable.sum())

    def _reassign(self, starved: Positions, table: Table, rng: np.random.Generator) -> None:
        """Put starved centers at rows of the batch, drawn with a chance in proportion to their loss.

        A quarter of them at a time: where one has been put, there is less to lose for the next ones.
        """
        while len(starved):
            now, starved = np.split(starved, [max(1, len(starved) // 4)])
            panel = Panel(table.units.to(self.filled))
            lost = np.empty(table.n_rows)
            for block in table.blocks:
                rows = slice(block.first, block.first + block.n_rows)
                Loss(panel.centers, Recall(panel))(block, None, LossSum(), lost[rows])
            n = min(len(now), int((lost > 0).sum()))
            if n == 0 or not np.isfinite(lost.sum()):
                return
            drawn = rng.choice(table.n_rows, n, replace=False, p=lost / lost.sum())
            entries = table.units.back(table.entries(drawn))
            weights = np.ones(n) if table.weights is None else table.weights[drawn]
            self.centers[now[:n]] = entries
            self.counts[now[:n]] = np.where(np.isnan(entries), 0.0, weights[:, None])


def pools(rows: Positions, size: int, n_columns: int, random: np.random.Generator) -> Iterator[Positions]:
    """All rows in pools of many batches, so that a table on a disk is read once an epoch.

    A pool is made of stretches of rows from all over the table, in the order of the table: rows of a sorted
    table are mixed, too. A table that is no larger than one is a pool.
    """
    length = size * max(1, POOL_ENTRIES // n_columns // size)
    if len(rows) > length:
        step = max(1, STRETCH_ENTRIES // n_columns)
        stretches = random.permutation(-(-len(rows) // step))
        rows = np.concatenate([rows[step * at : step * (at + 1)] for at in stretches])
    for start in range(0, len(rows), length):
        yield np.sort(rows[start : start + length])


def batches(n_rows: int, size: int, random: np.random.Generator) -> Iterator[Positions]:
    """Positions of all rows in batches of random ones, each in order."""
    order = random.permutation(n_rows)
    for start in range(0, n_rows, size):
        yield np.sort(order[start : start + size])
