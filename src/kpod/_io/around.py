"""What stands around a table: titles above it, units under its header, totals and notes below it.

People read sheets, and put there what a reader needs. Rows like that are no data. They are told by
what they hold, left out, and reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kpod._io.marks import spellings
from kpod._words import counted, some

NUMBER = re.compile(r"[-+(]?\s*[$€£¥]?\s*\d[\d.,' \u00a0]*(?:[eE][-+]?\d+)?\s*[%$€£¥]?\)?")
TOTAL = re.compile(
    r"(?:(?:grand|sub)[- ]?)?totals?|sums?|summen?|gesamt(?:summe)?|insgesamt|means?|averages?|mittelwert|"
    r"durchschnitt|medians?|min(?:imum)?|max(?:imum)?|std(?:\.? ?dev\.?)?|s\.?d\.?|counts?|anzahl",
    re.IGNORECASE,
)
REMARK = re.compile(r"(?:sources?|notes?|quellen?|anmerkung(?:en)?|legende?|\*|†|¹|©|n\s*=)", re.IGNORECASE)
SOME_ROWS = 30
MOST_DESCRIPTIONS = 2
MOST_TOTALS = 5
MOST_REMARKS = 8
LONG_REMARK = 4
GAPS = frozenset(spellings(()))

Rows = Sequence[Sequence[str]]


def filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


def is_gap(cell: str) -> bool:
    return cell.strip() in GAPS


def titles(rows: Rows) -> int:
    """How many of the first rows stand above the header, which is the first row that is about full."""
    full = [filled(row) for row in rows[:50]]
    enough = 0.5 * max(full, default=0)
    start = next((i for i, n in enumerate(full) if n and n >= enough), 0)
    return start + 1 if is_row_of_groups(rows[start : start + SOME_ROWS]) else start


def is_row_of_groups(rows: Rows) -> bool:
    """Whether the first row names groups of columns, and the second, which is fuller, the columns."""
    if len(rows) < 3 or filled(rows[0][1:]) == len(rows[0][1:]) or filled(rows[0]) >= filled(rows[1]):
        return False
    below = range(len(rows[1]))
    return not any(map(is_number, rows[1])) and any(has_numbers(rows[2:], column) for column in below)


def descriptions(rows: Rows) -> int:
    """How many of the first rows under the header hold units or the wording of questions, and no data.

    Such a row has no number, and words in at least half of the columns that hold numbers below it.
    """
    for n in range(MOST_DESCRIPTIONS, 0, -1):
        below = rows[n : n + SOME_ROWS]
        columns = [column for column in range(len(rows[0]) if rows else 0) if has_numbers(below, column)]
        if columns and all(describes(row, columns) for row in rows[:n]):
            return n
    return 0


def has_numbers(rows: Rows, column: int) -> bool:
    cells = [row[column] for row in rows if not is_gap(row[column])]
    return len(cells) >= 3 and all(map(is_number, cells))


def describes(row: Sequence[str], columns: Sequence[int]) -> bool:
    words = sum(not is_gap(row[column]) for column in columns)
    return not any(map(is_number, row)) and 2 * words >= len(columns)


def totals(rows: Rows, occurrences: Callable[[str], int]) -> int:
    """How many of the last rows are sums, means and the like, by a word that no other row begins with."""
    n = 0
    for row in reversed(rows[-MOST_TOTALS:]):
        word = row[0].strip()
        if not TOTAL.fullmatch(word.rstrip(" :")) or not any(map(is_number, row)) or occurrences(word) > 1:
            break
        n += 1
    return n


def remarks(rows: Rows, *, set_apart: bool = False) -> int:
    """How many of the last rows are remarks: one cell with words and nothing beside it."""
    n = 0
    for row in reversed(rows[-MOST_REMARKS:]):
        if filled(row[1:]) or not (is_remark(row[0]) or set_apart or not row[0].strip()):
            break
        n += 1
    return n if len(rows[0]) > 2 and any(map(filled, rows[len(rows) - n :])) else 0


def is_remark(text: str) -> bool:
    return len(text.split()) >= LONG_REMARK or REMARK.match(text.strip()) is not None


def edges(
    head: Rows, tail: Rows, occurrences: Callable[[str], int], *, set_apart: bool = False
) -> tuple[int, int, list[str]]:
    """How many of the first and of the last rows of a table are no data, and what to say about them.

    `head` and `tail` are its first and last rows, `occurrences` says how often a word is in its first column.
    """
    said = []
    top = descriptions(head) if head else 0
    if top:
        said.append(reported(head[:top], "first", "units or descriptions"))
    bottom = 0
    if len(tail) > top + 1:
        bottom = remarks(tail, set_apart=set_apart)
        if bottom:
            said.append(reported(tail[-bottom:], "last", "remarks"))
        sums = totals(tail[: len(tail) - bottom], occurrences)
        if sums:
            said.append(reported(tail[len(tail) - bottom - sums : len(tail) - bottom], "last", "totals"))
        bottom += sums
    return top, bottom, said


def reported(rows: Rows, where: str, what: str, unit: str = "row") -> str:
    """A note on rows that were left out, with the first words of them."""
    cells = [cell.strip() for row in rows for cell in row if cell.strip()]
    quoted = [f"'{cell if len(cell) <= 40 else cell[:39] + '…'}'" for cell in dict.fromkeys(cells)]
    n = sum(map(bool, map(filled, rows)))
    which = f"the {where} {unit}" if n == 1 else f"the {where} {counted(n, unit)}"
    verbs = ("holds", "was") if n == 1 else ("hold", "were")
    return f"{which} ({some(quoted, most=3)}) {verbs[0]} {what}, and {verbs[1]} left out."
