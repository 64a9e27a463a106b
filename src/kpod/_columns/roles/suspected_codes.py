"""Numbers that may be missing codes: 999, -9, a zero that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._columns.roles.column_facts import Facts
from kpod._columns.roles.heading_words import NO_ZERO
from kpod._common.notes import Note

HIGH_CODES = [float(digit * n) for n in range(1, 7) for digit in ("9", "8", "7")]
LOW_CODES = [*map(float, range(-9, 0)), *(-code for code in HIGH_CODES)]
HIGH_CODES += [float("9" * n + digit) for n in range(1, 6) for digit in "8765"]
LOW_CODES += [-code for code in HIGH_CODES if -code not in LOW_CODES]
LONG_CODE = 97
"""From here on, a code is no value that just happens to be the last of a scale."""


def code_notes(facts: Facts) -> list[Note]:
    """Values that look like codes for "missing": 98 and 99 far above the rest, -9 below, an impossible 0."""
    codes = [*far_codes(facts, HIGH_CODES, 1), *far_codes(facts, LOW_CODES, -1)]
    if not codes and impossible_zero(facts):
        codes = [0.0]
    if not codes:
        return []
    n = int(sum(facts.counts[facts.distinct == code].sum() for code in codes))
    parts = [f"{code:.0f}" for code in sorted(codes)]
    return [Note("possible code", (facts.name,), {"codes": parts, "n": n})]


def far_codes(facts: Facts, candidates: list[float], side: int) -> list[float]:
    """Candidates that occur far from all other values, on one side of them."""
    values = side * facts.distinct
    order = np.argsort(values)
    values, counts = values[order], facts.counts[order]
    found: list[float] = []
    if side > 0 and values[0] < 0:  # 8 above values below zero is no code of a scale
        candidates = [code for code in candidates if code > 9]
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
    """Zeros far from all other values, or near them if the name of the column rules out zero."""
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
