"""Statistics of all numbers of a column, counted a batch at a time.

A table that is read in pieces is counted as its batches go by; one in memory is a single batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kpod._columns.missing_codes import as_number
from kpod._common.typing import AnyFloats, Floats

HEAD = 2_000
"""Numbers that are kept as they follow each other."""
STRETCH = 4_096
"""Numbers that are compared with those before them at a time."""
MANY = 50
"""Rows from which on numbers that count them may begin anywhere, or leave some out."""


class Tally:
    """Statistics of the numbers of a column, and the missing codes among them.

    Parameters
    ----------
    codes : missing codes as the user wrote them; those that are no numbers are passed over

    Attributes
    ----------
    n_rows, n_missing : entries, and the gaps among them, those that codes stand for as well
    low, high : the smallest and the largest number observed; NaN for none
    whole : whether all numbers observed are whole
    found : how often each code occurs
    head : the first numbers, codes among them
    """

    def __init__(self, codes: Sequence[str] = ()) -> None:
        self.codes = {code: number for code in codes if (number := as_number(code)) is not None}
        self.found: Counter[str] = Counter()
        self.n_rows = self.n_missing = 0
        self.low = self.high = np.nan
        self.whole = True
        self.head: Floats = np.empty(0)
        # Of the numbers as they are, codes among them: the last, whether all are larger than the one before
        # by one or more, and how many by one.
        self._last, self._rising, self._ones = np.nan, True, 0

    def add(self, values: Floats) -> None:
        """Count some more; they are left as they are."""
        if not len(values):
            return
        self._follow(values)
        values = self.without_codes(values, count=True)
        gaps = np.isnan(values)
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        with np.errstate(invalid="ignore"):
            whole = self.whole and bool((gaps | (np.floor(values) == values)).all())
        self._count(len(values), int(gaps.sum()), low, high, whole=whole)

    def add_counted(self, values: AnyFloats, n_missing: int, low: float, high: float, *, whole: bool) -> None:
        """Add a batch whose statistics are known, except the codes in it."""
        if self.codes:  # which are compared in full precision
            self.add(values.astype(np.float64))
            return
        self._follow(values)
        none = n_missing == len(values)
        self._count(len(values), n_missing, *((np.nan, np.nan) if none else (low, high)), whole=whole)

    def _count(self, n_rows: int, n_missing: int, low: float, high: float, *, whole: bool) -> None:
        self.n_rows += n_rows
        self.n_missing += n_missing
        self.low, self.high = float(np.fmin(self.low, low)), float(np.fmax(self.high, high))
        self.whole = self.whole and whole

    def _follow(self, values: AnyFloats) -> None:
        if len(self.head) < HEAD:
            self.head = np.append(self.head, values[: HEAD - len(self.head)])
        for start in range(0, len(values), STRETCH):
            if not self._rising:  # as nearly every column shows at its beginning
                break
            some = values[start : start + STRETCH]
            with np.errstate(invalid="ignore"):  # by a NaN that signals, such as NA of R
                steps = np.diff(some, prepend=[self._last] if self.n_rows + start else [])
            self._ones += int((steps == 1).sum())
            self._rising = bool((steps >= 1).all())
            self._last = float(some[-1])
        self._last = float(values[-1])

    def without_codes(self, values: Floats, *, count: bool = False) -> Floats:
        """The numbers with gaps where codes stand; a copy where there are any."""
        for code, number in self.codes.items():
            here = values == number
            if n := int(here.sum()):
                values = np.where(here, np.nan, values)
                if count:
                    self.found[code] += n
        return values

    @property
    def is_constant(self) -> bool:
        """Whether all that was observed is one number, more than once."""
        return self.n_rows - self.n_missing > 1 and self.low == self.high

    def counts_rows(self, years: tuple[int, int]) -> bool:
        """0, 1, 2, ... or 1, 2, 3, ..., perhaps with some rows left out since; `years` count nothing."""
        if self.n_rows < 3 or not self._rising or not np.isfinite(self.head[0]):
            return False
        first, n = self.head[0], self.n_rows
        if self._ones == n - 1 and (first in (0, 1) or (n >= MANY and not years[0] <= first <= years[1])):
            return True
        return bool(n >= MANY and 0 <= first <= 10 and self._ones > 0.5 * (n - 1) and self._last <= 2 * n)
