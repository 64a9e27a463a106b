"""Columns with the same information: equal, or in another unit (days and years, share and percent).

Counted twice, it would have twice the weight. Exact means up to the digits that were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.typing import Floats

MOST_PAIRED = 2_000
"""Columns of which every two are compared for equality; of more, that would take longer than the fit."""
MOST_RESCALED = 500
"""The same for other units."""
LEAST_COMMON = 10
"""Rows in which two columns must be observed before they are called the same."""
LEAST_VALUES = 5
"""Different values, below which another unit is no evidence: two answers are always one the other's."""
HEAD, MANY = 100, 1_000
LOOSE = 0.02
FINEST = 9
"""Decimals up to which rounding is looked for."""
RESOLUTION = 200
"""Of what rounding may hide, the range of a column is at least so many times as wide."""


@dataclass(frozen=True)
class Same:
    """A column that is slope times another one, plus an intercept."""

    name: str
    of: str
    slope: float = 1.0
    intercept: float = 0.0

    @property
    def is_equal(self) -> bool:
        return self.slope == 1.0 and self.intercept == 0.0


def same_information(columns: Mapping[str, Floats], never: Iterable[str] = ()) -> list[Same]:
    """Columns of numbers with the same information as an earlier one; those of `never` stay as they are."""
    if not 1 < len(columns) <= MOST_PAIRED:
        return []
    names, kept = list(columns), set(never)
    head = np.column_stack([values[:HEAD] for values in columns.values()])
    found: dict[str, Same] = {}
    for j, name in enumerate(names):
        if name in found:
            continue
        for k in candidates(head, j):
            other = names[k]
            if other in found or other in kept:
                continue
            same = compared(name, columns[name], other, columns[other], units=len(names) <= MOST_RESCALED)
            if same is not None:
                found[other] = same
    return list(found.values())


def candidates(head: Floats, j: int) -> list[int]:
    """Later columns whose first entries are nearly a line over those of this one, or undecided."""
    x = head[:, j]
    if np.isnan(x).all() or np.nanmin(x) == np.nanmax(x):
        return list(range(j + 1, head.shape[1]))
    first, last = int(np.nanargmin(x)), int(np.nanargmax(x))
    later = head[:, j + 1 :]
    with np.errstate(all="ignore"):
        slopes = (later[last] - later[first]) / (x[last] - x[first])
        off = np.abs(later - later[first] - slopes * (x - x[first])[:, None])
        spread = np.abs(later[last] - later[first])
        differ = (off > LOOSE * np.maximum(spread, 1e-300)).any(axis=0) & np.isfinite(slopes)
    return [j + 1 + int(k) for k in np.flatnonzero(~differ)]


def compared(  # noqa: PLR0911
    name: str, one: Floats, other_name: str, other: Floats, *, units: bool
) -> Same | None:
    """How another column is that of a first one, in all rows that have both; None if it is not."""
    if is_off_line(one[:MANY], other[:MANY]):
        return None
    observed = np.isfinite(one), np.isfinite(other)
    both = observed[0] & observed[1]
    if both.sum() < max(LEAST_COMMON, 0.5 * min(int(part.sum()) for part in observed)):
        return None
    x, y = one[both], other[both]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    if (x == y).all():
        return Same(other_name, name)
    if not units or len(np.unique(x)) < LEAST_VALUES:
        return None
    low, high = int(x.argmin()), int(x.argmax())
    slope = float((y[high] - y[low]) / (x[high] - x[low]))
    if slope == 0 or not np.isfinite(slope):
        return None
    rounding = 2 * (rounding_of(y) + abs(slope) * rounding_of(x))
    most = max(1e-9 * np.ptp(y), rounding if np.ptp(y) >= RESOLUTION * rounding else 0.0)
    largest = int(np.abs(x).argmax())
    times = float(y[largest] / x[largest])
    if np.abs(y - times * x).max() <= most:
        return Same(other_name, name, times)
    off = np.abs(y - y[low] - slope * (x - x[low])).max()
    return Same(other_name, name, slope, float(y[low] - slope * x[low])) if off <= most else None


def is_off_line(one: Floats, other: Floats) -> bool:
    """Whether a few rows show that one column is no line over the other, whatever their rounding."""
    both = np.isfinite(one) & np.isfinite(other)
    x, y = one[both], other[both]
    if len(x) < LEAST_COMMON or np.ptp(x) == 0 or np.ptp(y) == 0:
        return False
    low, high = int(x.argmin()), int(x.argmax())
    spread = y[high] - y[low]
    off = np.abs(y - y[low] - spread / (x[high] - x[low]) * (x - x[low]))
    return bool(off.max() > LOOSE * max(abs(spread), np.ptp(y)))


def rounding_of(values: Floats) -> float:
    """Half a unit of the last decimal that was written; 0 where there are more than a few."""
    sample: Any = values[:1000]
    for digits in range(FINEST + 1):
        scaled = sample * 10.0**digits
        if (np.abs(scaled - np.round(scaled)) <= 1e-6).all():
            return 0.5 * 10.0**-digits
    return 0.0
