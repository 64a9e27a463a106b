"""Where the rows of a table are in its file, so that messages can name the line or the cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 1 << 20


@dataclass(frozen=True)
class Lines:
    """Rows of a text file, on a line each, or on several where a field holds line breaks."""

    first: int
    """The line on which the first row begins, from 1."""
    blank: int | None = None
    """The first blank line; from there on, lines are not known."""

    def line(self, raw: Any, row: int) -> int:
        import pyarrow.compute as pc

        above = raw.slice(0, row)
        breaks = sum(pc.sum(pc.count_substring(column, "\n")).as_py() or 0 for column in above.columns)
        return int(self.first + row + breaks)

    def of(self, raw: Any, row: int, name: str) -> str:
        line = self.line(raw, row)
        return f"line {line}" if self.blank is None or line < self.blank else f"row {row + 1}"

    def below(self, raw: Any, n: int) -> Lines:
        """That of the rows from the n-th on."""
        return Lines(self.line(raw, n), self.blank)


@dataclass(frozen=True)
class Cells:
    """Rows of a sheet."""

    rows: Sequence[int]
    columns: dict[str, str]

    def of(self, raw: Any, row: int, name: str) -> str:
        return f"cell {self.columns[name]}{self.rows[row]}"


def first_blank(data: Any, n_rows: int) -> int | None:
    """The first blank line of a text with so many rows below its header, if it has more lines than that."""
    if sum(data[at : at + BLOCK].count(b"\n") for at in range(0, len(data), BLOCK)) <= n_rows + 1:
        return None
    found = re.search(rb"\n\r?\n", data)
    return data[: found.start()].count(b"\n") + 2 if found else None


def letters(column: int) -> str:
    """What a spreadsheet calls a column, counted from 0: A to Z, AA, AB and so on."""
    before, last = divmod(column, 26)
    return (letters(before - 1) if before else "") + chr(ord("A") + last)
