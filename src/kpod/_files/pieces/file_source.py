"""A file that holds rows of a table, read a batch at a time.

It says what columns it has and how many rows at the most, before any is decoded; and its batches come in
order, in bounded memory, as often as they are asked for. A file that is not what it was is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from kpod._columns.tables import Dialect
from kpod._common.errors import InputError
from kpod._files import memory_limits
from kpod._files.locations.part import Part
from kpod._files.text.delimited import STREAM, one_line

BATCH_ENTRIES = 1 << 20
BUFFER = 1 << 18  # of each column of a Parquet file, which would be read whole without
REMOTE_BUFFER = 1 << 22  # where every piece is a request


class Source:
    """One file, and what was seen of it when it was opened."""

    dialect: Dialect | None = None
    filters: Any = None
    """An expression of pyarrow that says which rows count; None for all."""

    def __init__(self, part: Part | str) -> None:
        self.part = part if isinstance(part, Part) else Part(part)
        self.path, self.name = self.part.given, self.part.name
        self.stamp = self.part.stamp()

    def check_same(self) -> None:
        """Refuse a file that changed since it was opened."""
        try:
            same = self.part.stamp() == self.stamp
        except InputError as error:
            raise InputError(f"{self.name}: deleted while it was being read; start again.") from error
        if not same:
            raise InputError(f"{self.name}: changed while it was being read; start again.")

    def check_not_written_to(self) -> None:
        """Refuse a mapped file with other contents; one that was deleted or replaced lives on in the map."""
        try:
            same_file = self.part.stamp()[0] == self.stamp[0]
        except InputError:
            return
        if same_file:
            self.check_same()

    @cached_property
    def stored(self) -> pa.Schema:
        """Names and types of the columns in the file."""
        raise NotImplementedError

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns: those of the file, and its partition columns."""
        fields = [one for one in self.stored if one.name not in self.part.keys]
        declared = self.part.schema
        for name, value in self.part.keys.items():
            kind = pa.string() if isinstance(value, str) else pa.null() if value is None else pa.int64()
            fields.append(pa.field(name, kind) if declared is None else declared.field(name))
        if declared is not None:
            known = {one.name: one for one in fields}
            fields = [known.get(one.name, pa.field(one.name, pa.null())) for one in declared]
        return pa.schema(fields, self.stored.metadata)

    @cached_property
    def most_rows(self) -> int | None:
        """The number of rows, or a bound on it: blank lines of a text file count here."""
        raise NotImplementedError

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in order, checked; the file must be what it was, to the end."""
        self.check_same()
        length = max(1, BATCH_ENTRIES // max(1, len(names)))
        here = [name for name in names if name in self.stored.names and name not in self.part.keys]
        with self.naming():
            for rows in self.read(here or self.stored.names[:1]):
                batch = rows if here == list(names) else self.completed(rows, names)
                for start in range(0, batch.num_rows, length):
                    yield batch.slice(start, length)
        self.check_same()

    def completed(self, rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Rows of the file with the columns that are not in it: those of its folders, and null throughout."""
        columns = []
        for name in names:
            kind = self.schema.field(name).type
            given = name in self.part.keys or name not in self.stored.names
            same = pa.repeat(pa.scalar(self.part.keys.get(name), kind), rows.num_rows) if given else None
            columns.append(rows.column(name) if same is None else same)
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of pyarrow as errors that name the file."""
        try:
            yield
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: deleted while it was being read; start again.") from error
        except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
            self.check_same()
            if self.filters is not None and "FieldRef" in str(error):
                raise InputError(f"{self.name}: no such column for the filters: {one_line(error)}") from error
            if self.filters is not None and " kernel " in str(error):
                raise InputError(
                    f"{self.name}: the filters do not go with the types of the columns: {one_line(error)}; "
                    "compare numbers with numbers, and text with text."
                ) from error
            raise InputError(
                f"{self.name}: damaged, or not in the format it claims to be in: {one_line(error)}"
            ) from error


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; the next one is decoded on another thread while one is in use."""
    with ThreadPoolExecutor(1, "kpod") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


class ParquetSource(Source):
    """A Parquet file.

    Its rows are decoded a batch at a time, on one thread: several that share out the columns of a batch, as
    pyarrow has them, take more processor time. With a filter pyarrow.dataset reads it, which passes over row
    groups that cannot have any of the rows, but holds one at a time.
    """

    def __init__(self, part: Part | str, filters: Any = None) -> None:
        super().__init__(part)
        self.filters = filters

    @cached_property
    def file(self) -> Any:
        import pyarrow.parquet as pq

        with self.naming():
            if self.part.filesystem is None:
                return pq.ParquetFile(self.part.path, pre_buffer=False, buffer_size=BUFFER)
            return pq.ParquetFile(self.part.open(), pre_buffer=False, buffer_size=REMOTE_BUFFER)

    @cached_property
    def stored(self) -> pa.Schema:
        return self.file.schema_arrow

    @cached_property
    def row_groups(self) -> list[int]:
        groups = range(self.file.metadata.num_row_groups)
        return list(groups if self.part.row_groups is None else self.part.row_groups)

    @cached_property
    def most_rows(self) -> int:
        if self.filters is not None:
            with self.naming():
                return sum(
                    group.num_rows for group in self.fragment.subset(self.filters, self.schema).row_groups
                )
        return sum(int(self.file.metadata.row_group(group).num_rows) for group in self.row_groups)

    @cached_property
    def fragment(self) -> Any:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds
        from pyarrow import fs

        folders = None
        for name, value in self.part.keys.items():
            one = pc.field(name).is_null() if value is None else pc.field(name) == value
            folders = one if folders is None else folders & one
        return ds.ParquetFileFormat().make_fragment(
            self.part.path, self.part.filesystem or fs.LocalFileSystem(), folders, self.row_groups
        )

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        length = max(1, BATCH_ENTRIES // max(1, len(names)))
        if self.filters is not None:
            yield from self.fragment.scanner(
                schema=self.schema, columns=list(names), filter=self.filters, batch_size=length,
                batch_readahead=1, fragment_readahead=1,
            ).to_batches()  # fmt: skip
            return
        rows = self.file.iter_batches(
            length, row_groups=self.row_groups, columns=list(names), use_threads=False
        )
        for batch in ahead(rows):
            yield batch.select(list(names))  # in the order asked for


class ArrowSource(Source):
    """An Arrow or Feather file, or a stream of record batches.

    It may hold all its rows in one batch, so a large one is mapped. Any other is read: whoever shortens a
    file that is mapped ends the process (SIGBUS).
    """

    def __init__(self, part: Part | str, filters: Any = None) -> None:
        super().__init__(part)
        self.filters = filters

    @property
    def file(self) -> pa.NativeFile:
        if self.part.filesystem is not None:
            return self.part.open()
        return (pa.OSFile if memory_limits.fits(self.stamp[1]) else pa.memory_map)(self.part.path)

    def opened(self, fields: list[int] | None = None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields) if fields else pa.ipc.IpcReadOptions()
        data = self.file
        head = data.read(6)
        data.seek(0)
        if head[:4] == STREAM:
            return pa.ipc.open_stream(data, options=options)
        reader = pa.ipc.open_file(data, options=options)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))

    @cached_property
    def stored(self) -> pa.Schema:
        with self.naming():
            data = self.file
            stream = data.read(4) == STREAM
            data.seek(0)
            return (pa.ipc.open_stream(data) if stream else pa.ipc.open_file(data)).schema

    @cached_property
    def most_rows(self) -> int:
        with self.naming():
            return sum(batch.num_rows for batch in self.opened([0]))

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self.filters is None:
            yield from super().batches(names)
            return
        for batch in super().batches(self.schema.names):
            chosen = pa.Table.from_batches([batch]).filter(self.filters).select(list(names))
            yield from chosen.to_batches()

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = sorted(self.stored.get_field_index(name) for name in names)
        for batch in self.opened(wanted):
            batch.validate(full=True)
            yield batch.select(list(names))
