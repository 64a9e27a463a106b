"""Read tables from files through pyarrow: CSV and TSV, Parquet, Feather/Arrow.

A text file is read as text. Its cells go to the output as they came, to the last zero, and
k-means gets numbers made from them; so nothing of the user's is reformatted, and every mark
of a gap can be counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from kpod._columns.missing_codes import MissingCodes
from kpod._columns.positions_in_files import Cells, Lines
from kpod._columns.table_inspection import look_at_columns
from kpod._columns.tables import Column, Dialect, TableFile
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._files import foreign_formats, memory_limits
from kpod._files.locations.part import EmptyPartError
from kpod._files.text import headings
from kpod._files.text.delimited import (
    NO_ROWS,
    STREAM,
    fields_of_any_length,
    one_line,
    read_bytes,
    read_text,
    without_edges,
)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; see `kpod.read`.

    With `every_row`, no row under the header is left out, whatever it holds. `header` is the number of rows
    of headings; with `strict`, what would be mended is refused.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: Any = ()
    sheet: str | None = None
    every_row: bool = False
    header: int | None = None
    strict: bool = False


class RawTable(NamedTuple):
    """What a file holds: its rows as they came, without those that are not data."""

    rows: pa.Table
    dialect: Dialect | None
    place: Any
    """Where its rows are, if that is known."""
    notes: list[Note]


def read_table(
    path: str, *, answers: Mapping[str, Collection[str]] | None = None, **options: Any
) -> TableFile:
    """The table in a file, or on standard input for "-"; its format is detected from its first bytes.

    `answers` are the codes of gaps, such as "None", that are known to be answers, by column. The options are
    those of `ReadOptions`.
    """
    how = ReadOptions(**options)
    source = "standard input" if path == "-" else printable(path)
    return inspected(source, raw_table(read_bytes(path, source), source, how), how, answers)


def raw_table(data: bytes, source: str, how: ReadOptions) -> RawTable:
    """The rows of a file, from its bytes."""
    data = memory_limits.unpacked(data, source)
    if is_typed(data) or data[:4] == memory_limits.ZIP:
        memory_limits.check_room(memory_limits.declared_size(pa.BufferReader(data)), source)
    dialect = None
    place: Lines | Cells | None = None
    notes: list[Note] = []
    with naming_damage(source):
        kind = foreign_formats.kind_of(data)
        if how.sheet is not None and kind != "workbook":
            raise InputError(f"{source}: not a workbook; {option('--sheet')} only applies to workbooks.")
        if is_typed(data):
            raw = read_typed(data)
        elif kind:
            raw, notes, place = foreign_formats.read_other(
                data, kind, source, how.sheet, how.missing, every_row=how.every_row, header=how.header,
                strict=how.strict,
            )  # fmt: skip
        else:
            with fields_of_any_length():
                raw, dialect, place, notes = read_text(
                    data, source, how.delimiter, how.decimal, how.encoding, header=how.header,
                    strict=how.strict,
                )  # fmt: skip
        if not headings.are_unique(raw.column_names):
            if how.strict:
                headings.check_unique(raw.column_names, source)
            names, more = headings.made_unique(raw.column_names)
            raw, notes = raw.rename_columns(names), [*notes, *more]
        if raw.num_rows == 0:
            raise EmptyPartError(f"{source}: {NO_ROWS}")
        if dialect and isinstance(place, Lines) and not how.every_row:
            raw, place, more = without_edges(raw, place, dialect.decimal)
            notes = [*notes, *more]
    return RawTable(raw, dialect, place, notes)


def inspected(
    source: str, read: RawTable, how: ReadOptions, answers: Mapping[str, Collection[str]] | None = None
) -> TableFile:
    """The table with what its columns are."""
    answers = answers or {}
    with naming_damage(source):
        codes = MissingCodes.of(how.missing, read.rows.column_names, source)
        columns, dialect, more = look_at_columns(
            read.rows, read.dialect, how.decimal, codes, answers, strict=how.strict
        )

    def look(rows: pa.Table) -> list[Column]:
        mark = dialect.decimal if dialect else how.decimal
        return look_at_columns(rows, dialect, mark, codes, answers, strict=how.strict)[0]

    unused = codes.found_nowhere({column.name: column.missing_codes for column in columns})
    return TableFile(source, read.rows, columns, dialect, unused, [*read.notes, *more], read.place, look)


@contextmanager
def naming_damage(source: str) -> Iterator[None]:
    """Errors of pyarrow as errors that name the file."""
    # Names that are not text come as UnicodeDecodeError, types that pyarrow cannot make as the others.
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
        raise InputError(
            f"{source}: damaged, or not in the format it claims to be in: {one_line(error)}"
        ) from error


def is_typed(data: Any) -> bool:
    return data[:4] in (b"PAR1", b"FEA1", STREAM) or data[:6] == b"ARROW1"


def read_typed(data: Any) -> pa.Table:
    """Parquet, Feather or Arrow, checked to the last byte: a damaged one would send pyarrow astray."""
    if data[:4] == b"PAR1":
        import pyarrow.parquet as pq

        raw = pq.read_table(pa.BufferReader(data))
    elif data[:4] == STREAM:
        raw = pa.ipc.open_stream(pa.BufferReader(data)).read_all()
    else:
        from pyarrow import feather

        raw = feather.read_table(pa.BufferReader(data))
    raw.validate(full=True)
    return raw
