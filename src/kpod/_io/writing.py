"""Write tables to files through pyarrow, text as it came."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._io.files import InputError, printable, written_whole
from kpod._io.tables import SUFFIXES, Column, Dialect, TableFile

BATCH = 1 << 16


def format_of(path: str) -> str:
    """The format a file's name asks for."""
    suffix = Path(path).suffix.lower()
    if path != "-" and suffix not in SUFFIXES:
        raise InputError(
            f"{printable(path)}: cannot tell the format from the name; end it in one of "
            f"{', '.join(SUFFIXES)}."
        )
    return SUFFIXES.get(suffix, "csv")


def with_labels(table: TableFile, name: str, labels: Any, *, typed: bool) -> pa.Table:
    """The table as read and one column more; typed formats get numbers where there was text."""
    raw = table.raw
    if typed and table.dialect:
        for j, column in enumerate(table.columns):
            if column.values is not None and not column.looks_like_id:
                raw = raw.set_column(j, column.name, typed_column(column))
    return raw.append_column(name, pa.array(labels, pa.int32()))


def typed_column(column: Column) -> pa.Array:
    values = pa.array(column.values, from_pandas=True)
    if column.kind == "true/false":
        return values.cast(pa.bool_())
    small = column.kind == "integer" and np.nanmax(np.abs(column.values)) < 2**53  # type: ignore[arg-type]
    return values.cast(pa.int64()) if small else values


def write_table(table: pa.Table, path: str, dialect: Dialect | None = None) -> None:
    """Write to a file, whole or not at all, or CSV to standard output for "-"."""
    if path == "-":
        write_csv(table, sys.stdout.buffer, dialect or Dialect())
        sys.stdout.buffer.flush()
        return
    kind = format_of(path)
    with written_whole(path) as file:
        if kind == "csv":
            write_csv(table, file, dialect_for(path, dialect))
        elif kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, file)
        else:
            from pyarrow import feather

            feather.write_feather(table, file)


def dialect_for(path: str, dialect: Dialect | None) -> Dialect:
    """Tabs for .tsv; otherwise as the input had it, so that the same program opens both."""
    dialect = dialect or Dialect()
    if Path(path).suffix.lower() in (".tsv", ".tab"):
        return Dialect("\t", dialect.decimal)
    return Dialect("," if dialect.delimiter == "\t" else dialect.delimiter, dialect.decimal)


def write_csv(table: pa.Table, file: IO[bytes], dialect: Dialect) -> None:
    header = io.StringIO()
    csv.writer(header, delimiter=dialect.delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    for lines in csv_batches(table, dialect):
        file.write(lines)


def csv_batches(table: pa.Table, dialect: Dialect) -> Iterator[memoryview]:
    """The lines of the file: cells joined by pyarrow, several times faster than formatting them again."""
    for batch in table.to_batches(max_chunksize=BATCH):
        cells = [as_cells(column, dialect) for column in batch.columns]
        cells[-1] = join(cells[-1], "", separator="\n")
        yield text_bytes(join(*cells, separator=dialect.delimiter))


def join(*parts: pa.Array | str, separator: str = "") -> pa.Array:
    whole = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in (*parts, separator)]
    return pc.binary_join_element_wise(*whole, null_handling="replace", null_replacement="")


def as_cells(column: pa.Array, dialect: Dialect) -> pa.Array:
    """Text, quoted where it must be."""
    cells = column.cast(pa.large_string())
    if pa.types.is_floating(column.type) and dialect.decimal == ",":
        cells = pc.replace_substring(cells, ".", ",")
    special = (dialect.delimiter, '"', "\n", "\r")
    text = bytes(text_bytes(cells))
    if not any(mark.encode() in text for mark in special):
        return cells
    quoted = join('"', pc.replace_substring(cells, '"', '""'), '"')
    needed = pc.match_substring_regex(cells, "[" + re.escape("".join(special)) + "]")
    return pc.if_else(needed, quoted, cells)


def text_bytes(cells: pa.Array) -> memoryview:
    """The bytes of a large_string array, one entry after the other."""
    if not len(cells) or cells.buffers()[2] is None:
        return memoryview(b"")
    ends = np.frombuffer(cells.buffers()[1], np.int64)
    return memoryview(cells.buffers()[2])[ends[cells.offset] : ends[cells.offset + len(cells)]]
