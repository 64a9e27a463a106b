"""Numbers that name things: identifiers, counters, codes of groups, postcodes."""

from __future__ import annotations

import re

import numpy as np
from scipy.special import pdtr

from kpod._columns.roles.column_facts import YEARS, Facts, Role, tokens
from kpod._columns.roles.heading_words import (
    CODES,
    COUNTERS,
    GROUPS,
    HOW_MANY,
    IDS,
    KEYS,
    NO_IDS,
    NOMINAL,
    NOT_FIRST,
    NOUN_AND_ID,
    NOUN_AND_NUMBER,
    OBJECT,
    PLACES,
    QUANTITIES,
    REGISTERS,
    STAMPS,
    STEPS,
    UNITS,
)
from kpod._columns.tally import Tally
from kpod._common.typing import Floats

ROW_NUMBERS = "row numbers"
UNNAMED = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name, its index as a rule."""


def names_a_unit(name: str) -> bool:
    """Whether by its name the column identifies who or what was measured."""
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
    if strong or NOUN_AND_NUMBER.match(joined) or (words[-1] in UNITS and not facts.is_quantity):
        return True
    letters = [word for word in words if not word.isdigit()]
    ending = letters[-1] if letters else ""
    many = facts.n_distinct > 30
    unique = facts.is_unique and len(facts.values) >= 20
    some_id = facts.n_distinct >= 10 and any(map(ends_in_id, letters if unique else letters[-1:]))
    coded_group = len(words) > 1 and words[-2] in GROUPS and facts.n_distinct >= 10
    code = (ending.endswith(("code", "codes")) or words[0] in CODES) and (many or coded_group)
    numbered = (
        ending.endswith("num")
        and len(ending) > 4
        and not ending.endswith(("inum", "ernum", "agnum"))
        and many
    )
    numbered = numbered or is_register_number(facts)
    counted = (
        ending in ("index", "idx") and facts.low in (0, 1) and facts.density > 0.9 and facts.n_distinct >= 20
    )
    return some_id or code or numbered or counted


LONG = 1e5


def is_register_number(facts: Facts) -> bool:
    """Long numbers that hardly repeat, under a name such as BibNum; and Nº Orden."""
    words = facts.tokens
    if len(words) != 2:
        return False
    long = words[1] in HOW_MANY and float(np.median(facts.values)) >= LONG
    unique = facts.n_distinct >= 0.95 * len(facts.values) and len(facts.values) >= 20
    return (long and unique and not facts.is_quantity) or (words[0] in HOW_MANY and words[1] in REGISTERS)


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


def group_codes(facts: Facts) -> Role | None:
    """Numbers that stand for groups, by how they are distributed."""
    if is_balanced(facts):
        return Role("identifier", "scattered whole numbers, each of which occurs equally often")
    if numbers_groups(facts) or numbers_blocks(facts):
        return Role(
            "identifier",
            f"whole numbers up to {facts.high:.0f}, all about equally common: labels, not quantities",
        )
    return None


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


LEAST_UNITS = 15
LEAST_TIMES = 5


def is_balanced(facts: Facts) -> bool:
    """Places or people of a panel: numbers far apart and not rounded, each in as many rows as any other.

    Steps of an experiment are equally common, too, but few, or in a row.
    """
    n = int(facts.counts[0])
    even = bool((facts.counts == n).all()) and n >= LEAST_TIMES and facts.n_distinct >= LEAST_UNITS
    return even and facts.density < 0.01 and bool(np.mean(facts.distinct % 10 == 0) < 0.3)


def names_groups(facts: Facts, unique: bool) -> bool:
    """Schools, counties and the like, by a name in the singular: as a plural it is a count."""
    letters = [word for word in facts.tokens if not word.isdigit()]
    if not letters or len(letters) > 2 or letters[-1] not in GROUPS:
        return False
    if unique and len(facts.values) >= 20:
        return True
    if len(letters) == 2 and thins_out(facts):
        return False  # free throws in the clutch
    together = facts.is_sorted and len(facts.values) >= 1.5 * facts.n_distinct
    many = facts.n_distinct >= 25 and (facts.density >= 0.2 or together)
    return many or (facts.n_distinct >= 5 and facts.is_in_blocks)


def thins_out(facts: Facts) -> bool:
    """Whether larger numbers are rarer, as for counts; codes of groups are spread evenly."""
    parts = np.histogram(facts.values, bins=4)[0]
    return bool((np.diff(parts) < 0).all() and parts[0] > 0.4 * len(facts.values))


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
RANKS = {"rank", "ranking", "rang", "position", "place", "order", "seed", "pick"}


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
