"""Dates in the ways people write them, as days since 1970.

A column is read in the one way that fits its entries. Where day and month cannot be told apart
(03/04/2024, and no entry above 12), nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._io.roles import looks_like_days
from kpod._typing import Floats

DATES = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y",
    "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%d-%b-%y", "%d%b%y", "%d. %b %Y", "%d.%b.%Y",
    "%b %d, %Y", "%b %d %Y", "%b-%d-%Y",
]  # fmt: skip
MONTHS = ["%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%b-%Y", "%b. %Y"]
TIMES = ["", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p"]
FORMATS = [*(date + time for date in DATES for time in TIMES), *(f"{month} %d" for month in MONTHS)]
QUARTER = r"^(?:(?P<year>\d{4})[- ]?[Qq](?P<quarter>[1-4])|[Qq](?P<quarter2>[1-4])[- ]?(?P<year2>\d{4}))$"
LOOKED_AT = 200
ENOUGH = 0.95
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
    found = quarters(entries) if is_quarters(entries) else iso(entries)
    ambiguous = ""
    if found is None:
        found, ambiguous = written(entries)
    codes = pc.fill_null(coded.indices, len(entries)).to_numpy(zero_copy_only=False)
    unread = next((str(entries[int(i)]) for i in np.flatnonzero(np.isnan(found))[:1]), "")
    return Reading(np.append(found, np.nan)[codes], unread, ambiguous)


def iso(entries: Any) -> Floats | None:
    """Of 2024-01-31, with a time and a zone or without; None for anything else."""
    for kind in (pa.timestamp("ms"), pa.timestamp("ms", "UTC")):
        try:
            return as_days(pc.cast(entries, kind))
        except pa.ArrowInvalid:
            continue
    return None


def written(entries: Any) -> tuple[Floats, str]:
    """By the format that reads most entries; and an entry on which two of these do not agree."""
    some = entries.slice(0, LOOKED_AT)
    fitting = [form for form in FORMATS if share_read(parsed(some, form)) >= ENOUGH]
    readings = [parsed(entries, form) for form in fitting]
    if not readings:
        return np.full(len(entries), np.nan), ""
    most = max(map(share_read, readings))
    best = [days for days in readings if share_read(days) == most]
    for other in best[1:]:
        differ = np.flatnonzero((best[0] != other) & ~np.isnan(best[0]))
        # With points between its parts, a date begins with the day.
        if len(differ) and "." not in str(entries[int(differ[0])]):
            return np.full(len(entries), np.nan), str(entries[int(differ[0])])
    return best[0], ""


def parsed(entries: Any, form: str) -> Floats:
    if form.endswith(" %d"):  # a month is its first day
        entries = pc.binary_join_element_wise(entries, "01", " ")
    days = as_days(pc.strptime(entries, form, "s", error_is_null=True))
    # A year of two digits is taken for one of the first century where four were expected.
    return np.where(days < -354_285, np.nan, days)


def share_read(days: Floats) -> float:
    return float(np.mean(~np.isnan(days))) if len(days) else 0.0


def as_days(stamps: Any) -> Floats:
    milliseconds = pc.cast(pc.cast(stamps, pa.timestamp("ms"), safe=False), pa.int64())
    floats = pc.cast(milliseconds, pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64) / (1000 * DAY)


def is_quarters(entries: Any) -> bool:
    return bool(len(entries) and pc.all(pc.match_substring_regex(entries, QUARTER)).as_py())


def quarters(entries: Any) -> Floats:
    """The first day of 2024Q1, Q1 2024."""
    months = []
    for entry in entries.to_pylist():
        match = re.match(QUARTER, entry)
        assert match is not None
        year, quarter = int(match["year"] or match["year2"]), int(match["quarter"] or match["quarter2"])
        months.append(12 * (year - 1970) + 3 * (quarter - 1))
    return np.array(months, "datetime64[M]").astype("datetime64[D]").astype(np.float64)


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
