"""Columns of pandas, polars and pyarrow frames as words and numbers, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kpod._common.typing import Floats
from kpod._inputs import conversion, validation

DAY = 86400.0


def frame_kind(X: Any) -> str:
    if nw.dependencies.is_pandas_dataframe(X):
        return "pandas"
    if nw.dependencies.is_polars_dataframe(X):
        return "polars"
    if nw.dependencies.is_pyarrow_table(X):
        return "pyarrow"
    return "array"


def is_temporal(kind: Any) -> bool:
    return bool(kind.is_temporal())


def is_object(kind: Any) -> bool:
    return kind in (nw.Object, nw.Unknown)


def is_ordered(series: Any) -> bool:
    native = series.to_native()
    return bool(getattr(getattr(native, "dtype", None), "ordered", False))


def is_gap(value: Any) -> bool:
    """None, NaN, NaT and NA differ from themselves, or cannot say."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError, ArithmeticError):  # the last of a decimal NaN that signals
        return True


def words(series: Any) -> list[str | None]:
    return [None if is_gap(value) else word(value) for value in series.to_list()]


def word(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def numbers(series: Any) -> Floats:
    return np.array(validation.column_as_floats(series), dtype=np.float64)


def words_or_numbers(series: Any) -> Any:
    """A column of Python objects: numbers if all of them are, else words."""
    entries = series.to_list()
    if any(isinstance(value, (dt.date, dt.time)) for value in entries):
        raise ValueError(f"Column {series.name!r} holds dates as objects; convert it to a date column first.")
    if all(is_gap(value) or isinstance(value, Number) for value in entries):
        return conversion.objects_as_floats(objects_of(entries), lambda row: (row, repr(series.name)))
    return [None if is_gap(value) else word(value) for value in entries]


def objects_of(entries: Sequence[Any]) -> Any:
    """An array of objects, one for each entry, whatever these are."""
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out


def days(series: Any) -> Floats:
    if series.dtype == nw.Duration:
        return numbers(series.dt.total_seconds()) / DAY
    if series.dtype == nw.Time:
        raise ValueError(f"Column {series.name!r} holds times of day; convert it to numbers first.")
    stamps = series.cast(nw.Datetime("ms")) if series.dtype == nw.Date else series
    gaps = stamps.is_null().to_numpy()
    return np.where(gaps, np.nan, numbers(stamps.dt.timestamp("ms")) / 1000 / DAY)


def finite(values: Floats, name: Any) -> Floats:
    if np.isinf(values).any():
        raise ValueError(
            f"Input X contains infinity in column {name!r}; replace it with NaN or a finite number."
        )
    return values


def as_frame(data: dict[str, Any], kind: str) -> Any:
    if kind == "array":
        mixed = any(values.dtype == object for values in data.values())
        return np.column_stack([v.astype(object) if mixed else v for v in data.values()])
    plain = data if kind == "pandas" else {name: as_list(values) for name, values in data.items()}
    backend: Any = kind
    return nw.from_dict(plain, backend=backend).to_native()


def as_list(values: Any) -> list[Any]:
    return [None if is_gap(value) else value for value in values.tolist()]
