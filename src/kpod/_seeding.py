"""Where a fit starts: k rows far apart, k random rows, or the paper's filled-in k-means.

Seeds are drawn as in k-means++ [1], with several candidates for each and the best kept
[2], on partial distances. These break the triangle inequality, so the O(log k) guarantee
of [1] does not carry over.

[1] Arthur & Vassilvitskii (2007). k-means++: the advantages of careful seeding.
[2] Grunau et al. (2023). A nearly tight analysis of greedy k-means++.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np

from kpod._blocks import AnyFloats, Floats, Positions, Table, aligned_zeros
from kpod._kernels import chunks
from kpod._solvers import Settings, Start, complete_table, hartigan

# Seeds are drawn from a random sample of the rows once a table has more entries than this:
# they only have to be spread out, and every row is looked at by the solver anyway.
SAMPLE_ENTRIES = 1 << 21
SAMPLE_ROWS_PER_CLUSTER = 64


def usable_rows(table: Table) -> Positions:
    """Rows that may be seeds: something observed, and a positive weight."""
    usable = table.observed > 0
    if table.weights is not None:
        usable &= table.weights > 0
    return np.flatnonzero(usable)


def fill_gaps(table: Table, seeds: AnyFloats) -> Floats:
    """The missing entries of a seed take the column's mean."""
    return np.where(np.isnan(seeds), table.fallback, seeds.astype(np.float64))


class Spread:
    """Greedy k-means++ on partial distances; one preparation serves any number of draws.

    The distance of two rows is that of the m columns both observe, rescaled to all p:

        d(a, b) = p / (m + t) * (sum over shared j of (a_j - b_j)^2 + 2 t v),
        t = (1 - m / p) / 2

    with v the mean variance of a column, so that 2 v is what two random rows differ by in
    one. The prior t says what rows are worth that share one column or none, and vanishes
    where nothing is missing.
    """

    def __init__(
        self, table: Table, n_clusters: int, rng: np.random.Generator, n_candidates: int | None = None
    ) -> None:
        rows = usable_rows(table)
        size = max(SAMPLE_ENTRIES // table.row_entries, SAMPLE_ROWS_PER_CLUSTER * n_clusters)
        if size < len(rows):
            rows = np.sort(rng.choice(rows, size, replace=False, shuffle=False))
        self.table = table
        self.rows = rows
        self.n_clusters = n_clusters
        self.n_candidates = n_candidates or 4 + int(4 * np.log(n_clusters))
        self.weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        self.start = np.concatenate([[0], np.cumsum(table.observed[rows], dtype=np.intp)])
        self.columns = np.empty(self.start[-1], np.int32)
        self.values = np.empty(self.start[-1], np.float32)
        space = chunks.Workspace(table.longest_row, 1, 1)
        chunks.list_entries(table.rows, rows, table.like, self.start, self.columns, self.values, space)

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at rows drawn with a chance that grows with their distance from the rest."""
        n_rows, n_columns, stride = len(self.rows), self.table.n_columns, -(-self.n_candidates // 8) * 8
        single = np.dtype(np.float32)
        nearest = np.full(n_rows, np.inf, np.float32)
        buffers = (
            np.empty(n_rows),
            aligned_zeros((n_columns, stride), single),
            aligned_zeros((n_columns, stride), single),
            np.empty((n_rows, stride), np.float32),
            np.empty(stride),
        )
        drawn: list[int] = []
        while len(drawn) < self.n_clusters:
            uniform = rng.random(self.n_candidates if drawn else 1)
            drawn.append(
                chunks.draw_seed(
                    self.start, self.columns, self.values, self.weights, self.table.variance,
                    uniform, nearest, *buffers,
                )
            )  # fmt: skip
        return Start(fill_gaps(self.table, self.table.entries(self.rows[drawn])))


class MeanFill:
    """The paper's start: k-means on the table with its gaps at the column means.

    Its seeds are those of plain k-means++, one candidate a draw.
    """

    def __init__(self, table: Table, n_clusters: int, rng: np.random.Generator) -> None:
        self.table = table
        self.members = np.flatnonzero(table.observed > 0)
        filled = fill_gaps(table, table.entries(self.members)).astype(table.dtype)
        weights = None if table.weights is None else table.weights[self.members]
        self.filled = complete_table(table, filled, weights, n_clusters)
        self.spread = Spread(self.filled, n_clusters, rng, n_candidates=1)

    def draw(self, rng: np.random.Generator) -> Start:
        """The centers of that k-means, and its labels."""
        solution = hartigan(self.filled, self.spread.draw(rng), Settings())
        labels = np.full(self.table.n_rows, -1, np.int32)
        labels[self.members] = solution.labels
        return Start(solution.centers, labels)


class RandomRows:
    """k different rows, as likely as their weights."""

    def __init__(self, table: Table, n_clusters: int, rng: np.random.Generator) -> None:
        self.table = table
        self.n_clusters = n_clusters
        self.rows = usable_rows(table)
        self.chance = None
        if table.weights is not None:
            self.chance = table.weights[self.rows] / table.weights[self.rows].sum()

    def draw(self, rng: np.random.Generator) -> Start:
        """Centers at those rows."""
        rows = rng.choice(self.rows, self.n_clusters, replace=False, p=self.chance)
        return Start(fill_gaps(self.table, self.table.entries(rows)))


class Seeding(Protocol):
    """Prepared once for a table, then drawn from for each start."""

    def draw(self, rng: np.random.Generator) -> Start:
        """One start."""
        ...


SEEDINGS: Mapping[str, Callable[[Table, int, np.random.Generator], Seeding]] = MappingProxyType(
    {"k-means++": Spread, "mean-fill": MeanFill, "random": RandomRows}
)
