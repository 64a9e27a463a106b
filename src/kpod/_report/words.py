"""Numbers and lists as they are read in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_LISTED = 5


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def some(texts: Sequence[str], total: int | None = None) -> str:
    """The first few of so many."""
    more = (len(texts) if total is None else total) - MOST_LISTED
    return listed([*texts[:MOST_LISTED], *([f"{more:,} more"] if more > 0 else [])])


def finite(value: float) -> float | None:
    """For JSON, which knows no NaN."""
    return float(value) if np.isfinite(value) else None


def number(value: float) -> str:
    """A number for reading: four digits, thousands apart."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    if abs(value) >= 1000 and abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}"
