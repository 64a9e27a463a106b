"""Files people send: workbooks, Stata, SPSS and SAS, JSON Lines, compressed ones. Each as an Arrow table.

What a file is, is told by its first bytes. The packages that read workbooks and statistics files
are optional; an absent one is named. A new format is told by `kind_of`, parsed in `sandbox/parsers.py` (a
process of its own), and made a table here.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.missing_codes import MissingCodes
from kpod._columns.notations.number_formats import PAIRS
from kpod._columns.positions_in_files import Cells, letters
from kpod._columns.roles import ordered
from kpod._columns.roles.heading_words import NO_ANSWER
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._files.memory_limits import ZIP
from kpod._files.sandbox import parent
from kpod._files.sandbox.parsers import PROGRAMS
from kpod._files.text import headings, rows_that_are_not_data

OLE = b"\xd0\xcf\x11\xe0"
SAS = b"\0" * 12 + b"\xc2\xea\x81\x60"
EXTRAS = {"python_calamine": "excel", "xlsxwriter": "excel", "pyreadstat": "stats"}


def check_installed(name: str, source: str, what: str) -> None:
    """Refuse a file that an optional package reads which is absent: by the extra that it comes with."""
    if importlib.util.find_spec(name) is None:
        package = name.replace("_", "-")
        raise InputError(
            f"{source}: {what} needs the package {package}: pip install 'scikit-kpod[{EXTRAS[name]}]'."
        )


def imported(name: str, source: str, what: str) -> Any:
    """An optional package, or an error that names it and the extra it comes with."""
    check_installed(name, source, what)
    return importlib.import_module(name)


def kind_of(data: Any) -> str | None:  # noqa: PLR0911
    """workbook, stata, spss, sas, xport, lines or array (of JSON); None for other text."""
    head = bytes(data[:100])
    if head[:4] in (ZIP, OLE):
        return "workbook"
    if head.startswith(b"<stata_dta>") or (
        head[:1] in b"\x6c\x6e\x6f\x71\x72\x73" and head[1:3] in (b"\x01\x01", b"\x02\x01")
    ):
        return "stata"
    if head[:4] in (b"$FL2", b"$FL3"):
        return "spss"
    if head[:16] == SAS:
        return "sas"
    if head.startswith((b"HEADER RECORD*******LIBRARY", b"HEADER RECORD*******LIBV8")):
        return "xport"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"{" and b":" in start:
        return "lines"
    if re.match(rb"\[\s*\{", start) or (start[:1] == b"[" and bytes(data[-100:]).rstrip()[-1:] == b"]"):
        return "array"
    return None


def read_other(
    data: Any,
    kind: str,
    source: str,
    sheet: str | None,
    missing: Any = (),
    *,
    every_row: bool = False,
    header: int | None = None,
    strict: bool = False,
) -> tuple[pa.Table, list[Note], Cells | None]:
    """The table, notes on it, and where its rows are on a sheet."""
    if kind == "workbook":
        return read_workbook(data, source, sheet, every_row=every_row, header=header, strict=strict)
    if header is not None:
        raise InputError(f"{source}: {option('--header')} only applies to text files and workbooks.")
    if kind in ("lines", "array"):
        return read_json(data, kind, source), [], None
    return *read_statistics(data, kind, source, missing), None


# JSON


def read_json(data: Any, kind: str, source: str) -> pa.Table:
    first, *columns = parent.parsed(data, kind, source)
    if isinstance(first, pa.Table):
        return first
    try:
        return table_of(first, columns)
    except UnicodeEncodeError as error:
        odd = printable(error.object[error.start : error.end])
        raise InputError(f"{source}: holds {odd}, half of a character; correct it.") from error


# Workbooks


def read_workbook(
    data: Any, source: str, sheet: str | None, *, every_row: bool, header: int | None, strict: bool
) -> tuple[pa.Table, list[Note], Cells]:
    check_installed("python_calamine", source, "reading a workbook")
    about, *blocks = parent.parsed(data, "workbook", source, sheet=sheet)
    notes: list[Note] = []
    if sheet is None and about["others"]:
        notes.append(Note("other sheets", values={"sheet": about["sheet"], "others": list(about["others"])}))
    rows = [row for block in blocks for _, row in block]
    numbers = [number for block in blocks for number, _ in block]
    table, remarks, kept, columns = from_rows(
        rows, spans_in(about, numbers), f"{source}, sheet '{printable(about['sheet'])}'",
        every_row=every_row, header=header, strict=strict,
    )  # fmt: skip
    named = {name: letters(about["columns"][j]) for name, j in zip(table.column_names, columns, strict=True)}
    return table, [*notes, *remarks], Cells([numbers[i] + 1 for i in kept], named)


def spans_in(about: dict[str, Any], numbers: list[int]) -> list[tuple[int, int, int]]:
    """Merged cells: their first and last row and their column among those that were read."""
    rows = {number: i for i, number in enumerate(numbers)}
    columns = {number: j for j, number in enumerate(about["columns"])}
    found, end = [], (-1, -1)
    for first, column, last in sorted(about["spans"], key=lambda span: span[1::-1]):
        if first in rows and column in columns and (column, first) > end:  # not over one another
            found.append((rows[first], bisect_right(numbers, last) - 1, columns[column]))
            end = column, last
    return found


def from_rows(
    rows: list[list[Any]],
    spans: Sequence[tuple[int, int, int]],
    source: str,
    *,
    every_row: bool = False,
    header: int | None = None,
    strict: bool = False,
) -> tuple[pa.Table, list[Note], list[int], list[int]]:
    """A table from the cells of a sheet, without titles and remarks; a cell merged over rows counts for each.

    `spans` are the merged cells: their first and last row, and their column. With `every_row`, what is under
    the header is data. With the table come notes on what was left out, and the numbers of the rows and
    columns that are in it.
    """
    width = max((len(row) for row in rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    is_full = [any(not is_empty(cell) for cell in row) for row in rows]
    if not any(is_full):
        raise InputError(f"{source}: is empty.")
    start = 0 if header == 0 else rows_that_are_not_data.titles([texts(row) for row in rows[:50]])
    notes: list[Note] = []
    if start:
        notes.append(
            rows_that_are_not_data.Found([texts(row) for row in rows[:start]], "first", "a title").left_out
        )
    filled = [j for j in range(width) if any(not is_empty(row[j]) for row in rows[start:])]
    top_rows = [
        texts([row[j] for j in filled]) for row in rows[start : start + rows_that_are_not_data.HEAD_ROWS]
    ]
    above = [texts([row[j] for j in filled]) for row in rows[:start]]
    found_names, n_headings, more = headings.names_of(top_rows, above, source, header=header, strict=strict)
    names = [""] * width  # of columns without a cell, which are no columns
    for j, name in zip(filled, found_names, strict=True):
        names[j] = name
    notes += more
    merged = []
    for first, last, column in spans:
        if first >= start + n_headings and column < width and not is_empty(rows[first][column]):
            merged.append(names[column])
            for row in rows[first + 1 : last + 1]:
                row[column] = rows[first][column]
    if merged:
        notes.append(Note("merged cells", tuple(dict.fromkeys(merged))))
    numbers = [i for i in range(start + n_headings, len(rows)) if is_full[i]]
    body = [rows[i] for i in numbers]
    set_apart = not all(is_full[-rows_that_are_not_data.MOST_REMARKS :])
    top, bottom, found = (
        (0, 0, [])
        if every_row
        else rows_that_are_not_data.edges(
            [texts(row) for row in body[: rows_that_are_not_data.HEAD_ROWS]],
            [texts(row) for row in body[-rows_that_are_not_data.SOME_ROWS :]],
            lambda j, start: np.array(
                [row[j] if type(row[j]) in (int, float) else np.nan for row in body[start:]]
            ),
            set_apart=set_apart,
        )
    )
    inside = slice(top, len(body) - bottom)
    body, numbers = body[inside], numbers[inside]
    columns = [[None if is_empty(row[j]) else row[j] for row in body] for j in range(width)]
    kept = [j for j in range(width) if names[j] or any(cell is not None for cell in columns[j])]
    table = table_of([names[j] for j in kept], [columns[j] for j in kept])
    return table, notes + [one.left_out for one in found], numbers, kept


def texts(cells: Sequence[Any]) -> list[str]:
    """Cells as text, for a look at them."""
    return ["" if is_empty(cell) else cell_text(cell) for cell in cells]


def is_empty(cell: Any) -> bool:
    return (
        cell is None
        or (isinstance(cell, str) and not cell.strip())
        or (isinstance(cell, float) and math.isnan(cell))
    )


def cell_text(cell: Any) -> str:
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def table_of(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> pa.Table:
    """Numbers as numbers, dates as dates; a column of several kinds as text."""
    arrays = []
    for cells in columns:
        kinds = {type(cell) for cell in cells if cell is not None}
        try:
            if kinds <= {int, float}:
                arrays.append(pa.array(cells, pa.float64()) if float in kinds else pa.array(cells))
            elif len(kinds) == 1:
                arrays.append(pa.array(cells))
            else:
                raise pa.ArrowInvalid("several kinds")
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            arrays.append(
                pa.array([None if cell is None else cell_text(cell) for cell in cells], pa.string())
            )
    return pa.Table.from_arrays(arrays, names=list(names))


# Stata, SPSS, SAS


def read_statistics(data: Any, kind: str, source: str, missing: Any) -> tuple[pa.Table, list[Note]]:
    check_installed("pyreadstat", source, f"reading {PROGRAMS[kind]} file")
    if data[:11] == b"<stata_dta>" and not bytes(data[-64:]).rstrip().endswith(b"</stata_dta>"):
        raise InputError(f"{source}: truncated; get a complete copy of the file.")
    about, *columns = parent.parsed(data, kind, source)
    names = [name for name, *_ in about]
    codes = MissingCodes.of(missing, names, source)
    notes: list[Note] = []
    out = []
    for (name, labels, measure), values in zip(about, columns, strict=True):
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        cells = [None if is_empty(cell) else cell for cell in plain]
        out.append(labelled(name, cells, dict(labels), measure, notes, codes.of_column(name)))
    table = table_of(names, out)
    for j, (name, labels, _) in enumerate(about):
        if labels and pa.types.is_string(table.schema.field(j).type):
            table = table.set_column(j, name, table.column(j).dictionary_encode())
    return table, notes


def labelled(
    name: str, cells: list[Any], labels: dict[Any, str], measure: str, notes: list[Note], given: Sequence[str]
) -> list[Any]:
    """Words, where a file gives every value one and they have no order; else codes, which count."""
    if not labels:
        return cells
    no_answer = [
        code for code, label in labels.items() if NO_ANSWER.search(str(label)) and code in set(cells)
    ]
    if any(cell_text(code) not in given for code in no_answer):
        text = {cell_text(code): str(labels[code]) for code in no_answer}
        notes.append(Note("labelled codes", (name,), {"labels": text}))
    found = {cell for cell in cells if cell is not None and cell not in no_answer}
    words_for_all = bool(found) and all(code in labels for code in found)
    if not words_for_all or no_answer:
        return cells
    in_order = [str(labels[code]) for code in sorted(found)]
    # Two values without an order, male and female, are no scale, though most programs declare them as one.
    if measure in ("scale", "ordinal") and not is_pair(in_order):
        return cells
    if measure != "nominal" and ordered.order_of(in_order) == in_order:
        return cells
    return [None if cell is None else str(labels[cell]) for cell in cells]


def is_pair(words: Sequence[str]) -> bool:
    """Whether these are two names, not yes and no or less and more."""
    return len(words) == 2 and ordered.order_of(words) is None and set(map(str.lower, words)) not in PAIRS
