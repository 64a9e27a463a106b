"""What each column of a raw table holds, seen together: one decimal mark, one way to mark gaps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.check_boxes import read_check_boxes
from kpod._columns.column_inspection import ask_about_points, inspect, shows_points
from kpod._columns.missing_codes import LETTERS, MINUS, WORD, MissingCodes, answers_among
from kpod._columns.relations.codes_beside_names import settle_by_other_columns
from kpod._columns.tables import Column, Dialect
from kpod._common.notes import Note


def look_at_columns(
    raw: pa.Table,
    dialect: Dialect | None,
    decimal: str | None,
    codes: MissingCodes,
    answers: Mapping[str, Any],
    *,
    strict: bool = False,
) -> tuple[list[Column], Dialect | None, list[Note]]:
    """What each column is; the dialect with the decimal mark that they show; notes on answers."""
    # Between quotation marks in a file with commas between fields, a comma divides thousands.
    decimal_given = decimal is not None or (dialect is not None and dialect.delimiter == ",")
    mark = dialect.decimal if dialect else decimal or "."

    def look(name: str, answers: Collection[str] = ()) -> Column:
        return inspect(
            name, raw[name], mark, codes.of_column(name),
            decimal_given=decimal_given, answers=answers, tolerant=not strict,
        )  # fmt: skip

    with ThreadPoolExecutor() as pool:
        columns = list(pool.map(look, raw.column_names))
        if decimal is None and settle_decimal(columns, raw, dialect) != mark:
            mark = ","
            dialect = replace(dialect, decimal=mark) if dialect else None
            columns = list(pool.map(look, raw.column_names))
    for at, column in enumerate(columns):
        if column.name in answers:
            columns[at] = look(column.name, answers[column.name])
    noted = {
        **answers_none(columns, codes),
        **answers_minus(columns, raw, codes),
        **answers_letters(columns, raw, codes),
    }
    for at in noted:
        columns[at] = look(columns[at].name, answers_among(columns[at].missing_codes))
    check_boxes = read_check_boxes(columns, raw)
    settle_by_other_columns(columns, raw)
    return columns, dialect, [*noted.values(), *check_boxes]


def settle_decimal(columns: Sequence[Column], raw: pa.Table, dialect: Dialect | None) -> str:
    """The decimal mark of the file, from all its columns; columns that fit both marks become ambiguous.

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


def answers_none(columns: Sequence[Column], codes: MissingCodes) -> dict[int, Note]:
    """Columns of text in which None is an answer, as gaps in the rest are marked otherwise; with a note."""
    having = [at for at, column in enumerate(columns) if any(map(is_none, column.missing_codes))]
    others = any(not is_none(mark) for column in columns for mark in column.missing_codes)
    if not others or not all(is_plain_text(columns[at]) for at in having):
        return {}
    return {
        at: answer_note(columns[at], filter(is_none, columns[at].missing_codes), "other codes")
        for at in having
        if not any(map(is_none, codes.of_column(columns[at].name)))
    }


def is_none(mark: str) -> bool:
    return mark.lower() == WORD.lower()


def answers_minus(columns: Sequence[Column], raw: pa.Table, codes: MissingCodes) -> dict[int, Note]:
    """Columns of signs, in which a minus is the opposite of a plus and not a gap, with a note."""
    return {
        at: answer_note(column, [MINUS], "plus")
        for at, column in enumerate(columns)
        if MINUS in column.missing_codes
        and is_plain_text(column)
        and MINUS not in codes.of_column(column.name)
        and {"+"}
        == distinct(raw[column.name]) - {"" if mark == "empty" else mark for mark in column.missing_codes}
    }


TWO_LETTERS = re.compile("[A-Z]{2}")
LEAST_CODES = 3


def answers_letters(columns: Sequence[Column], raw: pa.Table, codes: MissingCodes) -> dict[int, Note]:
    """Columns of codes of two capitals, among which NA is one (AF, EU, NA), with a note.

    Unless a column of another kind has it, too: then the program that wrote the table marks gaps so.
    """
    having = [at for at, column in enumerate(columns) if LETTERS in column.missing_codes]
    if not all(is_plain_text(columns[at]) and is_of_two_letters(columns[at], raw) for at in having):
        return {}
    return {
        at: answer_note(columns[at], [LETTERS], "two letters")
        for at in having
        if LETTERS not in codes.of_column(columns[at].name)
    }


def is_of_two_letters(column: Column, raw: pa.Table) -> bool:
    entries = distinct(raw[column.name]) - {"" if mark == "empty" else mark for mark in column.missing_codes}
    return len(entries) >= LEAST_CODES and all(map(TWO_LETTERS.fullmatch, entries))


def distinct(values: pa.ChunkedArray) -> set[str]:
    """The entries of a column of text, each once."""
    decoded = values.cast(pa.string())
    return set(pc.unique(pc.utf8_trim_whitespace(pc.drop_null(decoded))).to_pylist())


def is_plain_text(column: Column) -> bool:
    return column.values is None and column.kind == "text"


def answer_note(column: Column, found: Iterable[str], why: str) -> Note:
    return Note("taken as a category", (column.name,), {"found": list(found), "why": why})
