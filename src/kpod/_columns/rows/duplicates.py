"""Rows that are copies of others in all columns, but for one that merely counts the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._columns.preparing.column_values import codes_of
from kpod._columns.preparing.columns_in_use import can_name
from kpod._columns.roles.codes import ROW_NUMBERS
from kpod._columns.tables import TableFile
from kpod._common.typing import Floats

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def copies(table: TableFile) -> Any:
    """Which rows are equal to an earlier one in all columns: a mask."""
    out = np.zeros(table.n_rows, bool)
    columns = [column for column in table.columns if column.role.why != ROW_NUMBERS]
    if not all(column.values is not None or can_name(table, column.name) for column in columns):
        return out  # lists and the like, which cannot be compared
    rows = np.arange(table.n_rows)
    marks = np.zeros(table.n_rows, np.uint64)
    # Numbers first, which are quick to compare: as a rule, nothing is left for the rest.
    for column in columns:
        if column.values is not None:
            marks = mixed(marks, bits(column.values).view(np.uint64))
    rows, marks = repeated(rows, marks)
    for column in columns:
        if column.values is None and len(rows):
            codes = codes_of(table, column.name)[rows].astype(np.int64)
            rows, marks = repeated(rows, mixed(marks, codes.view(np.uint64)))
    _, first = np.unique(marks, return_index=True)
    out[np.delete(rows, first)] = True
    return out


def bits(values: Floats) -> Any:
    """Numbers by what they are made of; all gaps alike, and one zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)


def mixed(marks: Any, codes: Any) -> Any:
    """Marks that differ where marks or codes do."""
    with np.errstate(over="ignore"):
        out = (marks ^ codes) * MULTIPLIER
        return out ^ (out >> np.uint64(29))


def repeated(rows: Any, marks: Any) -> tuple[Any, Any]:
    """Those rows whose marks occur more than once."""
    _, at, counts = np.unique(marks, return_inverse=True, return_counts=True)
    again = counts[at] > 1
    return rows[again], marks[again]
