"""Numbers and lists as they are read in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpod._common.errors import printable
from kpod._common.notes import Note

MOST_LISTED = 5
SAME_LOSS = 1e-6
SMALLEST = 1e-12
"""What is left of a zero after rounding."""
LONGEST = 1e15
"""From here on, numbers are written with a power of ten."""


def names_in(note: Note) -> list[str]:
    """The columns that a note is about."""
    return [printable(name) for name in note.columns]


def name_of(note: Note) -> str:
    """The column that a note is about."""
    return names_in(note)[0]


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def either(names: Sequence[str]) -> str:
    """Names to choose from: a, b or c."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def kind_of(thing: object) -> str:
    """The type of something, and where that is from."""
    kind = type(thing)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def some(texts: Sequence[str], total: int | None = None, most: int = MOST_LISTED) -> str:
    """The first few of so many."""
    more = (len(texts) if total is None else total) - most
    return listed([*texts[:most], *([f"{more:,} more"] if more > 0 else [])])


def best_found(losses: Sequence[float]) -> int:
    """In how many starts the best loss was found."""
    best = min(losses)
    return sum(loss <= best + SAME_LOSS * abs(best) for loss in losses)


def starts_text(losses: Sequence[float]) -> str:
    """How often the best loss was found; empty for a single start."""
    if len(losses) < 2:
        return ""
    return f"The best loss was found in {best_found(losses)} of {len(losses)} starts."


def finite(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None


def number(value: float) -> str:
    """A number for reading: four digits, thousands apart; large ones in full, as in a balance sheet."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    if abs(value) < SMALLEST:
        return "0"
    if 1000 <= abs(value) < LONGEST:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def brief(value: float, digits: int = 3) -> str:
    """A number for the middle of a sentence: a few digits, 12.3M and 4.56B for millions and billions."""
    if value == 0:
        return "0"
    power = int(np.floor(np.log10(abs(value))))
    rounded = round(value, digits - 1 - power)
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if unit <= abs(rounded) < 1000 * unit:
            return f"{rounded / unit:.{digits}g}{name}"
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < LONGEST else f"{rounded:.{digits}g}"


COARSE = 0.3
"""Of the difference of two numbers, what rounding may hide."""


def brief_pair(value: float, other: float) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to show by how much they differ, roughly.

    >>> brief_pair(38.523, 38.634), brief_pair(12.3, 45.6)
    (('38.52', '38.63'), ('12.3', '45.6'))
    """
    texts = ("", "")
    largest = max(abs(value), abs(other))
    for digits in range(3, 9):
        texts = brief(value, digits), brief(other, digits)
        rounding = 0.5 * 10.0 ** (np.floor(np.log10(largest)) - digits + 1) if largest > 0 else 0.0
        if texts[0] != texts[1] and rounding <= COARSE * abs(value - other):
            break
    return texts


def two_decimals(value: float) -> str:
    """An index for reading, without a minus before zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def percent(share: float, digits: int = 0) -> str:
    """A share in percent, 0 % and 100 % only if it is exactly that."""
    least = 10.0 ** -(digits + 2)
    if not np.isfinite(share):
        return "\N{EN DASH}"
    if -least / 2 <= share < 0:
        return f"{0:.{digits}%}" if share > -SMALLEST else f"<{0:.{digits}%}"
    if SMALLEST < share < least / 2:
        return f"<{least:.{digits}%}"
    if 1 - least / 2 <= share < 1 - SMALLEST:
        return f">{1 - least:.{digits}%}"
    return f"{share:.{digits}%}"


def size_text(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:,.1f} {unit}"
        n_bytes /= 1000
    raise AssertionError
