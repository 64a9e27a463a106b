"""What a table is: rows with holes, cut into blocks by its shape alone.

Values are kept less their column's mean, which is taken off while the kernels read them:
`shift` holds the means in the table's own precision, and NaN for a column to be ignored.
Everything above this layer speaks of centers and sums relative to `shift`, and never asks
whether the table is dense or sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kpod._executors import Executor
from kpod._kernels import chunks

Result = TypeVar("Result")
Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Positions = NDArray[np.intp]
AnyFloats = NDArray[Any]

MAX_BLOCKS = 64
ROWS_PER_BLOCK = 4096
CHUNK_ENTRIES = 1 << 12
ALIGNMENT = 64
VECTOR_BYTES = 32


class Totals(NamedTuple):
    """Weighted sums (less the shift) and counts of the observed entries, cluster by column."""

    sums: Floats
    counts: Floats


class Span(NamedTuple):
    """The rows of one block."""

    start: int
    stop: int


def cut(n_rows: int, n_columns: int, n_clusters: int, table_bytes: int) -> list[Span]:
    """Blocks of equal size whose number depends on the table's shape alone.

    There are enough of them to keep many threads busy, and few enough that the totals kept
    for each stay small next to the table.
    """
    totals_bytes = 16 * n_clusters * n_columns
    affordable = max(1, max(table_bytes // 8, 1 << 22) // totals_bytes)
    n_blocks = max(1, min(MAX_BLOCKS, n_rows // ROWS_PER_BLOCK, affordable))
    edges = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [Span(int(a), int(b)) for a, b in pairwise(edges)]


class Table:
    """Rows with holes and their weights.

    Parameters
    ----------
    values : C-contiguous float32 or float64 array (n_rows, n_columns), NaN in the gaps
    weights : float64 array (n_rows,) or None for weights of 1
    column_means : array (n_columns,) to take off, or None for the table's own
    """

    def __init__(
        self,
        values: AnyFloats,
        executor: Executor,
        *,
        n_clusters: int,
        weights: Floats | None = None,
        column_means: Floats | None = None,
    ) -> None:
        self.values = values
        self.weights = weights
        self.executor = executor
        self.dtype = values.dtype
        self.n_rows, self.n_columns = values.shape
        self.blocks = cut(self.n_rows, self.n_columns, n_clusters, values.nbytes)
        self.chunk = int(np.clip(CHUNK_ENTRIES // self.n_columns, 8, 64))
        self._spaces: dict[int, list[chunks.Workspace]] = {}
        self.like = np.empty(0, self.dtype)
        if column_means is None:
            self.rows = self._rows(np.zeros(self.n_columns))
            totals = self.totals(np.zeros(self.n_rows, np.int32), 1)
            column_means = np.full(self.n_columns, np.nan)
            finite = np.nan_to_num(totals.sums[0], nan=0, posinf=0, neginf=0)
            np.divide(finite, totals.counts[0], out=column_means, where=totals.counts[0] > 0)
        self.column_means = column_means
        self.rows = self._rows(column_means)

    def _rows(self, shift: Floats) -> chunks.Rows:
        self.shift = shift.astype(self.dtype)
        return chunks.Rows(self.values, self.shift, self.weights)

    def map(self, function: Callable[[Span, chunks.Workspace], Result], k: int = 1) -> list[Result]:
        """The results of a kernel for every block, in order; buffers are used again."""
        stride = self.stride(k)
        idle = self._spaces.setdefault(stride, [])

        def run(block: Span) -> Result:
            try:
                space = idle.pop()
            except IndexError:
                space = chunks.Workspace(self.n_columns, stride, self.chunk)
            try:
                return function(block, space)
            finally:
                idle.append(space)

        return self.executor.map(run, self.blocks)

    def stride(self, k: int) -> int:
        """The number of centers rounded up to whole vectors."""
        lanes = VECTOR_BYTES // self.dtype.itemsize
        return -(-k // lanes) * lanes

    def panel(self, by_center: Floats) -> AnyFloats:
        """An array (k, n_columns) transposed and padded, as the kernels read it."""
        k = len(by_center)
        out = aligned_zeros((self.n_columns, self.stride(k)), self.dtype)
        out[:, :k] = by_center.T
        return out

    def offsets(self, k: int) -> AnyFloats:
        """What is added to a squared distance: nothing, or infinity for the padding."""
        out = aligned_zeros((self.stride(k),), self.dtype)
        out[k:] = np.inf
        return out

    def measure(self) -> None:
        """Row and column statistics: what the solvers need beyond the entries."""
        self.observed = np.empty(self.n_rows, np.int32)

        def run(block: Span, space: chunks.Workspace) -> Floats:
            squares = np.zeros(self.n_columns)
            chunks.measure(self.rows, *block, self.like, squares, self.observed, space)
            return squares

        self.squares = merge(self.map(run))
        live = ~np.isnan(self.column_means)
        self.fallback = np.where(live, self.column_means - self.shift, 0.0)
        self.variance = self._mean_variance()
        self.tiny = 0.0 if self.weights is None else 1e-9 * float(self.weights[self.weights > 0].min())

    def _mean_variance(self) -> float:
        """The variance of the observed entries of a column, in the mean over the columns."""
        counts = self.totals(np.zeros(self.n_rows, np.int32), 1).counts[0]
        live = counts > 0
        variances = self.squares[live] / counts[live] - self.fallback[live] ** 2
        return float(variances.mean()) if len(variances) else 0.0

    def totals(self, labels: Labels, k: int) -> Totals:
        """Sums and counts of the clusters, added up block by block."""

        def run(block: Span, space: chunks.Workspace) -> Floats:
            totals = np.zeros((2, k, self.n_columns))
            chunks.add_up(self.rows, *block, labels, self.like, totals[0], totals[1], space)
            return totals

        return Totals(*merge(self.map(run)))

    def losses(self, labels: Labels, centers: Floats) -> Floats:
        """Weighted squared partial distance of each row to its own center."""
        out = np.empty(self.n_rows)
        self._losses(labels, centers, out)
        return out

    def loss(self, labels: Labels, centers: Floats) -> float:
        """The sum of `losses`: the loss that everything else is about."""
        return float(sum(self._losses(labels, centers, np.empty(0))))

    def _losses(self, labels: Labels, centers: Floats, out: Floats) -> list[float]:
        return self.map(
            lambda block, space: chunks.losses(self.rows, *block, labels, self.like, centers, out, space)
        )

    def distances(self, centers: Floats) -> AnyFloats:
        """Squared partial distances (n_rows, k)."""
        k = len(centers)
        out = np.empty((self.n_rows, k), self.dtype)
        panel, offsets = self.panel(centers), self.offsets(k)
        self.map(lambda block, space: chunks.distances(self.rows, *block, panel, offsets, out, space), k)
        return out

    def entries(self, rows: Positions) -> AnyFloats:
        """The given rows as a dense array with NaN, less the shift."""
        return self.values[rows] - self.shift

    def moments(self, rows: Positions) -> AnyFloats:
        """The given rows as float32 ``[z | observed | z^2]`` with zeros in the gaps."""
        entries = self.entries(rows).astype(np.float32)
        observed = ~np.isnan(entries)
        entries[~observed] = 0
        return np.hstack([entries, observed.astype(np.float32), entries**2])


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyFloats:
    """Zeros that start on a cache line, so that no vector straddles two."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)


def merge(parts: list[Floats]) -> Floats:
    """The sum of the parts, always added in the same order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
