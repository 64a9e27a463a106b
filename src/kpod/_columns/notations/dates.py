"""Dates in the ways people write them, as days since 1970.

In a column, day and month come in one order. Where that cannot be told (03/04/2024, and no entry above
12), nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.notations.date_notation import parse
from kpod._columns.roles.calendar import looks_like_days
from kpod._common.typing import Floats

DAY = 86400.0


@dataclass(frozen=True)
class Reading:
    """What was made of a column of dates: NaN for what was not read."""

    days: Floats
    unread: str = ""
    """The first entry that was not read."""
    ambiguous: str = ""
    """An entry that is one of two dates."""


def read(text: Any) -> Reading:
    """The days of a column of text, null where one is missing."""
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    coded = pc.dictionary_encode(text)
    entries = pc.utf8_trim_whitespace(coded.dictionary)
    found, ambiguous = iso(entries), ""
    if found is None:
        found, ambiguous = written(entries)
    codes = pc.fill_null(coded.indices, len(entries)).to_numpy(zero_copy_only=False)
    unread = next((str(entries[int(i)]) for i in np.flatnonzero(np.isnan(found))[:1]), "")
    return Reading(np.append(found, np.nan)[codes], unread, ambiguous)


def iso(entries: Any) -> Floats | None:
    """Of 2024-01-31, with a time and a zone or without; None for anything else. What Arrow reads fast."""
    for kind in (pa.timestamp("ms"), pa.timestamp("ms", "UTC")):
        try:
            return as_days(pc.cast(entries, kind))
        except pa.ArrowInvalid:
            continue
    return None


def written(entries: Any) -> tuple[Floats, str]:
    """By the order of day and month that reads most entries; and an entry that the other reads otherwise."""
    parsed = [parse(text) or (None, None) for text in entries.to_pylist()]
    day_first, month_first = (
        np.array([np.nan if one[at] is None else one[at] for one in parsed], np.float64) for at in (0, 1)
    )
    n_read = [int((~np.isnan(days)).sum()) for days in (day_first, month_first)]
    if n_read[0] != n_read[1]:
        return (day_first if n_read[0] > n_read[1] else month_first), ""
    differ = np.flatnonzero((day_first != month_first) & ~(np.isnan(day_first) & np.isnan(month_first)))
    # With points between its parts, a date begins with the day.
    if len(differ) and "." not in str(entries[int(differ[0])]):
        return np.full(len(entries), np.nan), str(entries[int(differ[0])])
    return day_first, ""


def as_days(stamps: Any) -> Floats:
    milliseconds = pc.cast(pc.cast(stamps, pa.timestamp("ms"), safe=False), pa.int64())
    floats = pc.cast(milliseconds, pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64) / (1000 * DAY)


def of_numbers(values: Floats) -> Floats | None:
    """The days of dates written as numbers: 20240131, or seconds since 1970; None for other numbers."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    low, high = float(known.min()), float(known.max())
    if low >= 19000101 and high <= 21001231 and looks_like_days(np.unique(known)):
        whole = np.nan_to_num(values).astype(np.int64)
        months = np.array(12 * (whole // 10000 - 1970) + whole // 100 % 100 - 1, "datetime64[M]")
        first = months.astype("datetime64[D]").astype(np.float64)
        return np.where(np.isfinite(values), first + whole % 100 - 1, np.nan)
    if low >= 9e8:
        return values / (DAY if high < 1e11 else 1000 * DAY)
    return None
