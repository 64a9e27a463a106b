"""The output table: as it was read, typed, cleaned, or with its clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.column_inspection import EXACT, is_text
from kpod._columns.preparing.column_values import words_of
from kpod._columns.tables import FILE, SUFFIXES, Column, TableFile
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


def with_labels(
    table: TableFile, name: str, labels: Any, *, typed: bool, sure: Any = None, with_files: bool = True
) -> pa.Table:
    """That, and a column with the clusters; with `sure`, two more with their certainty.

    Of a table in several files, which one a row is from, too.
    """
    out = as_typed(table, typed=typed)
    if with_files and table.parts is not None and FILE not in (*out.column_names, name):
        out = out.append_column(pa.field(FILE, pa.string()), table.parts.names())
    out = out.append_column(pa.field(name, pa.int32()), pa.array(labels, pa.int32()))
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

    def labelled(*, typed: bool, with_files: bool) -> pa.Table:
        return with_labels(table, label, labels, typed=typed, sure=sure, with_files=with_files)

    write(table, labelled, output)


def write_as_it_is(table: TableFile, output: str) -> None:
    """Write a table whose gaps were filled."""
    write(table, lambda *, typed, with_files: as_typed(table, typed=typed), output)  # noqa: ARG005


def write(table: TableFile, content: Callable[..., pa.Table], output: str) -> None:
    """Write content that has the rows of a table, to a file; or to a folder, with a file for each part."""
    if not is_folder(output):
        write_table(content(typed=format_of(output) != "csv", with_files=True), output, table.dialect)
        return
    from kpod._files.pieces.labelled import keys_in, part_names

    files: Any = [None] if table.parts is None else table.parts.files
    names = [part_name(table)] if table.parts is None else part_names(files)
    whole = content(typed={format_of(name) for name in names} != {"csv"}, with_files=False)
    with written_folder(output) as folder:
        for number, (source, name) in enumerate(zip(files, names, strict=True)):
            part = whole
            if source is not None:
                rows = np.flatnonzero(table.parts.of_row == number)
                part = whole.drop_columns(keys_in(source, name)).take(pa.array(rows))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_table(part, str(folder / name), table.dialect)


def part_name(table: TableFile) -> str:
    """What the only part of a table is called in a folder: as the file that it came from."""
    name = PurePath(table.source).name
    return name if PurePath(name).suffix.lower() in SUFFIXES else "part-0.csv"
