"""One column as it is encoded: numbers, ranks, or codes of levels; and its location and scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._common.typing import Floats

NUMBER, CATEGORY, ORDERED = "number", "category", "ordered"
TO_NORMAL = 1.3489795003921634
"""The interquartile range of a normal distribution, in its standard deviations."""
MOST_NAMES = 20
"""Categories that a column may have without a warning, however few rows there are."""
MISSING, UNKNOWN = -1, -2


def names_the_rows(column: Column) -> bool:
    """Whether a category is different in most rows: it says nothing of others."""
    n_levels = len(column.levels)
    return column.kind == CATEGORY and n_levels > max(MOST_NAMES, 0.5 * (column.codes >= 0).sum())


class Column:
    """One column as it is encoded: numbers (ranks, for ordered categories) or codes of levels."""

    def __init__(self, kind: str, values: Floats, levels: Sequence[str] = (), codes: Any = None) -> None:
        self.kind, self.values, self.levels, self.codes = kind, values, list(levels), codes

    @property
    def n_rows(self) -> int:
        return len(self.values if self.kind != CATEGORY else self.codes)


def no_numbers(name: Any, entries: Any) -> ValueError:
    odd = next((entry for entry in entries if isinstance(entry, str)), None)
    what = "other things than numbers" if odd is None else f"text ({odd!r})"
    return ValueError(
        f"Column {name!r} holds {what}, but the encoder was fitted on numbers there. Convert it to "
        "numbers first."
    )


def category_column(entries: Sequence[str | None], levels: Sequence[str] | None) -> Column:
    if levels is None:
        levels = sorted({entry for entry in entries if entry is not None})
    at = {level: code for code, level in enumerate(levels)}
    codes = np.array(
        [MISSING if entry is None else at.get(entry, UNKNOWN) for entry in entries], dtype=np.int64
    )
    # Of two levels, a column of 0 and 1, in which what is neither is missing.
    values = np.where(codes < 0, np.nan, codes) if len(levels) == 2 else np.empty(0)
    return Column(CATEGORY, values, levels, codes)


def ordered_column(name: str, entries: Sequence[str | None], order: Sequence[str]) -> Column:
    ranks = {level: float(rank) for rank, level in enumerate(order)}
    odd = next((entry for entry in entries if entry is not None and entry not in ranks), None)
    if odd is not None:
        raise ValueError(
            f"Column {name!r} holds {odd!r}, which is not among its ordered levels {list(order)}."
        )
    return Column(ORDERED, np.array([np.nan if e is None else ranks[e] for e in entries]), order)


def is_binary(values: Floats) -> bool:
    """Whether there are just two different values."""
    if not len(values):
        return False
    low, high = values.min(), values.max()
    return bool(low < high and ((values == low) | (values == high)).all())


def scale_of_indicators(column: Column, how: str) -> float:
    """What the indicators of a category are divided by."""
    if how == "none":
        return float(np.sqrt(2.0))
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    shares = counts / max(1, counts.sum())
    return float(np.sqrt(max(0.0, 1 - float((shares**2).sum())))) or 1.0


def location_and_scale(values: Floats, how: str) -> tuple[float, float]:
    if how == "none" or not len(values):
        return 0.0, 1.0
    mean, spread = float(values.mean()), float(values.std())
    if how == "robust":
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        mean = float(median)
        spread = float(high - low) / TO_NORMAL or spread  # where half of the values are equal
    constant = spread <= 10 * np.finfo(np.float64).eps * max(abs(mean), np.finfo(np.float64).tiny)
    return mean, 1.0 if constant else spread


def most_common(block: Floats, levels: Sequence[str]) -> Any:
    unknown = np.isnan(block).all(axis=1) if block.shape[1] else np.ones(len(block), bool)
    best = np.nan_to_num(block, nan=-1.0).argmax(axis=1) if block.shape[1] else np.zeros(len(block), int)
    return np.asarray([*levels, None], dtype=object)[np.where(unknown, len(levels), best)]
