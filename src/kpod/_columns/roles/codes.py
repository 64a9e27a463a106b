"""Numbers that name things: identifiers, counters, members of groups, postcodes."""

from __future__ import annotations

import re

import numpy as np
from scipy.special import pdtr

from kpod._columns.roles.column_facts import YEARS, Facts, Role
from kpod._columns.roles.group_numbers import group_codes, names_groups
from kpod._columns.roles.heading_words import (
    CODES,
    COUNTERS,
    HOW_MANY,
    KEYS,
    NOMINAL,
    OBJECT,
    PLACES,
    QUANTITIES,
    RANKS,
    STAMPS,
    STEPS,
)
from kpod._columns.roles.identifier_names import is_named_id
from kpod._columns.tally import Tally
from kpod._common.typing import Floats

ROW_NUMBERS = "row numbers"
UNNAMED = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name, its index as a rule."""


def identifier(facts: Facts, tally: Tally, leading_zeros: bool) -> Role | None:  # noqa: PLR0911
    if not facts.whole:
        return None
    if tally.counts_rows(YEARS) and not facts.is_quantity:
        return Role("identifier", ROW_NUMBERS)
    if is_named_id(facts) or names_members(facts):
        how = "different in every row" if facts.is_unique else "shared by several rows"
        return Role("identifier", f"judging by its name; {how}")
    if facts.n_distinct < 3 or facts.low < 0 or facts.is_quantity:
        return None
    unique = facts.is_unique and len(facts.values) >= 3
    if counts_rows_but_for_a_few(facts) or is_numbering(facts) or counts_again_and_again(facts):
        return Role("identifier", "a numbering")
    if is_counter(facts, unique):
        return Role(
            "identifier", f"whole numbers, {'different in every row' if unique else 'repeated in blocks'}"
        )
    if leading_zeros and facts.n_distinct > 0.5 * len(facts.values):
        return Role("identifier", "digits with leading zeros")
    if unique and same_length(facts) and len(facts.values) >= 20:
        return Role("identifier", f"{len(str(int(facts.high)))} digits each, different in every row")
    if never_repeats(facts):
        return Role("identifier", "hardly a number occurs twice in a narrow range: given out, not measured")
    if unique and numbers_members(tally.head):
        return Role("identifier", "numbered members of numbered groups")
    if names_groups(facts, unique):
        return Role("identifier", "group numbers, judging by the name")
    return group_codes(facts)


def counts_rows_but_for_a_few(facts: Facts) -> bool:
    """1, 2, 3, 3, 4, 6, ...: numbered as they came, a few of them twice or not at all."""
    n = len(facts.values)
    ones = float(np.mean(np.diff(facts.values) == 1)) if n >= 50 else 0.0
    near = facts.low in (0, 1) and facts.high <= 1.02 * n and not facts.is_unique
    return facts.is_sorted and near and ones >= 0.95


def is_numbering(facts: Facts) -> bool:
    """#, Test no., Rechnung Nr.: an abbreviation of number at the end, and numbers given out from 1 up."""
    ends = re.search(r"^#$|\b(?:no|nr|num)\.$", facts.name.strip(), re.IGNORECASE)
    return bool(ends) and facts.low in (0, 1) and facts.n_distinct >= 20 and facts.density >= 0.8


def is_counter(facts: Facts, unique: bool) -> bool:
    """No name, or one such as key, no and index, where the numbers are like those of an index."""
    if not facts.tokens or UNNAMED.match(facts.name):
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


LONG_COUNT = 50


def counts_again_and_again(facts: Facts) -> bool:
    """1, 2, 3 and so on to more than fifty, and again from 1: rows numbered within groups."""
    steps = bool(facts.tokens) and bool((STEPS | STAMPS) & set(facts.tokens))
    again = bool((np.diff(facts.values) <= 0).any())
    return again and not steps and facts.n_distinct >= LONG_COUNT and starts_again(facts.values)


def names_members(facts: Facts) -> bool:
    """movie_1, movie_2: each a number of one of many things, not rounded, which come back all the same."""
    words = facts.tokens
    if len(words) != 2 or not words[1].isdigit() or not OBJECT.match(words[0]) or facts.n_distinct < 50:
        return False
    scattered = facts.high - facts.low >= 20 * facts.n_distinct
    come_back = facts.n_distinct <= 0.8 * len(facts.values)
    return scattered and come_back and bool(np.mean(facts.distinct % 10 == 0) < 0.3)


SMOOTH = 0.9


def same_length(facts: Facts) -> bool:
    """Eight digits or more, all as long: account and telephone numbers. Sizes vary, and are rounded."""
    rounded = np.mean(facts.values % 100 == 0)
    return facts.is_long and facts.low >= 1e7 and bool(rounded < 0.2) and not is_smooth(facts)


def is_smooth(facts: Facts) -> bool:
    """Whether each row is near the one before it, without being in order: what is measured in time."""
    first, second = facts.values[:-1], facts.values[1:]
    return not facts.is_sorted and bool(np.corrcoef(first, second)[0, 1] > SMOOTH)


BY_CHANCE = 1e-6
MOST_AGAIN = 0.005


def never_repeats(facts: Facts) -> bool:
    """Whole numbers that hardly ever repeat, although random ones from the same range would.

    Measurements crowd together, so that they repeat even sooner. Ranks do not, but mean more or less.
    """
    n, steps = len(facts.values), np.abs(np.diff(facts.values))
    again = n - facts.n_distinct
    if n < 20 or again > MOST_AGAIN * n or (RANKS | STEPS | STAMPS) & set(facts.tokens):
        return False
    if steps.min() == steps.max():
        return False  # a grid
    step = float(np.gcd.reduce(np.diff(facts.distinct).astype(np.int64)))
    room = (facts.high - facts.low) / step + 1
    expected = n - room * -np.expm1(-n / room)
    return bool(pdtr(again, expected) < BY_CHANCE)


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


def is_plural(word: str) -> bool:
    """Category one defects, party votes: what is counted, not what it is counted for."""
    return word not in NOMINAL and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def postcodes(facts: Facts) -> Role | None:
    words = {"zip", "zipcode", "postcode", "postal", "postleitzahl", "plz"} & set(facts.tokens)
    if facts.whole and (words or any(word.endswith("fips") for word in facts.tokens)):
        return Role("category", "postal or area codes, not quantities")
    return None


def coded_category(facts: Facts, leading_zeros: bool) -> Role | None:
    """Whole numbers that are codes of categories, by the name of the column."""
    if leading_zeros:
        return Role("category", "digits with leading zeros")
    if not facts.whole or not 3 <= facts.n_distinct <= 30 or facts.low < -1 or facts.high > 99:
        return None
    words = facts.tokens
    named = bool(words) and (
        (words[0] in NOMINAL and not QUANTITIES & set(words[1:]) and not is_plural(words[-1]))
        or words[0] in CODES
        or (words[-1] in NOMINAL and not QUANTITIES & set(words[:-1]))
    )
    place = len(words) == 1 and words[0] in PLACES and facts.low in (0, 1) and facts.density >= 0.5
    if named or place:
        return Role("category", "numbers used as labels, judging by the name")
    return None
