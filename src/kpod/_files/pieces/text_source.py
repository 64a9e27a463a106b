"""A text file that holds rows of a table, read as text a batch at a time."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from kpod._columns.tables import Dialect
from kpod._common.errors import InputError
from kpod._files import memory_limits
from kpod._files.locations.part import EmptyPartError, Part
from kpod._files.pieces.file_source import Source
from kpod._files.text import blank_separated, delimited, headings, rows_that_are_not_data

TEXT_BLOCK = 1 << 23
COUNTED = 1 << 24


@dataclass(frozen=True)
class TextOptions:
    """The options for text files that the user gave."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None


class TextSource(Source):
    """A text file, read as text: numbers are made of it further up."""

    def __init__(self, part: Part | str, options: TextOptions) -> None:
        super().__init__(part)
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
            raise EmptyPartError(f"{self.name}: {delimited.NO_ROWS}")
        self.header = rows[0]
        decimal = options.decimal or delimited.sniff_decimal(delimiter, rows[1:])
        self.dialect = Dialect(delimiter, decimal, self.encoding)
        self.check_nothing_around(delimited.without_remarks(self.tail(), delimiter, len(self.header))[1])

    def check_nothing_around(self, found: Sequence[rows_that_are_not_data.Found]) -> None:
        """Refuse what a table in memory is read without."""
        for one in found:
            them = "it" if one.n == 1 else "them"
            raise InputError(
                f"{self.name}: {one}, which a table that is read in pieces cannot have; remove {them}, or "
                f"have the table read whole{memory_limits.room()}."
            )

    def tail(self) -> bytes:
        with self.part.open() as file:
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
        with self.part.open() as file:
            sample = file.read(delimited.SAMPLE)
            while sample.count(b"\n") < 2 and (more := file.read(len(sample))):
                sample += more
        if not sample.strip():
            raise EmptyPartError(f"{self.name}: is empty.")
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
        with self.part.open() as file:
            while piece := file.read(COUNTED):
                lines += piece.count(b"\n")
                quotes = quotes or b'"' in piece
        return lines, quotes

    @cached_property
    def stored(self) -> pa.Schema:
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
                self.part.path if self.part.filesystem is None else self.part.open(),
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
