"""Missing codes that a whole table shares: -1 for "refused" in 110 of 111 questions is one code.

A single column cannot tell a code that half of its rows have; that others have the same one can.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kpod._columns.roles.suspected_codes import LOW_CODES
from kpod._common.notes import Note
from kpod._common.typing import Floats

LEAST_COLUMNS = 3
SHARE = 0.2
"""Of the columns of numbers, as many have a code that the table shares."""
MOST_CODES = 4
HEAD = 1_000
"""Rows that show of most columns that their negative numbers are no codes."""


def shared_codes(columns: Mapping[str, Floats]) -> list[Note]:
    """Notes on negative codes that stand alone below zero in several columns: nothing else is negative."""
    lows = {name: low_codes(values) for name, values in columns.items()}
    notes: list[Note] = []
    for code in dict.fromkeys(code for codes in lows.values() for code in codes):
        having = [name for name, codes in lows.items() if code in codes]
        elsewhere = any((columns[name] == code).any() for name in columns if name not in having)
        if len(having) >= max(LEAST_COLUMNS, SHARE * len(columns)):
            values = {"codes": [f"{code:.0f}"], "everywhere": not elsewhere}
            notes.append(Note("possible code", tuple(having), values))
    return notes


def low_codes(values: Floats) -> list[float]:
    """The negative numbers of a column, if all of them look like codes and are few."""
    head = values[:HEAD]
    if not np.isin(head[head < 0], LOW_CODES).all():
        return []
    negative = values[values < 0]
    if not len(negative) or len(negative) == np.isfinite(values).sum():
        return []
    found = np.unique(negative)
    return found.tolist() if len(found) <= MOST_CODES and np.isin(found, LOW_CODES).all() else []
