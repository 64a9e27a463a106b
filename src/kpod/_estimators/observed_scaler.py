"""ObservedScaler: centre and scale over the observed entries, dense or sparse."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._common.arrays import row_starts
from kpod._common.typing import Floats
from kpod._engine.executors import Executor, threads
from kpod._engine.table import make_table
from kpod._estimators import in_partitions
from kpod._estimators.documentation import DocumentedMixin
from kpod._estimators.fitted import column_names, store_fitted
from kpod._inputs import choose_executor, collections, validation
from kpod._kernels.columns import standardise

ENTRIES_AT_ONCE = 512
"""Rows of fewer entries are standardised several at a time."""


@in_partitions.left_in_partitions
class ObservedScaler(DocumentedMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Center and scale columns over their observed entries, and optionally center rows.

    .. math:: z_{ij} = (x_{ij} - r_i - \bar x_j) / s_j

    over observed entries, where :math:`\bar x_j` and :math:`s_j` are the mean and the standard
    deviation of the observed entries of column j after subtracting the row means :math:`r_i` (0 unless
    ``rows="center"``). On dense columns this is scikit-learn's
    `StandardScaler`, which ignores NaN too; this class exists for sparse tables, where absent means
    missing rather than zero, and for rows.

    Parameters
    ----------
    rows : None or "center", default=None
        "center" subtracts each row's own mean first: the offset of a user who rates
        everything high, or of an instrument.

    scale : bool, default=True
        Whether to divide by the standard deviation; a constant column is not scaled.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean of each column; NaN if nothing was observed.
    scale_ : ndarray of shape (n_features,)
        The divisor of each column.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of those columns, if all were strings.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from kpod import ObservedScaler
    >>> ratings = csr_array([[5.0, 4.0, 0.0], [2.0, 0.0, 1.0]])   # absent: not rated
    >>> ObservedScaler(rows="center", scale=False).fit_transform(ratings).data
    array([0., 0., 0., 0.])
    """

    mean_: Floats
    scale_: Floats
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(self, *, rows: str | None = None, scale: bool = True) -> None:
        self.rows = rows
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> ObservedScaler:
        """Compute the means and standard deviations of the columns of X."""
        if self.rows not in (None, "center"):
            raise ValueError(f"rows must be None or 'center', got {self.rows!r}.")
        new = copy.copy(self)  # nothing of a fitted scaler changes before the new fit has succeeded
        with choose_executor.executor_for(X, 1) if collections.is_collection(X) else threads(1) as executor:
            centred = new._centred(new._table(X, reset=True, executor=executor))
            table = make_table(centred, executor)
            names = getattr(new, "feature_names_in_", None)
            validation.check_finite(table, names)
            mean, spread = table.column_means, table.column_spreads
        rounding = 10 * np.finfo(np.float64).eps * np.abs(np.nan_to_num(mean))
        found = {
            "mean_": mean,
            "scale_": np.where(self.scale & (spread > rounding), spread, 1.0),
            "n_features_in_": new.n_features_in_,
        }
        store_fitted(self, found | column_names(new))
        return self

    def transform(self, X: Any) -> Any:
        """Center the rows and columns of X and scale its columns; gaps stay gaps.

        For a Dask collection or a Spark DataFrame, the result is a lazy one.
        """
        check_is_fitted(self)
        if collections.is_collection(X):
            return in_partitions.applied(self, X, "transform")
        return self._scaled(self._table(X, reset=False))

    @np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
    def _scaled(self, values: Any, out: Any = None) -> Any:
        """The transformed rows of a checked table, or of some of its rows; dense ones in `out`, if given."""
        values = self._centred(values)
        if not sparse.issparse(values):
            return standardised(values, self.mean_, self.scale_, out)
        return with_entries(
            values, (entries(values) - of_column(self.mean_, values)) / of_column(self.scale_, values)
        )

    @np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
    def inverse_transform(self, X: Any, row_means: Any = None) -> Any:
        """Transform X back to the original units.

        The row means that ``rows="center"`` subtracts are not stored in the scaler: pass them as `row_means`
        (see the method of that name) to add them again. Without them, the result is relative to
        each row's own mean, as the centers of a clustering are.
        """
        check_is_fitted(self)
        values = validation.as_table(X, self)
        if values.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {values.shape[1]} columns, expected {self.n_features_in_}.")
        out = entries(values) * of_column(self.scale_, values) + of_column(self.mean_, values)
        if row_means is not None:
            out += of_row(np.asarray(row_means, dtype=np.float64), values)
        return with_entries(values, out)

    def row_means(self, X: Any) -> Floats:
        """The mean of the observed entries of each row; 0 if nothing is observed."""
        check_is_fitted(self)
        return row_means(self._table(X, reset=False))

    def _table(self, X: Any, *, reset: bool, executor: Executor | None = None) -> Any:
        if executor is not None and collections.is_collection(X):
            if self.rows is not None:
                raise ValueError(
                    "rows='center' needs the whole table in memory. For a Dask or Spark table, subtract the "
                    "mean of each row first."
                )
            values = collections.table_of(X, executor, None)
            validate_data(self, values.header, reset=reset, skip_check_array=True)
            return values
        table = validation.as_table(X, self)
        validate_data(self, validation.named(X, table), reset=reset, skip_check_array=True)
        return table

    @np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
    def _centred(self, values: Any) -> Any:
        """A table, with the mean of each row subtracted if requested."""
        if self.rows != "center":
            return values
        return with_entries(values, entries(values) - of_row(row_means(values), values))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def entries(table: Any) -> Floats:
    """The entries of an array, or those that a CSR array stores, in double precision."""
    return np.asarray(table.data if sparse.issparse(table) else table, np.float64)


def of_column(what: Floats, table: Any) -> Floats:
    """Something given for every column, for every entry."""
    return what[table.indices] if sparse.issparse(table) else what


def of_row(what: Floats, table: Any) -> Floats:
    """Something given for every row, for every entry."""
    return np.repeat(what, np.diff(table.indptr)) if sparse.issparse(table) else what[:, None]


def with_entries(table: Any, values: Floats) -> Any:
    """A table like another, with these entries."""
    if not sparse.issparse(table):
        return values.astype(table.dtype)
    return sparse.csr_array(
        (values.astype(table.dtype), table.indices, row_starts(table.indptr)), shape=table.shape
    )


def standardised(values: Any, mean: Floats, scale: Floats, out: Any = None) -> Any:
    """(x - mean) / scale of a dense table, in double precision, in the table's own."""
    out = np.empty(values.shape, values.dtype) if out is None else out
    times = max(1, ENTRIES_AT_ONCE // max(1, values.shape[1]))
    standardise(np.ascontiguousarray(values), np.tile(mean, times), np.tile(scale, times), out)
    return out


def row_means(table: Any) -> Floats:
    """The mean of the observed entries of each row; 0 where nothing is observed."""
    values = entries(table)
    known = ~np.isnan(values)
    if sparse.issparse(table):
        rows = np.repeat(np.arange(table.shape[0], dtype=np.int32), np.diff(table.indptr))
        sums = np.bincount(rows, np.where(known, values, 0.0), table.shape[0])
        counts = np.bincount(rows, known, table.shape[0])
    else:
        sums, counts = np.nansum(values, axis=1), known.sum(axis=1)
    return np.asarray(sums / np.maximum(counts, 1), np.float64)
