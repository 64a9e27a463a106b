r"""Columns that come from one column: the indicators of a category.

A category of m levels reaches the engine as m columns of which exactly one is on in every row where the
category is known, and all are missing in the others. That is one column of the table, and is counted
as one wherever columns are counted: in what is hidden together, in the overlap of two rows, in what gaps
say, and in degrees of freedom.

No parameter names these columns, because they come as plain numbers through pipelines: they are
recognised by their values. Neighbours are a group if each has two values, all are missing in the same rows,
and in each of the others exactly one has its higher value. So shift and (positive) scale of each
column do not matter. Two complements are the smallest group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._common.typing import AnyFloats, Floats, Positions

FEWEST_ROWS = 10
"""Rows in which columns must be observed: in fewer, neighbours are complements by chance."""
FEW_ROWS = 64
"""Rows by which columns with more than two values are ruled out before all rows are looked at."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnGroups:
    """For each column, the number of the column of the table that it comes from, from 0 in order."""

    source: Positions

    @classmethod
    def none(cls, n_columns: int) -> ColumnGroups:
        """Every column comes from its own."""
        return cls(np.arange(n_columns))

    @classmethod
    def of_sizes(cls, sizes: Any) -> ColumnGroups:
        """From the number of columns of each source."""
        return cls(np.repeat(np.arange(len(sizes)), sizes))

    @cached_property
    def present(self) -> bool:
        """Whether any columns come from the same one."""
        return self.n_sources < len(self.source)

    @property
    def is_valid(self) -> bool:
        """Whether the numbers are in order, from 0 without one left out."""
        steps = np.diff(self.source, prepend=0)
        return bool(steps[0] == 0 and ((steps == 0) | (steps == 1)).all())

    @cached_property
    def n_sources(self) -> int:
        return int(self.source[-1]) + 1 if len(self.source) else 0

    @cached_property
    def first(self) -> Mask:
        """Whether a column is the first of its source, and is the one counted for it."""
        return np.concatenate([[True], np.diff(self.source) > 0])[: len(self.source)]

    @cached_property
    def starts(self) -> Positions:
        """The first column of each source."""
        return np.flatnonzero(self.first)

    @cached_property
    def sizes(self) -> Positions:
        """How many columns come from each source."""
        return np.bincount(self.source, minlength=self.n_sources)

    @cached_property
    def shares(self) -> Floats:
        """What each column counts for, so that each source counts for 1."""
        return 1.0 / self.sizes[self.source]

    def columns_of(self, sources: Positions) -> Positions:
        """The columns that come from some sources, in order."""
        return np.flatnonzero(np.isin(self.source, sources))

    def among(self, columns: Positions) -> ColumnGroups:
        """The same of some columns, in order, as a table of their own."""
        return ColumnGroups(np.unique(self.source[columns], return_inverse=True)[1].ravel())

    def sums(self, of_columns: Floats) -> Floats:
        """Sums over the columns of each source, along the last axis."""
        if not self.present:
            return of_columns
        return np.add.reduceat(of_columns, self.starts, axis=-1)


def recognise(
    n_columns: int, candidates: Positions, each: Callable[[Callable[[AnyFloats], Any]], list[Any]]
) -> ColumnGroups:
    """The groups among some candidates.

    `each` calls a function with these columns of every part of the rows, as an array with NaN, and returns
    what it found.
    """
    if len(candidates) < 2:
        return ColumnGroups.none(n_columns)
    low, high, binary = values_of(each(range_of))
    if not binary.any():
        return ColumnGroups.none(n_columns)
    found: list[Indicators] = each(partial(indicators, low=low, high=high))
    n_observed = np.sum([part.n_observed for part in found], axis=0)
    alike = np.logical_and.reduce([part.alike for part in found])
    second = np.min([part.second for part in found], axis=0)
    covered = np.max([part.covered for part in found], axis=0)
    follows = np.diff(candidates) == 1
    linked = alike & follows & binary[:-1] & binary[1:]
    sizes, j = np.ones(n_columns, np.intp), 0
    while j < len(candidates) - 1:
        stop = int(covered[j]) + 1
        if linked[j] and stop - j > 1 and stop <= second[j] and linked[j : stop - 1].all():
            if n_observed[j] >= FEWEST_ROWS:
                sizes[candidates[j]] = stop - j
                sizes[candidates[j] + 1 : candidates[j] + stop - j] = 0
            j = stop
        else:
            j += 1
    return ColumnGroups.of_sizes(sizes[sizes > 0])


def groups_of_array(X: Floats) -> ColumnGroups:
    """The groups of an array with NaN in the gaps."""
    candidates = candidates_in(X[:FEW_ROWS])
    return recognise(X.shape[1], candidates, lambda function: [function(X[:, candidates])])


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def candidates_in(some: AnyFloats, linked: Mask | bool = True) -> Positions:
    """Columns that may be indicators of one category with a neighbour, by some rows.

    They have at most two values there, and are never both on. `linked` rules out more pairs of neighbours.
    """
    low, high = bounds(some)
    few = (np.isnan(some) | (some == low) | (some == high)).all(axis=0)
    if not few.any():
        return np.zeros(0, np.intp)
    on = (some == high) & (low < high)
    link = few[1:] & few[:-1] & ~(on[:, 1:] & on[:, :-1]).any(axis=0) & linked
    return np.flatnonzero(np.concatenate([[False], link]) | np.concatenate([link, [False]]))


class Range(NamedTuple):
    """Lowest and highest value of each column, and whether there are no others."""

    low: Floats
    high: Floats
    binary: Mask


def bounds(x: AnyFloats) -> tuple[Floats, Floats]:
    with np.errstate(invalid="ignore"):
        return np.fmin.reduce(x, axis=0, initial=np.inf), np.fmax.reduce(x, axis=0, initial=-np.inf)


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def range_of(x: AnyFloats) -> Range:
    low, high = bounds(x)
    return Range(low, high, (np.isnan(x) | (x == low) | (x == high)).all(axis=0))


def values_of(parts: list[Range]) -> Range:
    """The same of all parts: one may have only one of the two values."""
    low, high = np.min([part.low for part in parts], axis=0), np.max([part.high for part in parts], axis=0)
    binary = low < high
    for part in parts:
        nothing = part.low > part.high
        for end in (part.low, part.high):
            binary &= nothing | (end == low) | (end == high)
        binary &= part.binary
    return Range(low, high, binary)


class Indicators(NamedTuple):
    """Statistics of some rows about columns as indicators.

    `alike`: whether a column is missing in the same rows as the next; `n_observed` rows. Of the rows that
    observe a column, looking at it and those after it: `covered`, the column at which the last row
    has one that is on, and `second`, the column at which the first row has two.
    """

    alike: Mask
    n_observed: Positions
    covered: Positions
    second: Positions


@np.errstate(invalid="ignore")
def indicators(x: AnyFloats, low: Floats, high: Floats) -> Indicators:
    n, p = x.shape
    seen, on = ~np.isnan(x), (x == high) & (low < high)
    alike = (seen[:, 1:] == seen[:, :-1]).all(axis=0)
    first, then = np.full(n, p), np.full(n, p)
    covered, second = np.zeros(p, np.intp), np.full(p, p)
    for j in range(p - 1, -1, -1):
        here = on[:, j]
        then = np.where(here, first, then)
        first[here] = j
        covered[j] = first.max(where=seen[:, j], initial=-1)
        second[j] = then.min(where=seen[:, j], initial=p)
    return Indicators(alike, seen.sum(axis=0), covered, second)


@dataclass(frozen=True)
class Contrasts:
    """A table in which a category of m levels has m - 1 columns, and rows have the same distances.

    The indicators of a category sum to a constant (each over its height), so that they lie in a plane of one
    dimension less: its coordinates are the new columns. Two levels become one column.
    """

    of: ColumnGroups
    rotations: dict[int, Floats]

    @classmethod
    def of_table(cls, X: Any, groups: ColumnGroups) -> Contrasts:
        """For the columns of an array with NaN in the gaps, or of a CSR array."""
        rotations = {}
        for start in groups.starts[groups.sizes > 1]:
            columns = np.arange(start, start + groups.sizes[groups.source[start]])
            rotations[int(start)] = basis(np.array([height(X, j) for j in columns]))
        return cls(groups, rotations)

    @cached_property
    def kept(self) -> Positions:
        """For each new column, the one that it takes the place of: all but the last of a group."""
        last = np.concatenate([np.diff(self.of.source) > 0, [True]])
        return np.flatnonzero(~last | (self.of.sizes[self.of.source] == 1))

    @cached_property
    def groups(self) -> ColumnGroups:
        """Of the new columns."""
        return self.of.among(self.kept)

    def values(self, X: Any) -> Any:
        """The new columns of the table."""
        if sparse.issparse(X):
            return self._sparse(X)
        out = np.array(X, dtype=np.float64)
        for start, rotation in self.rotations.items():
            size = len(rotation)
            out[:, start : start + size - 1] = out[:, start : start + size] @ rotation
        return out[:, self.kept]

    def _sparse(self, X: Any) -> Any:
        grouped = np.isin(np.arange(X.shape[1]), self.of.columns_of(np.flatnonzero(self.of.sizes > 1)))
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        alone = ~grouped[X.indices]
        parts = [(rows[alone], X.indices[alone], X.data[alone])]
        for start, rotation in self.rotations.items():
            here = (X.indices >= start) & (X.indices < start + len(rotation))
            members, at = np.unique(rows[here], return_inverse=True)
            block = np.full((len(members), len(rotation)), np.nan)
            block[at.ravel(), X.indices[here] - start] = X.data[here]
            block = block @ rotation
            of_row, column = np.nonzero(~np.isnan(block))
            parts.append((members[of_row], start + column, block[of_row, column]))
        row, column, data = (np.concatenate(part) for part in zip(*parts, strict=True))
        place = np.searchsorted(self.kept, column)
        out = sparse.csr_array((data.astype(np.float64), (row, place)), shape=(X.shape[0], len(self.kept)))
        out.sort_indices()
        return out


def height(X: Any, j: int) -> float:
    """From the lowest to the highest value of a column, 0 for one without values."""
    low, high = bounds(X.data[X.indices == j] if sparse.issparse(X) else X[:, j])
    return max(float(high - low), 0.0)


def basis(heights: Floats) -> Floats:
    """Orthonormal coordinates (m, m - 1) of the plane in which indicators of these heights lie."""
    m = len(heights)
    normal = np.where(heights > 0, 1 / np.where(heights > 0, heights, 1.0), 0.0)
    if not normal.any():
        normal[-1] = 1.0
    full = np.column_stack([normal, np.eye(m)[:, : m - 1]])
    axes = np.linalg.qr(full)[0][:, 1:]
    return axes * np.where(np.diagonal(axes) < 0, -1.0, 1.0)  # high where the indicator it replaces is
