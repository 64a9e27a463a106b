"""A table in pieces with the clusters of its rows: to one file, or to a folder with a part for each part."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpod._columns.tables import FILE, SUFFIXES, Dialect
from kpod._common.errors import InputError
from kpod._files.atomic import is_folder, naming, written_folder, written_whole
from kpod._files.pieces.decoding import Decoder
from kpod._files.pieces.file_source import Source
from kpod._files.writing import csv_batches, csv_header, dialect_for, format_of

if TYPE_CHECKING:
    from kpod._files.pieces.large_table import LargeTable


def write_labels(table: LargeTable, label: str, labels: Any, path: str) -> None:
    """To a file, to standard output for "-", or to a folder."""
    if is_folder(path):
        write_parts(table, label, labels, path)
        return
    kind = format_of(path)
    dialect = table.dialect if path == "-" else dialect_for(path, table.dialect)
    batches = (rows for _, rows in labelled(table, label, labels, typed=kind != "csv"))
    if path == "-":
        with naming("standard output"):
            write(sys.stdout.buffer, kind, dialect, batches)
            sys.stdout.buffer.flush()
        return
    with written_whole(path) as file:
        write(file, kind, dialect, batches)


def write_parts(table: LargeTable, label: str, labels: Any, path: str) -> None:
    """A file for each part, of its format, named as it is from the folder on that all of them are in."""
    files = table.sources.files
    names = dict(zip(map(id, files), part_names(files), strict=True))
    kinds = {format_of(name) for name in names.values()}
    rows = labelled(table, label, labels, typed=kinds != {"csv"}, with_files=False)
    with written_folder(path) as folder:
        for _, some in itertools.groupby(rows, key=lambda pair: id(pair[0])):
            source, first = next(some)
            name = names[id(source)]
            parts = keys_in(source, name)
            batches = (
                batch.drop_columns(parts) if parts else batch
                for batch in itertools.chain([first], (batch for _, batch in some))
            )
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                write(file, format_of(name), dialect_for(name, table.dialect), batches)


def keys_in(source: Source, name: str) -> list[str]:
    """The columns that the folders of a part say, and that are not said again in it."""
    return [key for key in source.part.keys if f"{key}=" in name]


def part_names(files: Sequence[Source]) -> list[str]:
    """Where each part is, from the folder on that all of them are in."""
    paths = [PurePosixPath(source.part.path) for source in files]
    root = os.path.commonpath([str(path.parent) for path in paths]) if paths[1:] else paths[0].parent
    names = [path.relative_to(root) for path in paths]
    usual = ".parquet" if files[0].dialect is None else ".csv"
    return [str(name if name.suffix.lower() in SUFFIXES else name.with_suffix(usual)) for name in names]


def write(file: IO[bytes], kind: str, dialect: Dialect | None, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    if kind == "csv":
        dialect = dialect or Dialect()
        file.write(csv_header(first.schema.names, dialect))
        for batch in itertools.chain([first], batches):
            for lines in csv_batches(pa.Table.from_batches([batch]), dialect):
                file.write(lines)
        return
    if kind == "parquet":
        import pyarrow.parquet as pq

        writer: Any = pq.ParquetWriter(file, first.schema)
    else:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        writer = pa.ipc.new_file(file, first.schema, options=options)
    with writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def labelled(
    table: LargeTable, label: str, labels: Any, *, typed: bool, with_files: bool = True
) -> Iterator[tuple[Source, pa.RecordBatch]]:
    """The batches of the files, with the labels of their rows; of several, which file that is."""
    decoders = {}
    if typed and table.dialect:
        decoders = {name: Decoder(name, table.dialect.decimal) for name in table.typed}
    schema, row = table.raw.schema, 0
    fields = [pa.field(one.name, table.typed[one.name][0]) if one.name in decoders else one for one in schema]
    with_files = with_files and len(table.sources.files) > 1 and FILE not in (*schema.names, label)
    fields += [pa.field(FILE, pa.string())] if with_files else []
    fields.append(pa.field(label, pa.int32()))
    for source, at, batch in table.sources.batches(schema.names):
        columns = []
        for values, one in zip(batch.columns, fields[: batch.num_columns], strict=True):
            column = values
            if one.name in decoders:
                floats = decoders[one.name](values, source, at)
                for mark in table.typed[one.name][1]:
                    floats[floats == mark] = np.nan
                column = pa.array(floats, from_pandas=True)
            columns.append(column if column.type == one.type else column.cast(one.type))
        columns += [pa.repeat(source.name, batch.num_rows)] if with_files else []
        columns.append(pa.array(labels[row : row + batch.num_rows], pa.int32()))
        row += batch.num_rows
        yield source, pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))
    if row != len(labels):
        raise InputError(f"{table.source}: {len(labels):,} rows when first read, {row:,} now; start again.")
