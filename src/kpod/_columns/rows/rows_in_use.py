"""Which rows of a table are clustered: without some of them, or one for each individual."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.preparing.column_values import codes_of, words_of
from kpod._columns.preparing.columns_in_use import USED, choose_columns, days_of
from kpod._columns.rows.aggregates import aggregates
from kpod._columns.rows.identical_rows import copies
from kpod._columns.tables import Column, TableFile, shown
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.typing import Floats

DUPLICATES, AGGREGATES = "duplicates", "aggregates"
WAYS = ("mean", "last", "change")


def arrange_rows(
    table: TableFile,
    drop_rows: str | Sequence[str] | Mapping[str, Any] = (),
    one_row_per: str | None = None,
    combine: str = "mean",
) -> TableFile:
    """The table without some rows, or with one for each individual; unchanged if neither is requested."""
    if combine not in WAYS:
        raise InputError(f"{option('--combine', str(combine))}: expected one of {', '.join(WAYS)}.")
    if not drop_rows and one_row_per is None:
        return table
    if table.in_pieces:
        which = option("--drop-rows" if drop_rows else "--one-row-per")
        raise InputError(f"{table.source}: {which} needs the whole table in memory; leave it out.")
    for what, values in rows_to_drop(drop_rows):
        table = without_rows(table, what, values)
    return table if one_row_per is None else combined(table, one_row_per, combine)


def rows_to_drop(given: str | Sequence[str] | Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """What is to be dropped: copies, sums, or the rows with some values in a column."""
    if isinstance(given, Mapping):
        return [
            (str(name), [values] if isinstance(values, str) else [str(value) for value in values])
            for name, values in given.items()
        ]
    out = []
    for text in [given] if isinstance(given, str) else given:
        name, equals, values = str(text).partition("=")
        if not equals and name not in (DUPLICATES, AGGREGATES):
            raise InputError(
                f"{option('--drop-rows', str(text))}: expected {DUPLICATES}, {AGGREGATES}, or a column and "
                f"its values, as in {option('--drop-rows', 'COLUMN=VALUE')}."
            )
        out.append((name, [value.strip() for value in values.split(",")] if equals else []))
    return out


@dataclass(frozen=True)
class Kept:
    """Where rows are that were kept of a table whose places are known."""

    place: Any
    raw: Any
    rows: Any

    def of(self, raw: Any, row: int, name: str) -> str:
        return str(self.place.of(self.raw, int(self.rows[row]), name))


def without_rows(table: TableFile, what: str, values: Sequence[str]) -> TableFile:
    if values:
        dropped = rows_with(table, what, values)
    elif what == DUPLICATES:
        dropped = copies(table)
    else:
        found = aggregates(table, choose_columns(table))
        dropped = np.zeros(table.n_rows, bool) if found is None else found.rows
    n = int(dropped.sum())
    if n == table.n_rows:
        raise InputError(f"{table.source}: {option('--drop-rows')} leaves no rows.")
    note = Note("rows dropped", (what,) if values else (), {"what": list(values) or what, "n": n})
    rows = np.flatnonzero(~dropped)
    place = Kept(table.place, table.raw, rows) if table.place else None
    parts = None if table.parts is None else table.parts.of(rows)
    raw = table.raw.take(pa.array(rows)) if n else table.raw
    return again(table, raw, [*table.notes, note], place, parts)


def rows_with(table: TableFile, name: str, values: Sequence[str]) -> Any:
    """The rows with one of the given values in a column; values may be patterns."""
    column = table.column(name)
    words = words_of(table, column).to_pylist()
    levels = {word for word in words if word is not None}
    matched: set[str] = set()
    for value in values:
        found = {level for level in levels if level == value or fnmatch.fnmatchcase(level, value)}
        if not found:
            raise InputError(
                f"{option('--drop-rows')}: column {shown(column.name)} of {table.source} has no value "
                f"'{printable(value)}'."
            )
        matched |= found
    return np.array([word in matched for word in words])


def again(table: TableFile, raw: Any, notes: list[Note], place: Any, parts: Any = None) -> TableFile:
    """The same table with other rows, its columns inspected again."""
    assert table.look is not None
    return replace(table, raw=raw, columns=table.look(raw), notes=notes, place=place, parts=parts)


def combined(table: TableFile, unit: str, how: str) -> TableFile:
    """A row for each value of a column: means, the last values, or the change from the first to the last.

    Numbers are combined; of other columns, a value stays where all rows of a unit have the same.
    """
    unit = table.column(unit).name
    codes = codes_of(table, unit)
    known = codes >= 0
    order = np.lexsort((np.arange(table.n_rows), times_of(table, unit), codes))
    order = order[known[order]]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    if not len(starts):
        raise InputError(f"{table.source}: {option('--one-row-per')}: column {shown(unit)} is empty.")
    arrays, numeric = {}, {}
    for column in table.columns:
        if column.name != unit and column.values is not None and column.role.role in USED:
            numeric[column.name] = column.role
            arrays[column.name] = pa.array(numbers_of(column, order, starts, how), from_pandas=True)
        else:
            arrays[column.name] = texts_of(table, column, order, starts, last=how == "last")
    note = Note(
        "rows combined",
        (unit,),
        {"how": how, "n_rows": table.n_rows, "n_units": len(starts), "n_without": int((~known).sum())},
    )
    out = again(table, pa.table(arrays), [*table.notes, note], None)
    for column in out.columns:
        if column.name in numeric and column.role.role not in ("constant", "empty"):
            column.role = numeric[column.name]  # what is known of the rows holds for their means
    return out


def times_of(table: TableFile, unit: str) -> Floats:
    """The time of each row, to order them; its position in the table if there is no time."""
    for column in table.columns:
        if column.role.role == "date" and column.name != unit:
            days = column.values if column.values is not None else days_of(table, column).days
            if days is not None and np.isfinite(days).all():
                return np.asarray(days)
    return np.zeros(table.n_rows)


def numbers_of(column: Column, order: Any, starts: Any, how: str) -> Floats:
    """The numbers of a column, combined for each unit over its observed entries."""
    assert column.values is not None
    parts = np.split(column.values[order], starts[1:])
    seen = [part[~np.isnan(part)] for part in parts]
    if how == "mean":
        return np.array([part.mean() if len(part) else np.nan for part in seen])
    if how == "last":
        return np.array([part[-1] if len(part) else np.nan for part in seen])
    return np.array([part[-1] - part[0] if len(part) > 1 else np.nan for part in seen])


def texts_of(table: TableFile, column: Column, order: Any, starts: Any, *, last: bool) -> Any:
    """What is written for a unit in a column: what all of its rows have, or the last of them."""
    words = np.array(words_of(table, column).to_pylist(), dtype=object)[order]
    parts = np.split(words, starts[1:])
    texts = [
        part[-1] if last else part[0] if all(word == part[0] for word in part[1:]) else None for part in parts
    ]
    return pa.array(texts, pa.string())
