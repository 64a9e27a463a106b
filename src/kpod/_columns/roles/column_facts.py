"""The facts from which the role of a column is decided, and the class of roles."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kpod._columns.roles.heading_words import HOW_MANY, SIZES
from kpod._columns.tally import Tally
from kpod._common.notes import Note
from kpod._common.typing import Floats

SAMPLE = 20_000
"""Of longer columns, as many entries are looked at; whether a column counts the rows is seen in all."""
YEARS = (1500, 2200)


@dataclass(frozen=True)
class Role:
    """What a column is, why, and what is odd about it."""

    role: str
    """number, boolean, category, ordered, date, identifier, constant, text or empty"""
    why: str
    notes: tuple[Note, ...] = ()
    order: tuple[str, ...] = ()
    """Of an ordered category, its levels from low to high."""


@dataclass(frozen=True)
class Contents:
    """The facts from which the role of a column is decided."""

    name: str
    n_rows: int
    numbers: Floats | None = None
    """Of a numeric column, NaN where one is missing."""
    as_read: Floats | None = None
    """The same before values that stand for missing were taken out: an identifier has no such values."""
    levels: Counter[str] = field(default_factory=Counter)
    """Of a column of text, its values and how often each occurs."""
    declared: str | None = None
    """The type in the file: boolean, date, category, ordered, or a type that is none of these."""
    order: tuple[str, ...] = ()
    leading_zeros: bool = False
    tally: Tally | None = None
    """What is known of all numbers; where they are many, `numbers` and `as_read` are some of them."""

    @cached_property
    def all_numbers(self) -> Tally:
        if self.tally is not None:
            return self.tally
        assert self.numbers is not None
        out = Tally()
        out.add(self.numbers if self.as_read is None else self.as_read)
        return out


class Facts:
    """What is counted once about the numbers of a column."""

    def __init__(self, name: str, n_rows: int, values: Floats, share: float = 1.0) -> None:
        self.name, self.tokens = name, tokens(name)
        self.n_rows, self.values, self.share = n_rows, values, share
        self.whole = bool((np.floor(values) == values).all())
        self.distinct, self.counts = np.unique(values, return_counts=True)
        self.n_distinct = len(self.distinct)
        self.low, self.high = float(self.distinct[0]), float(self.distinct[-1])

    @property
    def is_unique(self) -> bool:
        return self.n_distinct == len(self.values)

    @property
    def is_two_valued(self) -> bool:
        near = self.high - self.low == 1 or (self.low, self.high) == (-1.0, 1.0)
        return self.n_distinct == 2 and self.whole and near and len(self.values) >= 4

    @property
    def density(self) -> float:
        """Of the whole numbers in its range, the share that occurs."""
        return self.n_distinct / (self.high - self.low + 1)

    @property
    def is_long(self) -> bool:
        """Five digits or more, all as long."""
        return self.low >= 10_000 and len(str(int(self.low))) == len(str(int(self.high)))

    @property
    def is_sorted(self) -> bool:
        return bool((np.diff(self.values) >= 0).all())

    @property
    def is_quantity(self) -> bool:
        """Whether by its name it is an amount or a count: age, n_tokens, months since, gross sales."""
        words = set(self.tokens)
        return bool(
            (words & SIZES) or (len(self.tokens) > 1 and self.tokens[0] in HOW_MANY) or "since" in words
        )

    @property
    def is_in_blocks(self) -> bool:
        """Rows of one value stand together, about as many of each, from low to high: people, one by one."""
        even = self.counts.std() <= 0.4 * self.counts.mean()
        return self.is_sorted and len(self.values) >= 1.5 * self.n_distinct and bool(even)


def observed_sample(values: Floats) -> Floats:
    values = values[np.linspace(0, len(values) - 1, SAMPLE).astype(int)] if len(values) > SAMPLE else values
    return values[np.isfinite(values)]


def tokens(name: str) -> tuple[str, ...]:
    """The words of a name in any spelling: patientID, Patient_Id, PATIENT.ID are patient and id."""
    parts = re.sub(r"\b[nN][°º]|№", " no ", name)
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", parts)
    parts = re.sub(r"([A-Z]{2,})([A-Z][a-z])", r"\1 \2", parts)
    parts = re.sub(r"([A-Za-z])(\d)", r"\1 \2", parts)
    return tuple(part for part in re.split(r"[\W_]+", parts.lower()) if part)


def in_years(facts: Facts) -> bool:
    return YEARS[0] <= facts.low and facts.high <= YEARS[1]


def is_years(facts: Facts) -> bool:
    return facts.whole and in_years(facts)
