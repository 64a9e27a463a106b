"""Lines with another number of fields than the header, read as a spreadsheet reads them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kpod._common.notes import Note
from kpod._files.text.rows_that_are_not_data import is_number

MOST_SHORT = 0.1
"""Of the lines, those that may have fewer fields than the header; with more, the delimiter is another one."""
LEAST_WHOLE = 3
MOST_COMPARED = 2_000
UNLIKE = 0.2
"""Shares of numbers further apart are those of different columns."""
QUOTED = re.compile(rb"(?m)(^|[,;\t|])'([^'\r\n]*)'(?=[,;\t|\r\n]|$)")


def with_double_quotes(data: Any) -> Any:
    """The text with "..." for '...' around fields, where all of a column have these; else as it was."""
    if data.find(b'"') >= 0 or data[: 1 << 18].find(b"'") < 0:
        return data
    head = bytes(data[: 1 << 18]).splitlines()[1:]
    fields = [re.split(rb"[,;\t|]", line) for line in head[:200]]
    columns = zip(*fields, strict=False)
    quoted = any(
        sum(map(is_quoted, column)) >= max(3, 0.9 * sum(map(bool, column)))
        for column in (list(map(bytes.strip, one)) for one in columns)
    )
    return QUOTED.sub(rb'\1"\2"', bytes(data)) if quoted else data


def is_quoted(field: bytes) -> bool:
    return len(field) > 1 and field[:1] == field[-1:] == b"'"


def is_same_table(rows: Sequence[Sequence[str]], n_fields: int) -> bool:
    """Whether lines that are short hold in each of their fields what whole lines hold there.

    Numbers where these have numbers, and words where they have words; and both occur.
    """
    whole = [row for row in rows if len(row) == n_fields]
    short = [row for row in rows if len(row) < n_fields]
    if len(whole) < LEAST_WHOLE or not short:
        return False
    n = min(map(len, short))
    kinds = [(numeric_share(whole, j), numeric_share(short, j)) for j in range(n)]
    alike = all(abs(one - other) <= UNLIKE for one, other in kinds)
    shares = [one for one, _ in kinds]
    return alike and n > 1 and max(shares) > 1 - UNLIKE and min(shares) < UNLIKE


def numeric_share(rows: Sequence[Sequence[str]], column: int) -> float:
    """Of the entries of a column, the share that are numbers."""
    entries = [row[column] for row in rows if row[column].strip()]
    return sum(map(is_number, entries)) / max(1, len(entries))


def made_even(
    data: Any, delimiter: str, names: Sequence[str], n_headings: int, skipped: int
) -> tuple[Any, list[str], list[Note]] | None:
    """The text with as many fields in each line as there are names, the names, and a note; None if it is not.

    Short lines are filled with gaps, but for a last one that was cut off. If all lines have one field more
    than the header, that is a column without a name: row names in front, as R writes them, or nothing at
    the end.
    """
    reader = csv.reader(io.StringIO(data[:].decode(), newline=""), delimiter=delimiter)
    rows: list[tuple[int, int, str]] = []
    some: list[list[str]] = []
    for row in reader:
        if row:
            rows.append((reader.line_num, len(row), row[-1]))
            if n_headings < len(rows) <= MOST_COMPARED:
                some.append(row)
    rows = rows[n_headings:]
    lengths = Counter(n for _, n, _ in rows)
    if set(lengths) == {len(names) + 1}:
        in_front = any(last.strip() for _, _, last in rows)
        note = Note("column without a name", values={"place": "first" if in_front else "last"})
        return data, (["", *names] if in_front else [*names, ""]), [note]
    short = {line: len(names) - n for line, n, _ in rows if n < len(names)}
    is_cut_off = bool(rows) and rows[-1][1] < len(names) and bytes(data[-1:]) != b"\n"
    if not short or max(lengths) > len(names) or is_cut_off:
        return None
    if len(short) > MOST_SHORT * len(rows) and not is_same_table(some, len(names)):
        return None
    lines = bytes(data).splitlines(keepends=True)
    for line, n in short.items():
        text = lines[line - 1].rstrip(b"\r\n")
        lines[line - 1] = text + n * delimiter.encode() + lines[line - 1][len(text) :]
    note = Note("short lines", values={"n": len(short), "line": min(short) + skipped})
    return b"".join(lines), list(names), [note]
