"""Where rows come from: blocks of a table, each small, picklable and readable again at any time.

A block opens its rows (`with block.rows() as rows`); what they hold is numbered
from 0. Blocks of a mapped array are pickled as where they lie in its file.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._common.typing import AnyFloats, Floats, Positions
from kpod._engine.sizes import (
    CALL_WORK,
    ENOUGH_BLOCKS,
    ENTRIES_AT_ONCE,
    ENTRIES_PER_BLOCK,
    MOST_ENTRIES_PER_BLOCK,
)
from kpod._engine.windows import Pages, Window, gathered, opened, packed, pages_of, scratch_of, watched
from kpod._kernels.entries import gather, hide
from kpod._kernels.rows import Rows, Workspace


class Units(NamedTuple):
    """What the engine computes in: z = (x - shift) * scale, with scale a power of two.

    `shift` is NaN for a column to be ignored.
    """

    shift: Floats
    scale: float

    def to(self, x: Floats) -> Floats:
        """Into these units; 0 in an ignored column."""
        z = (np.asarray(x, np.float64) - self.shift) * self.scale
        return z if np.isfinite(z).all() else np.nan_to_num(z, nan=0.0)

    def back(self, z: Floats) -> Floats:
        """Out of them; NaN in an ignored column."""
        return z / self.scale + self.shift


@dataclass(frozen=True)
class Hidden:
    """Hidden entries: observed, but held out; those whose hash is from `low` up to `high`.

    The hash is one of row, column and seed, as a number from 0 to 1. Of a row that would be left
    with nothing, the entry that hashes highest stays; of the columns `spared`, nothing is hidden.
    With `only`, the hidden entries are all that is looked at. Where `sources` gives columns the same number,
    it takes the place of the column's own: they are hidden together. With `copied`, dense rows are copied
    without them, which takes memory and makes passes faster; nothing else depends on it.
    """

    seed: int
    low: float
    high: float
    only: bool = False
    spared: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    copied: bool = False


class Block(ABC):
    """A range of rows.

    Parameters
    ----------
    first : number of its first row in the table
    units : what its rows are given in
    weights : float64 array (n_rows,), or None for weights of 1
    hidden : entries not to look at, or None
    """

    n_rows: int
    n_columns: int
    n_entries: int  # places for entries: all of a dense block, the stored ones of a sparse one
    dtype: np.dtype[Any]
    elsewhere = False  # whether its rows, and what there is for each of them, stay on another machine
    keeps_rows = True  # whether opened rows are kept for the next time
    scratch: str | None = None  # a directory for what belongs to the rows and is large
    file: Window | None = None  # that the rows are mapped from, if others may write to it

    def __init__(
        self, first: int, units: Units, weights: Floats | None = None, hidden: Hidden | None = None
    ) -> None:
        self.first, self.units, self.weights, self.hidden = first, units, weights, hidden
        self._opened: Rows | None = None
        self._pages: tuple[Pages, ...] = ()

    @contextmanager
    def rows(self) -> Iterator[Rows]:
        """The rows, for as long as the context lasts; refused if the file was written to before its end."""
        self.check_file()
        try:
            rows = self._hiding(self._open()) if self._opened is None else self._opened
            if self.keeps_rows:
                self._opened = rows
            yield rows
            self.check_file()
        finally:
            self.release()

    def check_file(self) -> None:
        """Refuse rows of a file that was written to since they were mapped."""
        if self.file is not None and not self.file.is_unchanged():
            raise self.changed("was written to while the table was in use, which was noticed at")

    def changed(self, what: str) -> ValueError:
        """The error that its rows are no longer those that the results so far rest on."""
        where = "X" if self.file is None else self.file.path
        return ValueError(
            f"{where} {what} rows {self.first:,} to {self.first + self.n_rows - 1:,}. Fit again when nothing "
            "writes to it, or fit a copy."
        )

    def release(self) -> None:
        """Let go of the pages of a mapped file that the rows are in, until they are read again."""
        for pages in self._pages:
            pages.release()

    @abstractmethod
    def _open(self, bitmap: NDArray[np.uint8] | None = None) -> Rows:
        """The rows, with the entries in a bitmap hidden."""

    def _hiding(self, opened: Rows) -> Rows:
        return opened if self.hidden is None else self._open(self._bitmap(opened))

    def _bitmap(self, opened: Rows) -> NDArray[np.uint8]:
        """A bit for each entry, set where it is hidden."""
        about = self.hidden
        assert about is not None
        step = (self.n_columns + 7) // 8
        bitmap = np.zeros((opened.n_entries + 7) // 8 if opened.is_sparse else self.n_rows * step, np.uint8)
        sources = np.array(about.sources, np.int32) if about.sources else None
        space = Workspace(opened, 0, 1)
        hide(opened, self.first, about.seed, about.low, about.high, bitmap, space, sources)
        if about.spared:
            self._spare(bitmap, np.isin(np.arange(self.n_columns), about.spared))
        return bitmap

    def _spare(self, bitmap: NDArray[np.uint8], columns: NDArray[np.bool_]) -> None:
        """Clear the bits of some columns."""
        raise NotImplementedError

    def hidden_entries(self) -> tuple[Positions, Positions, Floats]:
        """Row in the block, column and value in the units of the table of each hidden entry, by row."""
        raise NotImplementedError

    def column_counts(self) -> Positions:
        """How many rows observe each column."""
        raise NotImplementedError

    @abstractmethod
    def replace(self, *, units: Units | None = None, hidden: Hidden | None = None) -> Block:
        """The same rows in other units, or with other entries hidden."""

    @abstractmethod
    def glance(self, n: int) -> AnyFloats:
        """Up to n of its rows as they are, dense with NaN: for a first look at the columns."""

    def entries(self, index: Positions) -> Floats:
        """Some of its rows as a dense array with NaN, in the block's units."""
        out = np.empty((len(index), self.n_columns))
        with self.rows() as rows:
            gather(rows, np.ascontiguousarray(index, np.intp), out, Workspace(rows, 0, 1))
        return out

    def columns(self, which: Positions) -> Iterator[AnyFloats]:
        """Some columns as dense arrays with NaN, a few rows at a time, as they are."""
        raise NotImplementedError

    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The arrays that its rows are made of."""

    def checksum(self) -> int:
        """Of all entries and weights, as they are."""
        own = () if self.weights is None else (self.weights,)
        out = 0
        for array in (*self.parts(), *own):
            out = zlib.crc32(memoryview(array).cast("B") if array.size else b"", out)
        return out

    @abstractmethod
    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        """Rows and columns of the entries that are not smaller than `limit`."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_pages": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: aligned(value) for name, value in state.items()})

    @property
    def row_entries(self) -> int:
        """Places for entries in a row, in the mean."""
        return max(1, self.n_entries // max(1, self.n_rows))

    def pieces(self, k: int) -> Iterator[tuple[int, int]]:
        """The rows in as many calls as it takes for none to compare with k centers for long."""
        step = max(1, CALL_WORK // (k * self.row_entries))
        for start in range(0, self.n_rows, step):
            yield start, min(start + step, self.n_rows)


class DenseBlock(Block):
    """Rows of a C-contiguous array, in memory or mapped, with NaN in the gaps."""

    def __init__(self, values: AnyFloats, *args: Any) -> None:
        super().__init__(*args)
        self._values: AnyFloats | Window = values
        self.file = watched(values)
        self._pages = pages_of(values)
        self.scratch = scratch_of(values)
        self.n_rows, self.n_columns = values.shape
        self.n_entries, self.dtype = values.size, values.dtype

    @property
    def values(self) -> AnyFloats:
        """The rows, opened again where they came as a window."""
        if isinstance(self._values, Window):
            self._values = self._values.open()
            self._pages = pages_of(self._values)
        return self._values

    def parts(self) -> tuple[Any, ...]:
        return (self.values,)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_values": packed(self._values)}

    def _open(self, bitmap: NDArray[np.uint8] | None = None) -> Rows:
        shift, about, values = self.units.shift.astype(self.dtype), self.hidden, self.values
        only = about is not None and about.only
        if bitmap is not None and about is not None and about.copied and not only:
            values, bitmap = np.where(self._bits(bitmap), self.dtype.type(np.nan), values), None
        return Rows(values, shift, self.units.scale, self.weights, hidden=bitmap, only_hidden=only)

    def _bits(self, bitmap: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """A bitmap as an array of the shape of the rows."""
        bits = bitmap.reshape(self.n_rows, -1)
        return np.unpackbits(bits, axis=1, count=self.n_columns, bitorder="little").view(np.bool_)

    def replace(self, *, units: Units | None = None, hidden: Hidden | None = None) -> DenseBlock:
        out = DenseBlock(self.values, self.first, units or self.units, self.weights, hidden)
        out.file = self.file  # as it was at first
        return out

    def _spare(self, bitmap: NDArray[np.uint8], columns: NDArray[np.bool_]) -> None:
        bitmap.reshape(self.n_rows, -1)[:] &= ~np.packbits(columns, bitorder="little")

    def hidden_entries(self) -> tuple[Positions, Positions, Floats]:
        rows, columns = np.nonzero(self._bits(self._bitmap(self._open())))
        entries = self.values[rows, columns].astype(np.float64)
        self.release()
        return rows, columns, entries

    def column_counts(self) -> Positions:
        counts = (~np.isnan(self.values)).sum(axis=0)
        self.release()
        return counts

    def columns(self, which: Positions) -> Iterator[AnyFloats]:
        for start, stop in row_pieces(self.n_rows, len(which)):
            yield self.values[start:stop, which]
        self.release()

    def glance(self, n: int) -> AnyFloats:
        some = np.array(self.values[:: -(-self.n_rows // n)])
        self.release()
        return some

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        with np.errstate(invalid="ignore"):
            rows, columns = np.nonzero(np.abs(self.values) >= limit)
        self.release()
        return rows, columns


class SparseBlock(Block):
    """Rows of a CSR array with int32 indices and int64 indptr: what is not stored is missing."""

    def __init__(self, values: Any, *args: Any) -> None:
        super().__init__(*args)
        self._parts: tuple[Any, ...] = (values.data, values.indices, values.indptr)
        self.n_rows, self.n_columns = values.shape
        self.n_entries, self.dtype = values.nnz, values.dtype
        self.scratch = scratch_of(values.data)
        self.file = watched(values.data) or watched(values.indices)
        # Opened, the entries are copies in the engine's units: of a mapped table, for one pass each.
        self.keeps_rows = Window.of(values.data) is None

    @property
    def values(self) -> Any:
        """The rows as a CSR array, opened again where they came as windows."""
        data, indices, indptr = self._parts = tuple(map(opened, self._parts))
        self._pages = pages_of(*self._parts)
        return csr_of(data, indices, indptr, (self.n_rows, self.n_columns))

    def parts(self) -> tuple[Any, ...]:
        return self.values.data, self.values.indices, self.values.indptr

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_parts": tuple(map(packed, self._parts))}

    def _open(self, bitmap: NDArray[np.uint8] | None = None) -> Rows:
        """The stored entries in the block's units; NaN and ignored columns are left out."""
        only = self.hidden is not None and self.hidden.only
        data, indices, indptr, shift, _ = self._stored()
        return Rows(data, shift, 1.0, self.weights, indices, indptr, bitmap, only)

    def _stored(self) -> tuple[Any, Any, Any, Any, Any]:
        """Data, indices and indptr as `Rows` takes them, the shift, and which of all stored they are."""
        csr = self.values
        data, indices, indptr = csr.data, csr.indices, csr.indptr
        shift = self.units.shift.astype(self.dtype)
        if shift.any() or self.units.scale != 1:  # NaN counts
            with np.errstate(over="ignore", invalid="ignore"):  # by a NaN that signals, such as NA of R
                data = data - shift[indices]
                data *= self.dtype.type(self.units.scale)
        kept = ~np.isnan(data)
        if not kept.all():
            indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
            data, indices = data[kept], indices[kept]
        return data, indices, indptr, shift, kept

    def _spare(self, bitmap: NDArray[np.uint8], columns: NDArray[np.bool_]) -> None:
        bitmap &= ~np.packbits(columns[self._stored()[1]], bitorder="little")

    def hidden_entries(self) -> tuple[Positions, Positions, Floats]:
        _, indices, indptr, _, kept = self._stored()
        bits = np.unpackbits(self._bitmap(self._open()), count=len(indices), bitorder="little")
        at = np.flatnonzero(bits)
        rows = np.searchsorted(indptr, at, side="right") - 1
        return rows, indices[at].astype(np.intp), self.values.data[kept][at].astype(np.float64)

    def column_counts(self) -> Positions:
        return np.bincount(self.values.indices[~np.isnan(self.values.data)], minlength=self.n_columns)

    def replace(self, *, units: Units | None = None, hidden: Hidden | None = None) -> SparseBlock:
        out = SparseBlock(self.values, self.first, units or self.units, self.weights, hidden)
        out.file = self.file  # as it was at first
        return out

    def columns(self, which: Positions) -> Iterator[AnyFloats]:
        part = self.values[:, which].tocsr()
        for start, stop in row_pieces(self.n_rows, len(which)):
            yield dense_with_gaps(part[start:stop])

    def glance(self, n: int) -> AnyFloats:
        n = min(n, max(1, (1 << 22) // self.n_columns))
        return dense_with_gaps(self.values[np.arange(0, self.n_rows, -(-self.n_rows // n))])

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        with np.errstate(invalid="ignore"):
            found = np.flatnonzero(np.abs(self.values.data) >= limit)
        return np.searchsorted(self.values.indptr, found, side="right") - 1, self.values.indices[found]


def aligned(value: Any) -> Any:
    """An array where a processor may read it at once, which one that came over a wire need not be."""
    if type(value) is tuple:
        return tuple(map(aligned, value))
    return np.require(value, requirements="A") if isinstance(value, np.ndarray) else value


def dense_with_gaps(csr: Any) -> AnyFloats:
    out = np.full(csr.shape, np.nan, csr.dtype)
    out[np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)), csr.indices] = csr.data
    return out


def row_pieces(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about as many entries as are copied at once."""
    step = max(1, ENTRIES_AT_ONCE // max(1, n_columns))
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def cut(n_rows: int, n_entries: int) -> list[tuple[int, int]]:
    """Ranges of rows of equal length: enough to keep many threads busy, none too large for a machine."""
    enough = max(ENOUGH_BLOCKS, -(-n_entries // MOST_ENTRIES_PER_BLOCK))
    n_blocks = max(1, min(enough, n_entries // ENTRIES_PER_BLOCK, n_rows))
    return list(pairwise(n_rows * i // n_blocks for i in range(n_blocks + 1)))


def blocks_of(values: Any, units: Units, weights: Floats | None = None) -> list[Block]:
    """The blocks of a validated array or CSR array; no entry is copied.

    A table that comes in blocks already has them made by its own `blocks`.
    """
    if hasattr(values, "blocks"):
        return list(values.blocks(units, weights))
    out: list[Block] = []
    n_entries = values.nnz if sparse.issparse(values) else values.size
    for start, stop in cut(values.shape[0], n_entries):
        own = None if weights is None else weights[start:stop]
        rows = csr_rows(values, start, stop) if sparse.issparse(values) else values[start:stop]
        out.append(block_of(rows, start, units, own))
    return out


def block_of(values: Any, first: int, units: Units, weights: Floats | None = None) -> Block:
    """All rows of an array or CSR array as one block."""
    kind = SparseBlock if sparse.issparse(values) else DenseBlock
    return kind(values, first, units, weights)


def copied(block: Block) -> Block:
    """The same rows in memory of their own, wherever they are."""
    parts = [np.array(part) for part in block.parts()]
    shape = block.n_rows, block.n_columns
    values = parts[0] if len(parts) == 1 else csr_of(parts[0], parts[1], parts[2], shape)
    return block_of(values, block.first, block.units, block.weights)


def csr_rows(csr: Any, start: int, stop: int) -> Any:
    """Rows of a CSR array as views of its data and indices."""
    low, high = csr.indptr[start], csr.indptr[stop]
    indptr = (csr.indptr[start : stop + 1] - low).astype(np.int64)
    return csr_of(csr.data[low:high], csr.indices[low:high], indptr, (stop - start, csr.shape[1]))


def csr_of(data: AnyFloats, indices: AnyFloats, indptr: AnyFloats, shape: tuple[int, int]) -> Any:
    """A CSR array of these very parts: SciPy's constructor may copy them, and looks at them all."""
    out = sparse.csr_array(shape, dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr
    return out


def some_rows(values: Any, rows: Positions) -> Any:
    """Some rows of a validated array or CSR array, as one."""
    if not sparse.issparse(values):
        return gathered(values, rows)
    csr = sparse.csr_array(values[rows])
    out = sparse.csr_array(csr.shape, dtype=csr.dtype)
    out.data, out.indices, out.indptr = csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)
    return out
