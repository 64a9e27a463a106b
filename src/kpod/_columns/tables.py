"""A table from a file: its raw columns, the numbers in them, and which are clustered."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from kpod._columns.missing_codes import matching
from kpod._columns.roles.column_facts import Role
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences.formatting import percent, some
from kpod._common.typing import AnyFloats, Floats

SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "arrow", ".arrow": "arrow", ".ipc": "arrow", ".xlsx": "excel",
}  # fmt: skip
FILE = "file"
"""The column of the output with the file that a row is from."""


@dataclass(frozen=True)
class Dialect:
    """How a text file writes a table."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


@dataclass
class Column:
    """One column: its kind, and its numbers if it has any."""

    name: str
    kind: str
    missing: int
    missing_codes: Counter[str] = field(default_factory=Counter)
    values: Floats | None = None
    low: float = np.nan
    high: float = np.nan
    """The smallest and the largest of its numbers, as it was read."""
    role: Role = field(default_factory=lambda: Role("text", ""))
    leading_zeros: bool = False
    days: bool = False
    """Whether the numbers are days since 1970, made of dates."""
    how_written: str = ""
    """Of numbers written with currency, percent signs or thousands, an example of how they were read."""
    decimal: str = "."
    """The decimal mark with which numbers in text were read."""
    ambiguous: str = ""
    """An entry that is one of two numbers, depending on what its comma or point divides."""
    numeric_share: float = 0.0
    odd: tuple[int, str] | None = None
    """The first entry that is neither a number nor a gap: its row (from 1) and text."""
    odd_values: tuple[str, ...] = ()
    """All different entries like that, if they are few."""
    is_check_box: bool = False
    """Whether it holds a value or nothing, and 1 or 0 stand for that."""
    n_odd: int = 0
    """Entries like that which were taken as gaps."""


@dataclass
class TableFile:
    """A table as it was read."""

    in_pieces: ClassVar[bool] = False
    source: str
    raw: pa.Table
    columns: list[Column]
    dialect: Dialect | None = None
    """Of a text file, else None."""
    unused_codes: list[str] = field(default_factory=list)
    """Values given as missing that occur in no column."""
    notes: list[Note] = field(default_factory=list)
    """Notes on how it was read."""
    place: Any = None
    """Where its rows are in the file, if that is known."""
    look: Callable[[Any], list[Column]] | None = None
    """Inspects the columns of another table as those of this one were."""
    parts: Any = None
    """Of a table in several files, these, and which of them each row is from."""

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
        hint = (
            f"did you mean {shown(close[0])}?"
            if close
            else f"there are {some([shown(name) for name in self.by_name], most=8)}."
        )
        raise InputError(f"{self.source}: there is no column {shown(name)}; {hint}")

    def where(self, row: int, name: str) -> str:
        """How to find an entry in the file: by its line or cell, else by its row, counted from 1."""
        return self.place.of(self.raw, row, name) if self.place else f"row {row + 1}"

    def read_text(self) -> None:
        """Say what columns without numbers are by all of their rows, where that is still to be done."""

    def close(self) -> None:
        """Remove what it keeps on a disk; one in memory keeps nothing."""

    @property
    def whole_size(self) -> str:
        """How much memory the whole table would take, in brackets; nothing of one that is there already."""
        return ""

    def files(self) -> Any:
        """Of a table in several files, the number of the one that each row is from; else None."""
        return None if self.parts is None else pa.array(self.parts.of_row)

    def notes_without(self, names: Iterable[str]) -> list[Note]:
        """Notes, except those on some columns only."""
        unused = set(names)
        return [note for note in self.notes if not note.columns or not unused.issuperset(note.columns)]

    def numbers(self, name: str) -> Floats | None:
        """The numbers of a column, if it holds numbers."""
        return self.column(name).values

    def names(self, given: Sequence[str]) -> list[str]:
        """Column names as given: one by one, several separated by commas, or patterns (q_*)."""
        found: list[str] = []
        for text in given:
            for part in self.split(text):
                found += matching(part, self.by_name) or [part]
        return [self.column(name).name for name in dict.fromkeys(found)]

    def split(self, text: str) -> list[str]:
        """The parts between commas; a comma within the name of a column divides nothing."""
        parts, out = text.split(","), []
        while parts:
            ends = (n for n in range(len(parts), 1, -1) if ",".join(parts[:n]).strip() in self.by_name)
            n = next(ends, 1)
            out.append(",".join(parts[:n]).strip())
            parts = parts[n:]
        return out


def shown(name: str) -> str:
    return f"'{printable(name)}'" if name else "(the one without a name)"


def missing_option(column: Column) -> str:
    """How to treat the odd entries of a column as missing."""
    few = 0 < len(",".join(column.odd_values)) <= 60 and not any("," in value for value in column.odd_values)
    return f" with {option('--missing', column.odd_values)}" if few else f" ({option('--missing')})"


def two_ways(column: Column, *, in_pieces: bool = False) -> str:
    """What to do about numbers whose comma or point may divide thousands or decimals."""
    value = printable(column.ambiguous)
    mark, name, other = (",", "comma", ".") if "," in value else (".", "point", ",")
    if in_pieces:  # which needs plain numbers, without thousands
        return (
            f"'{value}' may be {value.replace(mark, '')} or {value.replace(mark, '.')}; specify "
            f"{option('--decimal', mark)} if the {name} is the decimal mark, otherwise write plain numbers "
            f"or leave the column out ({option('--exclude')})."
        )
    return (
        f"'{value}' may be {value.replace(mark, '')} or {value.replace(mark, '.')}; specify "
        f"{option('--decimal', other)} (the {name} separates thousands) or {option('--decimal', mark)} (the "
        f"{name} is the decimal mark)."
    )


def check_numeric(table: TableFile, column: Column, *, may_leave_out: bool = True) -> None:
    if column.values is not None:
        return
    if column.odd is None and table.in_pieces and column.kind in ("yes/no", "true/false"):
        raise InputError(
            f"{table.source}: column {shown(column.name)} holds {column.kind} values, which a table that is "
            f"read in pieces cannot; write 1 and 0, or leave the column out ({option('--exclude')})."
        )
    leave_out = f"leave it out of {option('--columns')}"
    if column.odd is None:
        raise InputError(
            f"{table.source}: column {shown(column.name)} holds {column.kind} values, which are not numbers; "
            f"{leave_out if may_leave_out else 'correct it'}."
        )
    row, value = column.odd
    where = table.where(row - 1, column.name)
    share = percent(column.numeric_share)
    most = f" ({share} of the column are numbers)" if column.numeric_share else ""
    treat, leave = missing_option(column), f", or leave the column out ({option('--exclude')})"
    raise InputError(
        f"{table.source}: {where}, column {shown(column.name)}: '{printable(value[:60])}' is not "
        f"a number{most}; correct it, {'' if may_leave_out else 'or '}treat it as missing{treat}"
        f"{leave if may_leave_out else ''}."
    )


def precision(schema: pa.Schema, names: Sequence[str]) -> Any:
    """float32 where all of these columns are; else float64."""
    types = {schema.field(name).type for name in names}
    return np.float32 if types <= {pa.float32(), pa.float16()} else np.float64


def matrix(table: TableFile, names: Sequence[str], *, all_missing: bool = False) -> AnyFloats:
    """The numbers of some columns, NaN in the gaps; infinities are refused, by row and column."""
    from kpod._inputs.validation import largest  # with scikit-learn, which describing a table can do without
    from kpod._kernels.columns import interleave

    out = np.empty((table.n_rows, len(names)), precision(table.raw.schema, names))
    # The engine's limit, and that of adding squares up over the rows, as scaling does.
    most = largest(out.dtype, len(names) * table.n_rows)
    columns = []
    for name in names:
        column = table.column(name)
        check_numeric(table, column, may_leave_out=not all_missing)
        columns.append(np.ascontiguousarray(column.values, out.dtype))
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    n_missing, whole = np.zeros(len(names), np.int64), np.ones(len(names), np.uint8)
    no_bits: list[None] = [None] * len(names)
    interleave(columns, no_bits, np.zeros(len(names), np.int64), out, low, high, n_missing, whole)
    for j, name in enumerate(names):
        if max(-low[j], high[j]) > most:
            values = columns[j]
            row = int(np.flatnonzero(np.abs(values) > most)[0])
            raise InputError(
                f"{table.source}: {table.where(row, name)}, column {shown(name)}: {values[row]:g} is "
                "infinite, or too large to compute with; correct it, or treat it as missing with "
                f"{option('--missing')}."
            )
    if not all_missing and (n_missing == table.n_rows).all():
        raise InputError(f"{table.source}: all entries of the columns to cluster are missing.")
    return out
