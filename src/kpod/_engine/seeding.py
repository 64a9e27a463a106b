"""Where a fit starts: k rows far apart, k random rows, or the paper's filled-in k-means.

Seeds are drawn as in k-means++ [1], with several candidates for each and the best kept
[2], on partial distances. These break the triangle inequality, so the O(log k) guarantee
of [1] does not carry over.

[1] Arthur & Vassilvitskii (2007). k-means++: the advantages of careful seeding.
[2] Grunau et al. (2023). A nearly tight analysis of greedy k-means++.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from kpod._engine.blocks import Block
from kpod._engine.executors import Executor
from kpod._engine.hartigan import hartigan
from kpod._engine.lloyd import Settings, Start, nearest_labels
from kpod._engine.mm import complete_table
from kpod._engine.objective import GapModel
from kpod._engine.sizes import LARGE_TABLE, SAMPLE_ENTRIES, SAMPLE_ROWS_PER_CLUSTER
from kpod._engine.table import Table, make_table
from kpod._kernels import rows as kernels
from kpod._kernels import seeds
from kpod._kernels.panel import Panel, aligned_zeros
from kpod._kernels.rows import Workspace
from kpod._typing import Floats, Labels, Positions, Singles

# What gaps weigh against values when seeds are drawn, in turn; and the most that one weighs.
GAP_WEIGHTS = (1.0, 9.0)
LARGEST_GAP = 25.0


def fill_gaps(table: Table, centers: Floats) -> Floats:
    """The missing entries of a center take the column's mean."""
    return np.where(np.isnan(centers), table.fallback, centers)


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
        first, stop = np.searchsorted(self.sample, [block.first, block.first + block.n_rows])
        start = self.start[first : stop + 1] - self.start[first]
        columns, values = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
        if first < stop:
            with block.rows() as rows:
                space = Workspace(rows, 0, 1)
                kernels.list_entries(
                    rows, self.sample[first:stop] - block.first, start, columns, values, space
                )
        return columns, values


class KMeansPlusPlus:
    """Greedy k-means++ on partial distances; one preparation serves any number of draws.

    The distance of two rows is that of the m columns both observe, rescaled to all p:

        d(a, b) = p / (m + t) * (sum over shared j of (a_j - b_j)^2 + 2 t v),
        t = (1 - m / p) / 2

    with v the mean variance of a column, so that 2 v is what two random rows differ by in
    one. The prior t says what rows are worth that share one column or none, and vanishes
    where nothing is missing.
    """

    def __init__(
        self,
        table: Table,
        executor: Executor,
        n_clusters: int,
        rng: np.random.Generator,
        n_candidates: int | None = None,
    ) -> None:
        rows = np.flatnonzero(table.usable)
        row_entries = max(1, table.n_entries // table.n_rows)
        size = max(SAMPLE_ENTRIES // row_entries, SAMPLE_ROWS_PER_CLUSTER * n_clusters)
        if table.n_observed > LARGE_TABLE and size < len(rows):
            rows = np.sort(rng.choice(rows, size, replace=False, shuffle=False))
        self.table = table
        self.rows = rows
        self.n_clusters = n_clusters
        self.n_candidates = n_candidates or min(4 + int(4 * np.log(n_clusters)), seeds.MOST_CANDIDATES)
        weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        start = np.concatenate([[0], np.cumsum(table.observed[rows], dtype=np.intp)])
        listed = executor.map(Listing(rows, start), table.blocks)
        columns = np.concatenate([part[0] for part in listed])
        values = np.concatenate([part[1] for part in listed])
        self.sample = seeds.Sample(start, columns, values, weights / weights.max(), table.n_columns)

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at rows drawn with a chance that grows with their distance from the rest."""
        n_rows, n_columns, stride = len(self.rows), self.table.n_columns, -(-self.n_candidates // 8) * 8
        nearest = np.full(n_rows, np.inf, np.float32)
        buffers = (
            np.empty(n_rows),
            aligned_zeros((n_columns, stride), np.float32),
            aligned_zeros((n_columns, stride), np.float32),
            np.empty((n_rows, stride), np.float32),
            np.empty(stride),
        )
        drawn: list[int] = []
        while len(drawn) < self.n_clusters:
            uniform = rng.random(self.n_candidates if drawn else 1)
            drawn.append(seeds.draw_seed(self.sample, self.table.variance, uniform, nearest, *buffers))
        return Start(fill_gaps(self.table, self.table.entries(self.rows[drawn])))


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
        self.table = table
        self.n_clusters = n_clusters
        self.rows = np.flatnonzero(table.usable)
        self.chance = None
        if table.weights is not None:
            weights = table.weights[self.rows] / table.weights[self.rows].max()
            self.chance = weights / weights.sum()

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at those rows."""
        rows = rng.choice(self.rows, self.n_clusters, replace=False, p=self.chance)
        return Start(fill_gaps(self.table, self.table.entries(rows)))


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
        rows = np.flatnonzero(table.usable)
        size = max(SAMPLE_ENTRIES // table.n_columns, 2 * n_clusters)
        if size < len(rows):
            rows = np.sort(rng.choice(rows, size, replace=False, shuffle=False))
        self.table, self.n_clusters = table, n_clusters
        self.weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        self.z = table.entries(rows)
        self.seen = ~np.isnan(self.z)
        self.observed = self.weights @ self.seen / self.weights.sum()
        spread = self.observed * (1 - self.observed)
        speaks = spread > 0
        size_of_gap = np.sqrt(table.variance * weight * np.minimum(1 / spread[speaks], LARGEST_GAP))
        self.joint = make_table(
            np.ascontiguousarray(np.hstack([self.z, self.seen[:, speaks] * size_of_gap])),
            Executor(),
            weights=None if table.weights is None else self.weights,
        )
        self.seeds = KMeansPlusPlus(self.joint, Executor(), n_clusters, rng)

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers, and what the gaps say, of the rows nearest to each seed."""
        labels = nearest_labels(self.joint, Executor(), Panel(self.seeds.draw(rng).centers))
        members = self.weights * (labels == np.arange(self.n_clusters)[:, None])
        weight, counts, z = members.sum(axis=1), members @ self.seen, np.where(self.seen, self.z, 0.0)
        centers = np.where(counts > 0, members @ z / np.maximum(counts, 1e-300), self.table.fallback)
        loss = float((self.weights @ (self.seen * (z - centers[labels]) ** 2)).sum())
        n_observed = float(counts.sum())
        degrees = n_observed - min(float(centers.size), n_observed / 2)
        gaps = (weight[:, None] - counts + 1 - self.observed) / (weight[:, None] + 1)
        shares = (weight + 1) / (weight.sum() + self.n_clusters)
        variance = max(loss / degrees, 1e-9 * self.table.variance)
        return Start(centers, gaps=GapModel(np.clip(gaps, 0, 1), shares, variance))


class Seeding(Protocol):
    """Prepared once for a table, then drawn from for each start."""

    def draw(self, rng: np.random.Generator) -> Start:
        """One start."""
        ...


SEEDINGS: Mapping[str, Callable[[Table, Executor, int, np.random.Generator], Seeding]] = MappingProxyType(
    {"k-means++": KMeansPlusPlus, "mean-fill": MeanFill, "random": RandomRows}
)
