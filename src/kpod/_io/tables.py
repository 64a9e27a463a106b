"""A table out of a file: its columns as they came, the numbers in them, and which are clustered."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from kpod._io.files import InputError, printable
from kpod._typing import Floats

LARGEST = 1e150
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
