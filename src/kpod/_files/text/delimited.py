"""Delimited text: encoding, delimiter, decimal mark, header, and the rows as Arrow."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns import positions_in_files
from kpod._columns.column_inspection import inspect
from kpod._columns.notations import number_formats
from kpod._columns.positions_in_files import Lines
from kpod._columns.tables import Dialect
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.typing import Floats
from kpod._files.atomic import is_url
from kpod._files.locations.part import EmptyPartError
from kpod._files.locations.remote import read_url
from kpod._files.text import blank_separated, headings, rows_that_are_not_data, uneven_lines

DELIMITERS = [",", ";", "\t", "|"]
SAMPLE = 1 << 18
SAMPLE_ROWS = 200
MOST_JOINED = 1000
BLOCK = 1 << 23
LINE_END = re.compile(rb"\r\n|\n|\r")
EMPTY_LINES = re.compile(rb"(?:[,;|\t ]*[,;|\t][,;|\t ]*(?:\r\n|\n|\r))+")
STREAM = b"\xff\xff\xff\xff"
NO_ROWS = "has column names but no rows; there is nothing to cluster."


@contextmanager
def fields_of_any_length() -> Iterator[None]:
    """Without the limit of the csv module, which a line of many columns passes under a wrong delimiter."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return printable(lines[0]) if lines else type(error).__name__


def read_bytes(path: str, source: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give the name of a file.")
        data = sys.stdin.buffer.read()
    elif is_url(path):
        data = read_url(path)
    else:
        try:
            with Path(path).open("rb") as file:
                if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                    raise InputError(f"{source}: is a device, not a file.")
                # Not mapped: what is written to the file from now on would be in the table.
                data = file.read()
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}.") from error
    if not data[:SAMPLE].strip():
        raise EmptyPartError(f"{source}: is empty.")
    return data


def read_text(
    data: Any,
    source: str,
    delimiter: str | None,
    decimal: str | None,
    encoding: str | None,
    *,
    header: int | None = None,
    strict: bool = False,
) -> tuple[pa.Table, Dialect, Lines, list[Note]]:
    data, encoding = as_utf8(data, encoding, source)
    if not data[:SAMPLE].strip():  # a mark of the encoding, and nothing that it is of
        raise EmptyPartError(f"{source}: is empty.")
    data = data if strict else uneven_lines.with_double_quotes(data)
    try:
        data, empty = without_empty_lines(data)
        sample = sample_of(data)
        data, skipped, found = (data, 0, []) if header == 0 else without_titles(data, sample, delimiter)
        sample, below_titles = sample_of(data) if skipped else sample, data
        skipped += empty
        rows = rows_of(sample, delimiter) if delimiter else None
        if rows is None:
            delimiter, rows = sniff_delimiter(sample)
            if len(rows[0]) == 1 and blank_separated.is_blank_separated(sample):
                data = blank_separated.with_tabs(data[:], source)
                delimiter, rows = sniff_delimiter(sample_of(data))
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    assert delimiter is not None
    names, n_headings, notes = headings.names_of(
        rows, found[-1].rows if found else [], source, header=header, strict=strict
    )
    data, remarks = without_remarks(data, delimiter, len(names))
    found += remarks
    quotes = data.find(b'"') >= 0
    if quotes:
        check_quotes(data, delimiter, source, skipped)
    dialect = Dialect(delimiter, decimal or sniff_decimal(delimiter, rows[n_headings:]), encoding)
    n_lines = lines_of(sample_of(data), delimiter, n_headings)
    body = data[end_of_line(data, n_lines) :]
    if not body[:SAMPLE].strip():
        raise EmptyPartError(f"{source}: {NO_ROWS}")
    try:
        raw = parsed(body, names, delimiter, quotes=quotes)
    except pa.ArrowInvalid as error:
        even = None if strict else uneven_lines.made_even(data, delimiter, names, n_headings, skipped)
        if even is None:
            problem = where_ragged(data, delimiter, skipped, len(names))
            raise InputError(f"{source}: {problem or one_line(error)}") from error
        data, names, more = even
        notes = [*notes, *more]
        raw = parsed(data[end_of_line(data, n_lines) :], names, delimiter, quotes=quotes)
    blank = (
        positions_in_files.first_blank(below_titles, raw.num_rows + n_headings - 1)
        if len(names) > 1
        else None
    )
    place = Lines(skipped + n_lines + 1, None if blank is None else skipped + blank)
    again = where_header_again(raw, rows[0]) if n_headings else []
    if again:
        line = place.of(raw, again[0], raw.column_names[0])
        if strict:
            raise InputError(
                f"{source}: {line} is the header again (two files joined into one?); remove that line."
            )
        notes = [*notes, Note("header again", values={"n": len(again), "where": line})]
        place = Lines(place.first, min(filter(None, (place.blank, place.line(raw, again[0])))))
        raw = raw.filter(pa.array(~np.isin(np.arange(raw.num_rows), again)))
    return raw, dialect, place, [*(one.left_out for one in found), *notes]


def parsed(body: Any, names: Sequence[str], delimiter: str, *, quotes: bool) -> pa.Table:
    """The fields of the lines as text."""
    import pyarrow.csv as pa_csv

    return pa_csv.read_csv(
        pa.BufferReader(body),
        pa_csv.ReadOptions(block_size=BLOCK, column_names=names),
        pa_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=quotes, ignore_empty_lines=len(names) > 1
        ),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
        ),
    )


def lines_of(sample: str, delimiter: str, n_rows: int) -> int:
    """How many lines the first rows take; fields may hold line breaks."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    while n_rows:
        n_rows -= bool(next(reader))
    return int(reader.line_num)


def end_of_line(data: Any, n_lines: int) -> int:
    """Where so many lines of a text end."""
    ends = LINE_END.finditer(data)
    return next((end.end() for end in islice(ends, n_lines - 1, None)), len(data)) if n_lines else 0


def without_empty_lines(data: Any) -> tuple[Any, int]:
    """The text without lines at its beginning that hold nothing between delimiters, and how many."""
    empty = EMPTY_LINES.match(data)
    return (data[empty.end() :], len(LINE_END.findall(empty[0]))) if empty else (data, 0)


def without_titles(
    data: Any, sample: str, given: str | None
) -> tuple[Any, int, list[rows_that_are_not_data.Found]]:
    """The text without lines of a title above the header; how many lines these are; and what they are."""
    best, rows = (given, []) if given else sniff_delimiter(sample)
    # What divides most lines as it divides the first is the delimiter; decimal commas divide some lines, too.
    is_known = given is not None or fit_of(rows)[0] >= 0.5
    tried = [titled(sample, delimiter) for delimiter in ([str(best)] if is_known else DELIMITERS)]
    found = [lines for lines in tried if lines is not None]
    if not found:
        return data, 0, []
    n_lines, rows = min(found, key=lambda lines: lines[0])
    end = end_of_line(data, n_lines)
    if end >= len(data):
        return data, 0, []
    return data[end:], n_lines, [rows_that_are_not_data.Found(rows, "first", "a title", "line")]


def titled(sample: str, delimiter: str) -> tuple[int, list[list[str]]] | None:
    """How many lines stand above a header under which most lines are divided like it, and their fields."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    rows, ends = [], []
    try:
        for row in islice(reader, SAMPLE_ROWS):
            rows.append(row or [""])
            ends.append(reader.line_num)
    except csv.Error:
        return None
    start = rows_that_are_not_data.titles(rows)
    header, body = rows[start], [row for row in rows[start + 1 :] if row != [""]]
    numbers = [name for name in header if rows_that_are_not_data.is_number(name)]
    if not start or len(header) < 2 or (numbers and not headings.is_run(numbers)) or not all(header[1:]):
        return None
    fitting = sum(len(row) in (len(header), len(header) + 1) for row in body)
    if fitting < max(len(body) / 2, min(0.9 * len(body), len(body) - 3)):
        return None
    return ends[start - 1], rows[:start]


def without_remarks(
    data: Any, delimiter: str, n_fields: int
) -> tuple[Any, list[rows_that_are_not_data.Found]]:
    """The text without lines of remarks at its end, which have fewer fields than the table; and these."""
    end, remarks = len(data), []
    for line in reversed(bytes(data[-SAMPLE:]).splitlines(keepends=True)[1:]):
        text = line.decode(errors="replace").strip()
        if text and (text.count(delimiter) + 1 > n_fields / 2 or not rows_that_are_not_data.is_remark(text)):
            break
        end -= len(line)
        remarks += [[text]] if text else []
    if not remarks or data[:end].count(b'"') % 2:  # these are lines of the last entry
        return data, []
    return data[:end], [rows_that_are_not_data.Found(remarks[::-1], "last", "remarks", "line")]


def without_edges(raw: pa.Table, place: Lines, decimal: str) -> tuple[pa.Table, Lines, list[Note]]:
    """A table of text without rows of units under its header, and of totals and remarks at its end."""
    n = raw.num_rows

    def numbers(j: int, start: int) -> Floats:
        found = inspect("", raw[j].slice(start), decimal, (), decimal_given=True).values
        return np.full(n - start, np.nan) if found is None else found

    top, bottom, found = rows_that_are_not_data.edges(
        rows_as_text(raw.slice(0, rows_that_are_not_data.HEAD_ROWS)),
        rows_as_text(raw.slice(max(0, n - rows_that_are_not_data.SOME_ROWS))),
        numbers,
    )
    return raw.slice(top, n - top - bottom), place.below(raw, top), [one.left_out for one in found]


def rows_as_text(part: pa.Table) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in part.columns), strict=True))


def as_utf8(data: Any, given: str | None, source: str) -> tuple[Any, str]:
    """The text as UTF-8, and its encoding: given, detected from a byte-order mark, or guessed."""
    if given is not None:
        try:
            "".encode(given)  # knows of encodings from text to bytes only, not of hex
        except (LookupError, ValueError) as error:
            raise InputError(
                f"{option('--encoding', printable(given))}: no such encoding; try utf-8, cp1252 or latin-1."
            ) from error
    if given is None and data[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        given = "utf-32"
    if given is None and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        given = "utf-16"
    if given is None and data.find(b"\0") >= 0:
        raise InputError(
            f"{source}: not a text file (it contains NUL bytes), nor Parquet or Arrow; "
            f"if it is UTF-16 or UTF-32 text, give {option('--encoding', 'utf-16-le')} or utf-32-le."
        )
    encoding = codecs.lookup(given or "utf-8").name
    try:
        if encoding in ("utf-8", "ascii", "utf-8-sig"):
            check_decodes(data, encoding)
            return data[3:] if data[:3] == codecs.BOM_UTF8 else data, encoding
        return data[:].decode(encoding).lstrip("\ufeff").encode(), encoding
    except UnicodeDecodeError as error:
        if given is None:
            return guessed(data[:])
        line = data[:].count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source}: byte 0x{data[error.start]:02x} on line {line} is not {encoding}; "
            f"give the right {option('--encoding')} (cp1252 and latin-1 are common)."
        ) from error


def guessed(data: bytes) -> tuple[bytes, str]:
    """What Windows writes in the West; or latin-1, which has a character for every byte."""
    try:
        return data.decode("cp1252").encode(), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1").encode(), "latin-1"


def check_decodes(data: Any, encoding: str) -> None:
    """Raise the UnicodeDecodeError of the whole text, with its place, without holding a copy."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), BLOCK):
        piece = data[start : start + BLOCK]
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(piece, final=start + BLOCK >= len(data))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            raise UnicodeDecodeError(encoding, b"", at, at + 1, error.reason) from error


def sample_of(data: Any) -> str:
    """The first lines, whole ones where there is an end in sight."""
    sample = bytes(data[:SAMPLE])
    while len(sample) < len(data) and sample.count(b"\n") < 2:
        sample = bytes(data[: 2 * len(sample)])
    if len(sample) < len(data):
        sample = sample[: sample.rfind(b"\n") + 1]
    return sample.decode()


def rows_of(sample: str, delimiter: str, most: int = SAMPLE_ROWS) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    rows = []
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > most:
                break
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: {error}.") from error
    return rows


def sniff_delimiter(sample: str) -> tuple[str, list[list[str]]]:
    """The delimiter that cuts the most lines into as many fields as the header has."""
    best = max(DELIMITERS, key=lambda delimiter: fit_of(rows_of(sample, delimiter)))
    return best, rows_of(sample, best)


def fit_of(rows: list[list[str]]) -> tuple[float, int]:
    """The share of lines with as many fields as the first, and that number; 0 for a single field."""
    n_fields = len(rows[0])
    return (sum(len(row) == n_fields for row in rows) / len(rows) if n_fields > 1 else 0), n_fields


def sniff_decimal(delimiter: str, rows: list[list[str]]) -> str:
    """A comma only where it cannot be anything else: "1,234" may be a thousand and more."""
    if delimiter == ",":
        return "."
    cells = pa.array([cell for row in rows for cell in row], pa.string())
    return "," if number_formats.shows(cells, ",") and not number_formats.shows(cells, ".") else "."


def where_header_again(raw: pa.Table, header: Sequence[str]) -> list[int]:
    """The rows that hold the header, which joining two files leaves in the middle.

    Ticked columns hold their headings or nothing: in them, some rows hold one heading and not the next.
    """
    first = np.flatnonzero(pc.equal(raw[0], header[0].strip()).to_numpy(zero_copy_only=False))
    if not len(first) or len(first) > MOST_JOINED:
        return []
    for j, name in enumerate(header):
        holds = pc.equal(pc.utf8_trim_whitespace(raw[j]), name.strip()).to_numpy(zero_copy_only=False)
        if not np.array_equal(np.flatnonzero(holds), first):
            return []
    return first.tolist()


def check_quotes(data: Any, delimiter: str, source: str, skipped: int) -> None:
    """Refuse a quotation mark that is never closed: it would swallow the rest of the file."""
    if data[:].count(b'"') % 2 == 0:
        return
    reader, line = reader_of(data, delimiter, strict=True), 0
    try:
        for _ in reader:
            line = reader.line_num
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise InputError(
                f"{source}: a quotation mark opened on line {line + skipped + 1} is never closed; "
                "close or remove it."
            ) from error


def reader_of(data: Any, delimiter: str, **options: Any) -> Any:
    text = io.TextIOWrapper(io.BytesIO(data[:]), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=delimiter, **options)


def where_ragged(data: Any, delimiter: str, skipped: int, n_fields: int) -> str | None:
    """The first line with another number of fields than there are columns."""
    reader = reader_of(data, delimiter)
    try:
        for row in reader:
            if row and len(row) != n_fields:
                fields = printable(delimiter.join(row)[:60])
                # What R's write.table does: row names, and no name for them.
                unnamed = reader.line_num == 2 and len(row) == n_fields + 1
                advice = "name the first column" if unnamed else "correct it"
                return (
                    f"line {reader.line_num + skipped} has {len(row)} fields where the header has {n_fields} "
                    f"({fields}); {advice}, or give the right {option('--delimiter')}."
                )
    except (csv.Error, StopIteration) as error:
        return f"line {reader.line_num + skipped}: {one_line(error)}."
    return None
