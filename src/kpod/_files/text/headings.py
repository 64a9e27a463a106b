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
from kpod._columns.tables import shown
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._files.text import rows_that_are_not_data

MOST_RENAMED = 3
"""Examples in a note."""


def names_of(
    rows: Sequence[Sequence[str]], above: Sequence[str], source: str, *, header: int | None, strict: bool
) -> tuple[list[str], int, list[Note]]:
    """The names of the columns, out of how many of the first rows, and notes on how they were found.

    `above` is what stood above the header, which may name groups of columns; `header` is how many rows of
    headings there are, if that is given.
    """
    n_columns = len(rows[0])
    first = [name.strip() for name in rows[0]]
    if strict and header is None:
        check_unique(first, source)
        check_names(first, source)
        return first, 1, []
    if header == 0 or (header is None and is_data(first)):
        notes = [] if header == 0 else [Note("no headings", values={"first": first[:3]})]
        return numbered(n_columns), 0, notes
    n = header or 1
    if header is None and not are_unique(first):
        below = [row for row in rows[1:] if len(row) == n_columns]
        n += rows_that_are_not_data.descriptions(below, several=True)
    if n > 1:
        top = [[*row, *[""] * (n_columns - len(row))] for row in rows[:n]]
        names, notes = made_unique(combined(top))
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
    numbers = [float(name) for name in header]
    steps = {after - before for before, after in pairwise(numbers)}
    return not (all(map(float.is_integer, numbers)) and len(steps) == 1 and steps.pop() > 0)


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


def with_groups(names: Sequence[str], above: Sequence[str]) -> list[str]:
    """Names of which those that occur twice get that of their group, from the row above them."""
    groups = filled_forward(above)
    twice = {name for name, times in Counter(names).items() if name and times > 1}
    return [
        f"{groups[j]} {name}".strip() if name in twice and j < len(groups) else name
        for j, name in enumerate(names)
    ]


def combined(rows: Sequence[Sequence[str]]) -> list[str]:
    """Names out of several rows, "question: option", where the first alone does not tell columns apart."""
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
