"""Which objects are tables in memory; others are refused, with what to pass instead.

NumPy makes an array of almost anything (a dict, a lazy query, rows of different lengths), and what it says
about that array tells the user little about the object that was passed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from kpod._common.sentences.formatting import kind_of
from kpod._inputs.lazy import lazy_kind

LOADERS = ("toPandas", "to_pandas", "df", "collect", "compute")
"""Methods that load what lies elsewhere, the best first (`collect` of Spark makes a list)."""
LOADS = {
    "pyarrow Dataset": "to_table()",
    "RecordBatchReader": "read_all()",
    "polars LazyFrame": "collect()",
    "DuckDB relation": "df()",
    "Delta table": "to_pyarrow_table()",
    "Iceberg table": "scan().to_arrow()",
    "Iceberg scan": "to_arrow()",
}
SPARSE_FORMATS = ("csr", "csc", "coo", "lil", "dok")
"""Those that store entry by entry, so that what is stored is what was observed."""


def array_in(X: Any) -> Any:
    """X as an array with rows and columns, of any type of entries."""
    if not isinstance(X, np.ndarray):
        X = made_array(X)
    if X.dtype.kind == "V":
        raise ValueError(
            "X is a structured array, whose columns have types of their own. Make it a data frame, "
            "pandas.DataFrame(X)."
        )
    check_dimensions(X)
    return X


def made_array(X: Any) -> Any:
    """Convert a list or similar to an array."""
    is_list = isinstance(X, list | tuple)
    if not is_list and not any(hasattr(type(X), name) for name in ("__array__", "__array_interface__")):
        raise TypeError(not_a_table(X))
    try:
        out = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise ValueError(rows_differ(X) if is_list else not_a_table(X)) from error
    if is_list and out.ndim == 1 and len(X) and isinstance(X[0], Mapping):
        raise TypeError("X is a list of dicts, not a table. Make it a data frame, pandas.DataFrame(X).")
    if out.dtype == np.float64 and is_list and out.ndim == 2 and (np.abs(out) >= 2.0**53).any():
        return np.asarray(X, dtype=object)  # whole numbers among them have lost digits already
    return out


def check_dimensions(X: Any) -> None:
    """Refuse what does not have rows and columns."""
    if X.ndim == 1 and X.shape[0]:
        raise ValueError(
            f"X must be a table with rows and columns, got {X.shape[0]:,} values in one dimension. Reshape "
            "your data: X.reshape(-1, 1) if they are one column, X.reshape(1, -1) if they are one row."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X must be a table with rows and columns, got shape {tuple(map(int, X.shape))}: a table has two "
            "dimensions. Reshape your data."
        )


def not_a_table(X: Any) -> str:
    """What is wrong with an object that holds no table, and what to do."""
    what = f"X must be an array, a data frame or a sparse table, got {kind_of(X)}"
    kind = lazy_kind(X)
    if kind is not None:
        return (
            f"{what}, whose rows are not in memory. fit and predict of KPOD take it; here, use "
            f"kpod.scan(X), which makes a table on disk of it, or load it if it fits: X.{LOADS[kind]}."
        )
    loader = next((name for name in LOADERS if callable(getattr(type(X), name, None))), None)
    if isinstance(X, str | bytes | os.PathLike):
        return f"{what}. If it names a file, read it first, with kpod.read, or kpod.scan if it is large."
    if isinstance(X, Mapping):
        return f"{what}. Make it a data frame first, pandas.DataFrame(X)."
    if isinstance(X, Iterator):
        return f"{what}. If it gives rows, make a list of them first, list(X)."
    if loader is not None:
        return f"{what}, whose rows are not in memory. Load them first: X.{loader}()."
    return f"{what}. Convert it to a NumPy array or a data frame first."


def rows_differ(rows: Any) -> str:
    """Which rows of a list have different lengths."""
    lengths = [len(row) if hasattr(row, "__len__") else None for row in rows]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None or lengths[0] is None or lengths[odd] is None:
        return "X must be a table with rows and columns, but some of its entries are lists of their own."
    return (
        f"The rows of X differ in length: row 0 has {lengths[0]} entries, row {odd} has {lengths[odd]}. "
        "Give every row an entry for every column, None where it is missing."
    )


def check_sparse_format(X: Any) -> None:
    """Refuse formats that store blocks or diagonals, and with them zeros that nobody observed."""
    check_dimensions(X)
    if X.format not in SPARSE_FORMATS:
        raise ValueError(
            f"X is a sparse table in {X.format.upper()} format, which pads with zeros: observed zeros cannot "
            "be told from missing entries. Make it CSR, X = X.tocsr(), and see to it that exactly the "
            "observed entries are stored: X.eliminate_zeros() if no zero was observed."
        )


def labels_in(labels: Any, n_rows: int) -> Any:
    """Labels as an array of numbers or text, one for each row."""
    try:
        given = np.asarray(labels)
    except ValueError:
        given = np.empty(0)
    if given.shape != (n_rows,):
        got = f"shape {given.shape}" if given.ndim and given.size else kind_of(labels)
        raise ValueError(f"labels must hold one label for each of the {n_rows:,} rows of X, got {got}.")
    if given.dtype.kind == "O":
        kinds = {str if isinstance(label, str) else Real for label in given if isinstance(label, str | Real)}
        odd = [label for label in given if not isinstance(label, str | Real)]
        if odd or len(kinds) > 1:
            also = f", got {kind_of(odd[0])}" if odd else ", got both"
            raise ValueError(f"labels must be numbers throughout, or text throughout{also}.")
        given = given.astype(str if kinds == {str} else np.float64)
    if given.dtype.kind not in "biufUS":
        raise ValueError(f"labels must be numbers or text, got {given.dtype}.")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("labels contains NaN or infinity; use -1 for rows without a cluster.")
    return given
