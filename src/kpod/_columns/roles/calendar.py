"""Numbers that are years, months, days or hours."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kpod._columns.roles.facts import (
    Facts,
    Role,
    in_years,
    is_years,
)
from kpod._columns.roles.vocabulary import (
    A_PROPERTY,
    QUANTITIES,
    STAMPS,
)
from kpod._common.notes import Note

CALENDAR = {
    "year": (0, 2200), "decade": (0, 2200),
    "yr": (0, 2200), "jahr": (0, 2200), "annee": (0, 2200), "ano": (0, 2200),
    "month": (1, 12), "mon": (1, 12), "monat": (1, 12), "mois": (1, 12), "mes": (1, 12),
    "day": (0, 366), "doy": (0, 400), "tag": (0, 366), "weekday": (0, 7), "dow": (0, 7),
    "week": (0, 53), "woche": (0, 53),
    "quarter": (1, 4),
    "quartal": (1, 4), "hour": (0, 24), "date": (0, np.inf), "datum": (0, np.inf),
}  # fmt: skip


def calendar(facts: Facts) -> Role | None:  # noqa: PLR0911
    """Numbers that say when: years, months, days, dates as 20240131, seconds since 1970."""
    named = facts.tokens in (("date",), ("time",), ("year",)) and in_years(facts)
    mostly_whole = facts.tokens == ("year",) and np.mean(np.floor(facts.values) == facts.values) >= 0.9
    if named and (facts.n_distinct >= 15 or mostly_whole):
        return Role("date", f"{facts.low:.0f} to {facts.high:.0f}")
    if not facts.whole or not facts.tokens:
        return None
    last, others = facts.tokens[-1], set(facts.tokens[:-1])
    last = "year" if re.fullmatch(r"[a-z]year|[a-z]{2}yr", last) else last
    if last in CALENDAR and len(facts.tokens) <= 2 and not others & (A_PROPERTY | QUANTITIES):
        low, high = CALENDAR[last]
        year = last in ("year", "decade", "yr", "jahr", "annee", "ano")
        fits = low <= facts.low and facts.high <= high
        if year:
            two_digits = (
                facts.low >= 0 and facts.high <= 99 and facts.high - facts.low <= 60 and facts.low >= 20
            )
            fits = is_years(facts) or two_digits
        fits = fits or (last in ("month", "date", "day") and facts.low > 1000 and facts.is_sorted)
        if fits:
            return Role("date", f"{facts.low:.0f} to {facts.high:.0f}")
    if facts.low >= 19000101 and facts.high <= 21001231 and looks_like_days(facts.distinct):
        return Role("date", "dates written as numbers (year, month, day)")
    if last in ("hr", "hrs") and (facts.low, facts.high, facts.n_distinct) == (0, 23, 24):
        return Role("date", "hours of the day")
    seconds = (facts.low >= 9e8 and facts.high <= 2.3e9) or (facts.low >= 9e11 and facts.high <= 2.3e12)
    if seconds and set(facts.tokens) & STAMPS:
        return Role(
            "date", "times in seconds since 1970" if facts.high < 1e11 else "times in milliseconds since 1970"
        )
    return None


def looks_like_days(distinct: Any) -> bool:
    months, days = distinct // 100 % 100, distinct % 100
    return bool(((months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)).all())


def year_note(facts: Facts) -> Note | None:
    words = {"year", "yr", "jahr", "annee", "ano"} & set(facts.tokens)
    if words and is_years(facts):
        return Note("years", (facts.name,), {"low": int(facts.low), "high": int(facts.high)})
    return None
