"""What a column is to a clustering: a measurement, a label, an identifier, a date, a code.

Decided from the column's name and its content, with the reason in plain words. Whoever decides
otherwise says so (`--as COLUMN=ROLE`); nothing here changes a value.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kpod._columns import date_notation, ordered
from kpod._columns.tally import Tally
from kpod._columns.vocabulary import (
    A_PROPERTY,
    COUNTERS,
    GROUPS,
    HOW_MANY,
    IDS,
    KEYS,
    NO_ANSWER_AT_ALL,
    NO_IDS,
    NO_ZERO,
    NOMINAL,
    NOT_FIRST,
    NOUN_AND_ID,
    NOUN_AND_NUMBER,
    PLACES,
    QUANTITIES,
    SIZES,
    STAMPS,
    STEPS,
    UNITS,
)
from kpod._common.typing import Floats
from kpod._common.words import listed, option

SAMPLE = 20_000
"""Of longer columns, as many entries are looked at; whether a column counts the rows is seen in all."""
YEARS = (1500, 2200)


@dataclass(frozen=True)
class Note:
    """Something about a column that its user should know, and what to do about it."""

    kind: str
    text: str
    remedy: str
    about: str = ""
    """Of numbers that say where or when, which of the two."""
    marks: str = ""
    """Of values that may stand for missing, these as --missing takes them."""

    @property
    def sentence(self) -> str:
        if self.about:
            return f"{self.text}; use {self.remedy} if {self.about} should not shape the clusters."
        return f"{self.text}; if so, use {self.remedy}."


@dataclass(frozen=True)
class Role:
    """What a column is, why, and what is odd about it."""

    role: str
    """number, boolean, category, ordered, date, identifier, constant, text or empty"""
    why: str
    notes: tuple[Note, ...] = ()
    order: tuple[str, ...] = ()
    """Of an ordered category, its levels from low to high."""


@dataclass(frozen=True)
class Contents:
    """What is known of a column when its role is to be told."""

    name: str
    n_rows: int
    numbers: Floats | None = None
    """Of a numeric column, NaN where one is missing."""
    as_read: Floats | None = None
    """The same before values that stand for missing were taken out: an identifier has no such values."""
    levels: Counter[str] = field(default_factory=Counter)
    """Of a column of text, its values and how often each occurs."""
    declared: str | None = None
    """What the file says it is: boolean, date, category, ordered, or a type that is none of these."""
    order: tuple[str, ...] = ()
    leading_zeros: bool = False
    tally: Tally | None = None
    """What is known of all numbers; where they are many, `numbers` and `as_read` are some of them."""

    @cached_property
    def all_numbers(self) -> Tally:
        if self.tally is not None:
            return self.tally
        assert self.numbers is not None
        out = Tally()
        out.add(self.numbers if self.as_read is None else self.as_read)
        return out


def role_of(contents: Contents) -> Role:
    """The role of a column."""
    if contents.declared == "boolean":
        same = contents.numbers is not None and contents.all_numbers.is_constant
        return Role("constant", ALL_THE_SAME) if same else Role("boolean", "true or false")
    if contents.declared == "date":
        return Role("date", "dates")
    if contents.numbers is not None:
        return role_of_numbers(contents)
    return role_of_text(contents)


SAMPLE_WEIGHTS = {"pweight", "pweights", "sampwt", "svywt", "finalwt", "wtfinl", "survwt", "poids", "gewicht"}
ALL_THE_SAME = "the same value in every row"
ROW_NUMBERS = "row numbers"


def role_of_numbers(c: Contents) -> Role:
    numbers = c.numbers
    assert numbers is not None
    first = observed_sample(c.as_read if c.as_read is not None else numbers)
    values = observed_sample(numbers)
    if not len(values):
        return Role("empty", "nothing observed")
    facts = Facts(c.name, c.n_rows, values, len(values) / max(1, len(first)))
    read = Facts(c.name, c.n_rows, first) if c.as_read is not None else facts
    if facts.n_distinct == 1 and len(values) > 1 and not np.isinf(numbers).any():
        return Role("constant", ALL_THE_SAME)
    found = calendar(read) or postcodes(facts)
    found = found or identifier(read, c.all_numbers, c.leading_zeros)
    found = found or coded_category(facts, c.leading_zeros)
    if found:
        return found
    notes = tuple(
        note
        for note in (year_note(facts), coordinate_note(facts), weight_note(facts), *code_notes(facts))
        if note
    )
    if facts.is_two_valued:
        low, high = facts.distinct
        return Role("boolean", f"two values, {low:g} and {high:g}", notes)
    return Role("number", "whole numbers" if facts.whole else "numbers", notes)


class Facts:
    """What is counted once about the numbers of a column."""

    def __init__(self, name: str, n_rows: int, values: Floats, share: float = 1.0) -> None:
        self.name, self.tokens = name, tokens(name)
        self.n_rows, self.values, self.share = n_rows, values, share
        self.whole = bool((np.floor(values) == values).all())
        self.distinct, self.counts = np.unique(values, return_counts=True)
        self.n_distinct = len(self.distinct)
        self.low, self.high = float(self.distinct[0]), float(self.distinct[-1])

    @property
    def is_unique(self) -> bool:
        return self.n_distinct == len(self.values)

    @property
    def is_two_valued(self) -> bool:
        near = self.high - self.low == 1 or (self.low, self.high) == (-1.0, 1.0)
        return self.n_distinct == 2 and self.whole and near and len(self.values) >= 4

    @property
    def density(self) -> float:
        """Of the whole numbers in its range, the share that occurs."""
        return self.n_distinct / (self.high - self.low + 1)

    @property
    def is_long(self) -> bool:
        """Five digits or more, all as long."""
        return self.low >= 10_000 and len(str(int(self.low))) == len(str(int(self.high)))

    @property
    def is_sorted(self) -> bool:
        return bool((np.diff(self.values) >= 0).all())

    @property
    def is_quantity(self) -> bool:
        """Whether the name says how much or how many: age, n_tokens, months since, gross sales."""
        words = set(self.tokens)
        return bool(
            (words & SIZES) or (len(self.tokens) > 1 and self.tokens[0] in HOW_MANY) or "since" in words
        )

    @property
    def is_in_blocks(self) -> bool:
        """Rows of one value stand together, about as many of each, from low to high: people, one by one."""
        even = self.counts.std() <= 0.4 * self.counts.mean()
        return self.is_sorted and len(self.values) >= 1.5 * self.n_distinct and bool(even)


def observed_sample(values: Floats) -> Floats:
    values = values[np.linspace(0, len(values) - 1, SAMPLE).astype(int)] if len(values) > SAMPLE else values
    return values[np.isfinite(values)]


# Names


def tokens(name: str) -> tuple[str, ...]:
    """The words of a name in any spelling: patientID, Patient_Id, PATIENT.ID are patient and id."""
    parts = re.sub(r"\b[nN][°º]|№", " no ", name)
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", parts)
    parts = re.sub(r"([A-Z]{2,})([A-Z][a-z])", r"\1 \2", parts)
    parts = re.sub(r"([A-Za-z])(\d)", r"\1 \2", parts)
    return tuple(part for part in re.split(r"[\W_]+", parts.lower()) if part)


def names_a_unit(name: str) -> bool:
    """Whether a name says that the column tells who or what was measured."""
    words = tokens(name)
    return bool(words) and (words[-1] in IDS | UNITS | GROUPS or bool(NOUN_AND_ID.match("".join(words))))


def is_noun_and_id(word: str) -> bool:
    return bool(NOUN_AND_ID.match(word)) and not word.startswith("provide")


def ends_in_id(word: str) -> bool:
    return len(word) > 2 and word.endswith("id") and not word.endswith(NO_IDS)


def is_named_id(facts: Facts) -> bool:
    """Names that are identifiers whatever the numbers; decimals are something else (an inner diameter)."""
    words = facts.tokens
    if not words or (facts.is_two_valued and facts.low == 0):
        return False
    if words[0] == "pid" and facts.n_distinct <= 10 <= facts.counts.mean():
        return False  # party identification, a scale
    if words[0] == "sid" and len(words) == 2 and words[1].isdigit():
        return False  # sudden infant deaths of a year
    joined = "".join(words)
    strong = words[-1] in IDS or words[0] in IDS - NOT_FIRST or any(map(is_noun_and_id, words))
    strong = strong or (
        facts.name.rstrip().endswith("#") and facts.n_distinct > 2
    )  # Invoice #, not # of rooms
    if strong or NOUN_AND_NUMBER.match(joined) or words[-1] in UNITS:
        return True
    letters = [word for word in words if not word.isdigit()]
    ending = letters[-1] if letters else ""
    many = facts.n_distinct > 30
    unique = facts.is_unique and len(facts.values) >= 20
    some_id = facts.n_distinct >= 10 and any(map(ends_in_id, letters if unique else letters[-1:]))
    coded_group = len(words) > 1 and words[-2] in GROUPS and facts.n_distinct >= 10
    code = ending.endswith(("code", "codes")) and (many or coded_group)
    numbered = (
        ending.endswith("num")
        and len(ending) > 4
        and not ending.endswith(("inum", "ernum", "agnum"))
        and many
    )
    counted = (
        ending in ("index", "idx") and facts.low in (0, 1) and facts.density > 0.9 and facts.n_distinct >= 20
    )
    return some_id or code or numbered or counted


# Numbers that name


def identifier(facts: Facts, tally: Tally, leading_zeros: bool) -> Role | None:  # noqa: PLR0911
    if not facts.whole:
        return None
    if tally.counts_rows(YEARS) and not facts.is_quantity:
        return Role("identifier", ROW_NUMBERS)
    if is_named_id(facts):
        how = "different in every row" if facts.is_unique else "shared by several rows"
        return Role("identifier", f"judging by its name; {how}")
    if facts.n_distinct < 3 or facts.low < 0 or facts.is_quantity:
        return None
    unique = facts.is_unique and len(facts.values) >= 3
    if is_counter(facts, unique):
        return Role(
            "identifier", f"whole numbers, {'different in every row' if unique else 'repeated in blocks'}"
        )
    if leading_zeros and facts.n_distinct > 0.5 * len(facts.values):
        return Role("identifier", "digits with leading zeros")
    if unique and same_length(facts) and len(facts.values) >= 20:
        return Role("identifier", f"{len(str(int(facts.high)))} digits each, different in every row")
    if unique and numbers_members(tally.head):
        return Role("identifier", "numbered members of numbered groups")
    if names_groups(facts, unique):
        return Role("identifier", "group numbers, judging by the name")
    if numbers_groups(facts) or numbers_blocks(facts):
        return Role(
            "identifier",
            f"whole numbers up to {facts.high:.0f}, all about equally common: labels, not quantities",
        )
    return None


def is_counter(facts: Facts, unique: bool) -> bool:
    """No name, or one such as key, no and index, where the numbers are like those of an index."""
    if not facts.tokens:
        return unique
    last = facts.tokens[-1]
    if len(facts.tokens) > 2 or not (last in COUNTERS or last.endswith(KEYS)):
        return False
    if unique:
        other = last not in HOW_MANY and (last in COUNTERS or facts.is_long)
        return facts.is_sorted or facts.density >= 0.2 or other
    in_blocks = facts.is_sorted and len(facts.values) >= 1.5 * facts.n_distinct
    return facts.n_distinct >= 20 and (in_blocks or starts_again(facts.values))


def starts_again(values: Floats) -> bool:
    """1, 2, 3, 1, 2, 3, 4, 1, ...: rows counted within groups, perhaps with some left out since."""
    steps = np.diff(values)
    again = values[1:][steps <= 0] <= 1
    return values[0] in (0, 1) and bool(again.all()) and float(np.mean(steps == 1)) > 0.9


def names_groups(facts: Facts, unique: bool) -> bool:
    """Schools, counties and the like, by a name in the singular: as a plural it says how many."""
    letters = [word for word in facts.tokens if not word.isdigit()]
    if not letters or len(letters) > 2 or letters[-1] not in GROUPS:
        return False
    if unique and len(facts.values) >= 20:
        return True
    together = facts.is_sorted and len(facts.values) >= 1.5 * facts.n_distinct
    many = facts.n_distinct >= 25 and (facts.density >= 0.2 or together)
    return many or (facts.n_distinct >= 5 and facts.is_in_blocks)


def same_length(facts: Facts) -> bool:
    """Eight digits or more, all as long: account and telephone numbers. Sizes vary, and are rounded."""
    rounded = np.mean(facts.values % 100 == 0)
    return facts.is_long and facts.low >= 1e7 and bool(rounded < 0.2)


ROUND_ENDS = (99, 100, 255, 359, 360, 365, 366, 999, 1000, 1439, 1440)


def numbers_groups(facts: Facts) -> bool:
    """Whole numbers from 1 (or 0) up, spread evenly to a sharp end, in no smooth distribution.

    Measurements thin out towards their ends, and what is common is common next door too.
    """
    n, m = len(facts.values), facts.n_distinct
    if not 0 <= facts.low <= max(1, 0.01 * facts.high) or m < 50 or n < 1.5 * m or facts.high in ROUND_ENDS:
        return False
    kinds = np.histogram(facts.distinct, bins=10)[0] / (m / 10)
    rows = np.histogram(facts.values, bins=10)[0] / (n / 10)
    if kinds.min() < 0.7 or kinds.max() > 1.3 or rows.min() < 0.5 or rows.max() > 2:
        return False
    if m >= 300 and kinds.min() > 0.85 and kinds.max() < 1.15 and rows.min() > 0.7 and rows.max() < 1.3:
        return True
    if facts.density < 0.5 or facts.counts.max() > 10 * facts.counts.mean():
        return False
    if n < 10 * m:
        return m >= 100 and facts.density > 0.9
    logs = np.log(facts.counts)
    even = logs[:-1].std() == 0 or logs[1:].std() == 0
    return bool(even or np.corrcoef(logs[:-1], logs[1:])[0, 1] < 0.4)


def numbers_blocks(facts: Facts) -> bool:
    """1, 1, 1, 2, 2, 2, 3, 3, 3 ...: people or places measured again and again, one after the other."""
    if facts.tokens and facts.tokens[-1] in STEPS:
        return False
    from_one = facts.low <= 1 and facts.density > 0.9 and facts.n_distinct >= 20
    narrow = facts.low >= 20 * (facts.high - facts.low) and facts.density > 0.5 and facts.n_distinct >= 10
    repeated = facts.is_sorted and len(facts.values) >= 1.5 * facts.n_distinct
    even = facts.counts.std() <= (1 if facts.n_distinct >= 50 and facts.density > 0.99 else 0.4) * (
        facts.counts.mean()
    )
    return repeated and bool((even and from_one) or narrow)


def numbers_members(values: Floats) -> bool:
    """101, 102, 201, 202, 203, 301 ...: the members of groups, counted within each."""
    steps = np.diff(values)
    if len(values) < 20 or not (steps > 0).all() or (steps == 1).all():
        return False
    for base in (10, 100, 1000):
        groups, members = np.divmod(values, base)
        starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
        within = np.arange(len(values)) - np.repeat(starts, np.diff([*starts, len(values)]))
        counted = (members - within).max() == (members - within).min() and members[0] in (0, 1)
        if counted and 10 <= len(starts) < len(values) and len(starts) > 0.9 * (groups[-1] - groups[0] + 1):
            return True
    return False


def postcodes(facts: Facts) -> Role | None:
    words = {"zip", "zipcode", "postcode", "postal", "postleitzahl", "plz"} & set(facts.tokens)
    if facts.whole and (words or any(word.endswith("fips") for word in facts.tokens)):
        return Role("category", "postal or area codes, not quantities")
    return None


def coded_category(facts: Facts, leading_zeros: bool) -> Role | None:
    """Whole numbers that stand for words, by the column's name."""
    if leading_zeros:
        return Role("category", "digits with leading zeros")
    if not facts.whole or not 3 <= facts.n_distinct <= 30 or facts.low < -1 or facts.high > 99:
        return None
    words = facts.tokens
    named = bool(words) and (
        (words[0] in NOMINAL and not QUANTITIES & set(words[1:]))
        or (words[-1] in NOMINAL and not QUANTITIES & set(words[:-1]))
    )
    place = len(words) == 1 and words[0] in PLACES and facts.low in (0, 1) and facts.density >= 0.5
    if named or place:
        return Role("category", "numbers used as labels, judging by the name")
    return None


# Dates

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


def in_years(facts: Facts) -> bool:
    return YEARS[0] <= facts.low and facts.high <= YEARS[1]


def is_years(facts: Facts) -> bool:
    return facts.whole and in_years(facts)


def looks_like_days(distinct: Any) -> bool:
    months, days = distinct // 100 % 100, distinct % 100
    return bool(((months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)).all())


def year_note(facts: Facts) -> Note | None:
    words = {"year", "yr", "jahr", "annee", "ano"} & set(facts.tokens)
    if words and is_years(facts):
        return Note("year", f"years ({facts.low:.0f} to {facts.high:.0f}) are clustered as plain numbers",
                    option("--exclude", facts.name), "time")  # fmt: skip
    return None


def coordinate_note(facts: Facts) -> Note | None:
    names = {"lat", "latitude", "lon", "lng", "long", "longitude"}
    words = set(facts.tokens) & names
    if words and facts.low >= -180 and facts.high <= 360 and not facts.whole:
        return Note("coordinate", "coordinates are clustered as plain numbers",
                    option("--exclude", facts.name), "place")  # fmt: skip
    return None


def weight_note(facts: Facts) -> Note | None:
    """On weights of a sample, which average 1 as a rule; other weights are those of bodies and parcels."""
    words = set(facts.tokens)
    named = "".join(facts.tokens) in SAMPLE_WEIGHTS or bool(words & {"wt", "wgt", "weight", "weights"})
    if named and facts.low > 0 and not facts.whole and 0.8 <= facts.values.mean() <= 1.25:
        return Note("weight", "may be the weights of a sample", option("--weight", facts.name))
    return None


# Codes for "missing" inside a number

HIGH_CODES = [float(digit * n) for n in range(1, 7) for digit in ("9", "8", "7")]
HIGH_CODES += [float("9" * n + digit) for n in range(1, 6) for digit in "8765"]
LOW_CODES = [*map(float, range(-9, 0)), *(-code for code in HIGH_CODES)]
LONG_CODE = 97
"""From here on, a code is no value that just happens to be the last of a scale."""


def code_notes(facts: Facts) -> list[Note]:
    """Values that look like codes for "missing": 98 and 99 far above the rest, -9 below, an impossible 0."""
    codes = [*far_codes(facts, HIGH_CODES, 1), *far_codes(facts, LOW_CODES, -1)]
    if not codes and impossible_zero(facts):
        codes = [0.0]
    if not codes:
        return []
    marks = ",".join(f"{code:.0f}" for code in sorted(codes))
    n = int(sum(facts.counts[facts.distinct == code].sum() for code in codes))
    return [note_on_marks("code", facts.name, marks, marks.replace(",", " and "), n)]


def note_on_marks(kind: str, name: str, marks: str, said: str, n: int) -> Note:
    times = "once" if n == 1 else f"{n:,} times"
    remedy = option("--missing", f"{name}={marks}")
    return Note(kind, f"{said} ({times}) may stand for missing", remedy, marks=marks)


def far_codes(facts: Facts, candidates: list[float], side: int) -> list[float]:
    """Of the candidates that occur, those beyond a gap as wide as what lies on this side of it."""
    values = side * facts.distinct
    order = np.argsort(values)
    values, counts = values[order], facts.counts[order]
    found: list[float] = []
    while len(values) > 2 and side * values[-1] in candidates and len(found) < 4:
        found.append(float(side * values[-1]))
        values, counts = values[:-1], counts[:-1]
    while found:
        rest = values
        gap = side * found[-1] - rest[-1]
        n = int(sum(facts.counts[facts.distinct == code].sum() for code in found))
        step = float(np.median(np.diff(rest))) if len(rest) > 1 else 1.0
        inside = float(rest[-1] - rest[0])
        wide = gap > max(inside, 3 * step) if inside > 0 else gap > 5
        if n <= 0.5 * len(facts.values) and (
            (wide and (n > 1 or abs(found[0]) > 900))
            or (n > 1 and gap >= 1 and side < 0 and is_lone_code(facts, found, -float(rest[-1]), n))
            or (gap > 3 * step and is_peak(found[-1], n, gap > 0.5 * inside, counts))
        ):
            return found
        values = np.append(values, side * found.pop())
    return []


def is_lone_code(facts: Facts, found: list[float], lowest: float, n: int) -> bool:
    """Below zero, where no value proper is: `lowest` is the lowest of these."""
    if lowest < 0 or not (facts.whole or n >= 5):
        return False
    # Small ones are steps of a scale as often as codes: only -1 or -2 alone below a wide range, or far off.
    alone = len(found) == 1 and found[0] >= -2 and facts.high >= 5 and len(facts.values) > 20
    far = lowest >= max(5.0, -2 * found[0])
    return found[-1] <= -7 or alone or far


def is_peak(code: float, n: int, far: bool, others: Any) -> bool:
    """A long code that occurs many times at the end of a range: far out, or where other values are rare.

    `others` says how often each of these occurs, the nearest last.
    """
    return abs(code) >= LONG_CODE and n >= 5 and (far or n >= 10 * others[-10:].max())


def impossible_zero(facts: Facts) -> bool:
    """Zeros far from all other values, or near them where the name leaves no room for zero."""
    if facts.low != 0 or facts.n_distinct < 10:
        return False
    zeros, rest = facts.counts[0], facts.distinct[1:]
    if zeros < 2 or zeros > 0.5 * len(facts.values):
        return False
    step = float(np.median(np.diff(rest)))
    named = bool(NO_ZERO & set(facts.tokens))
    middle = float(np.median(facts.values[facts.values > 0]))
    far = rest[0] >= 0.3 * middle and rest[0] >= 10 * step
    return far or (named and rest[0] >= 3 * step and rest[0] > 0.05 * middle)


# Text

MOST_WORDS = 4
"""Of a category that says that there is no answer."""


def role_of_text(c: Contents) -> Role:
    role = role_of_levels(c)
    return replace(role, notes=answer_notes(c)) if role.role in ("category", "ordered") else role


def answer_notes(c: Contents) -> tuple[Note, ...]:
    """Categories that say that there is no answer: Refused, Don't know."""
    found = [level for level in c.levels if "," not in level and len(level.split()) <= MOST_WORDS]
    found = [level for level in found if NO_ANSWER_AT_ALL.match(level)]
    if not found:
        return ()
    n = sum(c.levels[level] for level in found)
    said = listed([f"'{level}'" for level in found])
    return (note_on_marks("answer", c.name, ",".join(found), said, n),)


def role_of_levels(c: Contents) -> Role:  # noqa: PLR0911
    n = sum(c.levels.values())
    if not n:
        return Role("empty", "nothing observed")
    if c.declared == "ordered":
        return Role("ordered", "ordered values", order=c.order)
    levels = list(c.levels)
    if len(levels) == 1:
        return Role("constant", ALL_THE_SAME)
    if date_notation.is_dates(c.levels):
        return Role("date", "dates")
    if date_notation.is_times(c.levels):
        return Role("date", "times of day")
    order = ordered.order_of(levels)
    if order and len(levels) <= 0.5 * n + 1:
        return Role("ordered", "ordered values", order=tuple(order))
    if c.declared == "category":
        return Role("category", f"{len(levels):,} different values")
    return role_of_words(c, levels, n)


FEW_FILLED = 0.2
"""What names the rows is there for more of them than this."""


def role_of_words(c: Contents, levels: list[str], n: int) -> Role:
    sample = levels[:1000]
    words = float(np.mean([len(level.split()) for level in sample]))
    length = float(np.mean([len(level) for level in sample]))
    repeated = n >= 50 and len(levels) <= 0.2 * n and length <= 100
    prose = (words >= 4.5 or length > 50) and not repeated
    name = tokens(c.name)
    named = bool(name) and (name[-1] in IDS or name[0] in IDS or bool(NOUN_AND_ID.match("".join(name))))
    if len(levels) > 0.5 * n and hashes(sample):
        return Role("identifier", "codes, different in nearly every row")
    if n < FEW_FILLED * c.n_rows and len(levels) > 0.5 * n:
        return Role("text", f"only filled in for {n:,} of {c.n_rows:,} rows")
    if len(levels) == n and not prose and n >= 3:
        return Role("identifier", "different in every row")
    if named and len(levels) > 2:
        return Role("identifier", "judging by its name")
    if len(levels) > 0.5 * n or prose:
        return Role("text", f"text: {len(levels):,} different values in {n:,} rows")
    return Role("category", f"{len(levels):,} different values")


HASH = re.compile(r"^(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\S+@\S+\.\S+)$")
SHAPE = re.compile(r"^[A-Za-z]{1,4}[-_ ]?\d{3,}$")


def hashes(levels: list[str]) -> bool:
    return all(HASH.match(level) for level in levels) or all(SHAPE.match(level) for level in levels)
