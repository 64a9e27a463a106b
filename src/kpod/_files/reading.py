"""Read tables from files through pyarrow: CSV and TSV, Parquet, Feather/Arrow.

A text file is read as text. Its cells go to the output as they came, to the last zero, and
k-means gets numbers made from them; so nothing of the user's is reformatted, and every mark
of a gap can be counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.inspection import ask_about_points, inspect, shows_points
from kpod._columns.locations import Cells, Lines
from kpod._columns.missing_codes import MINUS, WORD, MissingCodes, answers_among
from kpod._columns.tables import Column, Dialect, TableFile
from kpod._common.errors import InputError, printable
from kpod._common.words import option
from kpod._files import formats, memory_limits
from kpod._files.text.delimited import (
    NO_ROWS,
    STREAM,
    check_header,
    check_header_again,
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
    missing: Sequence[str] = (),
    sheet: str | None = None,
    answers: Mapping[str, Collection[str]] | None = None,
    every_row: bool = False,
) -> TableFile:
    """The table in a file, or on standard input for "-"; its kind is told by its first bytes.

    `answers` are the marks of gaps, such as "None", that are known to be answers, by column. With
    `every_row`, no row under the header is left out, whatever it holds.
    """
    source = "standard input" if path == "-" else printable(path)
    data = memory_limits.unpacked(read_bytes(path, source), source)
    if is_typed(data) or data[:4] == memory_limits.ZIP:
        memory_limits.check_room(memory_limits.declared_size(pa.BufferReader(data)), source)
    dialect = None
    place: Lines | Cells | None = None
    notes: list[str] = []
    try:
        kind = formats.kind_of(data)
        if sheet is not None and kind != "workbook":
            raise InputError(f"{source}: not a workbook; --sheet only applies to workbooks.")
        if is_typed(data):
            raw = read_typed(data)
        elif kind:
            raw, notes, place = formats.read_other(data, kind, source, sheet, missing, every_row=every_row)
        else:
            with fields_of_any_length():
                raw, dialect, place, notes = read_text(data, source, delimiter, decimal, encoding)
        check_header(raw.column_names, source)
        if raw.num_rows == 0:
            raise InputError(f"{source}: {NO_ROWS}")
        if dialect and isinstance(place, Lines):
            check_header_again(raw, source, place)
            if not every_row:
                raw, place, said = without_edges(raw, place, dialect.decimal)
                notes += said
        marks = MissingCodes.parse(missing, raw.column_names, source)
        columns, dialect, said = look_at_columns(raw, dialect, decimal, marks, answers or {})
        notes += said
    # Names that are not text come as UnicodeDecodeError, types that pyarrow cannot make as the others.
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
        raise InputError(
            f"{source}: damaged, or not in the format it claims to be in: {one_line(error)}"
        ) from error
    unused = marks.found_nowhere({column.name: column.marks for column in columns})
    return TableFile(source, raw, columns, dialect, unused, notes, place)


def look_at_columns(
    raw: pa.Table,
    dialect: Dialect | None,
    decimal: str | None,
    marks: MissingCodes,
    answers: Mapping[str, Any],
) -> tuple[list[Column], Dialect | None, list[str]]:
    """What each column is; the dialect with the decimal mark that they show; notes on answers."""
    # Between quotation marks in a file with commas between fields, a comma divides thousands.
    decimal_given = decimal is not None or (dialect is not None and dialect.delimiter == ",")
    mark = dialect.decimal if dialect else "."

    def look(name: str, answers: Collection[str] = ()) -> Column:
        return inspect(name, raw[name], mark, marks.of(name), decimal_given=decimal_given, answers=answers)

    with ThreadPoolExecutor() as pool:
        columns = list(pool.map(look, raw.column_names))
        if decimal is None and settle_decimal(columns, raw, dialect) != mark:
            mark = ","
            dialect = replace(dialect, decimal=mark) if dialect else None
            columns = list(pool.map(look, raw.column_names))
    for at, column in enumerate(columns):
        if column.name in answers:
            columns[at] = look(column.name, answers[column.name])
    noted = {**answers_none(columns, marks), **answers_minus(columns, raw, marks)}
    for at in noted:
        columns[at] = look(columns[at].name, answers_among(columns[at].marks))
    return columns, dialect, list(noted.values())


def settle_decimal(columns: Sequence[Column], raw: pa.Table, dialect: Dialect | None) -> str:
    """The decimal mark of the file, by all its columns; those that it leaves open become ambiguous.

    A column with 938 and 1.050 is read with decimal points unless there is reason to doubt it: a decimal
    comma elsewhere, or semicolons between fields, which programs write where the comma is taken.
    """
    if dialect and dialect.decimal == ",":
        return ","
    delimiter = dialect.delimiter if dialect else ""
    commas = any(column.decimal == "," for column in columns)
    if not commas and delimiter != ";":
        return "."
    points = shows_points(columns, raw)
    if commas and not points and delimiter != ",":
        return ","
    # Commas inside fields of a file with commas between them may divide codes, too: "1,2".
    if not points or (commas and delimiter != ","):
        ask_about_points(columns, raw)
    return "."


def answers_none(columns: Sequence[Column], marks: MissingCodes) -> dict[int, str]:
    """Columns of text in which None is an answer, as gaps in the rest are marked otherwise; with a note."""
    having = [at for at, column in enumerate(columns) if any(map(is_none, column.marks))]
    others = any(not is_none(mark) for column in columns for mark in column.marks)
    if not others or not all(is_plain_text(columns[at]) for at in having):
        return {}
    why = "because gaps elsewhere in the table are marked otherwise"
    return {
        at: answer_note(columns[at], filter(is_none, columns[at].marks), why)
        for at in having
        if not any(map(is_none, marks.of(columns[at].name)))
    }


def is_none(mark: str) -> bool:
    return mark.lower() == WORD.lower()


def answers_minus(columns: Sequence[Column], raw: pa.Table, marks: MissingCodes) -> dict[int, str]:
    """Columns of signs, in which a minus is the opposite of a plus and not a gap, with a note."""
    return {
        at: answer_note(column, [MINUS], "because the other values are '+'")
        for at, column in enumerate(columns)
        if MINUS in column.marks
        and is_plain_text(column)
        and MINUS not in marks.of(column.name)
        and {"+"} == distinct(raw[column.name]) - {"" if mark == "empty" else mark for mark in column.marks}
    }


def distinct(values: pa.ChunkedArray) -> set[str]:
    """The entries of a column of text, each once."""
    decoded = values.cast(pa.string())
    return set(pc.unique(pc.utf8_trim_whitespace(pc.drop_null(decoded))).to_pylist())


def is_plain_text(column: Column) -> bool:
    return column.values is None and column.kind == "text"


def answer_note(column: Column, found: Iterable[str], why: str) -> str:
    first, *more = map(printable, found)
    name = printable(column.name)
    add = option("--missing", f"{name}={','.join([first, *more])}")
    return f"{name}: '{first}' is taken as a category, {why}; if it means missing, add {add}."


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
