"""What a column of a file holds: numbers, text, identifiers, and which entries are gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._io.tables import Column
from kpod._typing import Floats

GAPS = ["", "NA", "N/A", "#N/A", "NaN", "null", "None", "nil", "missing", "?", "-", "--", "."]
NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity)$"
ID_NAMES = re.compile(r"^(|id|ids|idx|index|key|uuid|guid|row|rownames?|row_?names?|row_?id|unnamed: ?0"
                      r"|__index_level_0__|.*[_ .-]id|.*[a-z]I[dD])$")  # fmt: skip


def inspect(name: str, values: pa.ChunkedArray, decimal: str, missing: Sequence[str]) -> Column:
    """Tell numbers from text, and count the marks of gaps."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if is_text(kind):
        return inspect_text(name, values, decimal, missing)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_number(kind):
        integers = pa.types.is_integer(kind)
        floats = as_floats(values)
        nulls = values.null_count
        column = Column(name, "true/false" if pa.types.is_boolean(kind) else "number", nulls, values=floats)
        nans = int(np.isnan(floats).sum()) - nulls
        column.marks.update({mark: n for mark, n in (("null", nulls), ("NaN", nans)) if n})
        return finish_numbers(column, missing, integers=integers)
    label = "date" if pa.types.is_temporal(kind) else str(kind)
    return Column(
        name, label, values.null_count, Counter({"null": values.null_count} if values.null_count else {})
    )


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def as_floats(values: pa.ChunkedArray) -> Floats:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    floats = pc.cast(values, pa.float64(), safe=False).combine_chunks()
    return np.array(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


def gap_spellings(missing: Sequence[str]) -> list[str]:
    spelled = [form for mark in GAPS for form in (mark, mark.lower(), mark.upper(), mark.capitalize())]
    return list(dict.fromkeys([*spelled, *missing]))


def inspect_text(name: str, text: pa.ChunkedArray, decimal: str, missing: Sequence[str]) -> Column:
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    spellings = pa.array(gap_spellings(missing), pa.string())
    gaps = pc.fill_null(pc.is_in(text, value_set=spellings), True)
    floats = try_numbers(text, gaps, decimal)
    if floats is None:  # the slow path: blanks around, plus signs, truth values, or no numbers
        text = pc.utf8_trim_whitespace(text)
        gaps = pc.fill_null(pc.is_in(text, value_set=spellings), True)
        floats = try_numbers(pc.replace_substring_regex(text, r"^\+", ""), gaps, decimal)
    column = Column(name, "number", int(pc.sum(gaps).as_py() or 0))
    if column.missing:
        found = pc.value_counts(pc.filter(text, gaps)).to_pylist()
        column.marks.update({mark["values"] or "empty": mark["counts"] for mark in found})
    if floats is not None:
        column.values = floats
        odd_nans = int(np.isnan(floats).sum()) - column.missing  # -nan, nan(0x1) and the like
        if odd_nans:
            column.marks["NaN"] += odd_nans
        finish_numbers(column, missing, integers=None)
        column.looks_like_id = column.looks_like_id or (column.kind == "integer" and has_leading_zeros(text))
        return column
    return finish_text(column, text, gaps, decimal)


def try_numbers(text: pa.ChunkedArray, gaps: pa.ChunkedArray, decimal: str) -> Floats | None:
    if decimal == ",":
        # A point in such a file groups thousands; made unreadable, it is asked about, not guessed.
        text = pc.replace_substring(pc.replace_substring(text, ".", "_"), ",", ".")
    try:
        return as_floats(pc.if_else(gaps, pa.scalar(None, pa.string()), text))
    except pa.ArrowInvalid:
        return None


def finish_numbers(column: Column, missing: Sequence[str], *, integers: bool | None) -> Column:
    """Numbers that stand for gaps, whole numbers, and those that only number the rows."""
    values = column.values
    assert values is not None
    for mark in missing:
        try:
            here = values == float(mark)
        except ValueError:
            continue
        if n := int(here.sum()):
            column.marks[mark] += n
            values[here] = np.nan
    gaps = np.isnan(values)
    column.missing = int(gaps.sum())
    column.numeric_share = 1.0
    if column.missing == len(values):
        column.kind = "empty"
    elif column.kind == "number":
        with np.errstate(invalid="ignore"):
            whole = bool((gaps | (np.floor(values) == values)).all()) if integers is None else integers
        column.kind = "integer" if whole else "number"
        column.looks_like_id = whole and not column.missing and numbers_the_rows(column.name, values)
    return column


def numbers_the_rows(name: str, values: Floats) -> bool:
    if len(values) < 3 or values[0] == values[-1]:
        return False
    counting = values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    return counting or (bool(ID_NAMES.match(name.strip())) and len(np.unique(values)) == len(values))


def gaps_of(values: pa.ChunkedArray, marks: Sequence[str]) -> Any:
    """Where a column that holds no numbers has its gaps."""
    gaps = pc.is_null(values)
    if is_text(values.type):
        spelled = ["" if mark == "empty" else mark for mark in marks]
        trimmed = pc.utf8_trim_whitespace(values.cast(pa.string()))
        gaps = pc.or_(gaps, pc.is_in(trimmed, value_set=pa.array(spelled, pa.string())))
    return gaps.to_numpy()


def has_leading_zeros(text: pa.ChunkedArray) -> bool:
    """Postal codes, patient numbers: digits, but not numbers."""
    zero = pc.filter(text, pc.and_(pc.starts_with(text, "0"), pc.greater(pc.utf8_length(text), 1)))
    return bool(pc.any(pc.match_substring_regex(zero, r"^0\d+$")).as_py())


def finish_text(column: Column, text: pa.ChunkedArray, gaps: pa.ChunkedArray, decimal: str) -> Column:
    entries = pc.filter(text, pc.invert(gaps))
    truth = pc.is_in(pc.utf8_lower(entries), value_set=pa.array(["true", "false"]))
    if pc.all(truth).as_py():
        column.kind = "true/false"
        column.values = as_floats(pc.equal(pc.utf8_lower(pc.if_else(gaps, None, text)), "true"))
        column.numeric_share = 1.0
        return column
    plain = pc.replace_substring(pc.replace_substring(text, ".", "_"), ",", ".") if decimal == "," else text
    number = pc.match_substring_regex(plain, NUMBER)
    odd = pc.and_not(pc.invert(number), gaps)
    row = int(pc.index(odd, True).as_py())
    column.kind = "text"
    column.odd = (row + 1, str(text[row].as_py()))
    column.numeric_share = float(pc.sum(pc.and_not(number, gaps)).as_py()) / len(entries)
    return column
