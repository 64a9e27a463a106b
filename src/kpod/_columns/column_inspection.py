"""What a column of a file holds: numbers, text, which entries are gaps, and its role."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.missing_codes import as_number, spellings
from kpod._columns.notations import number_formats
from kpod._columns.roles import column_facts, decide, identifier_names
from kpod._columns.tables import Column
from kpod._columns.tally import Tally
from kpod._common.sentences.formatting import percent
from kpod._common.typing import Floats

NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity)$"
EXACT = 2**53
"""Whole numbers below are the same in floating point."""
MOST_ODD = 5
ONE_VALUE = "one value, otherwise missing"
TWO_WAYS = "numbers that can be read in two ways"
MOST_LEVELS = 100_000
"""Of the values of a column of text, as many are counted; more are not needed to decide its role."""


def inspect(
    name: str, values: pa.ChunkedArray, decimal: str, missing: Sequence[str], *, decimal_given: bool = False,
    answers: Collection[str] = (), tolerant: bool = False,
) -> Column:  # fmt: skip
    """Numbers or text? Count missing codes (which may be answers), and decide the role of the column.

    With `tolerant`, a few other entries in a column of numbers are gaps, which are counted.
    """
    declared: str | None = None
    order: tuple[str, ...] = ()
    if pa.types.is_dictionary(values.type):
        declared, order = declared_categories(values)
        values = values.cast(values.type.value_type)
    kind = values.type
    if is_text(kind):
        return inspect_text(name, values, decimal, missing, decimal_given, declared, order, answers, tolerant)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_number(kind):
        integers = pa.types.is_integer(kind)
        floats = as_floats(values)
        nulls = values.null_count
        column = Column(name, "true/false" if pa.types.is_boolean(kind) else "number", nulls, values=floats)
        nans = int(np.isnan(floats).sum()) - nulls
        column.missing_codes.update({mark: n for mark, n in (("null", nulls), ("NaN", nans)) if n})
        return role_by_all_digits(finish_numbers(column, missing, integers=integers), values)
    label = "date" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else str(kind)
    reason = "dates" if label == "date" else f"holds {label} values"
    role = column_facts.Role("date" if label == "date" else "text", reason)
    nulls = values.null_count
    return Column(name, label, nulls, Counter({"null": nulls} if nulls else {}), role=role)


def declared_categories(values: pa.ChunkedArray) -> tuple[str, tuple[str, ...]]:
    """Categories as the file declares them, in their order if it declares one."""
    if not values.type.ordered or not values.num_chunks or not is_text(values.type.value_type):
        return "category", ()
    return "ordered", tuple(values.chunk(0).dictionary.to_pylist())


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def as_floats(values: pa.ChunkedArray) -> Floats:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    floats = pc.cast(values, pa.float64(), safe=False)
    floats = floats.combine_chunks() if isinstance(floats, pa.ChunkedArray) else floats
    return np.require(floats.to_numpy(zero_copy_only=False), np.float64, "W")


def inspect_text(
    name: str, text: pa.ChunkedArray, decimal: str, missing: Sequence[str], decimal_given: bool,
    declared: str | None, order: tuple[str, ...], answers: Collection[str], tolerant: bool,
) -> Column:  # fmt: skip
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    # Numbers among the codes are taken out of a numeric column later: an identifier has no such codes.
    given = [mark for mark in missing if as_number(mark) is None]
    missing_codes = pa.array(spellings(given, answers), pa.string())
    gaps = gaps_in(text, missing_codes)
    floats = try_numbers(text, gaps, decimal)
    if floats is None:  # the slow path: blanks around, plus signs, currency, yes and no, or no numbers
        text = pc.utf8_trim_whitespace(text)
        gaps = gaps_in(text, missing_codes)
        floats = try_numbers(pc.replace_substring_regex(text, r"^\+", ""), gaps, decimal)
    column = Column(name, "number", 0, decimal=decimal)
    if floats is None:
        reading = number_formats.read_numbers(
            text, gaps, decimal, decimal_given=decimal_given, as_floats=as_floats
        )
        floats, column.how_written, column.ambiguous = reading.values, reading.how, reading.ambiguous
        column.decimal = reading.decimal if floats is not None else decimal
    if floats is None:
        if tolerant and declared is None and not column.ambiguous:
            odd = odd_entries(text, gaps, decimal)
            if odd:
                again = inspect_text(
                    name, text, decimal, [*missing, *odd], decimal_given, declared, order, answers, False
                )
                if again.values is not None:
                    return with_odd(again, text, odd)
        return finish_text(column, text, missing, decimal, declared, order, answers, tolerant)
    if tolerant and declared is None and (odd := infinite_entries(text, floats)):
        again = inspect_text(
            name, text, decimal, [*missing, *odd], decimal_given, declared, order, answers, False
        )
        return with_odd(again, text, odd)
    count_missing_codes(column, text, gaps)
    column.values = floats
    odd_nans = int(np.isnan(floats).sum()) - column.missing  # -nan, nan(0x1) and the like
    if odd_nans:
        column.missing_codes["NaN"] += odd_nans
    return role_by_all_digits(finish_numbers(column, missing, integers=None, text=text), text)


MOST_ODD_SHARE = 0.2
"""Of the entries of a column of numbers, at most as many are something else."""
LEAST_NUMBERS = 3
FEW_WORDS = 3
"""Different words that may stand for gaps in a column of numbers in which they are more than that."""


def odd_entries(text: pa.ChunkedArray, gaps: Any, decimal: str) -> list[str]:
    """The different entries that are no numbers, where the column holds numbers nevertheless.

    It does if these are few; or up to half of the entries, and few different words that come back without
    a digit in them, such as Unknown; or if they are signs, such as **.
    """
    first = pc.drop_null(pc.filter(text, pc.invert(gaps))[: number_formats.SOME])
    signs = pc.match_substring_regex(first, r"^\W*$|\d")
    if not len(first) or 2 * (pc.sum(signs).as_py() or 0) < len(first):
        return []  # as most text, without a look at all
    number, _ = number_formats.numbers_in(number_formats.bare(text), gaps, decimal)
    others = pc.filter(text, pc.and_not(pc.invert(number), gaps))
    n_numbers = pc.sum(number).as_py() or 0
    share = len(others) / max(1, n_numbers + len(others))
    if not others or n_numbers < LEAST_NUMBERS:
        return []
    counts = pc.value_counts(others)
    values = [str(value) for value in counts.field(0).to_pylist()]
    if len(values) <= FEW_WORDS and not any(re.search(r"\w", value) for value in values):
        return values  # no letter and no digit: **, ...
    if share >= 0.5:
        return []
    words = (
        len(values) <= FEW_WORDS
        and min(counts.field(1).to_pylist()) > 1
        and not any(re.search(r"\d", value) for value in values)
    )
    truths = [*number_formats.YES, *number_formats.NO]
    if {value.lower() for value in values} & set(truths):
        return []
    return values if share <= MOST_ODD_SHARE or words else []


def infinite_entries(text: pa.ChunkedArray, floats: Floats) -> list[str]:
    """How infinity is written in a column of numbers in which it is rare, such as where one divided by 0."""
    infinite = np.isinf(floats)
    n, n_numbers = int(infinite.sum()), int(np.isfinite(floats).sum())
    if not n or n_numbers < LEAST_NUMBERS or n > MOST_ODD_SHARE * (n + n_numbers):
        return []
    found = [str(value) for value in pc.unique(pc.filter(text, pa.array(infinite))).to_pylist()]
    return found if all(re.match(number_formats.INFINITE, value) for value in found) else []


def with_odd(column: Column, text: pa.ChunkedArray, odd: Sequence[str]) -> Column:
    """A column of numbers with some entries that are not numbers."""
    found = pc.is_in(text, value_set=pa.array(odd, pa.string()))
    row = int(pc.index(found, True).as_py())
    column.odd, column.n_odd = (row + 1, str(text[row].as_py())), int(pc.sum(found).as_py())
    column.odd_values = tuple(odd) if len(odd) <= MOST_ODD else ()
    return column


def gaps_in(text: pa.ChunkedArray, missing_codes: pa.Array) -> Any:
    return pc.or_(pc.is_null(text), pc.is_in(text, value_set=missing_codes))


def count_missing_codes(column: Column, text: pa.ChunkedArray, gaps: Any) -> None:
    column.missing = int(pc.sum(gaps).as_py() or 0)
    if column.missing:
        found = pc.value_counts(pc.filter(text, gaps)).to_pylist()
        names = {None: "null", "": "empty"}
        column.missing_codes.update(
            {names.get(mark["values"], mark["values"]): mark["counts"] for mark in found}
        )


def try_numbers(text: pa.ChunkedArray, gaps: pa.ChunkedArray, decimal: str) -> Floats | None:
    if decimal == ",":
        # A point in such a file groups thousands; made unreadable, it is read with care further down.
        text = pc.replace_substring(pc.replace_substring(text, ".", "_"), ",", ".")
    try:
        return as_floats(pc.if_else(gaps, pa.scalar(None, pa.string()), text))
    except pa.ArrowInvalid:
        return None


def finish_numbers(
    column: Column,
    missing: Sequence[str],
    *,
    integers: bool | None,
    text: pa.ChunkedArray | None = None,
    leading_zeros: bool = False,
) -> Column:
    """Numbers that stand for gaps, whole numbers, and the column's role."""
    values = column.values
    assert values is not None
    tally = Tally(missing)
    tally.add(values)
    column.values = tally.without_codes(values)
    leading_zeros = leading_zeros or (tally.whole and text is not None and has_leading_zeros(text))
    return settle_numbers(column, tally, column.values, values, integers, leading_zeros)


def settle_numbers(
    column: Column, tally: Tally, sample: Floats, as_read: Floats, integers: bool | None, leading_zeros: bool
) -> Column:
    """What a column is by all of its numbers, counted, and some of them: without missing codes, and as read.

    `integers` is from the type in the file; None if only the numbers can decide.
    """
    column.missing_codes.update(tally.found)
    column.missing, column.low, column.high = tally.n_missing, tally.low, tally.high
    column.numeric_share = 1.0
    if column.missing == tally.n_rows:
        column.kind = "empty"
    elif column.kind == "number":
        column.kind = "integer" if (tally.whole if integers is None else integers) else "number"
    column.leading_zeros = column.kind == "integer" and leading_zeros
    declared = "boolean" if column.kind in ("true/false", "yes/no") else None
    contents = column_facts.Contents(
        column.name, tally.n_rows, sample, as_read if tally.found else None,
        declared=declared, leading_zeros=column.leading_zeros, tally=tally,
    )  # fmt: skip
    column.role = role_of(column, contents)
    return column


def role_by_all_digits(column: Column, values: pa.ChunkedArray) -> Column:
    """A column that is constant only because its numbers have more digits than a float holds is not."""
    numbers = column.values
    if column.role.role == "constant" and numbers is not None and np.nanmax(np.abs(numbers)) >= EXACT:
        observed = pc.filter(values, pa.array(~np.isnan(numbers)))
        if len(pc.unique(observed)) > 1:
            column.role = column_facts.Role("identifier", "whole numbers that differ beyond 15 digits")
    return column


def role_of(column: Column, contents: column_facts.Contents) -> column_facts.Role:
    """What the column is; one value is not the same in every row where some have none."""
    role = decide.role_of(contents)
    return replace(role, why=ONE_VALUE) if role.role == "constant" and column.missing else role


def shows_points(columns: Sequence[Column], raw: Any) -> bool:
    """Whether any column has numbers in which a point can be nothing but a decimal mark."""
    texts = [
        column.name for column in columns if column.numeric_share > 0.5 and is_text(raw[column.name].type)
    ]
    return any(number_formats.shows(raw[name], ".") for name in texts)


def ask_about_points(columns: Sequence[Column], raw: Any) -> None:
    """Take no numbers from columns all of whose points may group thousands."""
    for column in columns:
        if column.values is not None and column.role.role == "number" and is_text(raw[column.name].type):
            column.ambiguous = number_formats.points_may_group(raw[column.name])
        if column.ambiguous:
            column.values, column.kind, column.role = None, "text", column_facts.Role("text", TWO_WAYS)


def gaps_of(values: pa.ChunkedArray, missing_codes: Sequence[str]) -> Any:
    """Where a column that holds no numbers has its gaps."""
    gaps = pc.is_null(values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if is_text(values.type):
        spelled = ["" if code == "empty" else code for code in missing_codes]
        trimmed = pc.utf8_trim_whitespace(values.cast(pa.string()))
        gaps = pc.or_(gaps, pc.is_in(trimmed, value_set=pa.array(spelled, pa.string())))
    return gaps.to_numpy()


def has_leading_zeros(text: pa.ChunkedArray) -> bool:
    """Postal codes, patient numbers: digits, but not numbers."""
    zero = pc.filter(text, pc.and_(pc.starts_with(text, "0"), pc.greater(pc.utf8_length(text), 1)))
    return bool(pc.any(pc.match_substring_regex(zero, r"^0\d+$")).as_py())


def finish_text(
    column: Column, text: pa.ChunkedArray, missing: Sequence[str], decimal: str, declared: str | None,
    order: tuple[str, ...], answers: Collection[str], tolerant: bool,
) -> Column:  # fmt: skip
    gaps = gaps_in(text, pa.array(spellings(missing, answers), pa.string()))
    count_missing_codes(column, text, gaps)
    entries = pc.filter(text, pc.invert(gaps))
    truth = number_formats.read_truth(entries, text, gaps, as_floats) if len(entries) else None
    if truth is not None:
        lower = str(entries[0].as_py()).lower()
        column.kind = "true/false" if lower in ("true", "false") else "yes/no"
        column.values = truth
        return finish_numbers(column, (), integers=None)
    column.kind = "text" if len(entries) else "empty"
    if len(entries):
        number, column.decimal = number_formats.numbers_in(text, gaps, decimal)
        odd = pc.and_not(pc.invert(number), gaps)
        truths = pc.and_not(
            pc.is_in(pc.utf8_lower(text), value_set=pa.array([*number_formats.YES, *number_formats.NO])), gaps
        )
        if 2 * (pc.sum(truths).as_py() or 0) >= len(entries) and pc.any(pc.and_not(odd, truths)).as_py():
            odd = pc.and_not(odd, truths)  # yes and no are not what is wrong with it
        row = int(pc.index(odd, True).as_py())
        if row >= 0:
            column.odd = (row + 1, str(text[row].as_py()))
        column.numeric_share = float(pc.sum(pc.and_not(number, gaps)).as_py() or 0) / len(entries)
        if column.numeric_share > 0.5:
            values = pc.unique(pc.filter(text, odd)).to_pylist()
            column.odd_values = tuple(values) if len(values) <= MOST_ODD else ()
    column.role = text_role(column, entries, declared, order, text, tolerant)
    return column


def text_role(
    column: Column, entries: Any, declared: str | None, order: tuple[str, ...], text: pa.ChunkedArray,
    tolerant: bool,
) -> column_facts.Role:  # fmt: skip
    if column.ambiguous:
        return column_facts.Role("text", TWO_WAYS)
    if column.numeric_share > 0.5 and declared is None:
        if identifier_names.names_a_unit(column.name):
            return column_facts.Role("identifier", "judging by its name")
        if not tolerant:
            return column_facts.Role("number", "mostly numbers")
    counts = pc.value_counts(entries[: 10 * MOST_LEVELS])
    levels = Counter(
        dict(zip(counts.field(0)[:MOST_LEVELS].to_pylist(), counts.field(1).to_pylist(), strict=False))
    )
    role = role_of(
        column, column_facts.Contents(column.name, len(text), levels=levels, declared=declared, order=order)
    )
    if column.numeric_share > 0.5 and role.role in ("identifier", "text"):
        return column_facts.Role("text", f"only {percent(column.numeric_share)} of its entries are numbers")
    return role
