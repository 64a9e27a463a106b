"""The output table: as it was read, typed, cleaned, or with its clusters."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.column_inspection import EXACT, is_text
from kpod._columns.preparing.column_values import words_of
from kpod._columns.tables import SUFFIXES, Column, TableFile
from kpod._files.atomic import is_folder, written_folder
from kpod._files.writing import format_of, write_table


def as_typed(table: TableFile, *, typed: bool) -> pa.Table:
    """The table as read; typed formats get numbers where there was text."""
    schema, columns = table.raw.schema, table.raw.columns
    fields = list(schema)
    if typed and table.dialect:
        for j, column in enumerate(table.columns):
            if has_plain_numbers(column):
                columns[j] = typed_column(column)
                fields[j] = pa.field(column.name, columns[j].type)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, schema.metadata))


def with_labels(table: TableFile, name: str, labels: Any, *, typed: bool, sure: Any = None) -> pa.Table:
    """That, and a column with the clusters; with `sure`, two more with their certainty."""
    out = as_typed(table, typed=typed).append_column(pa.field(name, pa.int32()), pa.array(labels, pa.int32()))
    if sure is not None:
        own, other = names_of_sure(name)
        out = out.append_column(
            pa.field(own, pa.float64()), pa.array(np.round(sure.confidence, 4), from_pandas=True)
        )
        second = pa.array(sure.second, pa.int32(), mask=sure.second < 0)
        out = out.append_column(pa.field(other, pa.int32()), second)
    return out


def names_of_sure(label: str) -> tuple[str, str]:
    """The columns with the probability of a row's cluster and the next candidate."""
    return ("confidence", "second") if label == "cluster" else (f"{label}_confidence", f"{label}_second")


def has_plain_numbers(column: Column) -> bool:
    """Leading zeros, more digits than a float holds, and yes and no stay as they were written."""
    if column.values is None or column.leading_zeros or column.kind == "yes/no":
        return False
    return column.kind != "integer" or max(-column.low, column.high) < EXACT


def typed_column(column: Column) -> pa.Array:
    values = pa.array(column.values, from_pandas=True)
    if column.kind == "true/false":
        return values.cast(pa.bool_())
    return values.cast(pa.int64()) if column.kind == "integer" else values


def as_read(table: TableFile) -> pa.Table:
    """The table with numbers for text that holds numbers, and null wherever an entry is missing."""
    columns = [clean_column(table, column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=[column.name for column in table.columns])


def clean_column(table: TableFile, column: Column) -> Any:
    raw = table.raw[column.name]
    coded = any(mark not in ("null", "NaN") for mark in column.missing_codes)
    if is_text(raw.type):
        return typed_column(column) if has_plain_numbers(column) else words_of(table, column)
    return typed_column(column) if column.values is not None and coded else raw


def write_labels(table: TableFile, label: str, labels: Any, output: str, sure: Any = None) -> None:
    """Write the table as it came and its clusters, to a file or to standard output for "-"."""
    if table.in_pieces:
        table.write_labels(label, labels, output)  # type: ignore[attr-defined]
        return
    if is_folder(output):
        with written_folder(output) as folder:
            write_labels(table, label, labels, str(folder / part_name(table)), sure)
        return
    typed = format_of(output) != "csv"
    write_table(with_labels(table, label, labels, typed=typed, sure=sure), output, table.dialect)


def part_name(table: TableFile) -> str:
    """What the only part of a table is called in a folder: as the file that it came from."""
    name = PurePath(table.source).name
    return name if PurePath(name).suffix.lower() in SUFFIXES else "part-0.csv"
