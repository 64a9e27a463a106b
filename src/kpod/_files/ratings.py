"""Ratings in long form: a line for each row, item and value, clustered as the sparse table they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from kpod._columns.column_inspection import inspect
from kpod._columns.preparing.column_values import words_of
from kpod._columns.preparing.columns_in_use import ColumnUsage
from kpod._columns.roles.column_facts import Role
from kpod._columns.tables import TableFile, check_numeric, shown
from kpod._common.errors import InputError, printable
from kpod._common.options import option
from kpod._common.sentences.formatting import listed


@dataclass(frozen=True)
class Ratings:
    """A sparse table: who, what, and the values; what is not there is missing."""

    table: TableFile
    """A line for each row of the sparse table, with its name."""
    items: list[str]
    values: Any

    @property
    def choice(self) -> ColumnUsage:
        name = self.table.columns[0].name
        return ColumnUsage(self.items, {name: "names the rows"}, {name: Role("identifier", "names the rows")})


def as_ratings(table: TableFile, columns: Mapping[str, str | None]) -> Ratings:
    """The sparse table that lines of ratings are."""
    if table.in_pieces:
        raise InputError(
            f"{table.source}: ratings need the whole table in memory{table.whole_size}; give one file."
        )
    absent = [option for option, name in columns.items() if name is None]
    if absent:
        needed = [option(name) for name in columns]
        raise InputError(f"ratings need {listed(needed)}; {option(absent[0])} is missing.")
    return pivot(table, *(table.column(str(name)).name for name in columns.values()))


def pivot(table: TableFile, rows: str, items: str, values: str) -> Ratings:
    """The sparse table of the lines; lines without a value are left out, repeated ones refused."""
    columns = [table.column(name) for name in (rows, items, values)]
    check_numeric(table, columns[2])
    numbers = columns[2].values
    assert numbers is not None
    who, what = (pc.dictionary_encode(combined(words_of(table, column))) for column in columns[:2])
    if who.null_count or what.null_count:
        name = columns[0 if who.null_count else 1].name
        raise InputError(
            f"{table.source}: column {shown(name)} has gaps; every line needs a value there: fill them, or "
            "remove those lines."
        )
    known = np.isfinite(numbers)
    row, item = who.indices.to_numpy()[known], what.indices.to_numpy()[known]
    shape = (len(who.dictionary), len(what.dictionary))
    places = row.astype(np.int64) * shape[1] + item
    first, times = np.unique(places, return_counts=True)
    if (times > 1).any():
        place = int(first[times > 1][0])
        names = who.dictionary[place // shape[1]], what.dictionary[place % shape[1]]
        raise InputError(
            f"{table.source}: {rows} '{printable(names[0])}' has {int(times.max())} values for {items} "
            f"'{printable(names[1])}'; keep one of them."
        )
    csr = sparse.csr_array((numbers[known], (row, item)), shape=shape)
    raw = pa.table({columns[0].name: who.dictionary})
    named = inspect(columns[0].name, raw[0], ".", ())
    line = TableFile(table.source, raw, [named], table.dialect, table.unused_codes)
    return Ratings(line, [str(name) for name in what.dictionary.to_pylist()], csr)


def combined(words: Any) -> Any:
    return words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
