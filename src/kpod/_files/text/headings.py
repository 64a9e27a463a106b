"""Headings of columns: one row of names or several, each name made unique.

Surveys are exported with the question in one row and its options in the next, spreadsheets with groups of
columns above their names. Names that occur twice are told apart by the rows around them, then by number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from kpod._columns.column_inspection import NUMBER
from kpod._columns.notations import date_notation
from kpod._columns.tables import shown
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._files.text import rows_that_are_not_data

LEAST_TELLING = 2
MOST_RENAMED = 3
"""Examples in a note."""


def names_of(
    rows: Sequence[Sequence[str]],
    above: Sequence[Sequence[str]],
    source: str,
    *,
    header: int | None,
    strict: bool,
) -> tuple[list[str], int, list[Note]]:
    """The names of the columns, the number of rows they are from, and notes on how they were found.

    `above` are the rows above the header, which may name groups of columns; `header` is how many rows of
    headings there are, if that is given.
    """
    n_columns = len(rows[0])
    first = [name.strip() for name in rows[0]]
    if strict and header is None:
        check_unique(first, source)
        check_names(first, source)
        return first, 1, []
    if header == 0 or (header is None and (is_data(first) or is_like_its_columns(first, rows[1:]))):
        notes = [] if header == 0 else [Note("no headings", values={"first": first[:3]})]
        return numbered(n_columns), 0, notes
    n = header or 1
    if header is None and not are_unique(first):
        below = [row for row in rows[1:] if len(row) == n_columns]
        n += rows_that_are_not_data.descriptions(below, several=True)
    if n > 1:
        top = [[*row, *[""] * (n_columns - len(row))] for row in rows[:n]]
        names, notes = made_unique(with_groups(combined(top), above))
        return names, n, [Note("several heading rows", values={"n": n, "examples": names[-2:]}), *notes]
    names, notes = made_unique(with_groups(first, above))
    return names, 1, notes


def are_unique(names: Sequence[str]) -> bool:
    """Whether every name occurs once; one column may have none, as row names do."""
    return len(set(names)) == len(names)


def check_unique(names: Sequence[str], source: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            at = [str(j + 1) for j, other in enumerate(names) if other == name]
            what = f"the column name {shown(name)}" if name else "a column without a name"
            raise InputError(
                f"{source}: {what} appears {times} times (columns {', '.join(at[:8])}); "
                "rename columns so that every name is unique."
            )


def is_data(header: Sequence[str]) -> bool:
    """Whether a first line holds numbers instead of names; a run of years and the like are names."""
    if not all(re.match(NUMBER, name.strip()) for name in header):
        return False
    return not is_run(header)


def is_run(names: Sequence[str]) -> bool:
    """1990, 1991, 1992: what columns are called, though numbers."""
    numbers = [float(name) for name in names]
    steps = {after - before for before, after in pairwise(numbers)}
    return all(map(float.is_integer, numbers)) and len(steps) == 1 and steps.pop() > 0


def is_like_its_columns(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first line is data: each field a number among numbers, a gap, or an entry of its column.

    Not all may be gaps, and the words of ticked columns, which hold the heading or nothing, do not count.
    """
    if any(is_of_a_kind(first[j], [row[j] for row in rows if j < len(row)]) for j in range(len(first))):
        return True
    if len(first) < LEAST_TELLING:
        return False
    n_telling, header = 0, [name.strip() for name in first]
    rows = [row for row in rows if [cell.strip() for cell in row] != header]  # two files joined into one
    for j, name in enumerate(first):
        entries = {
            row[j].strip() for row in rows if j < len(row) and not rows_that_are_not_data.is_gap(row[j])
        }
        if rows_that_are_not_data.is_gap(name) and name:
            continue
        if re.match(NUMBER, name):
            if not entries or not all(map(rows_that_are_not_data.is_number, entries)):
                return False
        elif len(entries) < LEAST_TELLING or name not in entries:
            return False
        n_telling += 1
    numbers = [name for name in first if re.match(NUMBER, name)]
    return n_telling >= LEAST_TELLING and (len(numbers) < n_telling or not is_run(numbers))


def is_of_a_kind(name: str, entries: Sequence[str]) -> bool:
    """Whether a field is a date above dates, or an address above addresses: no column is called so."""
    entries = [entry for entry in entries if not rows_that_are_not_data.is_gap(entry)]
    return len(entries) > LEAST_TELLING and any(
        kind(name) and all(map(kind, entries)) for kind in (is_date, is_address)
    )


def is_date(text: str) -> bool:
    return date_notation.parse(text) is not None


def is_address(text: str) -> bool:
    return text.strip().lower().startswith(("http://", "https://", "www."))


def check_names(header: Sequence[str], source: str) -> None:
    """Refuse a first line that holds data."""
    if is_data(header):
        raise InputError(
            f"{source}: the first line holds numbers ({printable(', '.join(header[:3]))}...), not column "
            "names; add a line with the names."
        )


def numbered(n_columns: int) -> list[str]:
    """Names for columns that have none."""
    return [f"column {j + 1}" for j in range(n_columns)]


def with_groups(names: Sequence[str], above: Sequence[Sequence[str]]) -> list[str]:
    """Names, made unique by the name of their group in the rows above.

    The nearest row first, and the next one if that does not tell them apart. A column without a name has that
    of the cell above it, where rows of groups are.
    """
    names = list(names)
    rows = [list(row) for row in above]
    while rows and sum(map(bool, map(str.strip, rows[-1]))) >= LEAST_TELLING:
        row = rows.pop()
        groups, twice = filled_forward(row), {name for name, n in Counter(names).items() if name and n > 1}
        names = [
            f"{groups[j]} {name}".strip() if name in twice and j < len(groups) else name or own_cell(row, j)
            for j, name in enumerate(names)
        ]
    return names


def own_cell(row: Sequence[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def combined(rows: Sequence[Sequence[str]]) -> list[str]:
    """Names from several rows, "question: option", if the first does not name every column by itself."""
    questions = filled_forward(rows[0])
    times = Counter(questions)
    out = []
    for j, question in enumerate(questions):
        below = [row[j].strip() for row in rows[1:]] if times[question] > 1 or not question else []
        out.append(": ".join(dict.fromkeys(part for part in (question, *below) if part)))
    return out


def filled_forward(cells: Sequence[str]) -> list[str]:
    """Cells of a row in which an empty one belongs to the one before it."""
    out, last = [], ""
    for cell in cells:
        last = cell.strip() or last
        out.append(last)
    return out


def made_unique(names: Sequence[str]) -> tuple[list[str], list[Note]]:
    """The same names, those that occur again with a number, those that are empty by their place; a note."""
    if are_unique(names):
        return list(names), []
    taken, out = set(filter(None, names)), []
    seen: Counter[str] = Counter()
    for j, name in enumerate(names):
        seen[name] += 1
        new = name or f"column {j + 1}"
        while (seen[name] > 1 or not name) and new in taken:
            new = f"{name} ({seen[name]})" if name and new == name else f"{new} (2)"
        taken.add(new)
        out.append(new)
    changed = [(old, new) for old, new in zip(names, out, strict=True) if old != new]
    n_empty = sum(not old for old, _ in changed)
    values = {
        "n_same": len(changed) - n_empty,
        "n_empty": n_empty,
        "examples": [new for _, new in changed[:MOST_RENAMED]],
    }
    return out, [Note("headings made unique", values=values)]
