"""What a column of text is: categories, ordered answers, names, hashes, free text."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from kpod._columns.notations import date_notation
from kpod._columns.roles import ordered
from kpod._columns.roles.column_facts import Contents, Role, tokens
from kpod._columns.roles.heading_words import IDS, NO_ANSWER_AT_ALL, NOT_FIRST, NOUN_AND_ID
from kpod._common.notes import Note

ALL_THE_SAME = "the same value in every row"
MOST_WORDS = 4
"""Of a category that stands for no answer."""


def role_of_text(c: Contents) -> Role:
    role = role_of_levels(c)
    return replace(role, notes=answer_notes(c)) if role.role in ("category", "ordered") else role


def answer_notes(c: Contents) -> tuple[Note, ...]:
    """Categories that mean no answer: Refused, Don't know."""
    found = [level for level in c.levels if "," not in level and len(level.split()) <= MOST_WORDS]
    found = [level for level in found if NO_ANSWER_AT_ALL.match(level)]
    if not found:
        return ()
    n = sum(c.levels[level] for level in found)
    return (Note("possible no answer", (c.name,), {"codes": found, "n": n}),)


def role_of_levels(c: Contents) -> Role:  # noqa: PLR0911
    n = sum(c.levels.values())
    if not n:
        return Role("empty", "nothing observed")
    if c.declared == "ordered":
        return Role("ordered", "ordered values", order=c.order)
    levels = list(c.levels)
    if len(levels) == 1:
        return Role("constant", ALL_THE_SAME)
    if date_notation.is_dates(c.levels):
        return Role("date", "dates")
    if date_notation.is_times(c.levels):
        return Role("date", "times of day")
    order = ordered.order_of(levels)
    if order and len(levels) <= 0.5 * n + 1:
        return Role("ordered", "ordered values", order=tuple(order))
    if c.declared == "category":
        return Role("category", f"{len(levels):,} different values")
    return role_of_words(c, levels, n)


FEW_FILLED = 0.2
"""What names the rows is there for more of them than this."""


def role_of_words(c: Contents, levels: list[str], n: int) -> Role:
    sample = levels[:1000]
    words = float(np.mean([len(level.split()) for level in sample]))
    length = float(np.mean([len(level) for level in sample]))
    repeated = n >= 50 and len(levels) <= 0.2 * n and length <= 100
    prose = (words >= 4.5 or length > 50) and not repeated
    name = tokens(c.name)
    named = bool(name) and (
        name[-1] in IDS or name[0] in IDS - NOT_FIRST or bool(NOUN_AND_ID.match("".join(name)))
    )
    if len(levels) > 0.5 * n and hashes(sample):
        return Role("identifier", "codes, different in nearly every row")
    if n < FEW_FILLED * c.n_rows and len(levels) > 0.5 * n:
        return Role("text", f"only filled in for {n:,} of {c.n_rows:,} rows")
    if len(levels) == n and not prose and n >= 3:
        return Role("identifier", "different in every row")
    if named and len(levels) > 2:
        return Role("identifier", "judging by its name")
    if len(levels) > 0.5 * n or prose:
        return Role("text", f"text: {len(levels):,} different values in {n:,} rows")
    return Role("category", f"{len(levels):,} different values")


HASH = re.compile(r"^(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\S+@\S+\.\S+)$")
SHAPE = re.compile(r"^[A-Za-z]{1,4}[-_ ]?\d{3,}$")


def hashes(levels: list[str]) -> bool:
    return all(HASH.match(level) for level in levels) or all(SHAPE.match(level) for level in levels)
