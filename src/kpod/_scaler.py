"""ObservedScaler: centre and scale over the observed entries, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod import _validation
from kpod._blocks import AnyFloats, Floats


class ObservedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Centre and scale columns over their observed entries, and rows too if asked.

    .. math:: z_{ij} = (x_{ij} - r_i - \bar x_j) / s_j

    over observed entries, with :math:`\bar x_j` and :math:`s_j` the mean and the standard
    deviation of what is observed in column j after the row means :math:`r_i` (0 unless
    ``rows="center"``) were taken off. On dense columns this is scikit-learn's
    `StandardScaler`, which ignores NaN too; it exists for sparse tables, where absent means
    missing and not zero, and for rows.

    Parameters
    ----------
    rows : None or "center", default=None
        "center" takes each row's own mean off first: the offset of a user who rates
        everything high, or of an instrument.

    scale : bool, default=True
        Whether to divide by the standard deviation; a constant column is left as it is.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean of each column; NaN where nothing was observed.
    scale_ : ndarray of shape (n_features,)
        What each column is divided by.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from kpod import ObservedScaler
    >>> ratings = csr_array([[5.0, 4.0, 0.0], [2.0, 0.0, 1.0]])   # absent: not rated
    >>> ObservedScaler(rows="center", scale=False).fit_transform(ratings).data
    array([0., 0., 0., 0.])
    """

    def __init__(self, *, rows: str | None = None, scale: bool = True) -> None:
        self.rows = rows
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> ObservedScaler:
        """Take the means and standard deviations of the columns of X."""
        if self.rows not in (None, "center"):
            raise ValueError(f"rows must be None or 'center', got {self.rows!r}.")
        values, columns, _ = self._entries(self._table(X, reset=True))
        observed = ~np.isnan(values)
        if np.isinf(values).any():
            bad = _validation.name_columns(
                np.unique(columns[np.isinf(values)]), getattr(self, "feature_names_in_", None)
            )
            raise ValueError(f"X contains infinity in column {bad}.")
        if not observed.all():
            values, columns = values[observed], columns[observed]
        n = np.bincount(columns, minlength=self.n_features_in_).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.mean_ = np.bincount(columns, values, self.n_features_in_) / n
            squares = (values - self.mean_[columns]) ** 2
            spread = np.sqrt(np.bincount(columns, squares, self.n_features_in_) / n)
        rounding = 10 * np.finfo(np.float64).eps * np.abs(np.nan_to_num(self.mean_))
        self.scale_ = np.where(self.scale & (np.nan_to_num(spread) > rounding), spread, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        """X with its rows and columns centred and its columns scaled; gaps stay gaps."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        values, columns, _ = self._entries(table)
        values -= self.mean_[columns]
        values /= self.scale_[columns]
        return self._rebuild(table, values)

    def inverse_transform(self, X: Any, row_means: Any = None) -> Any:
        """Back to the original units.

        What ``rows="center"`` took off is not kept in the scaler: give it as `row_means` (see
        the method of that name) to have it added again. Without, the result is relative to
        each row's own mean, which is what the centers of a clustering are.
        """
        check_is_fitted(self)
        table = _validation.as_table(X, self)
        if table.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {table.shape[1]} columns, expected {self.n_features_in_}.")
        values, columns, rows = _entries_of(table)
        values *= self.scale_[columns]
        values += self.mean_[columns]
        if row_means is not None:
            values += np.asarray(row_means, dtype=np.float64)[rows]
        return self._rebuild(table, values)

    def row_means(self, X: Any) -> Floats:
        """The mean of the observed entries of each row; 0 where nothing is observed."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        values, _, rows = _entries_of(table)
        return _row_means(values, rows, table.shape[0])

    def _table(self, X: Any, *, reset: bool) -> Any:
        table = _validation.as_table(X, self)
        validate_data(self, X if _validation.is_frame(X) else table, reset=reset, skip_check_array=True)
        return table

    def _entries(self, table: Any) -> tuple[Floats, Any, Any]:
        values, columns, rows = _entries_of(table)
        if self.rows == "center":
            values -= _row_means(values, rows, table.shape[0])[rows]
        return values, columns, rows

    def _rebuild(self, table: Any, values: Floats) -> AnyFloats:
        values = values.astype(table.dtype)
        if sparse.issparse(table):
            # 32-bit indices where they do, which is all that many tools take.
            indptr = table.indptr.astype(sparse.get_index_dtype(maxval=table.nnz))
            return sparse.csr_array((values, table.indices, indptr), shape=table.shape)
        return values.reshape(table.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _entries_of(table: Any) -> tuple[Floats, Any, Any]:
    """Values (a copy), columns and rows of all places of a table, NaN where one is missing."""
    n_rows, n_columns = table.shape
    if sparse.issparse(table):
        rows = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(table.indptr))
        return table.data.astype(np.float64), table.indices, rows
    rows, columns = np.divmod(np.arange(table.size), n_columns)
    return table.ravel().astype(np.float64), columns, rows


def _row_means(values: Floats, rows: Any, n_rows: int) -> Floats:
    observed = ~np.isnan(values)
    if not observed.all():
        values, rows = values[observed], rows[observed]
    return np.bincount(rows, values, n_rows) / np.maximum(np.bincount(rows, minlength=n_rows), 1)
