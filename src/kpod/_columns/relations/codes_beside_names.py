"""Roles that follow from other columns: numbers that are codes of names, and parts of one time.

A number is a code by its content, not by its name alone: it goes with one name, and one name with it; it
counts up without meaning more; it was given out in the order of the alphabet. Each of these is evidence,
none is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.column_inspection import is_text
from kpod._columns.roles.calendar import PARTS, is_year_word, plain
from kpod._columns.roles.column_facts import SAMPLE, Facts, Role, tokens
from kpod._columns.roles.heading_words import EVENTS, HOW_MANY, QUANTITIES, RANKS
from kpod._columns.roles.ordered import order_of
from kpod._columns.tables import Column
from kpod._common.typing import Floats

ENOUGH = 4
"""Points of evidence that make a number a code."""
LEAST_LEVELS = 3
NAMESAKES = 0.05
"""Of the numbers that stand for names, those that share a name with another, at most; and of names."""
ALL_COUNTED = 0.95
MANY_NAMES = 15
"""Whole numbers of which nearly all from 1 up occur, each for one of so many names, number the names."""


def settle_by_other_columns(columns: Sequence[Column], raw: pa.Table) -> None:
    """Give columns of numbers the roles that only other columns reveal."""
    names = [column for column in columns if column.values is None and column.role.role in NAMING]
    coded = [(column, *level_codes(raw[column.name])) for column in names]
    for column in columns:
        if column.values is None or column.kind != "integer" or column.role.role != "number":
            continue
        head = observed(column.values[:SAMPLE])
        if not len(head):
            continue
        facts = Facts(column.name, len(column.values), head)
        if facts.n_distinct < LEAST_LEVELS or facts.is_quantity:
            continue
        groups = next(
            (other.name for other, codes, _ in coded if numbers_rows_of(column.values[:SAMPLE], codes)), ""
        )
        if groups:
            column.role = Role("identifier", f"numbers the rows of each {groups}")
            continue
        for other, codes, levels in coded:
            if len(levels) >= LEAST_LEVELS and is_code_of(
                facts, column.values[:SAMPLE], other.name, codes, levels
            ):
                column.role = Role("category", f"a number for each {other.name}, not a quantity")
                break
    parts_of_time(columns)


NAMING = ("category", "identifier", "text")


LEAST_GROUPS, LEAST_LENGTH = 5, 3


def numbers_rows_of(values: Floats, codes: Any) -> bool:
    """Whether numbers count 1, 2, 3, ... the rows of each value of another column, which stand together."""
    n = len(codes)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if n else np.empty(0, int)
    lengths = np.diff(np.append(starts, n))
    if len(starts) < LEAST_GROUPS or np.median(lengths) < LEAST_LENGTH or len(np.unique(codes)) < len(starts):
        return False
    place = np.arange(n) - np.repeat(starts, lengths)
    return bool(values[0] in (0, 1) and (values == place + values[0]).all())


def observed(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def level_codes(values: pa.ChunkedArray) -> tuple[Any, list[str]]:
    """The entries of a column of text as codes, -1 if missing, and the levels."""
    text = values.slice(0, SAMPLE)
    if pa.types.is_dictionary(text.type):
        text = text.cast(text.type.value_type)
    if not is_text(text.type):
        return np.full(len(text), -1), []
    encoded = pc.dictionary_encode(text.cast(pa.string()).combine_chunks())
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    levels = encoded.dictionary.to_pylist()
    return np.where(
        np.isin(codes, [i for i, level in enumerate(levels) if not level.strip()]), -1, codes
    ), levels


def is_code_of(facts: Facts, values: Floats, name: str, codes: Any, levels: Sequence[str]) -> bool:
    """Whether numbers are codes of the names in another column.

    They do if (nearly) each goes with one name and each name with one of them, in rows that come back, and
    there is enough evidence: the names of the columns, a numbering from 0 or 1 without gaps, the order of the
    alphabet.
    """
    both = np.isfinite(values) & (codes >= 0)
    numbers, at = np.unique(values[both], return_inverse=True)
    kinds = np.unique(codes[both])
    most = max(len(numbers), len(kinds))
    if (
        abs(len(numbers) - len(kinds)) > NAMESAKES * most
    ):  # two volcanoes of one name, two provinces of a region
        return False
    if len(numbers) < LEAST_LEVELS or both.sum() < 2 * len(numbers):
        return False
    pairs = np.unique(at * np.int64(len(levels)) + codes[both])
    if len(pairs) != most:
        return False
    named = [levels[int(pair) % len(levels)] for pair in pairs]  # in the order of the numbers
    if order_of(named) == named:
        return False  # the numbers of an order are its ranks
    one, other = tokens(facts.name), tokens(name)
    related = bool(set(one) & set(other)) or "".join(other).startswith("".join(one))
    counting = facts.low in (0, 1) and facts.density >= 0.8
    all_counted = (
        counting and facts.density >= ALL_COUNTED and len(named) >= MANY_NAMES and not RANKS & set(one)
    )
    alphabetical = len(named) >= 8 and rank_correlation(named) > 0.9
    same_length = facts.low >= 100 and len(str(int(facts.low))) == len(str(int(facts.high)))
    numbered = one[-1] in HOW_MANY and facts.is_long  # volcano_number 210010, not number of craters
    quantity = bool(set(one) & QUANTITIES) and not numbered
    return 2 + 2 * related + 2 * alphabetical + counting + all_counted + same_length - 2 * quantity >= ENOUGH


def rank_correlation(names: Sequence[str]) -> float:
    """Of names in the order of their numbers, how nearly that is the order of the alphabet."""
    ranks = np.argsort(np.argsort([name.casefold() for name in names]))
    return float(np.corrcoef(ranks, np.arange(len(names)))[0, 1])


def parts_of_time(columns: Sequence[Column]) -> None:
    """Make parts of a time dates if another part of it is known as one: day and minute beside hour."""
    parts = {column.name: part for column in columns if (part := part_of_time(column))}
    known = {
        parts[column.name][0] for column in columns if column.name in parts and column.role.role == "date"
    }
    for column in columns:
        if column.role.role != "number" or column.name not in parts:
            continue
        of, kind = parts[column.name]
        if of in known and not (
            is_year_word(kind) and EVENTS & set(of)
        ):  # a year of birth is as good as an age
            column.role = Role("date", f"{column.low:.0f} to {column.high:.0f}")


def part_of_time(column: Column) -> tuple[tuple[str, ...], str] | None:
    """What a time is called and which part of it a column holds, judging by its name and range."""
    words = tuple(map(plain, tokens(column.name)))
    if not words or column.values is None or column.kind != "integer" or words[-1] not in PARTS:
        return None
    low, high = PARTS[words[-1]]
    return (words[:-1], words[-1]) if low <= column.low and column.high <= high else None
