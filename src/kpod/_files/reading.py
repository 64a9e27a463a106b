"""Read tables from files through pyarrow: CSV and TSV, Parquet, Feather/Arrow.

A text file is read as text. Its cells go to the output as they came, to the last zero, and
k-means gets numbers made from them; so nothing of the user's is reformatted, and every mark
of a gap can be counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from kpod._columns.missing_codes import MissingCodes
from kpod._columns.positions_in_files import Cells, Lines
from kpod._columns.table_inspection import look_at_columns
from kpod._columns.tables import Column, TableFile
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._files import foreign_formats, memory_limits
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


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Any = (),
    sheet: str | None = None,
    answers: Mapping[str, Collection[str]] | None = None,
    every_row: bool = False,
    header: int | None = None,
    strict: bool = False,
) -> TableFile:
    """The table in a file, or on standard input for "-"; its format is detected from its first bytes.

    `answers` are the codes of gaps, such as "None", that are known to be answers, by column. With
    `every_row`, no row under the header is left out, whatever it holds. `header` is the number of rows of
    headings; with `strict`, what would be mended is refused.
    """
    source = "standard input" if path == "-" else printable(path)
    data = memory_limits.unpacked(read_bytes(path, source), source)
    if is_typed(data) or data[:4] == memory_limits.ZIP:
        memory_limits.check_room(memory_limits.declared_size(pa.BufferReader(data)), source)
    dialect = None
    place: Lines | Cells | None = None
    notes: list[Note] = []
    try:
        kind = foreign_formats.kind_of(data)
        if sheet is not None and kind != "workbook":
            raise InputError(f"{source}: not a workbook; {option('--sheet')} only applies to workbooks.")
        if is_typed(data):
            raw = read_typed(data)
        elif kind:
            raw, notes, place = foreign_formats.read_other(
                data, kind, source, sheet, missing, every_row=every_row, header=header, strict=strict
            )
        else:
            with fields_of_any_length():
                raw, dialect, place, notes = read_text(
                    data, source, delimiter, decimal, encoding, header=header, strict=strict
                )
        if not headings.are_unique(raw.column_names):
            if strict:
                headings.check_unique(raw.column_names, source)
            names, more = headings.made_unique(raw.column_names)
            raw, notes = raw.rename_columns(names), [*notes, *more]
        if raw.num_rows == 0:
            raise InputError(f"{source}: {NO_ROWS}")
        if dialect and isinstance(place, Lines) and not every_row:
            raw, place, more = without_edges(raw, place, dialect.decimal)
            notes += more
        codes = MissingCodes.of(missing, raw.column_names, source)
        columns, dialect, more = look_at_columns(raw, dialect, decimal, codes, answers or {}, strict=strict)
        notes += more

        def look(rows: pa.Table) -> list[Column]:
            mark = dialect.decimal if dialect else decimal
            return look_at_columns(rows, dialect, mark, codes, answers or {}, strict=strict)[0]

    # Names that are not text come as UnicodeDecodeError, types that pyarrow cannot make as the others.
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
        raise InputError(
            f"{source}: damaged, or not in the format it claims to be in: {one_line(error)}"
        ) from error
    unused = codes.found_nowhere({column.name: column.missing_codes for column in columns})
    return TableFile(source, raw, columns, dialect, unused, notes, place, look)


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
