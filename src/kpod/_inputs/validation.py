"""From what users have to what the engine takes, or a clear error.

Every kind of gap (NaN, None, NA, null, masked) becomes NaN; nothing else is changed,
dropped or filled.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from kpod._common.sentences import formatting
from kpod._common.sentences.formatting import some
from kpod._common.typing import AnyFloats, Floats
from kpod._common.warnings import warn
from kpod._engine.table import Table
from kpod._inputs import containers, conversion, frames
from kpod._inputs.scanned import ScannedTable

FLOATS = [np.float64, np.float32]
NOT_SPARSE = "Sparse tables are not supported here. Pass an array or a data frame, with NaN in the gaps."
MOST_SPARSE_COLUMNS = np.iinfo(np.int32).max
TINIEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100


def as_table(X: Any, estimator: Any) -> Any:
    """What the engine takes: an array as `as_array` makes it, or a CSR array."""
    if isinstance(X, ScannedTable):  # as it should be, or it would not have been made
        check_unchanged(X)
        return X.values
    refuse_delayed(X, "X")
    return as_csr(X, estimator) if sparse.issparse(X) else as_array(X, estimator)


def check_unchanged(X: Any) -> None:
    """Refuse a mapped table that has been written to since it was opened."""
    if isinstance(X, ScannedTable) and X._check is not None:
        X._check()


def named(X: Any, values: Any) -> Any:
    """What scikit-learn can read the names of the columns from: a frame, or else the values."""
    header = X.header() if isinstance(X, ScannedTable) else X if frames.is_frame(X) else None
    return values if header is None else header


def column_names(X: Any) -> list[str] | None:
    """The names of the columns, where X has them."""
    header = X.header() if isinstance(X, ScannedTable) else X
    return list(map(str, frames.frame_of(header).columns)) if frames.is_frame(header) else None


def as_csr(X: Any, estimator: Any) -> Any:
    """A CSR array with int32 indices and int64 indptr; what is not stored is missing."""
    check_sparse(X)
    csr = sparse.csr_array(X)
    if csr.dtype not in FLOATS:

        def place(at: int) -> tuple[int, str]:
            return int(np.searchsorted(csr.indptr, at, side="right")) - 1, str(csr.indices[at])

        csr.data = conversion.as_floats(csr.data, place)
    csr = check_array(
        csr, dtype=FLOATS, accept_sparse="csr", ensure_all_finite=False, input_name="X", estimator=estimator
    )
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()
    same_row = np.ones(max(csr.nnz - 1, 0), bool)
    same_row[csr.indptr[1:-1][(csr.indptr[1:-1] > 0) & (csr.indptr[1:-1] < csr.nnz)] - 1] = False
    twice = np.flatnonzero(same_row & (np.diff(csr.indices) == 0))
    # Converting from COO adds duplicates up without a word.
    if len(twice) or (X.format == "coo" and csr.nnz < X.nnz):
        where = ""
        if len(twice):
            row = int(np.searchsorted(csr.indptr, twice[0], side="right")) - 1
            where = f" (first in row {row}, column {int(csr.indices[twice[0]])})"
        raise ValueError(
            f"X stores some entries more than once{where}. Decide which value counts, or add them up "
            "with X.sum_duplicates() if that is what they mean."
        )
    if 0 < csr.nnz < csr.shape[0] * csr.shape[1] and csr.data.min() == csr.data.max():
        warn(
            f"All stored values of X are equal ({csr.data[0]:g}). Entries that are not stored count as "
            "missing here, not as 0: if X holds indicators or counts, store its zeros or pass it dense."
        )
    out = sparse.csr_array(csr.shape, dtype=csr.dtype)
    out.data = in_order(csr.data)
    out.indices = in_order(csr.indices, np.int32)
    out.indptr = in_order(csr.indptr, np.int64)
    return out


def check_sparse(X: Any) -> None:
    """Refuse sparse tables with indices out of bounds before SciPy's compiled code reads them."""
    containers.check_sparse_format(X)
    if X.shape[1] > MOST_SPARSE_COLUMNS:
        raise ValueError(
            f"X has {X.shape[1]:,} columns; a sparse table may have at most {MOST_SPARSE_COLUMNS:,}."
        )
    try:
        if X.format in ("csr", "csc"):
            steps = np.diff(X.indptr)
            if X.indptr[0] != 0 or (steps < 0).any() or X.indptr[-1] > min(len(X.indices), len(X.data)):
                raise ValueError("indptr must rise from 0 to at most the number of stored entries")
            X.check_format(full_check=True)
        elif X.format == "coo":
            for at, size in zip(X.coords, X.shape, strict=True):
                if len(at) and (at.min() < 0 or at.max() >= size):
                    raise ValueError(f"indices from {at.min()} to {at.max()} along an axis of {size}")
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse table: {error}.") from error


def is_plain(X: Any) -> bool:
    """Whether X is an array that the engine takes as it is."""
    return (
        type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in FLOATS
        and X.flags.c_contiguous and X.flags.aligned
    )  # fmt: skip


def as_array(X: Any, estimator: Any) -> AnyFloats:
    """A C-contiguous float32 or float64 array with NaN in the gaps."""
    refuse_dask(X)
    if isinstance(X, ScannedTable):
        X = X.values
    if sparse.issparse(X):
        raise TypeError(NOT_SPARSE)
    if frames.is_frame(X):
        values = frames.frame_as_array(frames.frame_of(X), getattr(estimator, "feature_names_in_", ()))
    else:
        values = conversion.as_floats(containers.array_in(X))
    return in_order(
        check_array(
            values, dtype=FLOATS, order="C", ensure_all_finite=False, input_name="X", estimator=estimator
        )
    )


def in_order(values: Any, dtype: Any = None) -> AnyFloats:
    """The values one after the other in memory, each where a processor may read it at once."""
    return np.require(values, dtype, ["C", "A"])


def name_columns(which: Any, names: Any) -> str:
    """Columns by name where there is one, else by position."""
    return some([str(j) if names is None else repr(str(names[j])) for j in which])


def largest(dtype: Any, n_entries: int) -> float:
    """A value beyond this is too large to take a center off, or to square and add up."""
    return min(float(np.finfo(dtype).max) / 8, float(np.sqrt(np.finfo(np.float64).max / n_entries)) / 8)


def check_finite(table: Table, names: Any) -> None:
    """Refuse infinities, and what would make the loss one."""
    most = largest(table.dtype, table.n_rows * table.n_columns)
    found = float(table.about.largest.max(initial=0))
    if found < most * table.units.scale and np.isfinite(table.about.squares).all():
        return
    rows, columns = table.beyond(most)
    if len(rows):
        raise ValueError(
            f"X contains infinity, or a value too large to compute with in {table.dtype}, in column "
            f"{name_columns(np.unique(columns), names)} (first in row {rows.min()}). Replace it with NaN "
            "if it stands for a missing value, otherwise with a finite number."
        )


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; nothing is imported to find out."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__")


def is_spark(X: Any) -> bool:
    """Whether X is a DataFrame of Spark; nothing is imported to find out."""
    return "pyspark" in sys.modules and any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(X).__mro__
    )


def refuse_dask(X: Any, name: str = "X", more: str = "") -> None:
    """Refuse a Dask collection that would be loaded completely into the memory of this process.

    `more` is what else can be done.
    """
    if is_spark(X):
        raise TypeError(
            f"{name} is a Spark DataFrame, which KPOD and ObservedScaler take; this needs a table in memory. "
            f"Pass a sample of its rows, {name}.sample(0.01).toPandas(), or all of them, {name}.toPandas()."
            f"{more}"
        )
    if not is_dask(X):
        return
    refuse_delayed(X, name)
    kind, sample = ("DataFrame", ".sample(frac=0.01)") if hasattr(X, "columns") else ("array", "[::100]")
    raise TypeError(
        f"{name} is a Dask {kind}, which KPOD and ObservedScaler take; this needs a table in "
        f"memory. Pass a sample of its rows, {name}{sample}.compute(), or all of them, {name}.compute()."
        f"{more}"
    )


def refuse_delayed(value: Any, name: str) -> None:
    """Refuse a delayed value of Dask, which seems to have every attribute."""
    dask = sys.modules.get("dask.delayed")
    if dask is not None and isinstance(value, dask.Delayed):
        raise TypeError(
            f"{name} is a dask.delayed value, of which not even the shape is known. Compute it first, "
            f"{name}.compute(), or wrap it: dask.array.from_delayed({name}, shape, dtype)."
        )


def check_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Weights as float64, or None where every row weighs 1."""
    if sample_weight is None:
        return None
    refuse_delayed(sample_weight, "sample_weight")
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight has masked entries; every row needs a weight (0 leaves it out).")
    try:
        weights = np.asarray(sample_weight)
        if weights.dtype.kind in "MmcV":
            raise TypeError(weights.dtype)
        weights = weights.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"sample_weight must be a number for each row of X, got {formatting.kind_of(sample_weight)} with "
            "something else."
        ) from error
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected ({n_rows},): one weight for each row of X."
        )
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity; every row needs a finite weight.")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"Negative values in sample_weight: row {row} has {weights[row]}.")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    if not TINIEST_WEIGHT < weights.max() <= weights.sum() < LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {weights.sum():g}, which is too "
            f"{'large' if weights.max() > 1 else 'small'} to compute with. Only ratios of weights matter to "
            "the labels: divide all weights by their mean."
        )
    return np.ascontiguousarray(weights)
