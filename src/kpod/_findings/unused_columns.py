"""Columns that were not clustered but may describe who is in the clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod._columns.preparing.columns_in_use import ColumnUsage
    from kpod._columns.tables import TableFile


def unused_columns(table: TableFile, choice: ColumnUsage) -> list[Any]:
    """The columns that were not clustered but may describe who is in the clusters."""
    import pyarrow.compute as pc

    from kpod._columns.notations import dates
    from kpod._columns.preparing.column_values import words_of
    from kpod._columns.preparing.columns_in_use import days_of
    from kpod._findings.unused_column_profiles import UnusedColumn

    out = []
    for name in choice.unused:
        column, role = table.column(name), choice.roles[name].role
        if role in ("identifier", "constant", "empty", "text"):
            continue
        if role == "date":
            days = (
                dates.of_numbers(column.values) if column.values is not None else days_of(table, column).days
            )
            if days is None:
                unit = "year" if column.values is not None and is_years(column.values) else ""
                out.append(UnusedColumn(name, column.values, unit=unit))
            else:
                out.append(UnusedColumn(name, days, unit="date"))
        elif column.values is not None and role in ("number", "boolean"):
            out.append(UnusedColumn(name, column.values))
        else:
            words = pc.dictionary_encode(words_of(table, column))
            words = words.combine_chunks() if hasattr(words, "combine_chunks") else words
            codes = pc.fill_null(words.indices, -1).to_numpy(zero_copy_only=False)
            out.append(
                UnusedColumn(name, codes=codes, levels=[str(level) for level in words.dictionary.to_pylist()])
            )
    return out


def is_years(values: Any) -> bool:
    import numpy as np

    from kpod._columns.roles.column_facts import YEARS

    return bool(np.nanmin(values) >= YEARS[0] and np.nanmax(values) <= YEARS[1])
