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
    hashes = np.zeros(table.n_rows, np.uint64)
    # Numbers first, which are quick to compare: as a rule, nothing is left for the rest.
    for column in columns:
        if column.values is not None:
            hashes = mixed(hashes, bits(column.values).view(np.uint64))
    rows, hashes = repeated(rows, hashes)
    for column in columns:
        if column.values is None and len(rows):
            codes = codes_of(table, column.name)[rows].astype(np.int64)
            rows, hashes = repeated(rows, mixed(hashes, codes.view(np.uint64)))
    _, first = np.unique(hashes, return_index=True)
    out[np.delete(rows, first)] = True
    return out


def bits(values: Floats) -> Any:
    """Numbers as bit patterns, with one pattern for all gaps and one for zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)


def mixed(hashes: Any, codes: Any) -> Any:
    """Hashes that differ where hashes or codes do."""
    with np.errstate(over="ignore"):
        out = (hashes ^ codes) * MULTIPLIER
        return out ^ (out >> np.uint64(29))


def repeated(rows: Any, hashes: Any) -> tuple[Any, Any]:
    """Those rows whose hashes occur more than once."""
    ordered = np.sort(hashes)
    again = np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]])
    return rows[again], hashes[again]
