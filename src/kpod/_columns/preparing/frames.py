"""Data frames and arrays as tables whose columns are inspected, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from kpod._common.sentences.formatting import kind_of
from kpod._inputs import containers, conversion, frames

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile

X_ = "X"
"""What a table without a file is called in messages."""


def frame_kind(X: Any) -> str:
    if nw.dependencies.is_pandas_dataframe(X):
        return "pandas"
    if nw.dependencies.is_polars_dataframe(X):
        return "polars"
    if nw.dependencies.is_pyarrow_table(X):
        return "pyarrow"
    return "array"


def is_gap(value: Any) -> bool:
    """None, NaN, NaT and NA differ from themselves, or cannot be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError, ArithmeticError):  # the last of a decimal NaN that signals
        return True


def word(value: Any) -> str:
    represented: Any = type(value).__repr__
    if represented is object.__repr__:
        raise ValueError(f"X holds objects of {kind_of(value)}, which are neither numbers nor text.")
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def words(values: Sequence[Any]) -> list[str | None]:
    return [None if is_gap(value) else word(value) for value in values]


def table_of(
    X: Any,
    missing_values: Any = None,
    *,
    decimal: str | None = None,
    answers: Mapping[str, Collection[str]] | None = None,
    strict: bool = False,
) -> TableFile:
    """A data frame or an array as a table, its columns inspected as those of a file are.

    An array has no names to judge by: its columns are the numbers and the words that they hold.
    """
    check_pyarrow()
    import pyarrow as pa

    from kpod._columns.missing_codes import MissingCodes
    from kpod._columns.roles.column_facts import Role
    from kpod._columns.table_inspection import look_at_columns
    from kpod._columns.tables import Column, TableFile

    is_array = frame_kind(X) == "array"
    columns = columns_of_array(X) if is_array else columns_of_frame(X)
    raw = pa.table({name: pa.chunked_array([values]) for name, values in columns.items()})
    codes = MissingCodes.of(missing_values, raw.column_names, X_)
    inspected, _, notes = look_at_columns(raw, None, decimal, codes, answers or {}, strict=strict)
    if is_array:
        for column in inspected:
            column.role = Role("number", "numbers") if column.values is not None else column.role
    unused = codes.found_nowhere({column.name: column.missing_codes for column in inspected})

    def look(rows: Any) -> list[Column]:
        return look_at_columns(rows, None, decimal, codes, answers or {}, strict=strict)[0]

    return TableFile(X_, raw, inspected, None, unused, notes, look=look)


def check_pyarrow() -> None:
    """Refuse to read tables without the package that does it."""
    if find_spec("pyarrow") is None:
        raise ModuleNotFoundError(
            "TablePreparer, kpod.read and kpod.analyze need pyarrow: pip install 'scikit-kpod[files]'.",
            name="pyarrow",
        )


def columns_of_frame(X: Any) -> dict[str, Any]:
    import pyarrow as pa

    frame = frames.frame_of(X)
    out: dict[str, Any] = {}
    for series in frame.iter_columns():
        name = str(series.name)
        if name in out:
            raise ValueError(f"X has several columns named {name!r}. Rename or drop them.")
        try:
            values = arrow_column(series)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError):
            values = pa.array(words(series.to_list()), pa.string())  # a column of several kinds
        out[name] = values
    return out


def arrow_column(series: Any) -> Any:
    import pyarrow as pa

    native = series.to_native()
    if isinstance(series.dtype, nw.Enum):
        levels = [str(level) for level in series.cat.get_categories().to_list()]
        at = {level: place for place, level in enumerate(levels)}
        places = [None if is_gap(value) else at[str(value)] for value in series.to_list()]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(levels), ordered=True)
    if isinstance(native, pa.ChunkedArray):
        return native.combine_chunks()
    if hasattr(native, "to_arrow"):  # polars
        return native.to_arrow()
    values = pa.array(native, from_pandas=True)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(values, pa.ExtensionArray):
        raise TypeError("a type of pandas that others do not have")
    return values


def columns_of_array(X: Any) -> dict[str, Any]:
    import pyarrow as pa

    out = {}
    for j, column in enumerate(X.T):
        try:
            floats = conversion.as_floats(column, lambda row, j=j: (row, str(j)))
            values = pa.array(np.ascontiguousarray(floats), from_pandas=True)
        except conversion.NotNumberError:
            values = pa.array(words(column.tolist()), pa.string())
        out[f"x{j}"] = values
    return out


def array_in(X: Any) -> Any:
    """An array as scikit-learn can check it: what is masked is a gap."""
    table = containers.array_in(X)
    conversion.check_kind(table.dtype)
    if isinstance(table, np.ma.MaskedArray):
        gaps, table = np.ma.getmaskarray(table), np.ma.getdata(table).astype(object)
        table[gaps] = None
    return np.asarray(table)


def as_frame(data: dict[str, Any], kind: str) -> Any:
    """Columns as a data frame of the kind that was given; an array for an array."""
    if kind == "array":
        mixed = any(values.dtype == object for values in data.values())
        return np.column_stack([v.astype(object) if mixed else v for v in data.values()])
    plain = data if kind == "pandas" else {name: as_list(values) for name, values in data.items()}
    backend: Any = kind
    return nw.from_dict(plain, backend=backend).to_native()


def as_list(values: Any) -> list[Any]:
    return [None if is_gap(value) else value for value in values.tolist()]
