"""The ways in which dates are written: one grammar, which recognises columns of dates and reads them.

What a notation leaves open, whether 03/04/2024 is in March or in April, is decided by the whole column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

NAMES = (
    "january february march april may june july august september october november december",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
"""In English, Spanish, French, German, Italian and Portuguese."""
MONTHS = {
    name: at
    for months in NAMES
    for at, month in enumerate(months.split(), 1)
    for name in (month, month[:3])
    if name != "jui"  # juin or juillet
} | {"sept": 9, "juil": 7}
MONTH = "(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + ")"
REST = r"(?::(?P<second>\d{2}(?:\.\d+)?))?\s*(?P<half>am|pm)?"
CLOCK = rf"(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}}){REST}"
ZONE = r"(?P<zone>z|utc|gmt|[+-]\d{2}:?\d{2})?"
TIME = rf"(?:[t ]+(?P<hour>\d{{1,2}})(?::(?P<minute>\d{{2}}))?{REST}\s*{ZONE})?"
YEAR = r"(?P<year>\d{4})"
SHORT_YEAR = r"(?P<year>\d{4}|\d{2})"
ORDINAL = r"(?:st|nd|rd|th)?"
NOTATIONS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{YEAR}[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?{TIME}",  # 2024-01-31, 2024-01
        rf"(?P<first>\d{{1,2}})[-/.](?P<second_part>\d{{1,2}})[-/.]{SHORT_YEAR}{TIME}",  # 31.1.2024, 1/31/24
        rf"(?P<day>\d{{1,2}}){ORDINAL}[-. ]{{0,2}}{MONTH}[-., ]*{SHORT_YEAR}{TIME}",  # 31 Jan 2024, 31jan24
        rf"{MONTH}[-. ]+(?P<day>\d{{1,2}}){ORDINAL},?[ -]+{YEAR}{TIME}",  # January 31st, 2024
        rf"{MONTH}[-. ]+{YEAR}",  # Jan 2024
        rf"(?P<month>\d{{1,2}})/{YEAR}",  # 01/2024
        rf"{YEAR}[- ]?q(?P<quarter>[1-4])",  # 2024Q1
        rf"q(?P<quarter>[1-4])[- ]?{YEAR}",  # Q1 2024
        rf"{YEAR}[- ]?w(?P<week>\d{{1,2}})",  # 2024-W12
    )
]
TIME_OF_DAY = re.compile(CLOCK, re.IGNORECASE)
NEARLY_ALL = 0.95
MOST_LOOKED_AT = 2000


class Written(NamedTuple):
    """A date as it is written: days since 1970, where the day comes first and where the month does.

    Both are the same but where two numbers could be either; None where one of them is no date.
    """

    day_first: float | None
    month_first: float | None


def parse(text: str) -> Written | None:
    """The date that a text is; None for anything else."""
    text = text.strip()
    for notation in NOTATIONS:
        match = notation.fullmatch(text)
        if match:
            return dates_of(match.groupdict())
    return None


def dates_of(parts: Mapping[str, str | None]) -> Written | None:
    time = time_of(parts)
    if time is None:
        return None
    year = full_year(parts["year"] or "")
    if parts.get("first"):
        one, other = int(parts["first"] or 0), int(parts["second_part"] or 0)
        found = Written(day_number(year, other, one, time), day_number(year, one, other, time))
        return None if found == (None, None) else found
    days = one_way(parts, year, time)
    return None if days is None else Written(days, days)


def one_way(parts: Mapping[str, str | None], year: int, time: float) -> float | None:
    """The date of text that can be read in one way only; for a month, a quarter or a week, its first day."""
    if parts.get("week"):
        try:
            monday = dt.date.fromisocalendar(year, int(parts["week"] or 0), 1)
        except ValueError:
            return None
        return float((monday - EPOCH).days)
    if parts.get("quarter"):
        return day_number(year, 3 * int(parts["quarter"] or 0) - 2, 1, time)
    month = (parts["month"] or "").lower()
    number = MONTHS[month] if month in MONTHS else int(month)
    return day_number(year, number, int(parts.get("day") or 1), time)


EPOCH = dt.date(1970, 1, 1)


def day_number(year: int, month: int, day: int, time: float) -> float | None:
    try:
        return (dt.date(year, month, day) - EPOCH).days + time
    except ValueError:  # the 30th of February
        return None


def full_year(digits: str) -> int:
    """Of two digits, the year from 1969 to 2068."""
    year = int(digits)
    return year if len(digits) > 2 else year + (1900 if year >= 69 else 2000)


def time_of(parts: Mapping[str, str | None]) -> float | None:
    """The time of day in days, in UTC if a zone is given; 0 without a time, None if it is not a time."""
    if not parts.get("hour"):
        return 0.0
    hour, minute, second = int(parts["hour"] or 0), int(parts["minute"] or 0), float(parts["second"] or 0)
    if parts.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if (parts["half"] or "").lower() == "pm" else 0)
    if hour > 23 or minute > 59 or second >= 60:
        return None
    zone = (parts.get("zone") or "").replace(":", "")
    shift = 0.0
    if zone[:1] in ("+", "-"):
        shift = int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[3:5]))
    return (hour * 3600 + minute * 60 + second - 60 * shift) / 86400


def is_dates(levels: Mapping[str, int]) -> bool:
    """Whether nearly all entries are dates."""
    return nearly_all(levels, lambda text: parse(text) is not None)


def is_times(levels: Mapping[str, int]) -> bool:
    """Whether nearly all entries are times of day."""
    return nearly_all(levels, lambda text: TIME_OF_DAY.fullmatch(text.strip()) is not None)


def nearly_all(levels: Mapping[str, int], fits: Callable[[str], bool]) -> bool:
    looked_at = list(levels.items())[:MOST_LOOKED_AT]
    hits = sum(n for level, n in looked_at if fits(level))
    return hits >= NEARLY_ALL * sum(n for _, n in looked_at)
