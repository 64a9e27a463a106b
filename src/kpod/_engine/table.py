"""A table as the engine sees it: blocks of rows, the units they are in, and statistics from one pass.

Values are computed with as z = (x - shift) * scale. The shift of a column that lies far from zero
is close to its mean, and rounded so that taking it off an entry of usual size loses no digit of
it; the scale is a power of two that brings entries of usual size to about 1. So a table times any
power of two is the same table here, and one far from zero is as good as one around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpod._common.column_groups import FEW_ROWS, ColumnGroups, candidates_in, recognise
from kpod._common.typing import AnyFloats, Counts, Floats, Positions
from kpod._engine.blocks import Block, Hidden, Units, blocks_of
from kpod._engine.executors import Executor
from kpod._engine.sizes import COPIED_ENTRIES, GLANCE_ROWS
from kpod._kernels import columns as kernels_of_columns
from kpod._kernels import rows as kernels
from kpod._kernels.rows import Workspace

GLANCE_ENTRIES = 1 << 20
# Powers of two: how far entries of usual size may be from 1, and the largest of all.
NEAR, FAR = 4, 50
# Power of two by which squares that were added up can be scaled.
MOST_POWER = 400
# Standard deviations from zero at which a column is far from it.
FAR_FROM_ZERO = 4
# Digits, in powers of two, that sums keep of an entry of usual size.
DIGITS = {4: 26, 8: 54}
# The smallest and the largest scale, by the bytes of a number.
SCALES = {
    np.dtype(kind).itemsize: (2.0 ** (np.finfo(kind).minexp + 2), 2.0 ** (np.finfo(kind).maxexp - 2))
    for kind in (np.float32, np.float64)
}
EXPONENT_BIAS = 1022  # of the exponents that the kernels add up, against those of frexp


class RowCounts(NamedTuple):
    """Of the rows of a block.

    Parameters
    ----------
    n_usable : rows with any information: something observed, and a positive weight
    n_empty : rows with nothing observed
    n_observed : observed entries
    fewest : observed columns of the row that has the fewest
    """

    n_usable: int
    n_empty: int
    n_observed: int
    fewest: int


@dataclass(frozen=True)
class Statistics:
    """Statistics of the columns from one pass over the rows, in some units.

    `weights`, `sums`, `squares`: of the observed entries of each column; `largest`: the largest
    absolute value; `exponent`: the mean binary exponent of those that are not 0 (0 for none);
    `nonzero`: their number; `rows`: counts of the rows of each block; `observed`: the number of observed
    columns of each row, in the smallest integers that hold it, or None where it stays with the rows;
    `checksums`: of the blocks of mapped files, if asked for, else None.
    """

    weights: Floats
    sums: Floats
    squares: Floats
    largest: Floats
    exponent: Floats
    nonzero: NDArray[np.int64]
    rows: tuple[RowCounts, ...]
    observed: Counts | None
    checksums: tuple[int | None, ...] = ()

    @classmethod
    def of(
        cls, blocks: list[Block], executor: Executor, *, checked: bool = False, by_row: bool = True
    ) -> Statistics:
        """Of the rows of all blocks, added up in their order; `by_row`: what is observed of each, too."""
        parts = executor.map(partial(measure, checked=checked, by_row=by_row), blocks)
        about, exponents = np.zeros_like(parts[0][0]), np.zeros_like(parts[0][1])
        for part, part_exponents, *_ in parts:
            about[:3] += part[:3]
            np.maximum(about[3], part[3], out=about[3])
            exponents += part_exponents
        mean = np.divide(exponents[0], exponents[1], out=np.zeros(len(exponents[0])), where=exponents[1] > 0)
        exponent = np.where(exponents[1] > 0, mean - EXPONENT_BIAS, 0.0)
        weights, sums, squares, largest = about
        rows, checksums = tuple(part[2] for part in parts), tuple(part[4] for part in parts)
        observed = np.concatenate([part[3] for part in parts]) if by_row else None
        return cls(weights, sums, squares, largest, exponent, exponents[1], rows, observed, checksums)

    @property
    def usual(self) -> float:
        """The binary exponent of an entry of usual size."""
        n = int(self.nonzero.sum())
        return float((self.exponent * self.nonzero).sum()) / n if n else 0.0

    def times(self, power: int) -> Statistics:
        """The same after scaling by a power of two."""
        factor = 2.0**power
        with np.errstate(invalid="ignore"):  # of infinities, which are refused by column and row later
            return Statistics(
                self.weights,
                self.sums * factor,
                self.squares * factor**2,
                self.largest * factor,
                self.exponent + power * (self.nonzero > 0),
                self.nonzero,
                self.rows,
                self.observed,
                self.checksums,
            )


def measure(
    block: Block, *, checked: bool = False, by_row: bool = True
) -> tuple[Floats, NDArray[np.int64], RowCounts, Counts | None, int | None]:
    """Statistics of the columns from the rows of one block, how much is observed, and their checksum."""
    checksum = block.checksum() if checked and block.file is not None else None
    about, exponents = np.zeros((4, block.n_columns)), np.zeros((2, block.n_columns), np.int64)
    observed = np.empty(block.n_rows, np.int32)
    smallest = np.min_scalar_type(block.n_columns)  # a byte a row, as a rule
    with block.rows() as rows:
        space = Workspace(rows, 0, rows.chunk)
        for start, stop in block.pieces(8):
            kernels.measure(rows, start, stop, about, exponents, observed, space)
    counts = RowCounts(
        int(np.count_nonzero(says_anything(observed, block.weights))),
        int(np.count_nonzero(observed == 0)),
        int(observed.sum(dtype=np.int64)),
        int(observed.min(initial=block.n_columns)),
    )
    return about, exponents, counts, observed.astype(smallest) if by_row else None, checksum


def says_anything(observed: Any, weights: Floats | None) -> NDArray[np.bool_]:
    """Rows with an observed entry and a positive weight."""
    return observed > 0 if weights is None else (observed > 0) & (weights > 0)


def checksum(block: Block) -> int:
    return block.checksum()


class Table:
    """Blocks of rows in common units, and their statistics.

    Parameters
    ----------
    blocks : the rows, all in the same units
    about : what one pass over them told
    groups : which columns come from the same one and count once; None if there are none
    """

    def __init__(self, blocks: list[Block], about: Statistics, groups: ColumnGroups | None = None) -> None:
        self.blocks, self.about = blocks, about
        self.groups = groups or ColumnGroups.none(blocks[0].n_columns)
        self.units = blocks[0].units
        self.dtype = blocks[0].dtype
        self.n_columns = blocks[0].n_columns
        self.n_rows = sum(block.n_rows for block in blocks)
        self.n_entries = sum(block.n_entries for block in blocks)
        self.weighted = blocks[0].weights is not None
        self.live = about.weights > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            means = about.sums / about.weights
            variances = about.squares / about.weights - means**2
        # The center of a column that no row of a cluster observed.
        self.fallback: Floats = np.where(np.isfinite(means), means, 0.0)
        self.variances: Floats = np.maximum(np.where(self.live, variances, 0.0), 0.0)
        # Of a column; of the indicators of a category, in total.
        self.variance = float(self.variances[self.live].sum()) / max(1, self.n_live)

    @property
    def n_live(self) -> int:
        """The number of columns with observed entries; the indicators of a category count once."""
        return int((self.live & self.groups.first).sum())

    @property
    def observed(self) -> Counts:
        """The number of observed columns of each row."""
        assert self.about.observed is not None, "stays with the rows"
        return self.about.observed

    @cached_property
    def weights(self) -> Floats | None:
        """The weight of each row, None for 1."""
        parts = [block.weights for block in self.blocks if block.weights is not None]
        return np.concatenate(parts) if parts else None

    @cached_property
    def n_observed(self) -> int:
        return sum(rows.n_observed for rows in self.about.rows)

    @cached_property
    def n_empty(self) -> int:
        """The number of rows with nothing observed."""
        return sum(rows.n_empty for rows in self.about.rows)

    @cached_property
    def n_usable(self) -> int:
        """The number of rows with any information."""
        return sum(rows.n_usable for rows in self.about.rows)

    @cached_property
    def has_gaps(self) -> bool:
        return min(rows.fewest for rows in self.about.rows) < int(self.live.sum())

    @cached_property
    def column_means(self) -> Floats:
        """In the table's own units; NaN where nothing was observed."""
        return self.units.back(np.where(self.live, self.fallback, np.nan))

    @cached_property
    def column_spreads(self) -> Floats:
        """Standard deviations, in the table's own units; 0 where nothing was observed."""
        return np.sqrt(self.variances) / self.units.scale

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Rows with any information: something observed, and a positive weight."""
        return says_anything(self.observed, self.weights)

    @cached_property
    def sums_units(self) -> tuple[Floats, Floats]:
        """What the exact sums of entries and of weights are kept in: see `units_of_sums`."""
        return units_of_sums(self)

    def hiding(self, hidden: Hidden, executor: Executor) -> Table:
        """The same table with some entries not looked at; only a small one is copied."""
        hidden = replace(hidden, copied=self.n_entries <= COPIED_ENTRIES)
        if self.groups.present:
            hidden = replace(hidden, sources=tuple(self.groups.source.tolist()))
        blocks = [block.replace(hidden=hidden) for block in self.blocks]
        return Table(blocks, Statistics.of(blocks, executor), self.groups)

    def hidden_entries(self) -> tuple[Positions, Positions, Floats]:
        """Row, column and value (in the table's own units) of the hidden entries, row by row."""
        found = [block.hidden_entries() for block in self.blocks]
        rows = [block.first + at for block, (at, _, _) in zip(self.blocks, found, strict=True)]
        return np.concatenate(rows), *(np.concatenate([part[i] for part in found]) for i in (1, 2))  # type: ignore[return-value]

    def check_unchanged(self, executor: Executor) -> None:
        """Refuse rows of a mapped file that are no longer those of the first pass."""
        pairs = zip(self.blocks, self.about.checksums, strict=True)
        mapped = [(block, was) for block, was in pairs if was is not None]
        now = executor.map(checksum, [block for block, _ in mapped]) if mapped else []
        for (block, was), found in zip(mapped, now, strict=True):
            if found != was:
                raise block.changed("changed while the table was in use, in")

    @cached_property
    def column_counts(self) -> Positions:
        """How many rows observe each column."""
        return np.sum([block.column_counts() for block in self.blocks], axis=0)

    def entries(self, rows: Positions) -> Floats:
        """Some rows as a dense array with NaN, in the engine's units."""
        out = np.empty((len(rows), self.n_columns))
        for block in self.blocks:
            here = (rows >= block.first) & (rows < block.first + block.n_rows)
            if here.any():
                out[here] = block.entries(rows[here] - block.first)
        return out

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        """Rows and columns of the entries that are not smaller than `limit`, in the table's own units."""
        found = [block.beyond(limit) for block in self.blocks]
        rows = [block.first + at for block, (at, _) in zip(self.blocks, found, strict=True)]
        return np.concatenate(rows), np.concatenate([columns for _, columns in found])


def make_table(
    values: Any,
    executor: Executor,
    *,
    weights: Floats | None = None,
    units: Units | None = None,
    groups: ColumnGroups | None = None,
    checked: bool = False,
) -> Table:
    """The table of a validated array or CSR array.

    Parameters
    ----------
    values : float32 or float64, C-contiguous or CSR with int32 indices and int64 indptr, or a table
        with its own `blocks`
    executor : what maps the pass over the blocks
    weights : float64 array (n_rows,) or None for weights of 1
    units : those of a fitted model; None to choose them by the table
    groups : which columns count once; None if none do, see `with_groups`
    checked : whether the rows of mapped files get checksums, for `Table.check_unchanged`
    """
    raw = blocks_of(values, units or Units(np.zeros(values.shape[1]), 1.0), weights)
    statistics = partial(Statistics.of, executor=executor, by_row=not raw[0].elsewhere)
    raw = executor.place(raw)
    if units is not None:
        blocks = [block.replace(units=in_precision(units, block.dtype)) for block in raw]
        return Table(blocks, statistics(blocks), groups)
    # The second where rows are larger than those glanced at by so much that they overflow.
    for chosen in (units_at_a_glance(raw, executor), raw[0].units):
        blocks = [block.replace(units=chosen) for block in raw]
        about = statistics(blocks, checked=checked)
        if np.isfinite(about.largest).all():
            break
    power = rescaling(about)
    ignored = about.weights == 0
    if power or ignored.any():
        before = chosen.scale
        shift = np.where(ignored, np.nan, chosen.shift)
        chosen = in_precision(Units(shift, before * power_of_two(power)), raw[0].dtype)
        power = int(np.log2(chosen.scale) - np.log2(before))
        blocks = [block.replace(units=chosen) for block in raw]
        # Rows without weight may observe what is ignored, which then does not count as observed; and
        # squares of what is smaller than the rows glanced at by far were too small for a float.
        if (ignored.any() and weights is not None) or abs(power) > MOST_POWER:
            about = statistics(blocks, checked=checked)
        else:
            about = about.times(power)
    return Table(blocks, about, groups)


def with_groups(table: Table, executor: Executor) -> Table:
    """The table with the indicators of categories recognised as such.

    Only columns are looked at that have as much observed as a neighbour, and could be indicators by a few
    rows: a table of measurements is not read again.
    """
    weights = table.about.weights
    equal = (weights[1:] == weights[:-1]) & (weights[1:] > 0)
    if not equal.any():
        return table
    candidates = candidates_in(executor.map(partial(glance, n=FEW_ROWS), table.blocks[:1])[0], equal)

    def each(function: Any) -> list[Any]:
        found = executor.map(partial(of_columns, which=candidates, function=function), table.blocks)
        return [part for of_block in found for part in of_block]

    groups = recognise(table.n_columns, candidates, each)
    return Table(table.blocks, table.about, groups) if groups.present else table


def of_columns(block: Block, which: Positions, function: Any) -> list[Any]:
    """The results of a function for some columns of a block, a few rows at a time."""
    return [function(part) for part in block.columns(which)]


def in_precision(units: Units, dtype: np.dtype[Any]) -> Units:
    """Units as a table of this precision can have them."""
    smallest, largest = SCALES[dtype.itemsize]
    scale = min(max(units.scale, smallest), largest)
    if dtype == np.float64:
        return Units(units.shift, scale)
    with np.errstate(over="ignore"):
        return Units(units.shift.astype(dtype).astype(np.float64), scale)


def power_of_two(exponent: int) -> float:
    """Two to that power, or the nearest one that a float can hold: subnormal numbers go to 2^-1074."""
    return 2.0 ** min(max(exponent, -1074), 1023)


def glance(block: Block, n: int) -> AnyFloats:
    return block.glance(n)


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def units_at_a_glance(blocks: list[Block], executor: Executor) -> Units:
    """Units by a few rows of each block: roughly is enough, see `rescaling`."""
    n = max(1, min(GLANCE_ROWS, GLANCE_ENTRIES // blocks[0].n_columns) // len(blocks))
    some = np.concatenate(executor.map(partial(glance, n=n), blocks), dtype=np.float64)
    dtype = blocks[0].dtype
    found = kernels_of_columns.units_at_a_glance(some, FAR_FROM_ZERO, dtype == np.float32)
    if found is None:
        return Units(np.zeros(some.shape[1]), 1.0)
    shift, usual = found
    return in_precision(Units(shift, power_of_two(-usual)), dtype)


def rescaling(about: Statistics) -> int:
    """The power of two to scale by once more, 0 where entries of usual size are near 1."""
    largest = float(about.largest.max(initial=0))
    usual = about.usual
    if largest == 0 or not np.isfinite(largest):
        return 0
    highest = int(np.frexp(largest)[1])
    if abs(usual) <= NEAR and highest <= FAR:
        return 0
    return -max(int(np.round(usual)), highest - FAR)


def units_of_sums(table: Table) -> tuple[Floats, Floats]:
    """Anchors of the units in which sums are exact in any order, coarse to fine.

    Sums of whole multiples of a unit u are exact up to 2^53 u. No sum of a column's entries is
    larger than the root of its weight times its sum of squares (Cauchy-Schwarz), which gives the
    coarsest unit; what rounding to that leaves is at most n u / 2 in all, which gives the next.
    There are as many as it takes for an entry of usual size to keep its digits: one for float32,
    two for float64 as a rule, three where a few entries are larger than the rest by far.
    """
    about, n, of_weight = table.about, table.n_rows, np.inf
    if table.weights is not None:  # of which one may be larger than all others by far
        of_weight = float(np.log2(table.weights[table.weights > 0]).mean())
    anchors = kernels_of_columns.anchors_of_sums(
        about.weights, about.squares, about.exponent, about.nonzero, of_weight, n,
        DIGITS[table.dtype.itemsize], kernels.LEVELS,
    )  # fmt: skip
    return anchors, units_of_weights(table.weights, n)


def units_of_weights(weights: Floats | None, n: int) -> Floats:
    """The same for weights; one level where they are whole multiples of a unit as they are."""
    if weights is None:
        return np.zeros(1)
    units = [int(np.frexp(weights.sum())[1]) - 51]
    anchors = [np.ldexp(1.5, units[0] + 52)]
    if ((weights + anchors[0]) - anchors[0] == weights).all():
        return np.array(anchors)
    wanted = int(np.frexp(weights[weights > 0].min())[1]) - 30
    while len(units) < kernels.LEVELS and (units[-1] > wanted or len(units) < 2):
        units.append(units[-1] + int(np.ceil(np.log2(n))) - 52)
        anchors.append(np.ldexp(1.5, units[-1] + 52))
    return np.array(anchors)
