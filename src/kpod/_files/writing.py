"""Write tables to files through pyarrow, text as it came."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.column_inspection import EXACT, is_text
from kpod._columns.tables import SUFFIXES, Dialect, TableFile, shown
from kpod._common.errors import InputError, printable
from kpod._files.atomic import naming, written_whole
from kpod._files.foreign_formats import imported

BATCH = 1 << 16
BATCH_CELLS = 1 << 22
LONG = 1e10
"""From here on, pyarrow writes a power of ten."""


def format_of(path: str) -> str:
    """The output format, by the ending of a file's name."""
    suffix = Path(path).suffix.lower()
    if path != "-" and suffix not in SUFFIXES and not is_device(path):
        raise InputError(
            f"{printable(path)}: cannot tell the format from the name; end it in one of "
            f"{', '.join(SUFFIXES)}."
        )
    return SUFFIXES.get(suffix, "csv")


def is_device(path: str) -> bool:
    """Whether this is /dev/null, a pipe or the like, whose name says nothing about a format."""
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


def check_packages(kind: str) -> None:
    """Refuse, before the work, a format whose package is absent."""
    if kind == "excel":
        imported("xlsxwriter", "-o", "writing a workbook")


def write_table(table: pa.Table, path: str, dialect: Dialect | None = None) -> None:
    """Write to a file, whole or not at all, or CSV to standard output for "-"."""
    if path == "-":
        with naming("standard output"):
            write_csv(table, sys.stdout.buffer, dialect or Dialect())
            sys.stdout.buffer.flush()
        return
    with written_whole(path) as file:
        encode(table, file, format_of(path), dialect_for(path, dialect))


def encode(table: pa.Table, file: IO[bytes], kind: str, dialect: Dialect) -> None:
    if kind == "csv":
        write_csv(table, file, dialect)
    elif kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    elif kind == "excel":
        write_workbook(table, file)
    else:
        from pyarrow import feather

        feather.write_feather(table, file)


def check_format(table: TableFile, path: str) -> None:
    """Refuse, before the work, columns that a format has no way to write."""
    kind = format_of(path)
    if kind == "excel":
        check_lengths(table)
    for column in table.columns:
        if column.values is not None or column.kind == "text":
            continue
        values = table.raw[column.name]
        # The first entry tells as much as all of them, except of bytes, which may or may not be text.
        sample = values if is_bytes(values.type) else values.slice(0, 1)
        try:
            encode(pa.table({"": sample}), io.BytesIO(), kind, Dialect())
        except pa.ArrowException as error:
            raise InputError(
                f"{table.source}: column {shown(column.name)} holds {printable(values.type)} values, which "
                f"a {kind} file cannot hold; write .feather, or drop the column."
            ) from error


def check_lengths(table: TableFile) -> None:
    """Refuse text that is longer than a cell of a sheet can be."""
    for name in table.raw.column_names:
        values = table.raw[name]
        if is_text(values.type) and (pc.max(pc.utf8_length(values)).as_py() or 0) > LONGEST_EXCEL_TEXT:
            raise InputError(
                f"{table.source}: column {shown(name)} holds text of more than {LONGEST_EXCEL_TEXT:,} "
                "characters, which a workbook cannot; write .csv or .parquet."
            )


def is_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def dialect_for(path: str, dialect: Dialect | None) -> Dialect:
    """Tabs for .tsv; otherwise as the input had it, so that the same program opens both."""
    dialect = dialect or Dialect()
    if Path(path).suffix.lower() in (".tsv", ".tab"):
        return Dialect("\t", dialect.decimal)
    return Dialect("," if dialect.delimiter == "\t" else dialect.delimiter, dialect.decimal)


def write_csv(table: pa.Table, file: IO[bytes], dialect: Dialect) -> None:
    file.write(csv_header(table.column_names, dialect))
    for lines in csv_batches(table, dialect):
        file.write(lines)


def csv_header(names: Sequence[str], dialect: Dialect) -> bytes:
    header = io.StringIO()
    csv.writer(header, delimiter=dialect.delimiter, lineterminator="\n").writerow(names)
    return header.getvalue().encode()


def csv_batches(table: pa.Table, dialect: Dialect) -> Iterator[memoryview]:
    """The lines of the file: cells joined by pyarrow, several times faster than formatting them again."""
    rows = max(1, min(BATCH, BATCH_CELLS // table.num_columns))
    for batch in table.to_batches(max_chunksize=rows):
        cells = [as_cells(column, dialect) for column in batch.columns]
        cells[-1] = join(cells[-1], "", separator="\n")
        yield text_bytes(join(*cells, separator=dialect.delimiter))


def join(*parts: pa.Array | str, separator: str = "") -> pa.Array:
    whole = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in (*parts, separator)]
    return pc.binary_join_element_wise(*whole, null_handling="replace", null_replacement="")


def as_cells(column: pa.Array, dialect: Dialect) -> pa.Array:
    """Text, quoted if necessary."""
    if pa.types.is_duration(column.type):
        column = as_hours(column)
    cells = column.cast(pa.large_string())
    if pa.types.is_float64(column.type):
        cells = without_powers_of_ten(cells, column)
    if pa.types.is_floating(column.type) and dialect.decimal == ",":
        cells = pc.replace_substring(cells, ".", ",")
    special = (dialect.delimiter, '"', "\n", "\r")
    text = bytes(text_bytes(cells))
    if not any(mark.encode() in text for mark in special):
        return cells
    quoted = join('"', pc.replace_substring(cells, '"', '""'), '"')
    needed = pc.match_substring_regex(cells, "[" + re.escape("".join(special)) + "]")
    return pc.if_else(needed, quoted, cells)


def as_hours(spans: pa.Array) -> pa.Array:
    """Lengths of time as hours, minutes and seconds: 27:00:00 or -0:00:01.5."""

    def text(micros: int) -> str:
        seconds, rest = divmod(abs(micros), 1_000_000)
        part = f".{rest:06d}".rstrip("0") if rest else ""
        return f"{'-' * (micros < 0)}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{part}"

    micros = spans.cast(pa.duration("us"), safe=False).cast(pa.int64()).to_pylist()
    return pa.array([None if one is None else text(one) for one in micros], pa.string())


def without_powers_of_ten(cells: pa.Array, values: pa.Array) -> pa.Array:
    """Whole numbers that are exact without a power of ten."""
    size = pc.abs(values)
    long = pc.and_(pc.greater_equal(size, LONG), pc.less_equal(size, float(EXACT)))
    if not pc.any(long).as_py():
        return cells
    whole = pc.and_(long, pc.equal(pc.floor(values), values))
    digits = pc.if_else(whole, values, 0.0).cast(pa.int64()).cast(pa.large_string())
    return pc.if_else(whole, digits, cells)


def text_bytes(cells: pa.Array) -> memoryview:
    """The bytes of a large_string array, one entry after the other."""
    if not len(cells) or cells.buffers()[2] is None:
        return memoryview(b"")
    ends = np.frombuffer(cells.buffers()[1], np.int64)
    return memoryview(cells.buffers()[2])[ends[cells.offset] : ends[cells.offset + len(cells)]]


MOST_EXCEL_ROWS, MOST_EXCEL_COLUMNS, LONGEST_EXCEL_TEXT = 1_048_575, 16_384, 32_767
FIRST_EXCEL_MONTH = (1900, 3)
"""Sheets count days since 1900, and take that for a leap year."""


def write_workbook(table: pa.Table, file: IO[bytes]) -> None:
    """One sheet; text is written as text, so that nothing turns into a formula or a date."""
    xlsxwriter = imported("xlsxwriter", "-o", "writing a workbook")
    if table.num_rows > MOST_EXCEL_ROWS or table.num_columns > MOST_EXCEL_COLUMNS:
        raise InputError(
            f"-o: a sheet holds {MOST_EXCEL_ROWS:,} rows and {MOST_EXCEL_COLUMNS:,} columns at most; "
            "write .csv or .parquet."
        )
    options = {"constant_memory": False, "in_memory": True, "remove_timezone": True}
    packed = io.BytesIO()  # an archive on a full disk would complain once more when it is forgotten
    book = xlsxwriter.Workbook(packed, options)
    sheet = book.add_worksheet()
    day, moment = (book.add_format({"num_format": f"yyyy-mm-dd{time}"}) for time in ("", " hh:mm:ss"))
    for j, name in enumerate(table.column_names):
        sheet.write_string(0, j, name)
        for i, value in enumerate(table.column(j).to_pylist(), 1):
            write_cell(sheet, i, j, value, day, moment)
    book.close()
    file.write(packed.getbuffer())


def write_cell(sheet: Any, i: int, j: int, value: Any, day: Any, moment: Any) -> None:
    """A number or a date where a sheet can hold it, else text."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return
    if isinstance(value, bool):
        sheet.write_boolean(i, j, value)
    elif (isinstance(value, int) and abs(value) <= EXACT) or (
        isinstance(value, float) and np.isfinite(value)
    ):
        sheet.write_number(i, j, value)
    elif hasattr(value, "year") and (value.year, value.month) >= FIRST_EXCEL_MONTH:
        has_time = hasattr(value, "hour") and value.time() != dt.time()
        sheet.write_datetime(i, j, value, moment if has_time else day)
    else:
        sheet.write_string(i, j, str(value))
