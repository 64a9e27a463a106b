"""The observed entries of a table, dense or sparse, by column and by row.

What came of a fit is worked out over observed entries alone. Asked for like this, a sparse table
need not be made dense, in which form it might not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._common.typing import AnyFloats, Floats, Labels, Positions
from kpod._engine.executors import available_threads, threads
from kpod._engine.table import Table, make_table
from kpod._engine.windows import gathered, release
from kpod._kernels.columns import count_observed

CHUNK_ENTRIES = 1 << 21
MANY_ENTRIES = 1 << 22
"""Larger tables are looked at in pieces, which the caches of a processor hold."""
Patterns = tuple[int, list[tuple[list[int], int]]]
"""How many patterns of gaps there are; of the commonest, the columns missing and the rows."""


def entries_of(table: Any, measured: Table | None = None) -> Entries:
    """Of an array with NaN in the gaps, or of a CSR array; `measured`: statistics of the fit."""
    if sparse.issparse(table):
        return SparseEntries(table)
    in_pieces = isinstance(table, np.memmap) or table.size > MANY_ENTRIES
    return MappedEntries(MappedRows(table, measured)) if in_pieces else DenseEntries(table)


class Entries:
    """What both kinds offer."""

    shape: tuple[int, int]

    def column(self, j: int, among: Positions | None = None) -> tuple[Positions, AnyFloats]:
        """The rows in which a column is observed, of all or of those given, and its entries there."""
        raise NotImplementedError

    def rows(self, which: Positions) -> Floats:
        """Some rows as an array with NaN in the gaps."""
        raise NotImplementedError

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        """How often each column is observed in each group of rows; rows in none have -1."""
        raise NotImplementedError

    def sums_by_group(
        self, groups: Labels, n_groups: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The sum of each column in each group of rows, and the sum of weights (or 1) of its entries."""
        raise NotImplementedError

    def patterns(self, most: int) -> Patterns:
        raise NotImplementedError

    @cached_property
    def by_row(self) -> AnyFloats:
        raise NotImplementedError

    @cached_property
    def by_column(self) -> AnyFloats:
        return self.by_group(np.zeros(self.shape[0], np.int32), 1)[0]

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the observed entries of each column; NaN for none."""
        means, stds = np.full(self.shape[1], np.nan), np.full(self.shape[1], np.nan)
        for j in range(self.shape[1]):
            _, entries = self.column(j)
            if len(entries):
                means[j], stds[j] = entries.mean(dtype=np.float64), entries.std(dtype=np.float64)
        return means, stds

    def squares_around(self, values: Floats) -> float:
        """The sum of squared differences of all entries from a value for each column."""
        means, stds = self.moments
        return float(np.nansum(self.by_column * (stds**2 + (means - values) ** 2)))

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The smallest and the largest entry of each column; NaN for none."""
        columns = [self.column(j)[1] for j in range(self.shape[1])]
        ends = [[e.min(), e.max()] if len(e) else [np.nan, np.nan] for e in columns]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return low, high

    @property
    def share_missing(self) -> float:
        return 1 - float(self.by_row.sum()) / max(1, self.shape[0] * self.shape[1])

    @property
    def n_complete(self) -> int:
        return int((self.by_row == self.shape[1]).sum())


class DenseEntries(Entries):
    """Of an array with NaN in the gaps."""

    def __init__(self, values: AnyFloats) -> None:
        self.values, self.shape = values, values.shape

    @cached_property
    def observed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return ~np.isnan(self.values)

    @cached_property
    def by_row(self) -> AnyFloats:
        return self.observed.sum(axis=1)

    def column(self, j: int, among: Positions | None = None) -> tuple[Positions, AnyFloats]:
        rows = np.flatnonzero(self.observed[:, j]) if among is None else among[self.observed[among, j]]
        return rows, self.values[rows, j]

    def rows(self, which: Positions) -> Floats:
        return self.values[which].astype(np.float64)

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        out = np.zeros((n_groups, self.shape[1]))
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(n_groups + 1))
        for group in range(n_groups):
            out[group] = self.observed[order[starts[group] : starts[group + 1]]].sum(axis=0)
        return out

    def sums_by_group(
        self, groups: Labels, n_groups: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        within = members(groups, n_groups, weights)
        return within @ np.where(self.observed, self.values, 0.0), within @ self.observed.astype(np.float64)

    def patterns(self, most: int) -> Patterns:
        return patterns_of_gaps(~self.observed, most)


class MappedRows:
    """A large array, in a file perhaps, and what was found out about it so far.

    Parameters
    ----------
    values : array with NaN in the gaps
    measured : the same as a table of the engine, if that is known
    """

    def __init__(self, values: AnyFloats, measured: Table | None = None) -> None:
        self.values, self._measured = values, measured
        self._sample: tuple[Positions, AnyFloats] | None = None

    @property
    def measured(self) -> Table:
        """Statistics of rows and columns from one compiled pass."""
        if self._measured is None:
            with threads(available_threads()) as executor:
                self._measured = make_table(self.values, executor)
        return self._measured

    def rows(self, which: Positions) -> AnyFloats:
        """Some rows; the last ones are cached if they are not too many."""
        if self._sample is not None and self._sample[0] is which:
            return self._sample[1]
        found = gathered(self.values, which)
        if found.size <= MANY_ENTRIES:
            self._sample = which, found
        return found

    def column(self, j: int, among: Positions) -> AnyFloats:
        """Some entries of a column."""
        few = len(among) * self.values.shape[1] <= MANY_ENTRIES
        return self.rows(among)[:, j] if few else gathered(self.values[:, j], among)


class MappedEntries(Entries):
    """Of a large array, in a file perhaps, looked at some rows or one column at a time.

    Parameters
    ----------
    mapped : the array
    scaler : ObservedScaler or None
        What the values were standardised by: entries are given in the units from before.
    """

    def __init__(self, mapped: MappedRows, scaler: Any = None) -> None:
        self.mapped, self.values, self.scaler = mapped, mapped.values, scaler
        self.shape = mapped.values.shape

    def pieces(self) -> Iterator[tuple[slice, AnyFloats]]:
        """Some rows after the other, as they are in the file, which are let go of before the next."""
        step = max(1, CHUNK_ENTRIES // self.shape[1])
        for start in range(0, self.shape[0], step):
            rows = slice(start, min(start + step, self.shape[0]))
            yield rows, self.values[rows]
            release(self.values[rows])

    def in_units(self, values: Any, j: Any = slice(None)) -> Floats:
        if self.scaler is None:
            return np.asarray(values, np.float64)
        return np.asarray(values, np.float64) * self.scaler.scale_[j] + self.scaler.mean_[j]

    @property
    def by_row(self) -> Any:
        return self.mapped.measured.observed

    @property
    def by_column(self) -> AnyFloats:
        return self.mapped.measured.about.weights

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        low, high = np.full(self.shape[1], np.nan), np.full(self.shape[1], np.nan)
        for _, values in self.pieces():
            low, high = np.fmin(low, np.fmin.reduce(values)), np.fmax(high, np.fmax.reduce(values))
        return self.in_units(low), self.in_units(high)

    def column(self, j: int, among: Positions | None = None) -> tuple[Positions, AnyFloats]:
        if among is None:
            entries = np.concatenate([values[:, j].copy() for _, values in self.pieces()])
        else:
            entries = self.mapped.column(j, among)
        here = np.flatnonzero(~np.isnan(entries))
        entries, rows = entries[here], here if among is None else among[here]
        return rows, self.in_units(entries, j) if self.scaler is not None else entries

    def rows(self, which: Positions) -> Floats:
        return self.in_units(self.mapped.rows(which))

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        out = np.zeros((n_groups, self.shape[1]))
        for rows, values in self.pieces():
            here = np.ascontiguousarray(groups[rows], np.int32)
            out += count_observed(np.ascontiguousarray(values), here, n_groups)
        return out

    def sums_by_group(
        self, groups: Labels, n_groups: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        sums, sizes = np.zeros((2, n_groups, self.shape[1]))
        for rows, values in self.pieces():
            within = members(groups[rows], n_groups, None if weights is None else weights[rows])
            observed = ~np.isnan(values)
            sums += within @ np.where(observed, values, 0.0)
            sizes += within @ observed.astype(np.float64)
        if self.scaler is not None:
            sums = sums * self.scaler.scale_ + sizes * self.scaler.mean_
        return sums, sizes

    @property
    def moments(self) -> tuple[Floats, Floats]:
        scale = 1.0 if self.scaler is None else self.scaler.scale_
        measured = self.mapped.measured
        return self.in_units(measured.column_means), measured.column_spreads * scale

    def patterns(self, most: int) -> Patterns:
        keys = np.empty(self.shape[0], np.uint64)
        for rows, values in self.pieces():
            keys[rows] = hashed(np.packbits(np.isnan(values), axis=1))
        ordered = np.sort(keys)
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        counts = np.diff(np.append(starts, len(ordered)))
        # Of patterns as common as the last of the commonest, those come first that the table has first.
        least = np.sort(counts)[-most:][0]
        common = counts >= least
        if least == 1:  # any pattern will do
            common &= np.cumsum(common) <= most
        firsts = {
            int(np.flatnonzero(keys == key)[0]): int(n)
            for key, n in zip(ordered[starts[common]], counts[common], strict=True)
        }
        chosen = sorted(firsts, key=lambda row: (-firsts[row], row))[:most]
        missing = [np.flatnonzero(np.isnan(self.values[row])) for row in chosen]
        return len(counts), [
            ([int(j) for j in gaps], firsts[row]) for gaps, row in zip(missing, chosen, strict=True)
        ]


def hashed(packed: Any) -> NDArray[np.uint64]:
    """A number for every row of bytes, by mixing eight at a time (splitmix64)."""
    width = -(-packed.shape[1] // 8) * 8
    words = np.zeros((len(packed), width), np.uint8)
    words[:, : packed.shape[1]] = packed
    out = np.zeros(len(packed), np.uint64)
    with np.errstate(over="ignore"):
        for word in words.view(np.uint64).T:
            out = (out ^ word) + np.uint64(0x9E3779B97F4A7C15)
            out = (out ^ (out >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            out = (out ^ (out >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out ^= out >> np.uint64(31)
    return out


class SparseEntries(Entries):
    """Of a CSR array; entries that are not stored, or stored as NaN, are missing."""

    def __init__(self, table: sparse.csr_array) -> None:
        kept = ~np.isnan(table.data)
        if not kept.all():
            before = np.concatenate([[0], np.cumsum(kept)])
            table = sparse.csr_array(
                (table.data[kept], table.indices[kept], before[table.indptr]), shape=table.shape
            )
        self.table, self.shape = table, table.shape
        ones = np.ones(len(table.data), np.float32)
        self.ones = sparse.csr_array((ones, table.indices, table.indptr), shape=table.shape)

    @cached_property
    def by_row(self) -> AnyFloats:
        return np.diff(self.table.indptr)

    @cached_property
    def columns(self) -> sparse.csc_array:
        return self.table.tocsc()

    def column(self, j: int, among: Positions | None = None) -> tuple[Positions, AnyFloats]:
        assert among is None, "the columns of a sparse table are short"
        here = slice(*self.columns.indptr[j : j + 2])
        return self.columns.indices[here].astype(np.intp), self.columns.data[here]

    def rows(self, which: Positions) -> Floats:
        chosen = self.table[which]
        out = np.full(chosen.shape, np.nan)
        out[np.repeat(np.arange(len(which)), np.diff(chosen.indptr)), chosen.indices] = chosen.data
        return out

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        return (members(groups, n_groups) @ self.ones).toarray()

    def sums_by_group(
        self, groups: Labels, n_groups: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        within = members(groups, n_groups, weights)
        return (within @ self.table).toarray(), (within @ self.ones).toarray()

    def patterns(self, most: int) -> Patterns:
        indices, indptr = self.table.indices, self.table.indptr
        found: dict[bytes, list[int]] = {}
        for row in range(self.shape[0]):
            key = blake2b(indices[indptr[row] : indptr[row + 1]].tobytes(), digest_size=16).digest()
            found.setdefault(key, [row, 0])[1] += 1
        commonest = sorted(found.values(), key=lambda pattern: (-pattern[1], pattern[0]))[:most]
        everything = np.arange(self.shape[1])
        return len(found), [
            ([int(j) for j in np.setdiff1d(everything, indices[indptr[row] : indptr[row + 1]])], times)
            for row, times in commonest
        ]


def members(groups: Labels, n_groups: int, weights: Floats | None = None) -> sparse.csr_array:
    """The rows of each group as a matrix (n_groups, n) of ones, or of weights."""
    inside = np.flatnonzero(groups >= 0)
    ones = np.ones(len(inside)) if weights is None else np.asarray(weights, np.float64)[inside]
    return sparse.csr_array((ones, (groups[inside], inside)), shape=(n_groups, len(groups)))


def patterns_of_gaps(missing: Any, most: int) -> Patterns:
    packed = np.packbits(missing, axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:most]
    patterns = [([int(j) for j in np.flatnonzero(missing[first[o]])], int(counts[o])) for o in order]
    return len(counts), patterns
