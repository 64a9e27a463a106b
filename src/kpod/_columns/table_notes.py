"""Notes on the columns of a table beyond their roles: equal columns, panels, rows in time."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.preparing.column_values import codes_of, decoded
from kpod._columns.preparing.columns_in_use import LEAST_RUNS, LONG_RUN, ColumnUsage, days_of, occurs, typical
from kpod._columns.relations.few_columns import few_columns
from kpod._columns.relations.nearly_the_same import nearly_the_same
from kpod._columns.relations.same_information import Same
from kpod._columns.relations.shared_codes import shared_codes
from kpod._columns.roles.column_facts import tokens
from kpod._columns.rows.aggregates import aggregates
from kpod._columns.rows.identical_rows import copies
from kpod._columns.rows.repeated_individuals import repeated_units
from kpod._columns.tables import FILE, Column, TableFile
from kpod._common.notes import Note, Notes
from kpod._common.typing import Floats

MOST_COPIES = 0.5
MOST_COMPARED = 100_000
"""Rows in which sums and individuals are looked for; in more, that would take longer than the fit."""


def notes_on(table: TableFile, choice: ColumnUsage) -> Notes:
    """Notes on the columns used, those alike in one note; and missing codes that occur nowhere."""
    labelled = {name for note in table.notes if note.kind == "labelled codes" for name in note.columns}
    found: dict[tuple[str, tuple[str, ...]], list[Note]] = {}
    numbers = numbers_of(table, choice)
    for name in choice.used:
        column = table.column(name)
        for note in choice.roles[name].notes or column.role.notes:
            codes = tuple(note.values.get("codes", ()))
            if not (codes and (name in labelled or runs_below(numbers, name, codes))):
                found.setdefault((note.kind, codes), []).append(note)
        if column.how_written:
            found.setdefault(("number format", ()), []).append(
                Note("number format", (name,), {"example": column.how_written})
            )
    notes = Notes([*few_columns(table, choice), *table.notes])
    notes += [note for name in choice.used for note in odd_notes(table, table.column(name))]
    notes += [Note("possible weights", tuple(choice.weights))] if choice.weights else []
    shared = shared_codes(numbers)
    known = {(code, name) for note in shared for code in note.values["codes"] for name in note.columns}
    notes += [note for note in shared if not labelled.issuperset(note.columns)]
    notes += [
        together(table, choice, alike)
        for alike in found.values()
        if not all(
            (code, note.columns[0]) in known for note in alike for code in note.values.get("codes", [""])
        )
    ]
    small = not table.in_pieces and table.n_rows <= MOST_COMPARED
    notes += panel(table, choice) or (repeated_units(table, choice) if small else [])
    notes += [] if table.in_pieces else row_notes(table, choice)
    notes += same_notes(choice.same, choice.named)
    notes += [Note("sum of columns", (name, *parts)) for name, parts in choice.sums.items()]
    notes += alike_notes(nearly_the_same(numbers))
    notes += [Note("absent code", values={"code": code}) for code in table.unused_codes]
    return notes.by_importance()


def numbers_of(table: TableFile, choice: ColumnUsage) -> dict[str, Floats]:
    """The columns clustered as numbers."""
    if table.in_pieces:
        return {}
    names = [name for name in choice.used if name not in choice.categories]
    return {name: values for name in names if (values := table.column(name).values) is not None}


def runs_below(numbers: dict[str, Floats], name: str, codes: Collection[str]) -> bool:
    """Whether another column, alike by the last word of its name, goes on below a negative code."""
    lowest = min(map(float, codes)) if all(map(is_plain_number, codes)) else 0.0
    kind = tokens(name)[-1:]
    return lowest < 0 and any(
        other != name and kind and tokens(other)[-1:] == kind and np.nanmin(values) < lowest
        for other, values in numbers.items()
        if np.isfinite(values).any()
    )


def is_plain_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def odd_notes(table: TableFile, column: Column) -> list[Note]:
    """On entries of a column of numbers that are none, and were taken as gaps."""
    if not column.n_odd or column.odd is None:
        return []
    row, entry = column.odd
    values = {
        "n": column.n_odd,
        "entry": entry[:60],
        "where": table.where(row - 1, column.name),
        "values": [value[:60] for value in column.odd_values],
    }
    return [Note("not numbers", (column.name,), values)]


def together(table: TableFile, choice: ColumnUsage, notes: Sequence[Note]) -> Note:
    """One note in place of equal notes on different columns."""
    first, names = notes[0], tuple(name for note in notes for name in note.columns)
    if len(notes) == 1 or "codes" not in first.values:
        return replace(first, columns=names)
    others = [name for name in choice.used if name not in names]
    everywhere = first.kind == "possible no answer" or not occurs(table, others, first.values["codes"])
    return replace(first, columns=names, values={"codes": first.values["codes"], "everywhere": everywhere})


def same_notes(found: Sequence[Same], named: Collection[str] = ()) -> list[Note]:
    """Notes on columns with the same information: counted once, unless they are used all the same."""
    together: dict[tuple[str, bool], list[Same]] = {}
    for same in found:
        together.setdefault((same.of, same.name in named), []).append(same)
    notes = []
    for (of, is_used), alike in together.items():
        lines = [None if same.is_equal else (same.slope, same.intercept) for same in alike]
        values = {"lines": lines, "used": is_used}
        notes.append(Note("same information", (of, *(same.name for same in alike)), values))
    return notes


def alike_notes(groups: Sequence[Sequence[str]]) -> list[Note]:
    """One note on all columns that put the rows in the order of another one."""
    names = tuple(name for group in groups for name in group)
    return [Note("nearly the same", names, {"groups": [list(group) for group in groups]})] if groups else []


def row_notes(table: TableFile, choice: ColumnUsage) -> list[Note]:
    """On rows that are copies of others, or sums of them."""
    notes = []
    n_copies = int(copies(table).sum())
    if 0 < n_copies <= MOST_COPIES * table.n_rows:  # of few answers to few questions, most are
        notes.append(Note("duplicate rows", values={"n": n_copies}))
    found = aggregates(table, choice) if table.n_rows <= MOST_COMPARED else None
    if found:
        values = {"levels": found.levels, "n": int(found.rows.sum()), "sums": found.by_arithmetic}
        notes.append(Note("aggregate rows", (found.column,), values))
    return notes


def panel(table: TableFile, choice: ColumnUsage) -> list[Note]:
    """A note where the table has one row for each unit and time: rows of a unit are alike."""
    if table.raw.num_rows != table.n_rows:  # only the beginning of a large table is at hand
        return []
    roles = {name: choice.roles[name].role for name in choice.unused if name in table.by_name}
    units = [name for name, role in roles.items() if role in ("category", "identifier")]
    if not units:
        return []
    times = {name: decoded(table.raw[name]) for name, role in roles.items() if role == "date"}
    if (files := table.files()) is not None and FILE not in table.by_name:
        times[FILE] = files
    for unit, (time, when) in itertools.product(units, times.items()):
        both = pa.table({"unit": decoded(table.raw[unit]), "time": when})
        n_units, n_times = (pc.count_distinct(values).as_py() for values in both.columns)
        if max(n_units, n_times) > table.n_rows / 2 or n_units * n_times < table.n_rows:
            continue
        if both.group_by(["unit", "time"]).aggregate([]).num_rows == table.n_rows:
            return [
                Note("one row for each", (unit, time), {"n_units": n_units, "in_pieces": table.in_pieces})
            ]
    dates = [name for name in times if name != FILE or name in table.by_name]
    for unit in units if dates else ():
        codes = codes_of(table, unit)
        n_runs = runs_in_time(table, codes, dates)
        if n_runs:
            sizes = np.unique(codes[codes >= 0], return_counts=True)[1]
            starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
            whole = n_runs == len(sizes)
            length = typical(sizes if whole else np.diff(np.append(starts, len(codes))))
            values = {"n_units": len(sizes), "length": length, "whole": whole, "in_pieces": table.in_pieces}
            return [Note("rows in time", (unit,), values)]
    return []


def runs_in_time(table: TableFile, codes: Any, times: Sequence[str]) -> int:
    """The number of runs of rows with the same unit and increasing time; 0 if the table has no such runs."""
    same = codes[1:] == codes[:-1]
    n_runs = int(table.n_rows - same.sum())
    if not LEAST_RUNS <= n_runs <= table.n_rows / LONG_RUN:
        return 0
    later = np.zeros(len(same), bool)
    for name in reversed(times):
        values = table.numbers(name)
        when = days_of(table, table.column(name)).days if values is None else values
        later = (when[1:] > when[:-1]) | ((when[1:] == when[:-1]) & later)
    return n_runs if later[same].mean() >= 0.95 else 0
