"""Numbers that are years, months, days or hours."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np

from kpod._columns.roles.column_facts import YEARS, Facts, Role, in_years, is_years
from kpod._columns.roles.heading_words import A_PROPERTY, EVENTS, QUANTITIES, STAMPS, words
from kpod._common.notes import Note

YEAR_WORDS = words("year decade yr jahr annee ano anno jaar rok vuosi god год 年 ")
MONTH_WORDS = words("month mon mo monat mois mes mese maand manad miesiac ")
DAY_WORDS = words("day tag jour dia giorno dag dzien ")
WEEK_WORDS = words("week woche semaine semana settimana vecka ")
HOUR_WORDS = words("hour stunde heure hora uur timme ")
CALENDAR: dict[str, tuple[float, float]] = {
    **dict.fromkeys(YEAR_WORDS, (0, 2200)),
    **dict.fromkeys(MONTH_WORDS, (0, 12)),  # 0 where it is not known
    **dict.fromkeys(DAY_WORDS, (0, 366)),
    **dict.fromkeys(WEEK_WORDS, (0, 53)),
    **dict.fromkeys(HOUR_WORDS, (0, 24)),
    "doy": (0, 400), "weekday": (0, 7), "dow": (0, 7), "quarter": (1, 4), "quartal": (1, 4),
    "date": (0, np.inf), "datum": (0, np.inf), "data": (19000101, 21001231), "fecha": (0, np.inf),
}  # fmt: skip
PARTS: dict[str, tuple[float, float]] = {
    **CALENDAR, "minute": (0, 59), "min": (0, 59), "second": (0, 60), "sec": (0, 60), "minuto": (0, 59),
    "hr": (0, 24), "yy": (0, 99), "mm": (1, 59), "dd": (1, 31),
}  # fmt: skip
"""What is a part of time beside others; alone it may be how long something took."""


MOSTLY = 0.8


def plain(word: str) -> str:
    """A word without its accents: Année, año."""
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def is_year_word(word: str) -> bool:
    return word in YEAR_WORDS or bool(re.fullmatch(r"[a-z]{1,8}year|[a-z]{2}yr", word))


def is_two_digit_years(facts: Facts) -> bool:
    return facts.whole and facts.low >= 20 and facts.high <= 99 and facts.high - facts.low <= 60


def is_mostly_years(facts: Facts) -> bool:
    """Years, some of which are implausibly early or mistyped."""
    recent = 1900 <= facts.high <= YEARS[1] and facts.low >= -YEARS[1] * 10
    usual = (facts.values >= 1000) & (facts.values <= YEARS[1])
    return facts.whole and recent and bool(usual.mean() >= MOSTLY)


def calendar(facts: Facts) -> Role | None:  # noqa: PLR0911
    """Numbers that are times: years, months, days, dates as 20240131, seconds since 1970."""
    tokens = tuple(map(plain, facts.tokens))
    named = tokens in {("date",), ("time",), ("year",)} and in_years(facts)
    mostly_whole = "".join(tokens) == "year" and np.mean(np.floor(facts.values) == facts.values) >= 0.9
    if named and (facts.n_distinct >= 15 or mostly_whole):
        return Role("date", f"{facts.low:.0f} to {facts.high:.0f}")
    if not facts.whole or not tokens:
        return None
    if is_named_time(facts, tokens):
        return Role("date", f"{facts.low:.0f} to {facts.high:.0f}")
    if facts.low >= 19000101 and facts.high <= 21001231 and looks_like_days(facts.distinct):
        return Role("date", "dates written as numbers (year, month, day)")
    if tokens[-1] in ("hr", "hrs") and (facts.low, facts.high, facts.n_distinct) == (0, 23, 24):
        return Role("date", "hours of the day")
    seconds = (facts.low >= 9e8 and facts.high <= 2.3e9) or (facts.low >= 9e11 and facts.high <= 2.3e12)
    if seconds and set(tokens) & STAMPS:
        return Role(
            "date", "times in seconds since 1970" if facts.high < 1e11 else "times in milliseconds since 1970"
        )
    return None


def is_named_time(facts: Facts, tokens: tuple[str, ...]) -> bool:
    """Whether the name is that of a part of time, and the numbers are in its range."""
    if "of" in tokens[1:] and tokens[-1] in CALENDAR:  # day of week, date of month
        tokens = tokens[: tokens.index("of", 1)]
    words = [word for word in tokens if not word.isdigit()]
    years = [word for word in words if is_year_word(word)]
    others = set(words) - set(years[:1] or words[-1:])
    if words and words[-1] in MONTH_WORDS and others <= EVENTS and (facts.low, facts.high) == (1, 12):
        return True  # the month of birth is no quantity, unlike the year
    if others & (A_PROPERTY | QUANTITIES) or len(words) > 3:
        return False
    if years:
        return is_years(facts) or is_mostly_years(facts) or (len(words) <= 2 and is_two_digit_years(facts))
    if len(tokens) > 2 or tokens[-1] not in CALENDAR:
        return False
    low, high = CALENDAR[tokens[-1]]
    sorted_days = tokens[-1] in ("month", "date", "day") and facts.low > 1000 and facts.is_sorted
    return (low <= facts.low and facts.high <= high) or sorted_days


def looks_like_days(distinct: Any) -> bool:
    months, days = distinct // 100 % 100, distinct % 100
    return bool(((months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)).all())


RECENT = (1850, 2050)
"""Whole numbers all of which lie here, some of them in the last decades, are years as a rule."""


def year_note(facts: Facts) -> Note | None:
    """On years that describe the row, such as when it was built; by a word, or by their range."""
    named = any(is_year_word(plain(word)) for word in facts.tokens)
    recent = (
        facts.whole
        and RECENT[0] <= facts.low
        and 1990 <= facts.high <= RECENT[1]
        and facts.n_distinct >= 5
        and not facts.is_quantity
        and not set(facts.tokens) & QUANTITIES
    )
    if (named and (is_years(facts) or is_two_digit_years(facts))) or recent:
        return Note("years", (facts.name,), {"low": int(facts.low), "high": int(facts.high)})
    return None
