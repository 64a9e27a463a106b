"""TableEncoder: numbers, categories and dates of a data frame on one scale, gaps left as gaps."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._columns.encoded_column import (
    CATEGORY,
    MISSING,
    NUMBER,
    ORDERED,
    UNKNOWN,
    Column,
    category_column,
    is_binary,
    location_and_scale,
    most_common,
    names_the_rows,
    no_numbers,
    ordered_column,
    scale_of_indicators,
)
from kpod._columns.frames import (
    as_frame,
    days,
    finite,
    frame_kind,
    is_gap,
    is_object,
    is_ordered,
    is_temporal,
    numbers,
    words,
    words_or_numbers,
)
from kpod._common.typing import Floats
from kpod._common.warnings import warn
from kpod._common.words import counted
from kpod._inputs import containers, conversion, validation

SCALES = ("standard", "robust", "none")


class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Encode the columns of a data frame as numbers of equal weight; gaps stay gaps.

    A number becomes

    .. math:: z_{ij} = (x_{ij} - \bar x_j) / s_j

    over its observed entries. A category of two levels becomes one such column, 0 for the first level
    and 1 for the second, so that it does not matter whether yes/no is text, bool or 0/1. A category of
    more levels, with shares :math:`q_1, \ldots, q_m`, becomes m indicators, each divided by
    :math:`\sqrt{1 - \sum_l q_l^2}`, all of them missing where the category is. Every column then has
    variance 1 in total, and the loss of k-means adds the (scaled) Gini impurity of the clusters.
    Centers are shares of the levels. `KPOD` recognises the indicators of a category by their values and
    counts them as one column.

    Parameters
    ----------
    categories : sequence of str or int, default=()
        Columns of numbers that stand for categories, by name (by position for an array). Columns of
        text are always categories, and columns of booleans always numbers.

    ordered : mapping, default=None
        For columns of ordered categories, their levels from low to high: ``{"size": ["S", "M", "L"]}``.
        They are encoded by rank. Ordered categoricals of pandas and enumerations of polars are
        recognised without it.

    dates : {"refuse", "number"}, default="refuse"
        Whether dates are an error, or count as numbers (of days since 1970).

    scale : {"standard", "robust", "none"}, default="standard"
        How numbers are scaled: by mean and standard deviation, by median and interquartile range
        (in units of the standard deviation of a normal distribution), or not at all. A column of two
        values has no outliers: "robust" takes its mean and standard deviation, and `clip` leaves it as
        it is. With "none", a category counts as a 0/1 column does: rows of different levels differ by 1.

    log : sequence of str or int, default=()
        Columns of which the logarithm is taken first; of x + 1 where zero occurs.

    clip : float, default=None
        Bring numbers beyond the quantiles `clip` and 1 - `clip` of their column to these
        quantiles, 0.01 for example.

    column_weights : mapping, default=None
        Weights of columns, 1 for those not named: a weight of 2 counts as the column twice.

    Attributes
    ----------
    kinds_ : list of str
        "number", "category" or "ordered", for each column.
    levels_ : list of list of str
        The levels of each column; empty for numbers.
    mean_, scale_ : ndarray of shape (n_features,)
        What is taken off and divided by; for a category of more than two levels, 0 and
        :math:`\sqrt{1 - \sum q^2}`.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import pandas as pd
    >>> from kpod import KPOD, TableEncoder
    >>> from sklearn.pipeline import make_pipeline
    >>> table = pd.DataFrame({
    ...     "mass": [3.1, None, 5.2, 5.0], "island": ["Dream", "Dream", "Biscoe", None]})
    >>> model = make_pipeline(TableEncoder(), KPOD(2, random_state=0)).fit(table)
    >>> model[0].get_feature_names_out()
    array(['mass', 'island=Dream'], dtype=object)
    >>> model[0].shares(model[1].cluster_centers_)["island"].round(2)
    array([[0., 1.],
           [1., 0.]])
    >>> model[0].inverse_transform(model[1].cluster_centers_)
       mass  island
    0   3.1   Dream
    1   5.1  Biscoe
    """

    def __init__(
        self,
        *,
        categories: Sequence[Any] = (),
        ordered: Mapping[Any, Sequence[str]] | None = None,
        dates: str = "refuse",
        scale: str = "standard",
        log: Sequence[Any] = (),
        clip: float | None = None,
        column_weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.categories = categories
        self.ordered = ordered
        self.dates = dates
        self.scale = scale
        self.log = log
        self.clip = clip
        self.column_weights = column_weights

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn levels, shares, means and scales.

        Parameters
        ----------
        X : dataframe (pandas, polars, pyarrow) or array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        # Nothing of a fitted encoder changes before the new fit has succeeded.
        new = copy.copy(self)
        naming = new._learn(X)
        if not hasattr(new, "feature_names_in_"):
            self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__)
        if naming:
            which = validation.name_columns(naming, getattr(self, "feature_names_in_", None))
            warn(
                f"More than half of the values are different in column {which}: identifiers, dates and free "
                "text get a column for each value, and make clusters worse. Leave them out."
            )
        return self

    @np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
    def _learn(self, X: Any) -> list[int]:
        """Learn from a table; which of its columns name the rows."""
        columns = self._columns(X, reset=True)
        p = len(columns)
        self._frame = frame_kind(X)
        self.kinds_ = [column.kind for column in columns]
        self.levels_: list[list[str]] = [column.levels for column in columns]
        self.mean_, self.scale_ = np.zeros(p), np.ones(p)
        self.weights_ = np.sqrt(self._per_column(self.column_weights, 1.0))
        self.offset_ = np.full(p, np.nan)
        self.low_, self.high_ = np.full(p, -np.inf), np.full(p, np.inf)
        logs = set(self._positions(self.log, "log"))
        for j, column in enumerate(columns):
            if column.kind == CATEGORY and len(column.levels) != 2:
                self.scale_[j] = scale_of_indicators(column, self.scale)
                continue
            values = column.values[~np.isnan(column.values)]
            if j in logs:
                self.offset_[j] = 1.0 if len(values) and values.min() <= 0 else 0.0
                values = self._logarithm(values, j)
            binary = is_binary(values)
            if self.clip is not None and len(values) and not binary:
                self.low_[j], self.high_[j] = np.quantile(values, [self.clip, 1 - self.clip])
                values = np.clip(values, self.low_[j], self.high_[j])
            self.mean_[j], self.scale_[j] = location_and_scale(
                values, "standard" if binary and self.scale == "robust" else self.scale
            )
        self._n_features_out = sum(self._widths())
        return [j for j, column in enumerate(columns) if names_the_rows(column)]

    def transform(self, X: Any) -> Floats:
        """Encode a table.

        A level that `fit` did not see has 0 in every indicator of its column; of a column of two
        levels, which is neither of them, it is a gap, with a warning.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        with np.errstate(invalid="ignore"):  # by a NaN that signals, such as NA of R
            columns = self._columns(X, reset=False)
            encoded = self._encode(columns)
        self._warn_of_unseen(columns)
        return encoded

    def _encode(self, columns: list[Column]) -> Floats:
        out = np.empty((columns[0].n_rows if columns else 0, self._n_features_out))
        at = 0
        for j, (column, width) in enumerate(zip(columns, self._widths(), strict=True)):
            factor = self.weights_[j] / self.scale_[j]
            if column.kind == CATEGORY and len(column.levels) != 2:
                block = out[:, at : at + width]
                block[:] = (column.codes[:, None] == np.arange(width)) * factor
                block[column.codes == MISSING] = np.nan
            else:
                values = self._logarithm(column.values, j) if not np.isnan(self.offset_[j]) else column.values
                out[:, at] = (np.clip(values, self.low_[j], self.high_[j]) - self.mean_[j]) * factor
            at += width
        return out

    def inverse_transform(self, X: Any) -> Any:
        """From encoded rows or centers back to the columns: numbers in their units, the commonest level.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)

        Returns
        -------
        A table of the kind that `fit` was given; an array for an array.
        """
        check_is_fitted(self)
        encoded = self._encoded(X)
        names = self._names()
        data: dict[str, Any] = {}
        for j, (name, block) in enumerate(zip(names, self._blocks(encoded), strict=True)):
            if self.kinds_[j] == CATEGORY:
                data[name] = most_common(self._level_shares(block, j), self.levels_[j])
                continue
            values = self._numbers_back(block[:, 0], j)
            if self.kinds_[j] == ORDERED:
                ranks = np.clip(np.nan_to_num(np.round(values)), 0, len(self.levels_[j]) - 1).astype(int)
                levels = np.asarray(self.levels_[j], dtype=object)[ranks]
                levels[np.isnan(values)] = None
                data[name] = levels
                continue
            data[name] = values
        return as_frame(data, self._frame)

    def shares(self, X: Any) -> dict[str, Floats]:
        """Of encoded centers, the share of each level in each category column.

        Parameters
        ----------
        X : array-like of shape (n_clusters, n_features_out)

        Returns
        -------
        dict
            For each category column an array of shape (n_clusters, n_levels), levels as in `levels_`.
        """
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X))
        return {
            name: self._level_shares(block, j)
            for j, (name, block) in enumerate(zip(self._names(), blocks, strict=True))
            if self.kinds_[j] == CATEGORY
        }

    def in_units(self, X: Any) -> Floats:
        """Encoded values in units one can read: numbers as they were, ranks, and shares of levels.

        Of two levels, it is the share of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)

        Returns
        -------
        ndarray of the same shape
        """
        check_is_fitted(self)
        encoded = self._encoded(X)
        columns = []
        for j, block in enumerate(self._blocks(encoded)):
            if self.kinds_[j] == CATEGORY:
                columns.append(self._level_shares(block, j)[:, -block.shape[1] :])
            else:
                columns.append(self._numbers_back(block[:, 0], j)[:, None])
        return np.hstack(columns) if columns else encoded

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the encoded columns: the column, or column=level; of two levels, the second."""
        check_is_fitted(self)
        pairs = zip(self._names(), self._encoded_levels(), strict=True)
        names = [[f"{name}={level}" for level in levels] or [name] for name, levels in pairs]
        return np.asarray([one for of_column in names for one in of_column], dtype=object)

    def _encoded_levels(self) -> list[list[str]]:
        """The levels that have an encoded column, for each column: of two, the second; none for numbers."""
        pairs = zip(self.kinds_, self.levels_, strict=True)
        return [
            [] if kind != CATEGORY else levels[1:] if len(levels) == 2 else levels for kind, levels in pairs
        ]

    def _check_parameters(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}.")
        if self.dates not in ("refuse", "number"):
            raise ValueError(f"dates must be 'refuse' or 'number', got {self.dates!r}.")
        for name in ("ordered", "column_weights"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise TypeError(f"{name} must be a dict with columns as its keys, got {value!r}.")
        if self.clip is not None and not 0 < self.clip < 0.5:
            raise ValueError(f"clip must lie between 0 and 0.5, got {self.clip!r}.")

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _widths(self) -> list[int]:
        pairs = zip(self.kinds_, self._encoded_levels(), strict=True)
        return [len(levels) if kind == CATEGORY else 1 for kind, levels in pairs]

    def _level_shares(self, block: Floats, j: int) -> Floats:
        """Of the encoded columns of a category, the share of each of its levels."""
        shares = np.clip(block * self.scale_[j] / self.weights_[j] + self.mean_[j], 0, 1)
        return np.hstack([1 - shares, shares]) if len(self.levels_[j]) == 2 else shares

    def _warn_of_unseen(self, columns: list[Column]) -> None:
        for name, column in zip(self._names(), columns, strict=True):
            if column.kind == CATEGORY and len(column.levels) == 2:
                n = int((column.codes == UNKNOWN).sum())
                if n:
                    warn(
                        f"Column {name!r} is neither {column.levels[0]!r} nor {column.levels[1]!r} in "
                        f"{counted(n, 'row')}: taken as missing there. Fit the encoder again if there are "
                        "more than two levels now."
                    )

    def _blocks(self, encoded: Floats) -> list[Floats]:
        edges = np.cumsum([0, *self._widths()])
        return [encoded[:, a:b] for a, b in pairwise(edges)]

    def _encoded(self, X: Any) -> Floats:
        validation.refuse_dask(X)
        encoded = np.asarray(X, dtype=np.float64)
        if encoded.ndim != 2 or encoded.shape[1] != self._n_features_out:
            raise ValueError(f"X has shape {encoded.shape}, expected {self._n_features_out} columns.")
        return encoded

    def _numbers_back(self, values: Floats, j: int) -> Floats:
        out = values * self.scale_[j] / self.weights_[j] + self.mean_[j]
        return out if np.isnan(self.offset_[j]) else np.exp(out) - self.offset_[j]

    def _logarithm(self, values: Floats, j: int) -> Floats:
        with np.errstate(invalid="ignore"):
            low = values + self.offset_[j] <= 0
        if low.any():
            raise ValueError(
                f"Column {self._names()[j]!r} holds {values[low][0]:g}, which has no logarithm; "
                "remove it from log."
            )
        return np.log(values + self.offset_[j])

    def _per_column(self, given: Mapping[Any, float] | None, default: float) -> Floats:
        out = np.full(self.n_features_in_, default)
        for key, value in (given or {}).items():
            (j,) = self._positions([key], "column_weights")
            if not np.isfinite(value) or value < 0:
                raise ValueError(
                    f"column_weights must be finite and not negative, got {value!r} for {key!r}."
                )
            out[j] = value
        if not (out > 0).all():
            raise ValueError("column_weights must be positive; leave a column out instead of weighting it 0.")
        return out

    def _positions(self, keys: Sequence[Any], what: str) -> list[int]:
        names = list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else []
        out = []
        for key in keys:
            if key in names:
                out.append(names.index(key))
            elif isinstance(key, (int, np.integer)) and 0 <= key < self.n_features_in_:
                out.append(int(key))
            else:
                raise ValueError(f"{what} names {key!r}, which is not a column of X.")
        return out

    def _columns(self, X: Any, *, reset: bool) -> list[Column]:
        validation.refuse_dask(X)
        if frame_kind(X) == "array":
            return self._columns_of_array(X, reset=reset)
        frame = validation.frame_of(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if not frame.shape[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        categories = set(self._positions(self.categories, "categories"))
        orders = {self._positions([key], "ordered")[0]: list(o) for key, o in (self.ordered or {}).items()}
        return [
            self._column(series, j, j in categories, orders.get(j), reset=reset)
            for j, series in enumerate(frame.iter_columns())
        ]

    def _column(self, series: Any, j: int, named: bool, order: list[str] | None, *, reset: bool) -> Column:
        """A column by its type when it is learnt, and afterwards by what was learnt."""
        kind = series.dtype
        if not reset:
            learnt, levels = self.kinds_[j], self.levels_[j]
        elif order is not None or isinstance(kind, nw.Enum) or is_ordered(series):
            learnt, levels = ORDERED, order or [str(level) for level in series.cat.get_categories().to_list()]
        else:
            numeric = kind.is_numeric() or kind == nw.Boolean or is_temporal(kind) or is_object(kind)
            learnt, levels = NUMBER if numeric and not named else CATEGORY, None
        if learnt == ORDERED:
            return ordered_column(series.name, words(series), levels or ())
        if learnt == CATEGORY:
            return category_column(words(series), levels)
        if is_temporal(kind):
            if self.dates == "refuse":
                raise ValueError(
                    f"Column {series.name!r} holds dates. Leave it out, or count days with dates='number'."
                )
            return Column(NUMBER, days(series))
        if kind.is_numeric() or kind == nw.Boolean:
            return Column(NUMBER, finite(numbers(series), series.name))
        entries = words_or_numbers(series)
        if not isinstance(entries, list):
            return Column(NUMBER, finite(entries, series.name))
        if reset:
            return category_column(entries, None)
        raise no_numbers(series.name, series.to_list())

    def _columns_of_array(self, X: Any, *, reset: bool) -> list[Column]:
        if sparse.issparse(X):
            raise TypeError(validation.NOT_SPARSE)
        table = containers.array_in(X)
        conversion.check_kind(table.dtype)
        if isinstance(table, np.ma.MaskedArray):
            gaps, table = np.ma.getmaskarray(table), np.ma.getdata(table).astype(object)
            table[gaps] = None
        table = validate_data(self, np.asarray(table), reset=reset, dtype=None, ensure_all_finite=False)
        categories = set(self._positions(self.categories, "categories"))
        if self.ordered:
            raise ValueError("ordered needs a data frame, not an array.")
        out = []
        for j, column in enumerate(table.T):
            if j not in categories:
                try:
                    floats = np.asarray(
                        conversion.as_floats(column, lambda row, j=j: (row, str(j))), np.float64
                    )
                except conversion.NotNumberError:
                    floats = None
                number = reset or self.kinds_[j] != CATEGORY
                if floats is not None and number:
                    out.append(Column(NUMBER, finite(floats, j)))
                    continue
                if not reset and number:
                    raise no_numbers(j, column)
            entries = [None if is_gap(value) else str(value) for value in column]
            out.append(category_column(entries, None if reset else self.levels_[j]))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags
