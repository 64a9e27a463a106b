"""Tables in files: CSV and TSV, Parquet, Feather/Arrow, read and written through pyarrow.

A text file is read as text. Its cells go to the output as they came, to the last zero, and
k-means gets numbers made from them; so nothing of the user's is reformatted, and every mark
of a gap can be counted.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import mmap
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._files import InputError, printable, written_whole

Floats = np.ndarray[Any, np.dtype[np.float64]]

GAPS = ["", "NA", "N/A", "#N/A", "NaN", "null", "None", "nil", "missing", "?", "-", "--", "."]
DELIMITERS = [",", ";", "\t", "|"]
SAMPLE = 1 << 18
SAMPLE_ROWS = 200
BLOCK = 1 << 23
BATCH = 1 << 16
LARGEST = 1e150
NO_ROWS = "has column names and no rows; there is nothing to cluster."
NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity)$"
ID_NAMES = re.compile(r"^(|id|ids|idx|index|key|uuid|guid|row|rownames?|row_?names?|row_?id|unnamed: ?0"
                      r"|__index_level_0__|.*[_ .-]id|.*[a-z]I[dD])$")  # fmt: skip
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "arrow", ".arrow": "arrow", ".ipc": "arrow",
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """How a text file writes a table."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


@dataclass
class Column:
    """One column: what it holds, and its numbers where it holds numbers."""

    name: str
    kind: str
    missing: int
    marks: Counter[str] = field(default_factory=Counter)
    values: Floats | None = None
    looks_like_id: bool = False
    numeric_share: float = 0.0
    odd: tuple[int, str] | None = None
    """The first entry that is neither a number nor a gap: its row (from 1) and text."""


@dataclass
class TableFile:
    """A table as it was read."""

    source: str
    raw: pa.Table
    columns: list[Column]
    dialect: Dialect | None = None
    """Of a text file, else None."""

    @property
    def n_rows(self) -> int:
        return int(self.raw.num_rows)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> Column:
        if name in self.by_name:
            return self.by_name[name]
        close = difflib.get_close_matches(name, self.by_name, 1)
        hint = f"did you mean {shown(close[0])}?" if close else f"there are {some_names(self.columns)}."
        raise InputError(f"{self.source}: there is no column {shown(name)}; {hint}")

    def names(self, asked: Sequence[str]) -> list[str]:
        """Column names as asked for: one by one, or several with commas between them."""
        found = []
        for text in asked:
            found += [text] if text in self.by_name else [part.strip() for part in text.split(",")]
        return [self.column(name).name for name in dict.fromkeys(found)]


def shown(name: str) -> str:
    return f"'{printable(name)}'" if name else "(the one without a name)"


def some_names(columns: Sequence[Column], most: int = 8) -> str:
    more = len(columns) - most
    names = ", ".join(shown(column.name) for column in columns[:most])
    return names + (f" and {more} more" if more > 0 else "")


# Reading


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
) -> TableFile:
    """The table in a file, or on standard input for "-"; its kind is told by its first bytes."""
    source = "standard input" if path == "-" else printable(path)
    data = read_bytes(path, source)
    dialect = None
    try:
        if data[:4] == b"PAR1":
            import pyarrow.parquet as pq

            raw = pq.read_table(pa.BufferReader(data))
        elif data[:6] == b"ARROW1" or data[:4] in (b"FEA1", b"\xff\xff\xff\xff"):
            raw = read_arrow(data)
        else:
            raw, dialect = read_text(data, source, delimiter, decimal, encoding)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{source}: damaged, or not what it claims to be: {one_line(error)}") from error
    check_header([str(name) for name in raw.column_names], source)
    if raw.num_rows == 0:
        raise InputError(f"{source}: {NO_ROWS}")
    if dialect:
        check_header_again(raw, source)
    with ThreadPoolExecutor() as pool:
        columns = list(
            pool.map(
                lambda name: inspect(name, raw[name], dialect.decimal if dialect else ".", missing),
                raw.column_names,
            )
        )
    return TableFile(source, raw, columns, dialect)


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return printable(lines[0]) if lines else type(error).__name__


def read_bytes(path: str, source: str) -> Any:
    if path == "-":
        data: Any = sys.stdin.buffer.read()
    else:
        try:
            with Path(path).open("rb") as file:
                try:
                    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                except (ValueError, OSError):  # empty, or not a regular file
                    data = file.read()
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}.") from error
    if not data[:SAMPLE].strip():
        raise InputError(f"{source}: is empty.")
    if data[:2] == b"PK":
        raise InputError(f"{source}: is a zip archive or an Excel workbook; save the sheet as CSV first.")
    if data[:2] == b"\x1f\x8b":
        raise InputError(f"{source}: is compressed with gzip; unpack it first (zcat FILE | kpod fit - ...).")
    return data


def read_arrow(data: Any) -> pa.Table:
    if data[:4] == b"\xff\xff\xff\xff":
        return pa.ipc.open_stream(pa.BufferReader(data)).read_all()
    from pyarrow import feather

    return feather.read_table(pa.BufferReader(data))


def read_text(
    data: Any, source: str, delimiter: str | None, decimal: str | None, encoding: str | None
) -> tuple[pa.Table, Dialect]:
    import pyarrow.csv as pa_csv

    data, encoding = as_utf8(data, encoding, source)
    sample = sample_of(data)
    rows = rows_of(sample, delimiter) if delimiter else None
    if rows is None:
        delimiter, rows = sniff_delimiter(sample)
    assert delimiter is not None
    header = rows[0]
    check_header([name.strip() for name in header], source)
    check_no_data_in_header(header, source)
    quotes = data.find(b'"') >= 0
    if quotes:
        check_quotes(data, delimiter, source)
    dialect = Dialect(delimiter, decimal or sniff_decimal(delimiter, rows[1:]), encoding)
    try:
        raw = pa_csv.read_csv(
            pa.BufferReader(data),
            pa_csv.ReadOptions(block_size=BLOCK),
            pa_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=quotes,
                ignore_empty_lines=len(header) > 1,
            ),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowInvalid as error:
        problem = NO_ROWS if "Empty CSV" in str(error) else where_ragged(data, delimiter)
        raise InputError(f"{source}: {problem or one_line(error)}") from error
    return raw.rename_columns([name.strip() for name in raw.column_names]), dialect


def as_utf8(data: Any, given: str | None, source: str) -> tuple[Any, str]:
    """The text as UTF-8 and the encoding it was in: given, told by a mark, or guessed."""
    if given is not None:
        try:
            codecs.lookup(given)
        except LookupError as error:
            raise InputError(
                f"--encoding {printable(given)}: no such encoding; try utf-8, cp1252 or latin-1."
            ) from error
    if given is None and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        given = "utf-16"
    if given is None and data.find(b"\0") >= 0:
        raise InputError(
            f"{source}: is not a text file (it has NUL bytes), nor Parquet or Arrow; "
            "if it is UTF-16 text, give --encoding utf-16-le."
        )
    encoding = codecs.lookup(given or "utf-8").name
    try:
        if encoding in ("utf-8", "ascii", "utf-8-sig"):
            check_decodes(data, encoding)
            return data[3:] if data[:3] == codecs.BOM_UTF8 else data, encoding
        return data[:].decode(encoding).lstrip("\ufeff").encode(), encoding
    except UnicodeDecodeError as error:
        if given is None:
            return data[:].decode("cp1252", errors="replace").encode(), "cp1252"
        line = data[:].count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source}: byte 0x{data[error.start]:02x} on line {line} is not {encoding}; "
            "give the right --encoding (cp1252 and latin-1 are common)."
        ) from error


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


def rows_of(sample: str, delimiter: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    rows = []
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > SAMPLE_ROWS:
                break
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: {error}.") from error
    return rows


def sniff_delimiter(sample: str) -> tuple[str, list[list[str]]]:
    """The delimiter that cuts the most lines into as many fields as the header has."""

    def fit(delimiter: str) -> tuple[float, int]:
        rows = rows_of(sample, delimiter)
        n_fields = len(rows[0])
        return (sum(len(row) == n_fields for row in rows) / len(rows) if n_fields > 1 else 0), n_fields

    best = max(DELIMITERS, key=fit)
    return best, rows_of(sample, best)


def sniff_decimal(delimiter: str, rows: list[list[str]]) -> str:
    """A comma only where it cannot be anything else: "1,234" may be a thousand and more."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell)]
    points = any(re.fullmatch(r"[-+]?\d*\.\d+", cell) for cell in cells)
    thousands = all(re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", cell) for cell in commas)
    return "," if commas and not points and not thousands else "."


def check_header(names: Sequence[str], source: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            at = [str(j + 1) for j, other in enumerate(names) if other == name]
            what = f"the column name {shown(name)}" if name else "a column without a name"
            raise InputError(
                f"{source}: {what} appears {times} times (columns {', '.join(at[:8])}); "
                "rename all but one, so that each can be told from the others."
            )


def check_no_data_in_header(header: list[str], source: str) -> None:
    """A first line of numbers is data, unless it is a run of years and the like."""
    if not all(re.match(NUMBER, name.strip()) for name in header):
        return
    numbers = [float(name) for name in header]
    steps = {after - before for before, after in pairwise(numbers)}
    if all(map(float.is_integer, numbers)) and len(steps) == 1 and steps.pop() > 0:
        return
    raise InputError(
        f"{source}: the first line holds numbers ({printable(', '.join(header[:3]))}...), not column names; "
        "add a line with the names."
    )


def check_header_again(raw: pa.Table, source: str) -> None:
    """Refuse a header in the middle, left by joining two files."""
    names = raw.column_names
    for row in np.flatnonzero(pc.equal(raw[0], names[0]).to_numpy(zero_copy_only=False))[:1000]:
        if all(raw[j][int(row)].as_py().strip() == name for j, name in enumerate(names)):
            raise InputError(
                f"{source}: row {row + 1} is the header again (two files joined into one?); remove that line."
            )


def check_quotes(data: Any, delimiter: str, source: str) -> None:
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
                f"{source}: a quotation mark opened on line {line + 1} is never closed; close or remove it."
            ) from error


def reader_of(data: Any, delimiter: str, **options: Any) -> Any:
    text = io.TextIOWrapper(io.BytesIO(data[:]), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=delimiter, **options)


def where_ragged(data: Any, delimiter: str) -> str | None:
    """The first line with another number of fields than the header."""
    reader = reader_of(data, delimiter)
    try:
        n_fields = len(next(reader))
        for row in reader:
            if row and len(row) != n_fields:
                fields = printable(delimiter.join(row)[:60])
                # What R's write.table does: row names, and no name for them.
                unnamed = reader.line_num == 2 and len(row) == n_fields + 1
                advice = "name the first column" if unnamed else "correct it"
                return (
                    f"line {reader.line_num} has {len(row)} fields where the header has {n_fields} "
                    f"({fields}); {advice}, or give the right --delimiter."
                )
    except (csv.Error, StopIteration) as error:
        return f"line {reader.line_num}: {one_line(error)}."
    return None


# What a column holds


def inspect(name: str, values: pa.ChunkedArray, decimal: str, missing: Sequence[str]) -> Column:
    """Tell numbers from text, and count the marks of gaps."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if is_text(kind):
        return inspect_text(name, values, decimal, missing)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_number(kind):
        integers = pa.types.is_integer(kind)
        floats = as_floats(values)
        nulls = values.null_count
        column = Column(name, "true/false" if pa.types.is_boolean(kind) else "number", nulls, values=floats)
        nans = int(np.isnan(floats).sum()) - nulls
        column.marks.update({mark: n for mark, n in (("null", nulls), ("NaN", nans)) if n})
        return finish_numbers(column, missing, integers=integers)
    label = "date" if pa.types.is_temporal(kind) else str(kind)
    return Column(
        name, label, values.null_count, Counter({"null": values.null_count} if values.null_count else {})
    )


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def as_floats(values: pa.ChunkedArray) -> Floats:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    floats = pc.cast(values, pa.float64(), safe=False).combine_chunks()
    return np.array(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


def gap_spellings(missing: Sequence[str]) -> list[str]:
    spelled = [form for mark in GAPS for form in (mark, mark.lower(), mark.upper(), mark.capitalize())]
    return list(dict.fromkeys([*spelled, *missing]))


def inspect_text(name: str, text: pa.ChunkedArray, decimal: str, missing: Sequence[str]) -> Column:
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    spellings = pa.array(gap_spellings(missing), pa.string())
    gaps = pc.fill_null(pc.is_in(text, value_set=spellings), True)
    floats = try_numbers(text, gaps, decimal)
    if floats is None:  # the slow path: blanks around, plus signs, truth values, or no numbers
        text = pc.utf8_trim_whitespace(text)
        gaps = pc.fill_null(pc.is_in(text, value_set=spellings), True)
        floats = try_numbers(pc.replace_substring_regex(text, r"^\+", ""), gaps, decimal)
    column = Column(name, "number", int(pc.sum(gaps).as_py() or 0))
    if column.missing:
        found = pc.value_counts(pc.filter(text, gaps)).to_pylist()
        column.marks.update({mark["values"] or "empty": mark["counts"] for mark in found})
    if floats is not None:
        column.values = floats
        odd_nans = int(np.isnan(floats).sum()) - column.missing  # -nan, nan(0x1) and the like
        if odd_nans:
            column.marks["NaN"] += odd_nans
        finish_numbers(column, missing, integers=None)
        column.looks_like_id = column.looks_like_id or (column.kind == "integer" and has_leading_zeros(text))
        return column
    return finish_text(column, text, gaps, decimal)


def try_numbers(text: pa.ChunkedArray, gaps: pa.ChunkedArray, decimal: str) -> Floats | None:
    if decimal == ",":
        # A point in such a file groups thousands; made unreadable, it is asked about, not guessed.
        text = pc.replace_substring(pc.replace_substring(text, ".", "_"), ",", ".")
    try:
        return as_floats(pc.if_else(gaps, pa.scalar(None, pa.string()), text))
    except pa.ArrowInvalid:
        return None


def finish_numbers(column: Column, missing: Sequence[str], *, integers: bool | None) -> Column:
    """Numbers that stand for gaps, whole numbers, and those that only number the rows."""
    values = column.values
    assert values is not None
    for mark in missing:
        try:
            here = values == float(mark)
        except ValueError:
            continue
        if n := int(here.sum()):
            column.marks[mark] += n
            values[here] = np.nan
    gaps = np.isnan(values)
    column.missing = int(gaps.sum())
    column.numeric_share = 1.0
    if column.missing == len(values):
        column.kind = "empty"
    elif column.kind == "number":
        with np.errstate(invalid="ignore"):
            whole = bool((gaps | (np.floor(values) == values)).all()) if integers is None else integers
        column.kind = "integer" if whole else "number"
        column.looks_like_id = whole and not column.missing and numbers_the_rows(column.name, values)
    return column


def numbers_the_rows(name: str, values: Floats) -> bool:
    if len(values) < 3 or values[0] == values[-1]:
        return False
    counting = values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    return counting or (bool(ID_NAMES.match(name.strip())) and len(np.unique(values)) == len(values))


def gaps_of(values: pa.ChunkedArray, marks: Sequence[str]) -> Any:
    """Where a column that holds no numbers has its gaps."""
    gaps = pc.is_null(values)
    if is_text(values.type):
        spelled = ["" if mark == "empty" else mark for mark in marks]
        trimmed = pc.utf8_trim_whitespace(values.cast(pa.string()))
        gaps = pc.or_(gaps, pc.is_in(trimmed, value_set=pa.array(spelled, pa.string())))
    return gaps.to_numpy()


def has_leading_zeros(text: pa.ChunkedArray) -> bool:
    """Postal codes, patient numbers: digits, but not numbers."""
    zero = pc.filter(text, pc.and_(pc.starts_with(text, "0"), pc.greater(pc.utf8_length(text), 1)))
    return bool(pc.any(pc.match_substring_regex(zero, r"^0\d+$")).as_py())


def finish_text(column: Column, text: pa.ChunkedArray, gaps: pa.ChunkedArray, decimal: str) -> Column:
    entries = pc.filter(text, pc.invert(gaps))
    truth = pc.is_in(pc.utf8_lower(entries), value_set=pa.array(["true", "false"]))
    if pc.all(truth).as_py():
        column.kind = "true/false"
        column.values = as_floats(pc.equal(pc.utf8_lower(pc.if_else(gaps, None, text)), "true"))
        column.numeric_share = 1.0
        return column
    plain = pc.replace_substring(pc.replace_substring(text, ".", "_"), ",", ".") if decimal == "," else text
    number = pc.match_substring_regex(plain, NUMBER)
    odd = pc.and_not(pc.invert(number), gaps)
    row = int(pc.index(odd, True).as_py())
    column.kind = "text"
    column.odd = (row + 1, str(text[row].as_py()))
    column.numeric_share = float(pc.sum(pc.and_not(number, gaps)).as_py()) / len(entries)
    return column


# Which columns are clustered


@dataclass
class Choice:
    """The columns that are clustered, and those set aside with the reason."""

    used: list[str]
    aside: dict[str, str]

    def matrix(self, table: TableFile) -> Floats:
        return matrix(table, self.used)


def choose_columns(
    table: TableFile, columns: Sequence[str] = (), exclude: Sequence[str] = (), ids: Sequence[str] = ()
) -> Choice:
    """Numbers are clustered, text and identifiers set aside, unless told otherwise."""
    wanted, excluded, identifiers = (table.names(asked) for asked in (columns, exclude, ids))
    for name in wanted:
        if name in excluded or name in identifiers:
            raise InputError(f"column {shown(name)} is both asked for with --columns and set aside.")
        check_numeric(table, table.column(name))
    choice = Choice(list(wanted), {})
    for column in table.columns:
        name = column.name
        if name in wanted:
            continue
        if name in identifiers:
            choice.aside[name] = "identifier (--id)"
        elif name in excluded or wanted:
            choice.aside[name] = "excluded" if name in excluded else "not among --columns"
        elif column.kind == "empty":
            choice.aside[name] = "nothing observed"
        elif column.looks_like_id:
            choice.aside[name] = "identifier"
        elif column.values is not None:
            choice.used.append(name)
        else:
            if column.numeric_share > 0.5:
                check_numeric(table, column)
            choice.aside[name] = column.kind
    if not choice.used:
        reasons = [f"{shown(name)} ({why})" for name, why in list(choice.aside.items())[:8]]
        raise InputError(
            f"{table.source}: no numeric column to cluster, only {', '.join(reasons)}; "
            "choose with --columns, or encode text as numbers first."
        )
    return choice


def check_numeric(table: TableFile, column: Column) -> None:
    if column.values is not None:
        return
    if column.odd is None:
        raise InputError(
            f"{table.source}: column {shown(column.name)} holds {column.kind} values, which are not numbers; "
            "leave it out of --columns."
        )
    row, value = column.odd
    most = f" ({column.numeric_share:.0%} of the column are numbers)" if column.numeric_share else ""
    raise InputError(
        f"{table.source}: row {row}, column {shown(column.name)}: '{printable(value[:60])}' is not "
        f"a number{most}; correct it, call it a gap with --missing, or set the column aside with --exclude."
    )


def matrix(table: TableFile, names: Sequence[str], *, all_missing: bool = False) -> Floats:
    """The numbers of some columns, NaN in the gaps; infinities are refused, by row and column."""
    out = np.empty((table.n_rows, len(names)))
    for j, name in enumerate(names):
        column = table.column(name)
        check_numeric(table, column)
        assert column.values is not None
        out[:, j] = column.values
        large = np.abs(column.values) > LARGEST
        if large.any():
            row = int(np.flatnonzero(large)[0])
            raise InputError(
                f"{table.source}: row {row + 1}, column {shown(name)}: {column.values[row]:g} is "
                "infinite, or too large to reckon with; correct it, or call it a gap with --missing."
            )
    if not all_missing and np.isnan(out).all():
        raise InputError(
            f"{table.source}: every entry of the columns to cluster is missing; there is nothing to go by."
        )
    return out


# Writing


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
