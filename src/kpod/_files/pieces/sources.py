"""Files that hold the rows of one table between them, read a batch at a time.

Each file says what columns it has and how many rows at the most, before any is decoded; and its
batches come in order, in bounded memory, as often as they are asked for. A file that is not what it
was is refused by name.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpod._columns import inspection as column_kinds
from kpod._columns.tables import Dialect, shown
from kpod._common.errors import InputError, printable
from kpod._files import formats, memory_limits
from kpod._files.text import blank_separated, delimited, headings, rows_that_are_not_data

BATCH_ENTRIES = 1 << 20
TEXT_BLOCK = 1 << 23
BUFFER = 1 << 18  # of each column of a Parquet file, which would be read whole without
COUNTED = 1 << 24


@dataclass(frozen=True)
class TextOptions:
    """What the user said about text files."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None


class Source:
    """One file, and what was seen of it when it was opened."""

    dialect: Dialect | None = None

    def __init__(self, path: str) -> None:
        self.path, self.name = path, printable(path)
        self.stamp = self.look()

    def look(self) -> tuple[int, int, int]:
        try:
            about = Path(self.path).stat()
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror}.") from error
        return about.st_ino, about.st_size, about.st_mtime_ns

    def check_same(self) -> None:
        """Refuse a file that changed since it was opened."""
        try:
            same = self.look() == self.stamp
        except InputError as error:
            raise InputError(f"{self.name}: deleted while it was being read; start again.") from error
        if not same:
            raise InputError(f"{self.name}: changed while it was being read; start again.")

    def check_not_written_to(self) -> None:
        """Refuse a mapped file with other contents; one that was deleted or replaced lives on in the map."""
        try:
            same_file = self.look()[0] == self.stamp[0]
        except InputError:
            return
        if same_file:
            self.check_same()

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        raise NotImplementedError

    @cached_property
    def most_rows(self) -> int:
        """The number of rows, or a bound on it: blank lines of a text file count here."""
        raise NotImplementedError

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in order, checked; the file must be what it was, to the end."""
        self.check_same()
        length = max(1, BATCH_ENTRIES // max(1, len(names)))
        with self.naming():
            for batch in self.read(names):
                for start in range(0, batch.num_rows, length):
                    yield batch.slice(start, length)
        self.check_same()

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of pyarrow as errors that name the file."""
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
            self.check_same()
            raise InputError(
                f"{self.name}: damaged, or not in the format it claims to be in: {delimited.one_line(error)}"
            ) from error


class ParquetSource(Source):
    """A Parquet file."""

    @cached_property
    def file(self) -> Any:
        import pyarrow.parquet as pq

        with self.naming():
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.file.schema_arrow

    @cached_property
    def most_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        length = max(1, BATCH_ENTRIES // max(1, len(names)))
        for batch in self.file.iter_batches(length, columns=list(names)):
            yield batch.select(list(names))  # in the order asked for


class ArrowSource(Source):
    """An Arrow or Feather file, or a stream of record batches.

    It may hold all its rows in one batch, so a large one is mapped. Any other is read: whoever shortens a
    file that is mapped ends the process (SIGBUS).
    """

    @property
    def file(self) -> pa.NativeFile:
        return (pa.OSFile if memory_limits.fits(self.stamp[1]) else pa.memory_map)(self.path)

    def opened(self, fields: list[int] | None = None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields) if fields else pa.ipc.IpcReadOptions()
        data = self.file
        head = data.read(6)
        data.seek(0)
        if head[:4] == delimited.STREAM:
            return pa.ipc.open_stream(data, options=options)
        reader = pa.ipc.open_file(data, options=options)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))

    @cached_property
    def schema(self) -> pa.Schema:
        with self.naming():
            data = self.file
            stream = data.read(4) == delimited.STREAM
            data.seek(0)
            return (pa.ipc.open_stream(data) if stream else pa.ipc.open_file(data)).schema

    @cached_property
    def most_rows(self) -> int:
        with self.naming():
            return sum(batch.num_rows for batch in self.opened([0]))

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = sorted(self.schema.get_field_index(name) for name in names)
        for batch in self.opened(wanted):
            batch.validate(full=True)
            yield batch.select(list(names))


class TextSource(Source):
    """A text file, read as text: numbers are made of it further up."""

    def __init__(self, path: str, options: TextOptions) -> None:
        super().__init__(path)
        self.options = options
        head = self.head()
        try:
            with delimited.fields_of_any_length():
                delimiter = options.delimiter
                if delimiter is None:
                    delimiter, rows = delimited.sniff_delimiter(head)
                else:
                    rows = delimited.rows_of(head, delimiter)
                _, _, around_it = delimited.without_titles(head.encode(), head, options.delimiter)
                if len(rows[0]) == 1 and blank_separated.is_blank_separated(head):
                    raise InputError("columns set apart by blanks cannot be read in pieces; save it as CSV.")
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error
        self.check_nothing_around(around_it)
        headings.check_names(rows[0], self.name)
        if len(rows) == 1:
            raise InputError(f"{self.name}: {delimited.NO_ROWS}")
        self.header = rows[0]
        decimal = options.decimal or delimited.sniff_decimal(delimiter, rows[1:])
        self.dialect = Dialect(delimiter, decimal, self.encoding)
        self.check_nothing_around(delimited.without_remarks(self.tail(), delimiter, len(self.header))[1])

    def check_nothing_around(self, found: Sequence[rows_that_are_not_data.Found]) -> None:
        """Refuse what a table in memory is read without."""
        for one in found:
            them = "it" if one.n == 1 else "them"
            raise InputError(
                f"{self.name}: {one}, which a table that is read in pieces cannot have; remove {them}."
            )

    def tail(self) -> bytes:
        with Path(self.path).open("rb") as file:
            file.seek(max(0, self.stamp[1] - delimited.SAMPLE))
            return file.read(delimited.SAMPLE)

    def last_rows(self) -> list[list[str]]:
        """The last rows, as far as they have as many fields as the header."""
        assert self.dialect is not None
        text = self.tail().partition(b"\n")[2].decode(self.encoding, errors="replace")
        with delimited.fields_of_any_length():
            rows = delimited.rows_of(text, self.dialect.delimiter, most=sys.maxsize)
        return [row for row in rows if len(row) == len(self.header)]

    def head(self) -> str:
        """The first lines, and the encoding that they are in."""
        with Path(self.path).open("rb") as file:
            sample = file.read(delimited.SAMPLE)
            while sample.count(b"\n") < 2 and (more := file.read(len(sample))):
                sample += more
        if not sample.strip():
            raise InputError(f"{self.name}: is empty.")
        if sample[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise InputError(
                f"{self.name}: UTF-16 and UTF-32 text cannot be read in pieces; convert it to UTF-8."
            )
        if len(sample) < self.stamp[1]:
            sample = sample[: sample.rfind(b"\n") + 1]
        text, self.encoding = delimited.as_utf8(sample, self.options.encoding, self.name)
        return bytes(text).decode()

    @cached_property
    def counted(self) -> tuple[int, bool]:
        """Lines, and whether there is a quotation mark anywhere: a line may end within a field then."""
        lines, quotes = 0, False
        with Path(self.path).open("rb") as file:
            while piece := file.read(COUNTED):
                lines += piece.count(b"\n")
                quotes = quotes or b'"' in piece
        return lines, quotes

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(name.strip(), pa.string()) for name in self.header])

    @cached_property
    def most_rows(self) -> int:
        return max(1, self.counted[0])

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.csv as pa_csv

        assert self.dialect is not None
        raw = {name.strip(): name for name in self.header}
        with self.naming():
            reader = pa_csv.open_csv(
                self.path,
                pa_csv.ReadOptions(block_size=TEXT_BLOCK, encoding=self.encoding, use_threads=True),
                pa_csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    newlines_in_values=self.counted[1],
                    ignore_empty_lines=len(self.header) > 1,
                ),
                pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.header, pa.string()),
                    include_columns=[raw[name] for name in names],
                    strings_can_be_null=False,
                ),
            )
            for batch in reader:
                yield batch.rename_columns(list(names))


def open_source(path: str, options: TextOptions) -> Source:
    """The file, by its first bytes."""
    name = printable(path)
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(
            f"{name}: is not a regular file, and cannot be read in pieces; save it to a file first."
        )
    try:
        with Path(path).open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}.") from error
    if not head.strip():
        raise InputError(f"{name}: is empty.")
    if head[:4] == b"PAR1":
        return ParquetSource(path)
    if head[:6] == b"ARROW1" or head[:4] == delimited.STREAM:
        return ArrowSource(path)
    if head[:4] == b"FEA1" or memory_limits.packing(head) or formats.kind_of(head):
        raise InputError(
            f"{name}: cannot be read in pieces; only CSV, Parquet, Arrow and Feather (version 2) files can."
        )
    return TextSource(path, options)


@dataclass
class Sources:
    """Files with the same columns, one after the other; in the order that the first has them in."""

    files: list[Source]
    starts: list[int] = field(default_factory=list)
    """The row with which each file begins; known once all were read."""

    @classmethod
    def open(cls, paths: Sequence[str], options: TextOptions) -> Sources:
        files: list[Source] = []
        for path in paths:
            source = open_source(path, options)
            if not files and source.dialect is not None:  # which holds for all files
                options = replace(options, delimiter=source.dialect.delimiter, decimal=source.dialect.decimal)
            headings.check_unique(source.schema.names, source.name)
            if not source.schema.names:
                raise InputError(f"{source.name}: no columns.")
            if source.most_rows == 0:
                raise InputError(f"{source.name}: {delimited.NO_ROWS}")
            files.append(source)
        for other in files[1:]:
            check_alike(files[0], other)
        return cls(files)

    @property
    def name(self) -> str:
        first = self.files[0].name
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    @property
    def dialect(self) -> Dialect | None:
        return self.files[0].dialect

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types; a column that is null throughout some files has the type of the others."""
        fields = []
        for first in self.files[0].schema:
            kinds = [source.schema.field(first.name) for source in self.files]
            fields.append(next((kind for kind in kinds if not pa.types.is_null(kind.type)), first))
        return pa.schema(fields, self.files[0].schema.metadata)

    @property
    def most_rows(self) -> int:
        return sum(source.most_rows for source in self.files)

    def where(self, row: int) -> tuple[Source, int]:
        """The file in which a row is, and its number there, from 0."""
        for source, (start, stop) in zip(self.files, pairwise([*self.starts, row + 1]), strict=False):
            if row < stop or source is self.files[-1]:
                return source, row - start
        raise AssertionError

    def batches(self, names: Sequence[str]) -> Iterator[tuple[Source, int, pa.RecordBatch]]:
        """The rows of some columns: the file, the number of the first row in it, and the rows."""
        starts, total = [], 0
        for source in self.files:
            starts.append(total)
            row = 0
            for batch in source.batches(names):
                yield source, row, batch
                row += batch.num_rows
            if row == 0:
                raise InputError(f"{source.name}: {delimited.NO_ROWS}")
            total += row
        self.starts = starts

    def check_same(self) -> None:
        for source in self.files:
            source.check_same()

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of all files, in memory."""
        kind = self.schema.field(name).type
        chunks = [batch.column(0) for _, _, batch in self.batches([name])]
        return pa.chunked_array([chunk if chunk.type == kind else chunk.cast(kind) for chunk in chunks], kind)


def check_alike(first: Source, other: Source) -> None:
    """Refuse a file whose columns are not those of the first: in name or type."""
    ours, theirs = first.schema, other.schema
    absent = [name for name in ours.names if name not in theirs.names]
    more = [name for name in theirs.names if name not in ours.names]
    if absent or more:
        said = [f"has no column {shown(absent[0])}"] if absent else []
        said += [f"has an extra column {shown(more[0])}"] if more else []
        raise InputError(
            f"{other.name}: {' and '.join(said)}, unlike {first.name}; files of one table need the same "
            "columns."
        )
    for name in ours.names:
        here, there = theirs.field(name).type, ours.field(name).type
        if here != there and not (pa.types.is_null(here) or pa.types.is_null(there)):
            raise InputError(
                f"{other.name}: column {shown(name)} holds {here} values here and {there} values in "
                f"{first.name}; files of one table need the same types."
            )


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type can be clustered as it is."""
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind) or column_kinds.is_number(kind))
