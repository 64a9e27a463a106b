"""How a column of text writes its numbers, so that others can be written like them: $1,200, 79 %, 1.234,5."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kpod._columns.notations.number_formats import MONEY

DRESS = re.compile(rf"\s*[-+(]?\s*((?:{MONEY}\s*)?)[-+(]?(.*?)\)?((?:\s*(?:%|{MONEY}))?)\)?\s*")
DIGITS = 6
FINEST = 12
"""Decimals at most, unless the column shows more: what is smaller is what rounding left of a zero."""


@dataclass(frozen=True)
class Notation:
    """Grouping marks, currency and decimals of the numbers of a column."""

    decimal: str = "."
    group: str = ""
    before: str = ""
    after: str = ""
    fewest: int = 0
    """Decimals that every number has."""
    most: int = 0
    powers: bool = False
    """Whether powers of ten are written, as in 1e-7."""
    brackets: bool = False
    """Whether (250) is a negative number."""

    @classmethod
    def of(cls, cells: Sequence[str], decimal: str) -> Notation:
        """That of most cells, as far as they differ."""
        parts = [match.groups() for cell in cells if (match := DRESS.fullmatch(cell))]
        if not parts:
            return cls(decimal)
        (before, after), _ = Counter((before, after) for before, _, after in parts).most_common(1)[0]
        numbers = [number for _, number, _ in parts]
        outer = "," if decimal == "." else "."
        grouping = re.compile(rf"\d([ \u00a0\u202f'\u2019{outer}])\d{{3}}(?!\d)")
        groups = Counter(match[1] for number in numbers if (match := grouping.search(number)))
        lengths = [len(number.partition(decimal)[2]) for number in numbers]
        return cls(
            decimal,
            groups.most_common(1)[0][0] if groups else "",
            before,
            after,
            min(lengths),
            max(lengths),
            any("e" in number.lower() for number in numbers),
            any("(" in cell for cell in cells),
        )

    def write(self, value: float) -> str:
        """A number with as many decimals as the others, or as six digits take."""
        text = f"{abs(value):.{DIGITS}g}" if self.powers else self.in_full(abs(value))
        whole, _, part = text.partition(".")
        number = whole.replace(",", self.group) + (self.decimal + part if part else "")
        number = f"{self.before}{number}{self.after}"
        if value >= 0 or not re.search("[1-9]", text):
            return number
        return f"({number})" if self.brackets else f"-{number}"

    def in_full(self, size: float) -> str:
        order = math.floor(math.log10(size)) if size else 0
        n = min(max(self.fewest, DIGITS - 1 - order, 0), max(FINEST, self.most))
        whole, _, part = f"{size:,.{n}f}".partition(".")
        part = part.rstrip("0").ljust(self.fewest, "0")
        if len(part) == 3 and whole != "0":  # three digits after a mark may be taken for thousands
            part += "0"
        return f"{whole}.{part}" if part else whole
