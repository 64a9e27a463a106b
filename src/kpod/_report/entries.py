"""The observed entries of a table, dense or sparse, by column and by row.

What came of a fit is worked out over observed entries alone. Asked for like this, a sparse table
need not be made dense, in which form it might not fit into memory.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from kpod._typing import AnyFloats, Floats, Labels, Positions

Patterns = tuple[int, list[tuple[list[int], int]]]
"""How many patterns of gaps there are; of the commonest, the columns missing and the rows."""


def entries_of(table: Any) -> Entries:
    """Of an array with NaN in the gaps, or of a CSR array."""
    return SparseEntries(table) if sparse.issparse(table) else DenseEntries(table)


class Entries:
    """What both kinds offer."""

    shape: tuple[int, int]
    table: Any
    """The array with NaN in the gaps, or the CSR array."""

    def column(self, j: int) -> tuple[Positions, AnyFloats]:
        """The rows in which a column is observed, and its entries there."""
        raise NotImplementedError

    def rows(self, which: Positions) -> Floats:
        """Some rows as an array with NaN in the gaps."""
        raise NotImplementedError

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        """How often each column is observed in each group of rows; rows in none have -1."""
        raise NotImplementedError

    def patterns(self, most: int) -> Patterns:
        raise NotImplementedError

    @cached_property
    def by_row(self) -> AnyFloats:
        raise NotImplementedError

    @cached_property
    def by_column(self) -> AnyFloats:
        return self.by_group(np.zeros(self.shape[0], np.int32), 1)[0]

    @property
    def share_missing(self) -> float:
        return 1 - float(self.by_row.sum()) / max(1, self.shape[0] * self.shape[1])

    @property
    def n_complete(self) -> int:
        return int((self.by_row == self.shape[1]).sum())


class DenseEntries(Entries):
    """Of an array with NaN in the gaps."""

    def __init__(self, values: AnyFloats) -> None:
        self.values = self.table = values
        self.shape = values.shape

    @cached_property
    def observed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return ~np.isnan(self.values)

    @cached_property
    def by_row(self) -> AnyFloats:
        return self.observed.sum(axis=1)

    def column(self, j: int) -> tuple[Positions, AnyFloats]:
        rows = np.flatnonzero(self.observed[:, j])
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

    def patterns(self, most: int) -> Patterns:
        return patterns_of_gaps(~self.observed, most)


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

    def column(self, j: int) -> tuple[Positions, AnyFloats]:
        here = slice(*self.columns.indptr[j : j + 2])
        return self.columns.indices[here].astype(np.intp), self.columns.data[here]

    def rows(self, which: Positions) -> Floats:
        chosen = self.table[which]
        out = np.full(chosen.shape, np.nan)
        out[np.repeat(np.arange(len(which)), np.diff(chosen.indptr)), chosen.indices] = chosen.data
        return out

    def by_group(self, groups: Labels, n_groups: int) -> AnyFloats:
        inside = np.flatnonzero(groups >= 0)
        belongs = (np.ones(len(inside)), (groups[inside], inside))
        return (sparse.csr_array(belongs, shape=(n_groups, self.shape[0])) @ self.ones).toarray()

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


def patterns_of_gaps(missing: Any, most: int) -> Patterns:
    packed = np.packbits(missing, axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:most]
    patterns = [([int(j) for j in np.flatnonzero(missing[first[o]])], int(counts[o])) for o in order]
    return len(counts), patterns
