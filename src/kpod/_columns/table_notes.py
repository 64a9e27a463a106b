"""What to know about the columns of a table beyond their roles: equal columns, panels, rows in time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.tables import FILE, TableFile
from kpod._columns.usage import (
    LEAST_COMMON,
    LEAST_RUNS,
    LEAST_UNITS,
    LONG_RUN,
    MOST_PAIRED,
    WEIGHTS,
    ColumnUsage,
    codes_of,
    days_of,
    decoded,
    occurs,
    typical,
)
from kpod._common.errors import printable
from kpod._common.typing import Floats
from kpod._common.words import MOST_LISTED, listed, option, some


def notes_on(table: TableFile, choice: ColumnUsage) -> list[str]:
    """What to know about the columns used, those alike in one sentence; and marks that occur nowhere."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name in choice.used:
        column = table.column(name)
        for note in choice.roles[name].notes or column.role.notes:
            key = (note.kind, note.marks)
            if not note.marks or not any(said.startswith(f"{name}: ") for said in table.notes):
                found.setdefault(key, []).append((name, note.sentence))
        if column.how_written:
            found.setdefault(("written", ""), []).append((name, f"{column.how_written}."))
    notes = [printable(note) for note in table.notes]
    for (kind, marks), about in found.items():
        names = [printable(name) for name, _ in about]
        if len(about) == 1:
            notes.append(f"{names[0]}: {about[0][1]}")
        elif marks:
            others = [name for name in choice.used if name not in dict(about)]
            everywhere = kind == "answer" or not occurs(table, others, marks)
            which = " and ".join(f"'{mark}'" if kind == "answer" else mark for mark in marks.split(","))
            far = ", far from the other values" if kind == "code" else ""
            notes.append(
                f"{which} may stand for missing in {some(names)}{far}; if so, use "
                f"{option('--missing', marks if everywhere else f'NAME={marks}')}."
            )
        elif kind == "written":
            notes.append(f"numbers in {some(names)} were written as text: {about[0][1]}")
        else:
            few = len(about) <= MOST_LISTED
            exclude = option("--exclude", ",".join(name for name, _ in about)) if few else "--exclude"
            notes.append(
                f"{some(names)}: {kind}s are clustered as plain numbers; use {exclude} if they should not be."
            )
    notes += panel(table, choice)
    weights = [name for name, why in choice.aside.items() if why == WEIGHTS]
    notes += twins(table, [*weights, *(name for name in choice.used if name not in choice.categories)])
    notes += [
        f"--missing {printable(mark)}: this value does not occur in the table." for mark in table.unused_marks
    ]
    return notes


def twins(table: TableFile, names: Sequence[str]) -> list[str]:
    """Notes on columns of numbers that are equal wherever both are observed: what they say counts twice."""
    columns = {name: values for name in names if (values := table.column(name).values) is not None}
    if not 1 < len(columns) <= MOST_PAIRED:
        return []
    listing = list(columns)
    head = np.column_stack([values[: 10 * LEAST_COMMON] for values in columns.values()])
    notes: list[str] = []
    known: set[str] = set()
    for j, (name, values) in enumerate(columns.items()):
        if name in known:
            continue
        known.add(name)
        differ: Any = (np.abs(head - head[:, [j]]) > 0).any(axis=0)  # as nearly all do: a quick look
        alike = [listing[other] for other in np.flatnonzero(~differ)]
        same = [other for other in alike if other not in known and are_equal(values, columns[other])]
        known.update(same)
        if same:
            which = listed([printable(one) for one in (name, *same)])
            notes.append(
                f"{which} are equal wherever they are observed together, so they count more than once; use "
                f"{option('--exclude', ','.join(same))} to count them once."
            )
    return notes


def are_equal(one: Floats, other: Floats) -> bool:
    """Whether two columns are equal in all rows that have both, and these are many."""
    observed = ~np.isnan(one), ~np.isnan(other)
    both = observed[0] & observed[1]
    enough = max(LEAST_COMMON, 0.5 * min(int(part.sum()) for part in observed))
    return bool(both.sum() >= enough and (one[both] == other[both]).all() and np.ptp(one[both]) > 0)


def panel(table: TableFile, choice: ColumnUsage) -> list[str]:
    """A note where the table has one row for each unit and time: rows of a unit are alike."""
    if table.raw.num_rows != table.n_rows:  # only the beginning of a large table is at hand
        return []
    roles = {name: choice.roles[name].role for name in choice.aside if name in table.by_name}
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
            first = f"there is one row for each {printable(unit)} and {printable(time)}."
            return [f"{first} {alike(unit, n_units)}"]
    dates = [name for name in times if name != FILE or name in table.by_name]
    for unit in units if dates else ():
        codes = codes_of(table, unit)
        n_runs = runs_in_time(table, codes, dates)
        if n_runs:
            sizes = np.unique(codes[codes >= 0], return_counts=True)[1]
            name = printable(unit)
            if n_runs == len(sizes):
                about = f"there are {typical(sizes)} rows for each {name}, one after the other in time"
            else:
                starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
                length = typical(np.diff(np.append(starts, len(codes))))
                about = f"rows of the same {name} follow one another in time, in runs of {length} rows"
            return [f"{about}. {alike(unit, len(sizes))}"]
    return []


def alike(unit: str, n_units: int) -> str:
    name = printable(unit)
    said = f"Rows of the same {name} tend to be alike, so clusters may be single values of {name} or periods"
    if n_units < LEAST_UNITS:  # one row for each would be too few to cluster
        return f"{said}."
    return f"{said}; to group them as a whole, make one row for each {name} first ({n_units:,} rows)."


def runs_in_time(table: TableFile, codes: Any, times: Sequence[str]) -> int:
    """How many runs of rows there are in which the unit is the same and time goes on; 0 for another table."""
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
