"""The gaps of a table filled from the clusters of a model, in the way its columns are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._analysis.applying import Applied
from kpod._columns.column_inspection import is_text
from kpod._columns.notations.spelling import Notation
from kpod._columns.tables import Column, TableFile
from kpod._common.notes import Note


def fill(given: Applied) -> tuple[dict[str, int], list[Note]]:
    """Fill the gaps in the columns of the model, in place; how many of each, with notes."""
    assert given.preparer is not None
    missing = np.isnan(given.preparer._values(given.table)[0])
    columns = imputed(given)
    unknown = unknown_in_cluster(given)
    filled: dict[str, int] = {}
    notes = []
    for j, (name, values) in enumerate(columns.items()):
        column = given.table.column(name)
        gaps = missing[:, j]
        fillable = gaps & np.array([value is not None and value == value for value in values])  # noqa: PLR0124
        if column.role.role == "date":
            notes.append(Note("dates not filled", (name,)))
        elif fillable.any():
            filled[name] = int(fillable.sum())
            replace(given.table, column, fillable, values)
            of_all = int((fillable & unknown[name]).sum())
            if of_all:
                notes.append(Note("filled from the table", (name,), {"n": of_all}))
        if (gaps & ~fillable).any() and column.role.role != "date":
            notes.append(Note("not filled", (name,)))
    return filled, notes


def unknown_in_cluster(given: Applied) -> dict[str, Any]:
    """Of each column, the rows in whose cluster nothing is known of it; rows in no cluster among them."""
    assert given.preparer is not None
    first = np.cumsum([0, *given.preparer._encoding.widths[:-1]])
    nothing = np.vstack([np.asarray(given.kpod.counts_)[:, first] == 0, np.ones((1, len(first)), bool)])
    return dict(zip(given.usage.used, nothing[given.labels].T, strict=True))


def imputed(given: Applied) -> dict[str, Any]:
    """The columns of the model without gaps: numbers in their units, words for categories."""
    assert given.preparer is not None
    complete = given.kpod.impute(given.encoded)
    for _, step in reversed(given.model.steps[1:-1]):
        complete = step.inverse_transform(complete)
    return given.preparer._encoding.decode(np.asarray(complete, dtype=np.float64))


def replace(table: TableFile, column: Column, where: Any, values: Any) -> None:
    """Put values into the gaps of a column, in the way the column writes them."""
    at = table.raw.column_names.index(column.name)
    raw = table.raw.column(at)
    if pa.types.is_dictionary(raw.type):
        raw = raw.cast(raw.type.value_type)
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    new = [values[i] for i in np.flatnonzero(where)]
    if column.role.role == "boolean":
        new = [commoner(column, float(value)) for value in new]
    cells: list[Any]
    if is_text(raw.type):
        spelled, notation = spellings_of(column, raw), notation_of(column, raw)
        cells = [
            value if isinstance(value, str) else spelled.get(value, notation.write(value)) for value in new
        ]
    elif pa.types.is_boolean(raw.type):
        cells = [bool(value) for value in new]
    else:
        raw, cells = raw.cast(pa.float64()), [float(value) for value in new]
    raw = pc.replace_with_mask(raw, pa.array(where), pa.array(cells, raw.type))
    table.raw = table.raw.set_column(at, column.name, raw)
    if column.values is not None and not isinstance(new[0], str):
        column.values = column.values.copy()
        column.values[where] = new
        column.kind = column.kind if column.kind != "integer" or is_whole(new) else "number"


def is_whole(values: list[float]) -> bool:
    return all(float(value).is_integer() for value in values)


def commoner(column: Column, share: float) -> float:
    """Of a column of two values, the one that most of a cluster has."""
    assert column.values is not None
    low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    return high if share >= (low + high) / 2 else low


def spellings_of(column: Column, raw: Any) -> dict[Any, str]:
    """How a column of text writes yes and no, true and false."""
    if column.kind not in ("yes/no", "true/false") or column.values is None:
        return {}
    known = np.unique(column.values[~np.isnan(column.values)])
    return {float(value): str(raw[int(np.argmax(column.values == value))]).strip() for value in known}


def notation_of(column: Column, raw: Any) -> Notation:
    """How a column of text writes its numbers."""
    if column.values is None:
        return Notation(column.decimal)
    return Notation.of(pc.unique(raw.filter(pa.array(~np.isnan(column.values)))).to_pylist(), column.decimal)
