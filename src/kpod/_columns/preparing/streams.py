"""Batches of a stream as a preparer takes them: dicts as rows, absent columns empty, new levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpod._columns.preparing.encoding import CATEGORY
from kpod._columns.preparing.frames import words

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile


def rows_as_frame(X: Any) -> Any:
    """A dict, or a list of dicts, as a pyarrow table; anything else as it is."""
    rows: Sequence[Any] = [X] if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        return X
    import pyarrow as pa

    columns = {}
    for name in dict.fromkeys(str(name) for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # of several kinds
            columns[name] = pa.array(words(values), pa.string())
    return pa.table(columns)


def with_columns(X: Any, names: Sequence[str]) -> Any:
    """A data frame with empty columns for those that are absent; at least one has to be there."""
    import narwhals.stable.v2 as nw

    if not nw.dependencies.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    absent = [name for name in names if name not in frame.columns]
    if not absent or len(absent) == len(names):
        return X
    return frame.with_columns(*(nw.lit(None).cast(nw.Float64).alias(name) for name in absent)).to_native()


def more_levels(
    table: TableFile, names: Sequence[str], kinds: Sequence[str], levels: Sequence[Sequence[str]]
) -> list[list[str]]:
    """The levels of each column with those behind them that a table has for the first time.

    A column of two levels is one column of numbers, in which a third has no place.
    """
    import pyarrow.compute as pc

    from kpod._columns.preparing.column_values import words_of

    out = [list(of_column) for of_column in levels]
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == CATEGORY and len(out[j]) > 2:
            found = pc.unique(words_of(table, table.column(name))).to_pylist()
            out[j] += [word for word in found if word is not None and word not in out[j]]
    return out
