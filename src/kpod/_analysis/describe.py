"""What a table in a file holds and what is missing, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._columns.column_inspection import gaps_of
from kpod._columns.preparing.columns_in_use import USED
from kpod._columns.relations.same_information import same_information
from kpod._columns.table_notes import odd_notes, same_notes
from kpod._columns.tables import Column, TableFile, missing_option, two_ways
from kpod._common.notes import Note
from kpod._common.sentences.formatting import finite
from kpod._findings.fitted_clusters.entries import patterns_of_gaps
from kpod._missing.diagnosis import ComparedTable


def describe(table: TableFile, most_patterns: int) -> dict[str, Any]:
    """Columns, gaps and their patterns, as plain data."""
    missing = np.column_stack([missing_entries(table, column) for column in table.columns])
    numeric = [j for j, column in enumerate(table.columns) if column.values is not None]
    n_patterns, patterns = patterns_of_gaps(missing, most_patterns)
    nothing = missing[:, numeric].all(axis=1) if numeric else np.ones(table.n_rows, bool)
    return {
        "data": table.source,
        "rows": table.n_rows,
        "text_file": vars(table.dialect) if table.dialect else None,
        "notes": [note.to_dict() for note in [*table.notes, *same_columns(table)]],
        "missing_share": float(missing.mean()),
        "complete_rows": int((~missing.any(axis=1)).sum()),
        "rows_without_numbers": int(nothing.sum()),
        "columns": [about(table, column, missing[:, j]) for j, column in enumerate(table.columns)],
        "patterns": n_patterns,
        "gaps": about_gaps(missing, table),
        "commonest_patterns": [
            {"missing": [table.columns[j].name for j in columns], "rows": rows} for columns, rows in patterns
        ],
    }


def same_columns(table: TableFile) -> list[Note]:
    """On columns that would be clustered and have the same information as others."""
    numbers = {
        column.name: values
        for column in table.columns
        if column.role.role in USED and (values := column.values) is not None
    }
    return same_notes(same_information(numbers))


def missing_entries(table: TableFile, column: Column) -> Any:
    if column.values is not None:
        return np.isnan(column.values)
    return gaps_of(table.raw[column.name], list(column.missing_codes))


def about(table: TableFile, column: Column, missing: Any) -> dict[str, Any]:
    known = column.values is not None and not missing.all()
    low, high = (column.low, column.high) if known else (None, None)
    return {
        "name": column.name,
        "type": column.kind,
        "role": column.role.role,
        "why": column.role.why,
        "notes": [note.to_dict() for note in [*odd_note(table, column), *column.role.notes]],
        "missing": int(missing.sum()),
        "missing_share": float(missing.mean()),
        "marks": dict(column.missing_codes),
        "min": finite(low) if low is not None else None,
        "max": finite(high) if high is not None else None,
    }


def odd_note(table: TableFile, column: Column) -> list[Note]:
    """On a column of numbers with other entries, or of two meanings, which `kpod fit` refuses."""
    if column.ambiguous:
        return [Note("two readings", (column.name,), {"what": two_ways(column, in_pieces=table.in_pieces)})]
    if column.n_odd:
        return odd_notes(table, column)
    if column.odd is None or column.role.role != "number":
        return []
    row, value = column.odd
    where, treat = table.where(row - 1, column.name), missing_option(column)
    return [Note("not a number", (column.name,), {"entry": value[:60], "where": where, "treat": treat})]


def about_gaps(missing: Any, table: TableFile) -> dict[str, Any]:
    """What missingness is related to; for text and identifiers, only the gaps are used, not the values."""
    n_complete = int((~missing.any(axis=1)).sum())
    names = [column.name for column in table.columns]
    whole = ComparedTable(names, missing.mean(axis=0), len(missing), n_complete, None)
    values = np.full((len(whole.rows), len(whole.columns)), np.nan)
    for place, j in enumerate(whole.columns):
        column = table.columns[j]
        if column.values is not None and column.role.role != "identifier":
            values[:, place] = column.values[whole.rows]
    found = whole.diagnosis(missing[np.ix_(whole.rows, whole.columns)], values)
    return {"sentences": found.sentence_.splitlines(), "suggestion": found.suggestion}
