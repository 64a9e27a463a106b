"""What each column of a table is, as something to print, to show in a notebook, and to edit."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from kpod._common.errors import printable


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column.

    Attributes
    ----------
    column : str
    role : str
        "number", "boolean", "category", "identifier", "date" and so on.
    used : bool
        Whether it is clustered.
    why : str
        The reason, in words.
    """

    column: str
    role: str
    used: bool
    why: str

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return printable(self.column), self.role, "yes" if self.used else "no", printable(self.why)


@dataclass(frozen=True)
class RoleTable:
    """The columns of a table and their roles.

    `to_dict()` gives a dict of columns and roles; change it, and pass it to `TablePreparer(roles=...)`.
    """

    rows: list[ColumnRole]

    HEADER = ("column", "role", "used", "why")

    def __iter__(self) -> Iterator[ColumnRole]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> ColumnRole:
        for row in self.rows:
            if row.column == column:
                return row
        raise KeyError(column)

    def to_dict(self) -> dict[str, str]:
        return {row.column: row.role for row in self.rows}

    def __str__(self) -> str:
        lines = [self.HEADER, *(row.cells for row in self.rows)]
        widths = [max(len(line[j]) for line in lines) for j in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]])
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.HEADER)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row.cells)}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
