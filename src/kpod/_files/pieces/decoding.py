"""Columns as files hold them become rows of numbers, a batch at a time.

What takes all numbers of a column to know is counted in the same pass, while they are in a cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns import column_inspection as kinds
from kpod._columns.missing_codes import as_number, spellings
from kpod._columns.tables import Column, shown
from kpod._columns.tally import Tally
from kpod._common.errors import InputError, printable
from kpod._common.options import option
from kpod._common.typing import AnyFloats, Floats
from kpod._files.pieces.file_source import Source
from kpod._kernels.columns import interleave


class Entries(NamedTuple):
    """The numbers of a column; a bitmap of those that are there, None for all; and the bit of the first."""

    values: AnyFloats
    present: Any
    first_bit: int


@dataclass
class Decoder:
    """Makes numbers of the entries of one column, and counts missing codes."""

    name: str
    decimal: str = "."
    missing: Sequence[str] = ()
    tally: Tally | None = None
    """Counts what takes all numbers to know, if asked."""
    missing_codes: Counter[str] = field(default_factory=Counter)
    leading_zeros: bool = False

    def __post_init__(self) -> None:
        given = [mark for mark in self.missing if as_number(mark) is None]
        self.spelled = pa.array(spellings(given), pa.string())

    def __call__(self, values: pa.Array, source: Source, row: int) -> AnyFloats:
        """The numbers; `row` is that of the first entry in its file."""
        if kinds.is_text(values.type):
            return self.of_text(values, source, row)
        nulls = values.null_count
        if pa.types.is_floating(values.type):
            if nulls:
                self.missing_codes["null"] += nulls
            return np.asarray(values.to_numpy(zero_copy_only=False))
        if nulls:
            self.missing_codes["null"] += nulls
        return kinds.as_floats(values)

    def in_place(self, values: pa.Array, source: Source, row: int, dtype: Any) -> Entries:
        """The numbers where they lie, if they are of this type; else converted to it."""
        if values.type != pa.from_numpy_dtype(dtype):
            return Entries(np.ascontiguousarray(self(values, source, row), dtype), None, 0)
        nulls = values.null_count
        if nulls:
            self.missing_codes["null"] += nulls
        bitmap, data = values.buffers()
        entries = np.frombuffer(data, dtype, values.offset + len(values))[values.offset :]
        present = np.frombuffer(bitmap, np.uint8) if nulls else None
        return Entries(np.require(entries, requirements="A"), present, values.offset)

    def of_text(self, text: pa.Array, source: Source, row: int) -> Floats:
        gaps = kinds.gaps_in(text, self.spelled)
        floats = kinds.try_numbers(text, gaps, self.decimal)
        if floats is None:
            text = pc.utf8_trim_whitespace(text)
            gaps = kinds.gaps_in(text, self.spelled)
            floats = kinds.try_numbers(pc.replace_substring_regex(text, r"^\+", ""), gaps, self.decimal)
        if floats is None:
            raise InputError(self.not_a_number(text, gaps, source, row))
        column = Column(self.name, "number", 0)
        kinds.count_missing_codes(column, text, gaps)
        self.missing_codes.update(column.missing_codes)
        self.leading_zeros = self.leading_zeros or kinds.has_leading_zeros(text)
        return floats

    def not_a_number(self, text: pa.Array, gaps: Any, source: Source, row: int) -> str:
        plain = pc.replace_substring(text, ",", ".") if self.decimal == "," else text
        odd = pc.and_not(pc.invert(pc.match_substring_regex(plain, kinds.NUMBER)), gaps)
        at = max(0, int(pc.index(odd, True).as_py()))
        value = printable(str(text[at].as_py())[:60])
        # Only where the meaning of columns was asked for can codes be given.
        codes = self.tally is not None and "," not in value
        treat = f"treat it as missing with {option('--missing', {self.name: [value]})}, " if codes else ""
        leave = "leave the column out" if self.tally is not None else "name the other columns in `columns`"
        return (
            f"{source.name}: row {row + at + 1}, column {shown(self.name)}: '{value}' is not a plain number, "
            f"which a table that is read in pieces needs; {treat}{leave}, or correct it."
        )


class ColumnsToRows:
    """Turns the columns of a batch into rows, counted by the tallies of their decoders.

    Parameters
    ----------
    decoders : one for each column
    dtype : of the rows
    """

    def __init__(self, decoders: Sequence[Decoder], dtype: Any) -> None:
        self.decoders, self.dtype = decoders, dtype
        self.buffer: AnyFloats = np.empty((0, len(decoders)), dtype)

    def __call__(self, batch: pa.RecordBatch, source: Source, row: int) -> AnyFloats:
        """The rows, with NaN in the gaps; valid until the next batch."""
        n, p = batch.num_rows, len(self.decoders)
        if len(self.buffer) < n:
            self.buffer = np.empty((n, p), self.dtype)
        out = self.buffer[:n]
        pairs = zip(self.decoders, batch.columns, strict=True)
        columns, present, first_bits = zip(
            *(decoder.in_place(values, source, row, self.dtype) for decoder, values in pairs), strict=True
        )
        low, high = np.full(p, np.inf), np.full(p, -np.inf)
        gaps, whole = np.zeros(p, np.int64), np.ones(p, np.uint8)
        interleave(list(columns), list(present), np.array(first_bits), out, low, high, gaps, whole)
        if np.isneginf(low).any() or np.isposinf(high).any():
            check_finite(out, [decoder.name for decoder in self.decoders], source, row)
        for j, decoder in enumerate(self.decoders):
            if decoder.tally is not None:
                decoder.tally.add_counted(out[:, j], int(gaps[j]), low[j], high[j], whole=bool(whole[j]))
        return out


def check_finite(values: AnyFloats, names: Sequence[str], source: Source, row: int) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise InputError(
            f"{source.name}: row {row + i + 1}, column {shown(names[j])}: infinite value; correct it, or "
            "leave it empty if it stands for a missing value."
        )
