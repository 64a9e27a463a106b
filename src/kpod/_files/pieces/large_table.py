"""Tables for the command line that would not fit into memory, or come in several files.

What a column is, is told by its numbers as with any table: they are in a scratch file by then, and are
looked at a column at a time. Columns of text stay in their files, and go from there to the output.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns import column_inspection as kinds
from kpod._columns.missing_codes import MissingCodes
from kpod._columns.preparing.columns_in_use import ColumnUsage
from kpod._columns.roles.column_facts import SAMPLE
from kpod._columns.table_inspection import settle_decimal
from kpod._columns.tables import Column, TableFile, check_numeric, shown
from kpod._columns.tally import Tally
from kpod._common.errors import InputError
from kpod._common.options import option
from kpod._common.progress import Progress
from kpod._common.sentences.formatting import size_text
from kpod._common.typing import Floats
from kpod._engine.windows import gathered
from kpod._files import foreign_formats, memory_limits
from kpod._files.locations.part import Part
from kpod._files.locations.paths import expand
from kpod._files.output import has_plain_numbers
from kpod._files.pieces.decoding import Decoder
from kpod._files.pieces.file_source import Source
from kpod._files.pieces.scanning import Decoded
from kpod._files.pieces.table_parts import Sources
from kpod._files.pieces.text_source import TextOptions, TextSource
from kpod._files.text import rows_that_are_not_data
from kpod._files.text.delimited import rows_as_text
from kpod._inputs.scanned import ScannedTable

HEAD_ROWS = 50_000


def files_of(data: Sequence[str], scratch: str | None) -> tuple[list[Part], bool]:
    """The files of a table, and whether to read them in pieces: where asked to, or if they would not fit."""
    if "-" in data:
        if len(data) > 1 or scratch is not None:
            raise InputError("-: standard input cannot be read in pieces; give file names.")
        return [Part("-")], False
    parts = expand(data)
    only_whole = len(parts) == 1 and not may_be_scanned(parts[0])
    return parts, scratch is not None or not (only_whole or fit(parts))


def may_be_scanned(part: Part) -> bool:
    """Whether a file is of a kind that is read in pieces; its errors are raised later."""
    if part.filesystem is None and not Path(part.path).is_file():
        return False  # a pipe, whose first bytes are gone once they were looked at
    try:
        with part.open() as file:
            head = file.read(512)
    except OSError:
        return False
    packed = memory_limits.packing(head) or head[:4] == b"FEA1"
    return bool(head) and not packed and foreign_formats.kind_of(head) is None


def fit(parts: Sequence[Part]) -> bool:
    """Whether a table fits in memory, from the metadata of its files; their errors are raised later."""
    n_bytes = 0
    for part in parts:
        try:
            with part.open() if part.filesystem else pa.OSFile(os.fsencode(part.path)) as file:
                n_bytes += memory_limits.declared_size(file)
        except OSError:  # not a regular file
            continue
        if not memory_limits.fits(n_bytes):
            return False
    return True


class RawColumns:
    """The raw columns of files, read on access."""

    def __init__(self, sources: Sources, n_rows: int) -> None:
        self.sources, self.num_rows = sources, n_rows
        self.schema, self.column_names = sources.schema, sources.schema.names

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.sources.column(name)


class LargeTable(TableFile):
    """A table that stays on disk: its numbers in a scratch file, the rest in its files."""

    in_pieces = True
    sources: Sources
    decoded: Decoded
    codes: MissingCodes
    numeric: list[str]
    spooled: Any = None
    """The file that the rows of a query were written to."""
    typed: dict[str, tuple[pa.DataType, list[float]]]
    """Of each column that a typed format gets as numbers, their type, and those that mean missing."""

    @classmethod
    def read(
        cls,
        parts: Any,
        scratch: str | os.PathLike[str] | None,
        tell: Progress,
        *,
        leave_out: Sequence[str] = (),
        only: Sequence[str] = (),
        missing: Any = (),
        sheet: str | None = None,
        every_row: bool = False,
        **options: Any,
    ) -> LargeTable:
        """Decode all columns of numbers, or the given ones, and decide the role of each column.

        Parts are files, or an object that stands for a table. With `every_row`, no row under the header is
        taken for anything but data.
        """
        given = TextOptions(**options)
        sources = Sources.of(parts, given)
        if sheet is not None:
            raise InputError(
                f"{sources.files[0].name}: not a workbook; {option('--sheet')} only applies to workbooks."
            )
        codes = MissingCodes.of(missing, sources.schema.names, sources.name)
        head = cls.head(sources, codes, ask=given.decimal is None)
        if not every_row:
            check_descriptions(sources, head)
        look_at_words(head, sources, codes)
        asked = head.names(only) if only else list(head.by_name)
        left = head.names(leave_out)
        names = [
            column.name
            for column in head.columns
            if column.values is not None and column.name in asked and column.name not in left
        ]
        for column in head.columns:
            if column.name in names and column.how_written:
                raise InputError(
                    f"{head.source}: column {shown(column.name)}: {column.how_written}, but not in a table "
                    "that is read in pieces; write plain numbers, or leave it out with "
                    f"{option('--exclude')}."
                )
        if not names:  # which choosing columns will say
            n_rows = sum(batch.num_rows for _, _, batch in sources.batches(sources.schema.names[:1]))
            raw: Any = RawColumns(sources, n_rows)
            table = cls(sources.name, raw, head.columns, sources.dialect)
            table.sources, table.codes, table.notes = sources, codes, sources.notes
            return table
        decoded = Decoded.of(sources, names, scratch, tell, missing=codes.of_column)
        try:
            if not every_row:
                check_totals(sources, decoded)
            known = inspected(decoded)
            columns = [known.get(column.name) or without_values(column) for column in head.columns]
            decoded.take_out_codes()
        except BaseException:
            decoded.scratch.remove()
            raise
        raw = RawColumns(sources, decoded.n_rows)
        unused = codes.found_nowhere({column.name: column.missing_codes for column in columns})
        table = cls(sources.name, raw, columns, sources.dialect, unused, sources.notes)
        table.sources, table.decoded, table.codes, table.numeric = sources, decoded, codes, names
        table.typed = {
            name: typed_of(column, codes) for name, column in known.items() if has_plain_numbers(column)
        }
        return table

    @staticmethod
    def head(sources: Sources, codes: MissingCodes, *, ask: bool) -> TableFile:
        """The first rows of the first file, from which the kinds of the columns are inferred."""
        raw = first_rows(sources, sources.files[:1], sources.schema.names)
        columns = [look(sources, raw, name, codes) for name in raw.column_names]
        decimal = sources.dialect.decimal if sources.dialect else "."
        if ask and settle_decimal(columns, raw, sources.dialect) != decimal:
            kinds.ask_about_points(columns, raw)
        for column in columns:
            text = kinds.is_text(sources.schema.field(column.name).type)
            if text and column.kind in ("yes/no", "true/false"):
                column.values = None  # words for numbers: a column of text here
        return TableFile(sources.files[0].name, raw, columns, sources.dialect)

    def read_text(self) -> None:
        """Say what columns without numbers are by all of their rows, not only the first ones."""
        for at, column in enumerate(self.columns):
            if column.values is None:
                self.columns[at] = look(self.sources, self.raw, column.name, self.codes)

    def scanned(self, choice: ColumnUsage, scale: bool) -> ScannedTable:
        """What is clustered: the columns chosen, standardised; the scratch file holds nothing else then."""
        absent = [name for name in choice.used if name not in self.decoded.names]
        for name in absent:
            if name not in choice.categories:
                check_numeric(self, self.column(name))
        if absent or choice.categories:
            name = next(iter(absent or choice.categories))
            raise InputError(
                f"{self.source}: column {shown(name)} does not hold plain numbers, which a table that "
                f"is read in pieces needs; leave it out with {option('--exclude')}, or give a table "
                f"that fits into memory{self.whole_size}."
            )
        if all(column.missing == self.n_rows for column in self.columns if column.name in choice.used):
            self.decoded.scratch.remove()
            raise InputError(f"{self.source}: all entries of the columns to cluster are missing.")
        self.decoded.keep(choice.used)
        for column in self.columns:
            column.values = None
        out = self.decoded.table(scale)
        out.columns = None  # a model of the command line keeps them beside the estimators
        return out

    def numbers(self, name: str) -> Floats | None:
        """The numbers of a column that was not clustered, read from the files again."""
        if name not in self.numeric:
            return None
        decoder = Decoder(name, self.dialect.decimal if self.dialect else ".", self.codes.of_column(name))
        tally = Tally(self.codes.of_column(name))
        batches = self.sources.batches([name])
        parts = [
            decoder(batch.column(0), source, row).astype(np.float64, copy=False)
            for source, row, batch in batches
        ]
        return np.concatenate([tally.without_codes(part) for part in parts])

    @property
    def whole_size(self) -> str:
        n_bytes = memory_limits.IN_MEMORY * 8 * self.n_rows * len(self.columns)
        free = memory_limits.free_memory()
        of = "" if free is None else f", with {size_text(free)} free"
        return f" (about {size_text(n_bytes)}{of})"

    def files(self) -> Any:
        if len(self.sources.files) == 1:
            return None
        lengths = np.diff([*self.sources.starts, self.n_rows])
        return pa.array(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths))

    def close(self) -> None:
        if hasattr(self, "decoded"):
            self.decoded.scratch.remove()
        if self.spooled is not None:
            self.spooled.remove()

    def write_labels(self, label: str, labels: Any, path: str) -> None:
        """The table as it came and one column more, a batch at a time."""
        from kpod._files.pieces.labelled import write_labels

        write_labels(self, label, labels, path)


def check_descriptions(sources: Sources, head: TableFile) -> None:
    """Refuse rows of units under the header of a text file, which a table in memory is read without."""
    first = sources.files[0]
    if isinstance(first, TextSource):
        rows = rows_as_text(
            head.raw.slice(0, rows_that_are_not_data.SOME_ROWS + rows_that_are_not_data.MOST_DESCRIPTIONS)
        )
        first.check_nothing_around(rows_that_are_not_data.edges(rows, [], lambda *_: np.empty(0))[2])


def check_totals(sources: Sources, decoded: Decoded) -> None:
    """Refuse rows of totals and remarks at the end of a text file, likewise."""
    values = decoded.rows()
    for source, (start, stop) in zip(sources.files, pairwise([*sources.starts, decoded.n_rows]), strict=True):
        if not isinstance(source, TextSource):
            continue
        places = [decoded.names.index(name) if name in decoded.names else -1 for name in source.stored.names]
        part, unknown = values[start:stop], np.full(stop - start, np.nan)

        def numbers(j: int, _: int, part: Any = part, places: Any = places, unknown: Any = unknown) -> Floats:
            return np.asarray(part[:, places[j]], np.float64) if places[j] >= 0 else unknown

        rows = source.last_rows()[-rows_that_are_not_data.SOME_ROWS :]
        source.check_nothing_around(rows_that_are_not_data.edges([], rows, numbers)[2])


def first_rows(sources: Sources, files: Sequence[Source], names: Sequence[str]) -> pa.Table:
    """The first rows of some columns of each file, as many of each."""
    batches: list[pa.RecordBatch] = []
    for file in files:
        left = max(1, HEAD_ROWS // len(files))
        for batch in file.batches(names):
            batches.append(batch.slice(0, left))
            left -= batch.num_rows
            if left <= 0:
                break
    schema = pa.schema([sources.schema.field(name) for name in names])
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(schema) for batch in batches])


def look(sources: Sources, rows: pa.Table, name: str, codes: MissingCodes) -> Column:
    decimal = sources.dialect.decimal if sources.dialect else "."
    return kinds.inspect(name, rows[name], decimal, codes.of_column(name), decimal_given=True)


def look_at_words(head: TableFile, sources: Sources, codes: MissingCodes) -> None:
    """Tell the roles of columns that hold no numbers by all files: a name may be in each of them once."""
    names = [column.name for column in head.columns if column.values is None]
    if len(sources.files) == 1 or not names:
        return
    rows = first_rows(sources, sources.files, names)
    for name in names:
        found = look(sources, rows, name, codes)
        if found.values is None:
            head.by_name[name].role = found.role


def without_values(column: Column) -> Column:
    column.values = None
    return column


class ScratchColumn:
    """The numbers of a column in a scratch file, read on access."""

    def __init__(self, decoded: Decoded, name: str) -> None:
        self.decoded, self.name = decoded, name

    def __len__(self) -> int:
        return self.decoded.n_rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.decoded.column(self.name), dtype)

    def __getitem__(self, rows: Any) -> Floats:
        """The numbers of some rows, given as a slice or by their positions."""
        at = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        column = self.decoded.rows()[:, self.decoded.names.index(self.name)]
        return gathered(column, at).astype(np.float64, copy=False)


def inspected(decoded: Decoded) -> dict[str, Column]:
    """The inspected columns, from their statistics and a sample of their numbers."""
    columns = {}
    for decoder, as_read in zip(decoded.decoders, decoded.sample(SAMPLE), strict=True):
        name, tally = decoder.name, decoder.tally
        assert tally is not None
        kind = decoded.sources.schema.field(name).type
        column = Column(
            name, "true/false" if pa.types.is_boolean(kind) else "number", 0, decoder.missing_codes.copy(),
            values=ScratchColumn(decoded, name),  # type: ignore[arg-type]
        )  # fmt: skip
        nans = tally.n_missing - tally.found.total() - column.missing_codes.total()
        if nans > 0:
            column.missing_codes["NaN"] += nans
        integers = None if kinds.is_text(kind) else bool(pa.types.is_integer(kind))
        sample = tally.without_codes(as_read)
        columns[name] = kinds.settle_numbers(column, tally, sample, as_read, integers, decoder.leading_zeros)
    return columns


def typed_of(column: Column, codes: MissingCodes) -> tuple[pa.DataType, list[float]]:
    return pa.int64() if column.kind == "integer" else pa.float64(), numbers_in(codes.of_column(column.name))


def numbers_in(codes: Sequence[str]) -> list[float]:
    return list(Tally(codes).codes.values())
