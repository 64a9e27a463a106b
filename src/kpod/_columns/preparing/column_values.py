"""The values of columns in use: words, levels, codes and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.column_inspection import gaps_of, is_text
from kpod._columns.tables import Column, TableFile, check_numeric
from kpod._common.errors import InputError
from kpod._common.typing import Floats

if TYPE_CHECKING:
    from kpod._columns.preparing.columns_in_use import ColumnUsage

CHECK_BOX = "check boxes"


def decoded(values: Any) -> Any:
    """A column as it is, or decoded if it is a dictionary, which not all functions of Arrow accept."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def words_of(table: TableFile, column: Column) -> Any:
    """The entries of a column as text, null where one is missing; whole numbers without a point."""
    raw = decoded(table.raw[column.name])
    if column.values is not None:
        gaps = column.values == 0 if column.is_check_box else np.isnan(column.values)
        if is_text(raw.type):
            text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
            if column.kind == "integer":  # 2 and 2.0 are one level
                text = pc.replace_substring_regex(text, r"\.0*$", "")
        else:
            texts = [None if gap else f"{value:.15g}" for gap, value in zip(gaps, column.values, strict=True)]
            return pa.array(texts, pa.string())
    else:
        gaps = gaps_of(raw, list(column.missing_codes))
        text = pc.utf8_trim_whitespace(raw.cast(pa.string())) if is_text(raw.type) else raw.cast(pa.string())
    return pc.if_else(pa.array(gaps), pa.scalar(None, pa.string()), text)


def whole_numbers(values: Any) -> Any:
    """Whole numbers as such, where a file has none but floating-point numbers."""
    if not pa.types.is_floating(values.type):
        return values
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return values


def codes_of(table: TableFile, name: str) -> Any:
    """The values of a column by number; -1 where one is missing."""
    codes = pc.dictionary_encode(decoded(table.raw[name]).combine_chunks()).indices
    return pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)


def levels_of(table: TableFile, usage: ColumnUsage) -> list[list[str]]:
    """The levels of the columns used: in their order if they have one; none of numbers.

    A column that holds a value or nothing has one: new rows of it cannot be told from text otherwise.
    """
    out: list[list[str]] = []
    for name in usage.used:
        order = usage.categories.get(name)
        column = table.by_name.get(name)
        if column is not None and column.is_check_box and order is None:
            out.append([CHECK_BOX])
        elif order is None or order:
            out.append(list(order or ()))
        else:
            words = words_of(table, table.column(name))
            out.append(sorted(map(str, pc.unique(pc.drop_null(words)).to_pylist())))
    return out


def weights_of(table: TableFile, name: str) -> Floats:
    """Weights of the rows, from a column with a number for every row, none negative."""
    column = table.column(name)
    check_numeric(table, column)
    weights = np.array(column.values)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(
            f"{table.source}: {table.where(int(bad[0]), name)}, column '{name}': every row needs a weight, "
            "0 or more."
        )
    return weights
