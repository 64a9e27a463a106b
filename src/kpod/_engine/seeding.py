"""Seeding: k rows far apart, k random rows, or k-means on the filled table as in the paper.

Seeds are drawn as in k-means++ [1], with several candidates for each and the best kept
[2], on partial distances. These break the triangle inequality, so the O(log k) guarantee
of [1] does not carry over.

[1] Arthur & Vassilvitskii (2007). k-means++: the advantages of careful seeding.
[2] Grunau et al. (2023). A nearly tight analysis of greedy k-means++.
[3] Bahmani et al. (2012). Scalable k-means++.
[4] Efraimidis & Spirakis (2006). Weighted random sampling with a reservoir.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from kpod._common.arrays import membership
from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats, Labels, Positions, Singles
from kpod._engine.blocks import Block, Units
from kpod._engine.executors import Executor
from kpod._engine.objective import GapModel, least_variance
from kpod._engine.sampling import observed_of, ranks_of, rows_by_rank
from kpod._engine.sizes import (
    CALL_WORK,
    LARGE_TABLE,
    MOST_SAMPLE_ENTRIES,
    ROUND_ROWS_PER_CLUSTER,
    ROUNDS,
    SAMPLE_ENTRIES,
    SAMPLE_ROWS_PER_CLUSTER,
)
from kpod._engine.solvers.hartigan import hartigan
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.solvers.mm import complete_table
from kpod._engine.solvers.nearest import nearest_labels
from kpod._engine.step import Drift, Spaces, State, compare
from kpod._engine.table import Table, make_table, says_anything
from kpod._kernels import rows as kernels
from kpod._kernels import seeds
from kpod._kernels.entries import list_entries
from kpod._kernels.panel import Panel, aligned_zeros
from kpod._kernels.rows import Workspace

# Weights of candidates are sums of so many parts of the largest weight of a row.
WEIGHT_UNITS = 2.0**20
# What gaps weigh against values when seeds are drawn, in turn; and the most that one weighs.
GAP_WEIGHTS = (1.0, 9.0)
LARGEST_GAP = 25.0


def fill_gaps(table: Table, centers: Floats) -> Floats:
    """The missing entries of a center take the column's mean."""
    return np.where(np.isnan(centers), table.fallback, centers)


def entries_of(table: Table, executor: Executor, rows: Positions) -> Floats:
    """Some rows as a dense array with NaN; of blocks that are elsewhere, in one pass."""
    if not executor.remote:
        return table.entries(rows)
    out = np.empty((len(rows), table.n_columns))
    for here, entries in executor.map(partial(entries_in, rows=rows), table.blocks):
        out[here] = entries
    return out


def entries_in(block: Block, rows: Positions) -> tuple[Positions, Floats]:
    """Which of some rows are in a block, and their entries."""
    here = np.flatnonzero((rows >= block.first) & (rows < block.first + block.n_rows))
    return here, block.entries(rows[here] - block.first)


@dataclass(frozen=True)
class Listing:
    """List the observed entries of a block's rows that are in a sample: columns and values.

    Parameters
    ----------
    sample : the rows of the sample, by number in the table, in order
    start : where the entries of each begin in the list of all
    """

    sample: Positions
    start: Positions

    def __call__(self, block: Block) -> tuple[Labels, Singles]:
        first, stop = self.sample.searchsorted([block.first, block.first + block.n_rows])
        start = self.start[first : stop + 1] - self.start[first]
        columns, values = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
        if first < stop:
            with block.rows() as rows:
                space = Workspace(rows, 0, 1)
                list_entries(rows, self.sample[first:stop] - block.first, start, columns, values, space)
        return columns, values


def sample_of(table: Table, executor: Executor, size: int, rng: np.random.Generator) -> Table:
    """Some rows with any information, as a table of their own, here and in the same units."""
    rows, _ = rows_by_rank(table, executor, ranks_of(table, size, rng))
    weights = None if table.weights is None else table.weights[rows]
    entries = entries_of(table, executor, rows).astype(table.dtype)
    units = Units(np.zeros(table.n_columns), 1.0)
    return make_table(entries, Executor(), weights=weights, units=units, groups=table.groups)


def row_entries(table: Table) -> int:
    return max(1, table.n_entries // table.n_rows)


def sample_rows(table: Table, n_clusters: int) -> int:
    """Rows of the sample of a large table that seeds are drawn from."""
    return max(SAMPLE_ENTRIES // row_entries(table), SAMPLE_ROWS_PER_CLUSTER * n_clusters)


def k_means_plus_plus(table: Table, executor: Executor, n_clusters: int, rng: np.random.Generator) -> Seeding:
    """k-means++ on a sample, or k-means|| on all rows where that sample would be too large."""
    size = min(sample_rows(table, n_clusters), table.n_rows)
    kind = KMeansParallel if size * row_entries(table) > MOST_SAMPLE_ENTRIES else KMeansPlusPlus
    return kind(table, executor, n_clusters, rng)


class KMeansPlusPlus:
    """Greedy k-means++ on partial distances; one preparation serves any number of draws.

    The distance of two rows is that of the m columns both observe, rescaled to all p:

        d(a, b) = p / (m + t) * (sum over shared j of (a_j - b_j)^2 + 2 t v),
        t = (1 - m / p) / 2

    with v the mean variance of a column, so that 2 v is what two random rows differ by in
    one. The prior t is the weight of rows that share one column or none, and vanishes
    where nothing is missing. The indicators of a category count as one column.
    """

    def __init__(
        self,
        table: Table,
        executor: Executor,
        n_clusters: int,
        rng: np.random.Generator,
        n_candidates: int | None = None,
    ) -> None:
        size = sample_rows(table, n_clusters) if table.n_observed > LARGE_TABLE else table.n_usable
        rows, observed = rows_by_rank(table, executor, ranks_of(table, size, rng))
        self.table, self.executor = table, executor
        self.rows = rows
        self.n_clusters = n_clusters
        self.n_candidates = n_candidates or min(4 + int(4 * np.log(n_clusters)), seeds.MOST_CANDIDATES)
        weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        start = np.concatenate([[0], np.cumsum(observed, dtype=np.intp)])
        listed = executor.map(Listing(rows, start), table.blocks)
        columns = np.concatenate([part[0] for part in listed])
        values = np.concatenate([part[1] for part in listed])
        shares = None
        if table.groups.present:
            shares = table.groups.shares.astype(np.float32)
            values = values / np.sqrt(shares)[columns]
        self.sample = seeds.Sample(start, columns, values, weights / weights.max(), table.n_columns, shares)

    def drawing(self, rng: np.random.Generator) -> Drawing:
        """Rows drawn with a chance that grows with their distance from those before, none so far."""
        return Drawing(self, rng)

    def start(self, drawing: Drawing, n_clusters: int) -> Start:
        """Centers at the first rows drawn."""
        rows = self.rows[drawing.first(n_clusters)]
        return Start(fill_gaps(self.table, entries_of(self.table, self.executor, rows)))

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at rows drawn with a chance that grows with their distance from the rest."""
        return self.start(self.drawing(rng), self.n_clusters)


class Drawing:
    """Seeds drawn one after the other: those of fewer clusters are the first of those of more."""

    def __init__(self, seeding: KMeansPlusPlus, rng: np.random.Generator) -> None:
        self.seeding, self.rng = seeding, rng
        self.nearest = np.full(len(seeding.rows), np.inf, np.float32)
        self.drawn = np.empty(0, np.intp)
        self.lock = threading.Lock()

    def first(self, n: int) -> Positions:
        """The first n of them, by number in the sample."""
        with self.lock:
            if n > len(self.drawn):
                self._draw(n - len(self.drawn))
            return self.drawn[:n]

    def _draw(self, more: int) -> None:
        sample, n_candidates = self.seeding.sample, self.seeding.n_candidates
        n_rows, n_columns, stride = sample.n_rows, sample.n_columns, -(-n_candidates // 8) * 8
        buffers = (
            np.empty(n_rows),
            aligned_zeros((n_columns, stride), np.float32),
            aligned_zeros((n_columns, stride), np.float32),
            np.empty((n_rows, stride), np.float32),
            np.empty(stride),
        )
        done = len(self.drawn)
        self.drawn = np.append(self.drawn, np.empty(more, np.intp))
        at_once = max(1, CALL_WORK // (stride * max(1, sample.n_entries)))
        while done < len(self.drawn):
            shape = (min(at_once, len(self.drawn) - done), n_candidates) if done else (1, 1)
            stop = done + shape[0]
            seeds.draw_seeds(
                sample, self.seeding.table.variance, self.rng.random(shape), self.nearest, *buffers,
                self.drawn[done:stop],
            )  # fmt: skip
            done = stop


class SharedSeeds:
    """The starts of fits of one table with several numbers of clusters, drawn once for all of them.

    Parameters
    ----------
    seedings : that draw the first start, the second and so on, in turn
    numbers : of each start, what it is drawn by
    """

    def __init__(self, seedings: Sequence[KMeansPlusPlus | GapSeeds], numbers: Sequence[int]) -> None:
        self.drawings = [
            (seeding, seeding.drawing(np.random.default_rng(number)))
            for seeding, number in zip(itertools.cycle(seedings), numbers, strict=False)
        ]

    def start(self, number: int, n_clusters: int) -> Start:
        """One of the starts, of so many clusters."""
        seeding, drawing = self.drawings[number]
        return seeding.start(drawing, n_clusters)


class MeanFill:
    """The paper's start: k-means on the table with its gaps at the column means.

    Its seeds are those of plain k-means++, one candidate a draw.
    """

    def __init__(self, table: Table, executor: Executor, n_clusters: int, rng: np.random.Generator) -> None:
        self.table, self.executor = table, executor
        self.members = np.flatnonzero(table.observed > 0)
        filled = fill_gaps(table, table.entries(self.members))
        weights = None if table.weights is None else table.weights[self.members]
        self.filled = complete_table(table, filled, weights, executor)
        self.seeds = KMeansPlusPlus(self.filled, executor, n_clusters, rng, n_candidates=1)

    def draw(self, rng: np.random.Generator) -> Start:
        """The centers of that k-means, and its labels."""
        solution = hartigan(self.filled, Executor(), self.seeds.draw(rng), Settings())
        labels = np.zeros(self.table.n_rows, np.int32)
        labels[self.members] = solution.labels
        return Start(solution.centers, labels)


class RandomRows:
    """k different rows, as likely as their weights."""

    def __init__(self, table: Table, executor: Executor, n_clusters: int, rng: np.random.Generator) -> None:
        self.table, self.executor = table, executor
        self.n_clusters = n_clusters

    def rows_drawn(self, rng: np.random.Generator) -> Positions:
        table, k = self.table, self.n_clusters
        if table.weighted:
            draw = partial(rows_by_weight, wanted=k, seed=int(rng.integers(1 << 31)))
            drawn = Drawn(k)
            for rows, keys in self.executor.map(draw, table.blocks):
                drawn.add(rows, keys)
            return drawn.rows
        return rows_by_rank(table, self.executor, rng.choice(table.n_usable, k, replace=False))[0]

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at those rows."""
        return Start(fill_gaps(self.table, entries_of(self.table, self.executor, self.rows_drawn(rng))))


def rows_by_weight(block: Block, wanted: int, seed: int) -> tuple[Positions, Floats]:
    """The rows of a block with the smallest keys, and these; they are as likely as their weights [4]."""
    assert block.weights is not None
    usable = np.flatnonzero(says_anything(observed_of(block), block.weights))
    uniform = np.random.default_rng([seed, block.first]).random(len(usable))
    found = Drawn(wanted)
    found.add(block.first + usable, -np.log1p(-uniform) / block.weights[usable])
    return found.rows, found.keys


class KMeansParallel:
    """k-means|| [3]: in a few rounds over all rows, many rows far from those drawn before; then k of them.

    Each round draws twice as many rows as there are clusters, with a chance in proportion to their
    loss. The candidates, weighted by the rows next to each, are then seeded as a table of their own.
    """

    def __init__(self, table: Table, executor: Executor, n_clusters: int, rng: np.random.Generator) -> None:
        self.table, self.executor, self.n_clusters = table, executor, n_clusters

    def draw(self, rng: np.random.Generator) -> Start:
        """One start: all rounds, and k-means++ on the candidates."""
        table = self.table
        states: list[Any] = [None] * len(table.blocks)
        drawn = RandomRows(table, self.executor, 1, rng).rows_drawn(rng)
        entries, panels = [entries_of(table, self.executor, drawn)], list[Panel]()
        largest = 1.0 if table.weights is None else float(table.weights.max())
        for number in range(ROUNDS + 1):
            panels.append(Panel(fill_gaps(table, entries[-1])))
            wanted = ROUND_ROWS_PER_CLUSTER * self.n_clusters if number < ROUNDS else 0
            far = FarRows(panels, wanted, int(rng.integers(1 << 31)), largest)
            states, found = self.executor.accumulate(far, table.blocks, states, partial(Drawn, wanted))
            if not len(found.rows):
                break
            entries.append(entries_of(table, self.executor, np.sort(found.rows)))
        candidates = np.concatenate(entries[: len(panels)])
        weights = found.weights / found.weights.max()
        units = Units(np.zeros(table.n_columns), 1.0)
        of_candidates = make_table(candidates, Executor(), weights=weights, units=units, groups=table.groups)
        if of_candidates.n_usable < self.n_clusters:  # rows that are all alike
            return RandomRows(table, self.executor, self.n_clusters, rng).draw(rng)
        seeds_of = KMeansPlusPlus(of_candidates, Executor(), self.n_clusters, rng)
        return seeds_of.draw(rng)


@dataclass
class FarRows:
    """Draw rows with a chance in proportion to their loss at the nearest candidate.

    The state of a block is that loss, and which candidate it is, of each of its rows. Of equal or
    unequal losses, those rows are drawn whose -log(u) / loss is smallest, with u uniform: as many as
    wanted, from all blocks together, without knowing the sum of all losses beforehand [4].

    Parameters
    ----------
    panels : the candidates of each round; a state that was not lost has all but the last
    wanted : how many to draw
    seed : of the numbers u, together with the first row of the block
    largest : the largest weight of a row
    """

    panels: list[Panel]
    wanted: int
    seed: int
    largest: float
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: Any, drawn: Drawn) -> tuple[Floats, Positions]:
        firsts = np.cumsum([0, *(panel.k for panel in self.panels)])
        new = len(self.panels) - 1 if state is not None else 0
        lost, which = state or (np.full(block.n_rows, np.inf), np.zeros(block.n_rows, np.intp))
        now = np.empty(block.n_rows)
        for panel, first in zip(self.panels[new:], firsts[new:-1], strict=True):
            labels = State.unknown(block.n_rows)
            with block.rows() as rows:
                compare(block, rows, panel, Drift.none(panel.k), labels, None, self.spaces)
                with self.spaces.of(rows) as space:
                    for start, stop in block.pieces(8):
                        kernels.losses(rows, start, stop, labels.labels, panel.centers, now, space)
            nearer = now < lost
            lost, which = np.where(nearer, now, lost), np.where(nearer, first + labels.labels, which)
        weights = np.ones(block.n_rows) if block.weights is None else block.weights / self.largest
        # Whole numbers, so that their sums are the same in any order.
        units = np.bincount(which, np.rint(weights * WEIGHT_UNITS), int(firsts[-1]))
        drawn.add_weights(units.astype(np.float64))
        with np.errstate(divide="ignore"):
            keys = -np.log1p(-np.random.default_rng([self.seed, block.first]).random(block.n_rows)) / lost
        drawn.add(block.first + np.flatnonzero(lost > 0), keys[lost > 0])
        return lost, which


@dataclass
class Drawn:
    """The rows with the smallest keys so far, as many as wanted, and the weight next to each candidate."""

    wanted: int
    rows: Positions = field(default_factory=lambda: np.empty(0, np.intp))
    keys: Floats = field(default_factory=lambda: np.empty(0))
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    def add(self, rows: Positions, keys: Floats) -> None:
        rows, keys = np.concatenate([self.rows, rows]), np.concatenate([self.keys, keys])
        first = np.lexsort((rows, keys))[: self.wanted]
        self.rows, self.keys = rows[first], keys[first]

    def add_weights(self, weights: Floats) -> None:
        self.weights = weights + (self.weights if len(self.weights) else 0.0)

    def merge(self, other: Drawn) -> None:
        self.add(other.rows, other.keys)
        if len(other.weights):
            self.add_weights(other.weights)


class GapSeeds:
    """k-means++ on the values and, as columns of their own, on which of them were observed.

    A column that a share q of the rows observes has an indicator of variance v `weight`, with v the
    mean variance of a column, as long as it is not too rare. Rows nearest to the same seed give the
    first centers, rates of gaps, shares and variance; all this on a sample of a large table.
    """

    def __init__(
        self,
        table: Table,
        executor: Executor,
        n_clusters: int,
        rng: np.random.Generator,
        weight: float = 1.0,
    ) -> None:
        size = max(SAMPLE_ENTRIES // table.n_columns, 2 * n_clusters)
        rows, _ = rows_by_rank(table, executor, ranks_of(table, size, rng))
        self.table, self.n_clusters = table, n_clusters
        self.weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        self.z = entries_of(table, executor, rows)
        self.seen = ~np.isnan(self.z)
        self.observed = self.weights @ self.seen / self.weights.sum()
        spread = self.observed * (1 - self.observed)
        informative = (spread > 0) & table.groups.first
        size_of_gap = np.sqrt(table.variance * weight * np.minimum(1 / spread[informative], LARGEST_GAP))
        self.joint = make_table(
            np.ascontiguousarray(np.hstack([self.z, self.seen[:, informative] * size_of_gap])),
            Executor(),
            weights=None if table.weights is None else self.weights,
            groups=ColumnGroups.of_sizes([*table.groups.sizes, *np.ones(int(informative.sum()), np.intp)]),
        )
        self.seeds = KMeansPlusPlus(self.joint, Executor(), n_clusters, rng)

    def drawing(self, rng: np.random.Generator) -> Drawing:
        """As k-means++ draws rows."""
        return self.seeds.drawing(rng)

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers, and the rates of gaps, of the rows nearest to each seed."""
        return self.start(self.drawing(rng), self.n_clusters)

    def start(self, drawing: Drawing, n_clusters: int) -> Start:
        """The same for the first of the seeds."""
        labels = nearest_labels(self.joint, Executor(), Panel(self.seeds.start(drawing, n_clusters).centers))
        members = membership(labels, n_clusters, self.weights)
        weight, counts, z = members.sum(axis=1), members @ self.seen, np.where(self.seen, self.z, 0.0)
        centers = np.where(counts > 0, members @ z / np.maximum(counts, 1e-300), self.table.fallback)
        loss = float((self.weights[:, None] * self.seen * (z - centers[labels]) ** 2).sum())
        first = self.table.groups.first
        n_observed = float(counts[:, first].sum())
        degrees = n_observed - min(float(centers[:, first].size), n_observed / 2)
        gaps = first * (weight[:, None] - counts + 1 - self.observed) / (weight[:, None] + 1)
        shares = (weight + 1) / (weight.sum() + n_clusters)
        variance = max(loss / degrees, least_variance(self.table))
        return Start(centers, gaps=GapModel(np.clip(gaps, 0, 1), shares, variance))


class Seeding(Protocol):
    """Prepared once for a table, then drawn from for each start."""

    def draw(self, rng: np.random.Generator) -> Start:
        """One start."""
        ...


SEEDINGS: Mapping[str, Callable[[Table, Executor, int, np.random.Generator], Seeding]] = MappingProxyType(
    {"k-means++": k_means_plus_plus, "mean-fill": MeanFill, "random": RandomRows}
)
