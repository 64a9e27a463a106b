"""Entries as floating-point numbers, with NaN in the gaps; or an error that names the entry.

Python's and NumPy's conversions round whole numbers, drop imaginary parts and count dates without a word.
Nothing of that happens here.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np

from kpod._common.typing import AnyFloats, Floats

MOST_EXACT = 2.0**53  # whole numbers up to here are exact in floating point
ENCODE = "encode text with kpod.TablePreparer (kpod.analyze uses it) and dates as numbers"
NOT_NUMBERS = {"M": "dates", "m": "time spans", "c": "complex numbers"}
DATES = (np.datetime64, np.timedelta64)
NO_NUMBER, TOO_LARGE, INEXACT = "no number", "too large", "inexact"

Place = Callable[..., tuple[int, str]]  # from the indices of an entry to its row and the name of its column


class NotNumberError(ValueError, TypeError):
    """An entry is text (for which scikit-learn raises a ValueError), or something else (a TypeError)."""


def by_position(i: int, j: int) -> tuple[int, str]:
    return i, str(j)


def as_floats(X: Any, place: Place = by_position) -> AnyFloats:
    """An array as float64, or float32 where it is that."""
    check_kind(X.dtype)
    if isinstance(X, np.ma.MaskedArray):
        gaps, values = np.ma.getmaskarray(X), np.ma.getdata(X)
        if values.dtype.kind in "OUS":
            return objects_as_floats(np.where(gaps, np.nan, values.astype(object)), place)
        if gaps.any():
            values = as_floats(np.where(gaps, values.dtype.type(0), values), place)
            return np.where(gaps, values.dtype.type(np.nan), values)
        X = values
    kind = X.dtype.kind
    if kind in "OUS":
        return objects_as_floats(X.astype(object), place)
    if kind in "iu":
        return whole_as_floats(X, place)
    with np.errstate(over="ignore"):  # of long doubles: infinities are refused by column and row
        return np.asarray(X, None if X.dtype in (np.float32, np.float64) else np.float64)


def check_kind(dtype: Any) -> None:
    """Refuse dates, which as floats would be numbers, and NaT a huge one; and complex numbers."""
    if dtype.kind in NOT_NUMBERS:
        refused = "Complex data not supported: " if dtype.kind == "c" else ""
        raise ValueError(
            f"{refused}Only numbers can be clustered, but X holds {NOT_NUMBERS[dtype.kind]} ({dtype}). "
            "Encode them as numbers first."
        )


def whole_as_floats(values: Any, place: Place = by_position) -> Floats:
    """Whole numbers as floats; refused where that would change one."""
    out = values.astype(np.float64)
    if values.dtype.itemsize == 8 and values.size and max(out.max(), -out.min()) >= MOST_EXACT:
        inside = np.abs(out) < float(np.iinfo(values.dtype).max)
        changed = ~inside
        changed[inside] = out[inside].astype(values.dtype) != values[inside]
        if changed.any():
            raise ValueError(message(INEXACT, values, changed, place))
    return out


def objects_as_floats(objects: Any, place: Place = by_position) -> Floats:
    """Objects as floats: None, NA and NaT are gaps."""
    objects = np.where(np.frompyfunc(is_gap, 1, 1)(objects).astype(bool), np.nan, objects)
    trouble = np.frompyfunc(trouble_with, 1, 1)(objects)
    for kind in (NO_NUMBER, TOO_LARGE, INEXACT):
        found = np.asarray(trouble == kind, dtype=bool)
        if found.any():
            error = NotNumberError if kind == NO_NUMBER else ValueError
            raise error(message(kind, objects, found, place))
    return objects.astype(np.float64)


def is_gap(value: Any) -> bool:
    if isinstance(value, DATES):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    # NA and NaT of pandas, which need not be there.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def trouble_with(value: Any) -> str | None:
    """Why an entry is not the number that it would become, if it is not."""
    if isinstance(value, float):
        return None
    if isinstance(value, (complex, np.complexfloating, np.ndarray, *DATES)):
        return NO_NUMBER
    try:
        number = float(value)
    except (TypeError, ValueError):
        return NO_NUMBER
    except OverflowError:
        return TOO_LARGE
    return INEXACT if isinstance(value, Integral) and number != int(value) else None


def message(kind: str, values: Any, where: Any, place: Place) -> str:
    """What is wrong with the first of these entries, column by column, and what to do."""
    at = tuple(int(k) for k in np.argwhere(where.T)[0][::-1])
    row, column = place(*at)
    if kind == INEXACT:
        return (
            f"Column {column} holds whole numbers beyond 2^53 (first in row {row}), which lose digits in "
            "floating point. Leave the column out if they are identifiers; otherwise convert it yourself, "
            "with astype(float)."
        )
    if kind == TOO_LARGE:
        return (
            f"Column {column} holds a number that is too large to compute with, in row {row}. Replace it "
            "with NaN if it stands for a missing value, otherwise with a smaller number."
        )
    # In these words scikit-learn asks for it, whose checks look for them.
    hint = "" if isinstance(values[at], str) else "; an argument must be a number, or a string with a number"
    return (
        f"Only numbers can be clustered, but column {column} holds {shown(values[at])} in row {row}{hint}. "
        f"Drop the column, or {ENCODE}."
    )


def shown(value: Any) -> str:
    """An entry as it is written, if that is short and informative."""
    kind: Any = type(value)
    if kind.__repr__ is object.__repr__:
        return f"a {kind.__name__} object"
    return " ".join(reprlib.repr(value).split())
