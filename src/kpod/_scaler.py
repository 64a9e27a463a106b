"""ObservedScaler: centre and scale over the observed entries, dense or sparse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod import _validation
from kpod._typing import AnyFloats, Floats


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
        entries = self._entries(X, reset=True)
        infinite = np.flatnonzero(entries.by_column(np.isinf(entries.values)))
        if len(infinite):
            names = _validation.name_columns(infinite, getattr(self, "feature_names_in_", None))
            raise ValueError(f"X contains infinity in column {names}.")
        n = entries.by_column(~np.isnan(entries.values))
        with np.errstate(divide="ignore", invalid="ignore"):
            self.mean_ = entries.by_column(entries.values) / n
            squares = (entries.values - entries.of_column(self.mean_)) ** 2
            spread = np.nan_to_num(np.sqrt(entries.by_column(squares) / n))
        rounding = 10 * np.finfo(np.float64).eps * np.abs(np.nan_to_num(self.mean_))
        self.scale_ = np.where(self.scale & (spread > rounding), spread, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        """X with its rows and columns centred and its columns scaled; gaps stay gaps."""
        check_is_fitted(self)
        entries = self._entries(X, reset=False)
        entries.values -= entries.of_column(self.mean_)
        entries.values /= entries.of_column(self.scale_)
        return entries.table()

    def inverse_transform(self, X: Any, row_means: Any = None) -> Any:
        """Back to the original units.

        What ``rows="center"`` took off is not kept in the scaler: give it as `row_means` (see
        the method of that name) to have it added again. Without, the result is relative to
        each row's own mean, which is what the centers of a clustering are.
        """
        check_is_fitted(self)
        entries = entries_of(_validation.as_table(X, self))
        if entries.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {entries.shape[1]} columns, expected {self.n_features_in_}.")
        entries.values *= entries.of_column(self.scale_)
        entries.values += entries.of_column(self.mean_)
        if row_means is not None:
            entries.values += entries.of_row(np.asarray(row_means, dtype=np.float64))
        return entries.table()

    def row_means(self, X: Any) -> Floats:
        """The mean of the observed entries of each row; 0 where nothing is observed."""
        check_is_fitted(self)
        return row_means(entries_of(self._table(X, reset=False)))

    def _table(self, X: Any, *, reset: bool) -> Any:
        table = _validation.as_table(X, self)
        validate_data(self, X if _validation.is_frame(X) else table, reset=reset, skip_check_array=True)
        return table

    def _entries(self, X: Any, *, reset: bool) -> Entries:
        entries = entries_of(self._table(X, reset=reset))
        if self.rows == "center":
            entries.values -= entries.of_row(row_means(entries))
        return entries

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Entries(ABC):
    """A copy of a table's entries as float64 `values`, NaN where one is missing."""

    values: Floats

    def __init__(self, like: Any) -> None:
        self.like = like
        self.shape = like.shape

    @abstractmethod
    def by_column(self, what: Any) -> Floats:
        """Sums over the columns of something given for every entry; NaN counts as 0."""

    @abstractmethod
    def by_row(self, what: Any) -> Floats:
        """The same over the rows."""

    @abstractmethod
    def of_column(self, what: Floats) -> Floats:
        """Something given for every column, for every entry."""

    @abstractmethod
    def of_row(self, what: Floats) -> Floats:
        """Something given for every row, for every entry."""

    @abstractmethod
    def table(self) -> Any:
        """The values in a table like the one they came from."""


class DenseEntries(Entries):
    """Of an array."""

    def __init__(self, like: Any) -> None:
        super().__init__(like)
        self.values = like.astype(np.float64)

    def by_column(self, what: Any) -> Floats:
        return np.nansum(what, axis=0, dtype=np.float64)

    def by_row(self, what: Any) -> Floats:
        return np.nansum(what, axis=1, dtype=np.float64)

    def of_column(self, what: Floats) -> Floats:
        return what

    def of_row(self, what: Floats) -> Floats:
        return what[:, None]

    def table(self) -> AnyFloats:
        return self.values.astype(self.like.dtype)


class SparseEntries(Entries):
    """Of a CSR array: the stored ones."""

    def __init__(self, like: Any) -> None:
        super().__init__(like)
        self.values = like.data.astype(np.float64)

    def by_column(self, what: Any) -> Floats:
        return np.asarray(np.bincount(self.like.indices, np.nan_to_num(what), self.shape[1]), np.float64)

    def by_row(self, what: Any) -> Floats:
        rows = np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.like.indptr))
        return np.asarray(np.bincount(rows, np.nan_to_num(what), self.shape[0]), np.float64)

    def of_column(self, what: Floats) -> Floats:
        return what[self.like.indices]

    def of_row(self, what: Floats) -> Floats:
        return np.repeat(what, np.diff(self.like.indptr))

    def table(self) -> Any:
        # 32-bit indices where they do, which is all that many tools take.
        indptr = self.like.indptr.astype(sparse.get_index_dtype(maxval=self.like.nnz))
        return sparse.csr_array(
            (self.values.astype(self.like.dtype), self.like.indices, indptr), shape=self.shape
        )


def entries_of(table: Any) -> Entries:
    return SparseEntries(table) if sparse.issparse(table) else DenseEntries(table)


def row_means(entries: Entries) -> Floats:
    return entries.by_row(entries.values) / np.maximum(entries.by_row(~np.isnan(entries.values)), 1)
