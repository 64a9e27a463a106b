"""Columns that hold a value or nothing: options of a question, ticked or not, which are yes or no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.column_inspection import gaps_of
from kpod._columns.roles.column_facts import Role
from kpod._columns.roles.heading_words import words
from kpod._columns.tables import Column
from kpod._common.notes import Note

TICKS = words("x ✓ ✔ ✗ true t yes y 1 checked selected ja oui si sí ")
RARE = 0.01
"""A column filled in fewer rows than this is a remark or an exception, not an option that was ticked."""
LEAST_BOXES = 3
"""Columns side by side with one value each that are the options of one question."""


def read_check_boxes(columns: Sequence[Column], raw: pa.Table) -> list[Note]:
    """Make yes and no of columns that hold one value or nothing, options that were ticked; with a note.

    A column with gaps may have one value by accident. It was ticked if the value is a tick, or words of the
    heading; or if such columns stand side by side.
    """
    single = {at: text for at, column in enumerate(columns) if (text := only_value(column, raw[column.name]))}
    boxes = [
        at
        for at, text in single.items()
        if text.lower() in TICKS or text.lower() in columns[at].name.lower() or in_a_row(at, single)
    ]
    for at in boxes:
        make_check_box(columns[at], raw[columns[at].name])
    names = tuple(columns[at].name for at in boxes)
    return [Note("check boxes", names, {"value": single[boxes[0]]})] if boxes else []


def only_value(column: Column, values: pa.ChunkedArray) -> str:
    """The value of a column that has one value in some rows and nothing in the others; else nothing."""
    if (
        column.role.role != "constant"
        or not column.missing
        or len(values) - column.missing < RARE * len(values)
    ):
        return ""
    if column.values is not None and column.kind not in ("yes/no", "true/false"):
        return "1" if column.low == 1 else ""
    observed = pc.filter(values, pa.array(~gaps_of(values, list(column.missing_codes))))
    texts = {str(text).strip() for text in pc.unique(observed).to_pylist()}
    return texts.pop() if len(texts) == 1 else ""


def in_a_row(at: int, single: Collection[int]) -> bool:
    first = last = at
    while first - 1 in single:
        first -= 1
    while last + 1 in single:
        last += 1
    return last - first + 1 >= LEAST_BOXES


def make_check_box(column: Column, values: Any) -> None:
    """Yes where there is a value, no where there is none."""
    if column.is_check_box:
        return
    gaps = gaps_of(values, list(column.missing_codes)) if column.values is None else np.isnan(column.values)
    column.values, column.kind, column.is_check_box = (~gaps).astype(np.float64), "yes/no", True
    column.missing, column.missing_codes, column.low, column.high = 0, Counter(), 0.0, 1.0
    column.role = Role("boolean", "a value or nothing: yes or no")
