"""What a table is: rows with holes, cut into blocks by its shape alone.

Values are kept less their column's mean, which is taken off while the kernels read them:
`shift` holds the means in the table's own precision, and NaN for a column to be ignored.
Everything above this layer speaks of centers and sums relative to `shift`, and never asks
whether a table is dense or sparse.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._executors import Executor
from kpod._kernels import chunks

Result = TypeVar("Result")
Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Positions = NDArray[np.intp]
AnyFloats = NDArray[Any]

MAX_BLOCKS = 64
ROWS_PER_BLOCK = 4096
# Work that is done before a second thread has woken up, for which a table stays in one block: a
# pass costs as much as comparing its entries with eight centers.
PASS = 8
SHORT_WORK = 15_000_000
CHUNK_ENTRIES = 1 << 12
# Additions in one compiled call: a fraction of a second, so that Ctrl-C is heard between calls.
CALL_WORK = 1 << 30
ALIGNMENT = 64
VECTOR_BYTES = 32
SINGLE = np.dtype(np.float32)


class Totals(NamedTuple):
    """Weighted sums (less the shift) and counts of the observed entries, cluster by column."""

    sums: Floats
    counts: Floats


class Span(NamedTuple):
    """A range of rows."""

    start: int
    stop: int


def cut(n_rows: int, n_columns: int, n_clusters: int, n_entries: int, entry_bytes: int) -> list[Span]:
    """Blocks of equal size whose number depends on the table's shape alone.

    There are enough of them to keep many threads busy, and few enough that the totals kept
    for each stay small next to the table.
    """
    totals_bytes = 16 * n_clusters * n_columns
    affordable = max(1, max(n_entries * entry_bytes // 3, 1 << 22) // totals_bytes)
    n_blocks = max(1, min(MAX_BLOCKS, n_rows // ROWS_PER_BLOCK, affordable))
    if n_entries * (PASS + n_clusters) < SHORT_WORK:
        n_blocks = 1
    edges = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [Span(int(a), int(b)) for a, b in pairwise(edges)]


class Table(ABC):
    """Rows with holes and their weights; `DenseTable` and `SparseTable` hold the entries.

    Parameters
    ----------
    values : the entries, float32 or float64, validated by `_validation.py`
    executor : what maps the kernels over the blocks
    n_clusters : int
        How many clusters the table is to be cut for.
    weights : float64 array (n_rows,) or None for weights of 1
    column_means : array (n_columns,) to take off, or None for the table's own
    """

    n_entries: int  # places for entries: all of a dense table, the stored ones of a sparse one
    longest_row: int  # the same in the longest row

    def __init__(
        self,
        values: Any,
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
        self.blocks = cut(self.n_rows, self.n_columns, n_clusters, self.n_entries, self.dtype.itemsize)
        self.row_entries = max(1, self.n_entries // self.n_rows)
        self.chunk = int(np.clip(CHUNK_ENTRIES // self.row_entries, 8, 64))
        self._spaces: dict[int, list[chunks.Workspace]] = {}
        self.like = np.empty(0, self.dtype)
        if column_means is None:
            self._take_off(np.zeros(self.n_columns))
            totals = self.totals(np.zeros(self.n_rows, np.int32), 1)
            column_means = np.full(self.n_columns, np.nan)
            finite = np.nan_to_num(totals.sums[0], nan=0, posinf=0, neginf=0)
            np.divide(finite, totals.counts[0], out=column_means, where=totals.counts[0] > 0)
        self.column_means = column_means
        self._take_off(column_means)
        self._measure()

    def _take_off(self, shift: Floats) -> None:
        self.shift = shift.astype(self.dtype)
        self.rows = self._rows()

    @abstractmethod
    def _rows(self) -> chunks.Rows:
        """The entries as the kernels see them."""

    def few(self, k: int) -> int:
        """As many centers as there are, if eight rows side by side are faster; otherwise 0."""
        return 0

    @abstractmethod
    def entries(self, rows: Positions) -> AnyFloats:
        """The given rows as a dense array with NaN, less the shift."""

    @abstractmethod
    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        """Rows and columns of the entries that are not smaller than `limit`."""

    def _measure(self) -> None:
        """Row and column statistics: what the solvers need beyond the entries."""
        self.observed = np.empty(self.n_rows, np.int32)

        def run(block: Span) -> Floats:
            out = np.zeros((2, self.n_columns))
            chunks.measure(self.rows, *block, self.like, out[0], out[1], self.observed)
            return out

        self.squares, counts = merge(self.map(run))
        live = counts > 0
        self.n_observed = int(self.observed.sum(dtype=np.int64))
        self.has_gaps = bool((self.observed < live.sum()).any())
        self.fallback = np.where(live, np.nan_to_num(self.column_means - self.shift), 0.0)
        variances = self.squares[live] / counts[live] - self.fallback[live] ** 2
        self.variance = max(float(variances.mean()), 0.0) if live.any() else 0.0
        self.tiny = 0.0 if self.weights is None else 1e-9 * float(self.weights[self.weights > 0].min())

    def map(self, function: Callable[[Span], Result]) -> list[Result]:
        """The results of a function for every block, in order."""
        return self.executor.map(function, self.blocks)

    def map_distances(self, function: Callable[[Span, chunks.Workspace], Result], k: int) -> list[Result]:
        """The same with buffers for comparing rows with k centers, which are used again."""
        stride = self.stride(k)
        idle = self._spaces.setdefault(stride, [])

        def run(block: Span) -> Result:
            try:
                space = idle.pop()
            except IndexError:
                space = chunks.Workspace(self.longest_row, stride, self.chunk)
            try:
                return function(block, space)
            finally:
                idle.append(space)

        return self.map(run)

    def pieces(self, block: Span, k: int) -> Iterator[Span]:
        """A block in as many calls as it takes for none to be long."""
        step = self.rows_per_call(k)
        for start in range(block.start, block.stop, step):
            yield Span(start, min(start + step, block.stop))

    def rows_per_call(self, k: int) -> int:
        """How many rows one compiled call may compare with k centers."""
        return max(1, CALL_WORK // (k * self.row_entries))

    def stride(self, k: int, dtype: np.dtype[Any] | None = None) -> int:
        """The number of centers rounded up to whole vectors."""
        lanes = VECTOR_BYTES // (dtype or self.dtype).itemsize
        return -(-k // lanes) * lanes

    def panel(self, by_center: NDArray[Any], dtype: np.dtype[Any] | None = None) -> AnyFloats:
        """An array (k, n_columns) transposed and padded, as the kernels read it."""
        k = len(by_center)
        out = aligned_zeros((self.n_columns, self.stride(k, dtype)), dtype or self.dtype)
        with np.errstate(over="ignore"):
            out[:, :k] = by_center.T
        return out

    def offsets(self, k: int, dtype: np.dtype[Any] | None = None) -> AnyFloats:
        """What is added to a squared distance: nothing, or infinity for the padding."""
        out = aligned_zeros((self.stride(k, dtype),), dtype or self.dtype)
        out[k:] = np.inf
        return out

    def totals(self, labels: Labels, k: int) -> Totals:
        """Sums and counts of the clusters, added up block by block."""

        def run(block: Span) -> Floats:
            totals = np.zeros((2, k, self.n_columns))
            for piece in self.pieces(block, 1):
                chunks.add_up(self.rows, *piece, labels, self.like, totals[0], totals[1])
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
        return self.map(lambda block: chunks.losses(self.rows, *block, labels, self.like, centers, out))

    def distances(self, centers: Floats) -> AnyFloats:
        """Squared partial distances (n_rows, k)."""
        k = len(centers)
        out = np.empty((self.n_rows, k), self.dtype)
        panel, offsets = self.panel(centers), self.offsets(k)

        def run(block: Span, space: chunks.Workspace) -> None:
            for piece in self.pieces(block, k):
                chunks.distances(self.rows, *piece, panel, offsets, out, space)

        self.map_distances(run, k)
        return out


class DenseTable(Table):
    """A C-contiguous array (n_rows, n_columns) with NaN in the gaps."""

    values: AnyFloats

    def __init__(self, values: AnyFloats, *args: Any, **about: Any) -> None:
        self.n_entries, self.longest_row = values.size, values.shape[1]
        super().__init__(values, *args, **about)

    def _rows(self) -> chunks.Rows:
        return chunks.Rows(self.values, self.shift, self.weights)

    def few(self, k: int) -> int:
        """As many centers as there are, if eight rows side by side are faster; otherwise 0."""
        most = chunks.MOST_FEW / 2 * (1 + self.n_observed / self.n_entries)  # gaps cost time there
        return k if k <= most else 0

    def entries(self, rows: Positions) -> AnyFloats:
        """The given rows as a dense array with NaN, less the shift."""
        return self.values[rows] - self.shift

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        """Rows and columns of the entries that are not smaller than `limit`."""
        with np.errstate(invalid="ignore"):
            rows, columns = np.nonzero(np.abs(self.values) >= limit)
        return rows, columns


class SparseTable(Table):
    """A CSR array with int32 indices and int64 indptr: what is not stored is missing."""

    values: Any

    def __init__(self, values: Any, *args: Any, **about: Any) -> None:
        self.n_entries = values.nnz
        self.longest_row = max(1, int(np.diff(values.indptr).max()))
        super().__init__(values, *args, **about)

    def _rows(self) -> chunks.Rows:
        """The stored entries, less the shift; NaN and ignored columns are left out."""
        csr = self.values
        data, indices, indptr = csr.data, csr.indices, csr.indptr
        if self.shift.any():  # NaN counts
            data = data - self.shift[indices]
        missing = np.isnan(data)
        if missing.any():
            indptr = np.concatenate([[0], np.cumsum(~missing)])[indptr]
            data, indices = data[~missing], indices[~missing]
        return chunks.Rows(data, self.shift, self.weights, indices, indptr)

    def entries(self, rows: Positions) -> AnyFloats:
        """The given rows as a dense array with NaN, less the shift."""
        some = self.values[rows]
        out = np.full(some.shape, np.nan, self.dtype)
        places = np.repeat(np.arange(len(rows)), np.diff(some.indptr)), some.indices
        out[places] = some.data - self.shift[some.indices]
        return out

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        """Rows and columns of the entries that are not smaller than `limit`."""
        with np.errstate(invalid="ignore"):
            found = np.flatnonzero(np.abs(self.values.data) >= limit)
        return np.searchsorted(self.values.indptr, found, side="right") - 1, self.values.indices[found]


def make_table(values: Any, *args: Any, **about: Any) -> Table:
    """The table of either kind."""
    return (SparseTable if sparse.issparse(values) else DenseTable)(values, *args, **about)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyFloats:
    """Zeros that start on a cache line, so that no vector straddles two."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)


def merge(parts: list[Floats]) -> Floats:
    """The sum of the parts, always added in the same order."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
