"""Lines with another number of fields than the header, read as a spreadsheet reads them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kpod._common.notes import Note

MOST_SHORT = 0.1
"""Of the lines, those that may have fewer fields than the header; with more, the delimiter is another one."""
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


def made_even(
    data: Any, delimiter: str, names: Sequence[str], n_headings: int, skipped: int
) -> tuple[Any, list[str], list[Note]] | None:
    """The text with as many fields in each line as there are names, the names, and a note; None if it is not.

    Short lines are filled with gaps, but for a last one that was cut off. If all lines have one field more
    than the header, that is a column without a name: row names in front, as R writes them, or nothing at
    the end.
    """
    reader = csv.reader(io.StringIO(data[:].decode(), newline=""), delimiter=delimiter)
    rows: list[tuple[int, int, str]] = [(reader.line_num, len(row), row[-1]) for row in reader if row][
        n_headings:
    ]
    lengths = Counter(n for _, n, _ in rows)
    if set(lengths) == {len(names) + 1}:
        in_front = any(last.strip() for _, _, last in rows)
        note = Note("column without a name", values={"place": "first" if in_front else "last"})
        return data, (["", *names] if in_front else [*names, ""]), [note]
    short = {line: len(names) - n for line, n, _ in rows if n < len(names)}
    is_cut_off = bool(rows) and rows[-1][1] < len(names) and bytes(data[-1:]) != b"\n"
    if not short or max(lengths) > len(names) or len(short) > MOST_SHORT * len(rows) or is_cut_off:
        return None
    lines = bytes(data).splitlines(keepends=True)
    for line, n in short.items():
        text = lines[line - 1].rstrip(b"\r\n")
        lines[line - 1] = text + n * delimiter.encode() + lines[line - 1][len(text) :]
    note = Note("short lines", values={"n": len(short), "line": min(short) + skipped})
    return b"".join(lines), list(names), [note]
