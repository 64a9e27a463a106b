"""Numbers that stand for groups, judging by how they are distributed: schools, plots, pairs, panels.

Measurements crowd around some values and thin out towards their ends; numbers that were given out are spread
evenly, occur equally often, or are made of digits that each mean something.
"""

from __future__ import annotations

import numpy as np

from kpod._columns.roles.column_facts import Facts, Role
from kpod._columns.roles.heading_words import GROUPS, RANKS, STAMPS, STEPS


def group_codes(facts: Facts) -> Role | None:
    """Numbers that stand for groups, by how they are distributed."""
    if is_balanced(facts):
        return Role("identifier", "scattered whole numbers, each of which occurs equally often")
    if is_matched(facts):
        return Role("identifier", f"each of 1 to {facts.high:.0f} in {int(facts.counts[0])} rows: labels")
    if is_crossed(facts):
        return Role("category", "codes of two digits, each of which counts from 1")
    if numbers_groups(facts) or numbers_blocks(facts):
        return Role(
            "identifier",
            f"whole numbers up to {facts.high:.0f}, all about equally common: labels, not quantities",
        )
    return None


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


LEAST_PAIRS, MOST_MATCHED = 20, 4


def is_matched(facts: Facts) -> bool:
    """1 to n, each in two rows, or three, or four: a case and its controls, say; neither times nor ranks."""
    n = int(facts.counts[0])
    even = 1 < n <= MOST_MATCHED and bool((facts.counts == n).all()) and facts.low == 1 and facts.density == 1
    return even and facts.n_distinct >= LEAST_PAIRS and not (STEPS | STAMPS | RANKS) & set(facts.tokens)


MOST_DIGITS = 6
LEAST_CROSSED = 6


def is_crossed(facts: Facts) -> bool:
    """11, 12, 13, 21, 22, 23, 31, ...: two digits, each of which is a code and counts from 1."""
    tens, ones = np.unique(facts.distinct // 10), np.unique(facts.distinct % 10)
    counted = all(
        1 < len(digits) <= MOST_DIGITS and (digits == np.arange(1, len(digits) + 1)).all()
        for digits in (tens, ones)
    )
    return counted and facts.n_distinct == len(tens) * len(ones) >= LEAST_CROSSED


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
