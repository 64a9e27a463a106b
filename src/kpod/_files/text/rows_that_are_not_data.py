"""Rows that are not data: titles above a table, units under its header, totals and remarks below it.

People read sheets, and put there what a reader needs. Rows like that are no data. They are told by
what they hold, left out, and reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._columns.missing_codes import spellings
from kpod._common.notes import Note
from kpod._common.sentences.note_sentences import rows_that_hold
from kpod._common.typing import Floats

NUMBER = re.compile(r"[-+(]?\s*[$€£¥]?\s*\d[\d.,' \u00a0]*(?:[eE][-+]?\d+)?\s*[%$€£¥]?\)?")
TOTALS = {
    "sum": r"(?:(?:grand|sub)[- ]?)?totals?|sums?|summen?|gesamt(?:summe)?|insgesamt",
    "mean": r"means?|averages?|mittelwert|durchschnitt",
    "median": r"medians?",
    "least": r"min(?:imum)?",
    "most": r"max(?:imum)?",
    "deviation": r"std(?:\.? ?dev\.?)?|s\.?d\.?",
    "count": r"counts?|anzahl",
}
"""What a row of totals says it holds, by its first word."""
UNIT = re.compile(
    r".{1,2}|.*[/%°²³µμ^*·()\[\]{}].*|mm ?hg|bpm|[kmhg]?pa|m?bar|[mµ]?mol|pp[mb]|[kmg]?wh|[kmg]?hz|"
    r"usd|eur|gbp|y(ea)?rs?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|sec(ond)?s?|percent|pct|deg(ree)?s?|"
    r"celsius|fahrenheit|kelvin|(kilo|centi|milli)?(met(er|re)|gram)s?|feet|foot|inch(es)?|miles?|lit(er|re)s?|"
    r"lbs?|pounds?|ounces?|tons?|tonnes?|(kilo)?watts?|volts?|amps?|ohms?|joules?|kcal|dollars?|euros?|numbers?|"
    r"counts?|index|scores?|ratio|people|persons?|thousands?|millions?|billions?|jahre?|monate?|tage?|stunden?|"
    r"prozent|anzahl|stück|int(eger)?|float|double|numeric|string|text|bool(ean)?",
    re.IGNORECASE,
)
NO_UNIT = re.compile(r"(?:dk|no|not|none|un(?!it)\w+|did|refus\w*|missing|lost)\b", re.IGNORECASE)
REMARK = re.compile(
    r"(?:sources?|(?:foot)?notes?|quellen?|anmerkung(?:en)?|legende?|\*|†|¹|©|n\s*=)", re.IGNORECASE
)
SOME_ROWS = 30
HEAD_ROWS = 200
"""Rows in which values come back if they do at all."""
MOST_DESCRIPTIONS = 2
MOST_HEADINGS = 3
"""Rows under the first one of a header in several rows."""
LEAST_BELOW = 3
LEAST_FOREIGN = 2
LEAST_ANSWERS = 10
RARE = 0.02
"""Of the entries of a column whose values come back, at most as many occur once."""
MOST_TOTALS = 5
MOST_REMARKS = 20
LONG_REMARK = 4
MANY_WORDS = 10
MOST_QUOTED = 10
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
    start = next(
        (i for i, n in enumerate(full) if n and n >= enough and not (n == enough and alone(rows[i]))), 0
    )
    return start + 1 if is_row_of_groups(rows[start : start + SOME_ROWS]) else start


def alone(row: Sequence[str]) -> bool:
    """Whether only the first of two cells holds something, several words: a title above two columns."""
    is_title = bool(row) and len(row[0].split()) >= LONG_REMARK
    return len(row) > 1 and is_title and not any(cell.strip() for cell in row[1:])


def is_row_of_groups(rows: Rows) -> bool:
    """Whether the first row names groups of columns, and the second, which is fuller, the columns."""
    if len(rows) < 3 or filled(rows[0][1:]) == len(rows[0][1:]) or filled(rows[0]) >= filled(rows[1]):
        return False
    if any(name.strip() and not under.strip() for name, under in zip(rows[0], rows[1], strict=False)):
        return False  # it names columns itself
    below = range(len(rows[1]))
    return not any(map(is_number, rows[1])) and any(has_numbers(rows[2:], column) for column in below)


def descriptions(rows: Rows, *, several: bool = False) -> int:
    """How many of the first rows under the header hold units, options or the wording of questions, no data.

    Such a row has no number, and units or wordings in at least half of the columns with numbers below it;
    or what is foreign to the columns (`is_foreign`). With `several`, all rows above one of those are
    headings: the levels of a header in several rows.
    """
    for n in range(MOST_HEADINGS if several else MOST_DESCRIPTIONS, 0, -1):
        below = rows[n:]
        if len(below) < LEAST_BELOW:
            continue
        columns = [column for column in range(len(rows[0])) if has_numbers(below[:SOME_ROWS], column)]
        judged = rows[n - 1 : n] if several else rows[:n]
        if all((columns and describes(row, columns)) or is_foreign(row, below) for row in judged):
            empty = several and not filled(below[0]) and len(below) > LEAST_BELOW
            return n + empty
    return 0


def is_foreign(row: Sequence[str], below: Rows) -> bool:
    """Whether a row holds nothing that its columns hold: words over numbers, answers that nobody gives.

    Counted are the columns that can tell: those of numbers, and those whose values come back again and
    again. Two at least have to say so, and none the contrary.
    """
    foreign = 0
    for j, cell in enumerate(row):
        text = cell.strip()
        others = [other[j].strip() for other in below if not is_gap(other[j])]
        if is_gap(text) or NO_UNIT.match(text) or len(others) < LEAST_BELOW:
            continue
        if sum(map(is_number, others)) >= 0.8 * len(others):
            if is_number(text):
                return False
            foreign += 1
            continue
        times = Counter(others)
        if len(times) == 1:  # ticked columns may hold the very words of their heading
            continue
        if text in times:
            return False
        once = sum(n == 1 for n in times.values())
        come_back = len(others) >= LEAST_ANSWERS and len(times) <= len(others) / 2
        foreign += come_back and once <= RARE * len(others)
    return foreign >= LEAST_FOREIGN


def has_numbers(rows: Rows, column: int) -> bool:
    cells = [row[column] for row in rows if not is_gap(row[column])]
    return len(cells) >= 3 and all(map(is_number, cells))


def describes(row: Sequence[str], columns: Sequence[int]) -> bool:
    words = sum(is_description(row[column].strip()) for column in columns if not is_gap(row[column]))
    return not any(map(is_number, row)) and 2 * words >= len(columns)


def is_description(text: str) -> bool:
    """A unit, or several words; not what is written where an answer should be, such as "refused"."""
    if NO_UNIT.match(text):
        return False
    return UNIT.fullmatch(text) is not None or text.endswith("?") or len(text.split()) > 1


def totals(rows: Rows, numbers: Callable[[int], Floats], n_after: int) -> int:
    """How many of the last rows are labelled as sums, means and the like of the rows above them, and are.

    `numbers` are those of a whole column, which ends with `n_after` rows more than `rows` does.
    """
    kinds = [total_kind(row[0]) for row in rows[-MOST_TOTALS:]]
    most = next((n for n, kind in enumerate(reversed(kinds)) if not kind), len(kinds))
    if most == len(kinds) and len(set(kinds)) == 1 and len(rows) > len(kinds):
        return 0  # a value like the others: one row of totals for each year, say
    for n in range(most, 0, -1):
        columns = [numbers(j) for j in range(1, len(rows[0]))]
        end = len(columns[0]) - n_after if columns else 0
        claims = range(end - n, end)
        if all(holds(kinds[at - end], [(x[: end - n], x[at]) for x in columns]) for at in claims):
            return n
    return 0


def total_kind(cell: str) -> str:
    word = cell.strip().rstrip(" :")
    return next((kind for kind, words in TOTALS.items() if re.fullmatch(words, word, re.IGNORECASE)), "")


def holds(kind: str, columns: Sequence[tuple[Floats, float]]) -> bool:
    """Whether a row is what its label says in most columns (rates beside sums do not add up)."""
    seen = [
        is_total(kind, above[~np.isnan(above)], claim)
        for above, claim in columns
        if not np.isnan(claim) and np.count_nonzero(~np.isnan(above)) > 1
    ]
    return any(seen) and 2 * sum(seen) + (kind == "sum") > len(seen)


def is_total(kind: str, above: Floats, claim: float) -> bool:
    """Whether a number is what is claimed of those above it, or about that; sums may count what is a gap."""
    if kind in ("least", "most"):
        return bool(claim == (above.min() if kind == "least" else above.max()))
    if kind == "sum" and abs(claim - above.sum()) <= 0.2 * abs(above.sum()):
        return True
    found = {
        "sum": [above.sum(), above.mean()],
        "mean": [above.mean()],
        "median": [np.median(above)],
        "deviation": [above.std(), above.std(ddof=1)],
        "count": [float(len(above))],
    }[kind]
    digits = len(f"{claim:.15g}".partition(".")[2])
    return any(abs(claim - one) <= max(0.01 * abs(one), 0.5 * 10.0**-digits) for one in found)


def remarks(rows: Rows, *, set_apart: bool = False) -> int:
    """How many of the last rows are remarks: one cell with words and nothing beside it.

    Marks of gaps beside it, as programs write them, are nothing if the words are many.
    """
    n = 0
    for row in reversed(rows[-MOST_REMARKS:]):
        many = len(row[0].split()) >= MANY_WORDS and all(map(is_gap, row[1:]))
        if (filled(row[1:]) and not many) or not (is_remark(row[0]) or set_apart or not row[0].strip()):
            break
        n += 1
    return n if len(rows[0]) > 2 and any(map(filled, rows[len(rows) - n :])) else 0


def is_remark(text: str) -> bool:
    return len(text.split()) >= LONG_REMARK or REMARK.match(text.strip()) is not None


def edges(
    head: Rows, tail: Rows, numbers: Callable[[int, int], Floats], *, set_apart: bool = False
) -> tuple[int, int, list[Found]]:
    """How many of the first and of the last rows of a table are no data, and what they are.

    `head` and `tail` are its first and last rows, `numbers` are those of a column from some row on, NaN
    elsewhere.
    """
    found = []
    top = descriptions(head) if head else 0
    if top:
        found.append(Found(head[:top], "first", "units or descriptions"))
    bottom = 0
    if len(tail) > top + 1:
        bottom = remarks(tail, set_apart=set_apart)
        if bottom:
            found.append(Found(tail[-bottom:], "last", "remarks"))
        body = tail[: len(tail) - bottom]
        sums = totals(body, lambda j: numbers(j, top), bottom)
        if sums:
            found.append(Found(body[-sums:], "last", "totals"))
        bottom += sums
    return top, bottom, found


@dataclass(frozen=True)
class Found:
    """Rows or lines that are no data: the first or the last ones, and what they hold."""

    rows: Rows
    where: str
    what: str
    unit: str = "row"

    @property
    def n(self) -> int:
        return sum(map(bool, map(filled, self.rows)))

    def __str__(self) -> str:
        """What is there, with the first words of it."""
        return rows_that_hold(**self.values)

    @property
    def values(self) -> dict[str, Any]:
        cells = dict.fromkeys(cell.strip() for row in self.rows for cell in row if cell.strip())
        first = {"what": self.what, "where": self.where, "unit": self.unit}
        return {**first, "n": self.n, "cells": list(cells)[:MOST_QUOTED]}

    @property
    def left_out(self) -> Note:
        return Note("rows left out", values=self.values)
