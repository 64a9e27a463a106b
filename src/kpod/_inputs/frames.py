"""Data frames of pandas, polars and pyarrow as numbers, and back.

What makes blocks on a worker of Spark imports no more than this: scikit-learn takes a second there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kpod._common.sentences.formatting import some
from kpod._common.typing import AnyFloats
from kpod._inputs import conversion
from kpod._inputs.conversion import ENCODE


def is_frame(X: Any) -> bool:
    """Whether X is a pandas, polars or pyarrow table."""
    return not isinstance(X, np.ndarray) and bool(nw.dependencies.is_into_dataframe(X))


def frame_of(X: Any) -> nw.DataFrame[Any]:
    """A data frame of any library, whose column names must be unique."""
    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        names = X.column_names if hasattr(X, "column_names") else list(X.columns)
        twice = [repr(name) for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(f"X has several columns named {some(twice)}. Rename or drop them.") from error


def text_columns(X: Any) -> list[str]:
    """Columns of a dataframe that hold no numbers."""
    return [column.name for column in frame_of(X).iter_columns() if not is_numeric(column)]


def is_numeric(column: Any) -> bool:
    """Whether all that a column holds is numbers; of objects, one has to look."""
    if column.dtype not in (nw.Object, nw.Unknown):
        return may_be_numeric(column)
    with suppress(ValueError, TypeError):
        column_as_floats(column)
        return True
    return False


def frame_as_array(frame: nw.DataFrame[Any], known: Any = ()) -> AnyFloats:
    """The numbers of a frame; `known` are the columns that a fitted model takes."""
    columns = list(frame.iter_columns())
    text = {
        column.name: f"{column.name!r} ({kind_of(column)})"
        for column in columns
        if not may_be_numeric(column)
    }
    if text:
        raise ValueError(
            f"Only numbers can be clustered, but these columns are not numeric: {some(list(text.values()))}. "
            f"{what_to_do(text, frame.columns, known)}"
        )
    single = bool(columns) and all(column.dtype == nw.Float32 for column in columns)
    out = np.empty(frame.shape, np.float32 if single else np.float64)
    for j, column in enumerate(columns):
        out[:, j] = column_as_floats(column)
    return out


def what_to_do(text: Any, columns: Any, known: Any) -> str:
    """About columns of text: at first, and where a model is there already."""
    if not len(known) or not set(known) <= set(columns):
        return f"Drop such columns, or {ENCODE}."
    advice = []
    if set(text) - set(known):
        advice.append("Pass the columns that the model was fitted on: X[list(model.feature_names_in_)].")
    if inside := [repr(name) for name in text if name in known]:
        advice.append(f"It was fitted on numbers in {some(inside)}: encode them so (yes as 1, no as 0).")
    return " ".join(advice)


def kind_of(column: Any) -> str:
    dates = column.dtype in (nw.Datetime, nw.Date)
    return "dates" if dates else "time spans" if column.dtype == nw.Duration else str(column.dtype)


def may_be_numeric(column: Any) -> bool:
    return column.dtype.is_numeric() or column.dtype in (nw.Boolean, nw.Object, nw.Unknown)


def column_as_floats(column: Any) -> AnyFloats:
    def place(row: int) -> tuple[int, str]:
        return row, repr(column.name)

    if column.dtype == nw.Float32:
        return column.to_numpy().astype(np.float32)
    if column.dtype.is_integer():  # pyarrow would refuse, and others round
        gaps = column.is_null().to_numpy()
        whole = conversion.whole_as_floats(column.fill_null(0).to_numpy(), place)
        return np.where(gaps, np.nan, whole)
    if column.dtype not in (nw.Object, nw.Unknown):
        return column.cast(nw.Float64).to_numpy()
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in conversion.NOT_NUMBERS:
        raise ValueError(
            f"Only numbers can be clustered, but column {column.name!r} holds "
            f"{conversion.NOT_NUMBERS[values.dtype.kind]}. Drop the column, or {ENCODE}."
        )
    values = np.where(column.is_null().to_numpy(), np.nan, values.astype(object))
    return conversion.objects_as_floats(values, place)


def with_values(X: Any, values: AnyFloats, changed: Any) -> Any:
    """A table like X with the given values in the changed columns; an array for an array."""
    if not is_frame(X):
        return values
    frame = nw.from_native(X, eager_only=True)
    columns = []
    for j in np.flatnonzero(changed):
        name = frame.columns[j]
        column = nw.new_series(name, values[:, j], backend=frame.implementation)
        if frame.implementation.is_pandas_like():
            column = nw.from_native(column.to_native().set_axis(X.index), series_only=True)
        else:
            column = nw.new_series(
                name,
                [None if np.isnan(v) else float(v) for v in values[:, j]],
                nw.Float64,
                backend=frame.implementation,
            )
        columns.append(column)
    return frame.with_columns(*columns).to_native() if columns else X
