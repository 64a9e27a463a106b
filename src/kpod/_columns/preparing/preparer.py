"""TablePreparer: from a raw table to the matrix that KPOD takes, by what its columns mean."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._columns.preparing.encoding import (
    CATEGORY,
    NUMBER,
    ORDERED,
    PLAIN,
    SCALES,
    Encoding,
    learn_encoding,
)
from kpod._columns.preparing.frames import array_in, frame_kind, table_of
from kpod._columns.preparing.prepared_columns import PreparedColumns
from kpod._columns.preparing.role_table import ColumnRole, RoleTable
from kpod._columns.preparing.streams import more_levels, rows_as_frame, with_columns
from kpod._columns.preparing.transforms import Transforms, choose_transforms
from kpod._common.errors import InputError
from kpod._common.notes import Note, Notes
from kpod._common.typing import AnyFloats, Floats
from kpod._common.warnings import warn
from kpod._estimators import in_partitions
from kpod._estimators.fitted import store_fitted
from kpod._inputs import collections, frames, samples, validation

if TYPE_CHECKING:
    from kpod._columns.preparing.columns_in_use import ColumnUsage
    from kpod._columns.tables import TableFile


@in_partitions.left_in_partitions
class TablePreparer(PreparedColumns, TransformerMixin, BaseEstimator):
    r"""Prepare a raw table for clustering: recognise its columns and scale them, keeping gaps as gaps.

    `fit` decides how to use each column of a data frame, by its name and contents: numbers and yes/no
    columns are used; identifiers, dates, categories, constants and text are set aside (`roles_` says
    which and why; parameters override it). Text that holds numbers is read as numbers ("1,234",
    "12 %", "€ 5"); empty cells, NA, null, ? and the like, and `missing_values`, are gaps. `notes_` has what
    you should know, for example that a value may be a missing code.

    `transform` returns the columns in use, with equal weight. A number becomes

    .. math:: z_{ij} = (x_{ij} - \bar x_j) / s_j

    over its observed entries. A category with two levels becomes one such column, 0 for the first level
    and 1 for the second, so it does not matter whether yes/no is text, bool or 0/1. A category with
    more levels, in proportions :math:`q_1, \ldots, q_m`, becomes m indicators, each divided by
    :math:`\sqrt{1 - \sum_l q_l^2}`, all of them missing where the category is missing. Every column then has
    variance 1 in total, and the loss of k-means adds the (scaled) Gini impurity of the clusters. Centers
    are proportions of the levels. `KPOD` recognises the indicators of a category by their values and counts
    them as one column. Columns of new tables are matched by name: their order may differ, and those
    that were set aside may be absent.

    The command line uses this class to prepare tables, with options of the same names. It needs pyarrow
    (``pip install "scikit-kpod[files]"``).

    Parameters
    ----------
    columns : sequence of str, default=None
        Use only these columns, as numbers (and those in `categories`). Here and below, names may be
        patterns: ``"q_*"``.
    exclude : sequence of str, default=()
        Columns to set aside.
    ids : sequence of str, default=()
        Columns that identify the rows, which are set aside.
    roles : mapping, default=None
        Override the role of columns: ``{"year": "number", "zip": "identifier"}``. Roles are "number",
        "boolean", "category", "ordered", "date", "identifier" and "text"; the levels of an ordered
        category can be given, from low to high: ``{"size": ["S", "M", "L"]}``.
    categories : "all" or sequence of str, default=()
        Also cluster by categories: all of them, or these columns.
    weight : str, default=None
        The column with weights of the rows, which is set aside; see `row_weights`.
    missing_values : scalar, sequence or mapping, default=None
        Missing codes besides the common ones, for all columns, ``[-9, "refused"]``, or by
        column, ``{"score": [99], "q_*": [8, 9]}``.
    decimal : "." or ",", default=None
        The decimal mark of numbers in text; by default, it is detected.
    scale : {"standard", "auto", "robust", "none"}, default="standard"
        How numbers are scaled: by mean and standard deviation, by median and interquartile range
        (in units of the standard deviation of a normal distribution), or not at all. A column with two
        values has no outliers: "robust" uses its mean and standard deviation, and `clip` does not change
        it. With "none", a category counts like a 0/1 column: rows of different levels differ by 1.
        "auto" is "standard" after taking logarithms of skewed columns, where clusters of one width describe
        the logarithms clearly better, and after limiting columns in which a few values account for most of
        the variance to five robust standard deviations from the median; `notes_` says which.
    log : sequence of str, default=()
        Columns to replace by their logarithms; log(x + 1) if zero occurs.
    clip : float, default=None
        Clip numbers at the quantiles `clip` and 1 - `clip` of their column, for example 0.01.
    column_weights : mapping, default=None
        Weights of columns, 1 for those not named: a weight of 2 counts the column twice.
    strict : bool, default=False
        Refuse a numeric column with entries that are not numbers. By default, these are gaps if they are at
        most a fifth of its entries (or up to half, if they are a few repeated words), with a note.

    Attributes
    ----------
    roles_ : RoleTable
        The role of each column, whether it is used, and why; prints as a table, and `to_dict()` returns the
        form that `roles` takes.
    notes_ : list of Note
        Remarks on the columns: `kind`, `columns`, `values` and `text`.
    columns_ : list of str
        The columns in use.
    kinds_ : list of str
        The kind of each of them: "number", "boolean", "date", "category" or "ordered".
    levels_ : list of list of str
        The levels of each; empty for numbers.
    mean_, scale_ : ndarray of shape (n_columns,)
        The values subtracted and divided by; for a category with more than two levels, 0 and
        :math:`\sqrt{1 - \sum q^2}`.
    decimal_ : str or None
        The decimal mark of the text file that was fitted, if it was one.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import pandas as pd
    >>> from kpod import KPOD, TablePreparer
    >>> from sklearn.pipeline import make_pipeline
    >>> table = pd.DataFrame({
    ...     "bird": ["A1", "A2", "A3", "A4"], "mass": ["3.1", "?", "5.2", "5.0"],
    ...     "adult": ["no", "no", "yes", None], "island": ["Dream", "Dream", "Biscoe", "Biscoe"]})
    >>> preparer = TablePreparer(categories="all").fit(table)
    >>> print(preparer.roles_)
    column  role        used  why
    bird    identifier  no    different in every row
    mass    number      yes   numbers
    adult   boolean     yes   true or false
    island  category    yes   2 different values
    >>> model = make_pipeline(preparer, KPOD(2, random_state=0)).fit(table)
    >>> model[0].get_feature_names_out()
    array(['mass', 'adult', 'island=Dream'], dtype=object)
    >>> model[0].inverse_transform(model[1].cluster_centers_)
       mass  adult  island
    0   3.1    0.0   Dream
    1   5.1    1.0  Biscoe
    """

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        ids: Sequence[str] = (),
        roles: Mapping[str, str | Sequence[str]] | None = None,
        categories: str | Sequence[str] = (),
        weight: str | None = None,
        missing_values: Any = None,
        decimal: str | None = None,
        scale: str = "standard",
        log: Sequence[str] = (),
        clip: float | None = None,
        column_weights: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> None:
        self.columns = columns
        self.exclude = exclude
        self.ids = ids
        self.roles = roles
        self.categories = categories
        self.weight = weight
        self.missing_values = missing_values
        self.decimal = decimal
        self.scale = scale
        self.log = log
        self.clip = clip
        self.column_weights = column_weights
        self.strict = strict

    def fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Learn roles, levels, means and scales.

        Parameters
        ----------
        X : dataframe (pandas, polars, pyarrow) or array-like of shape (n_samples, n_features)
            A DataFrame of Dask or Spark is learnt from by a random sample of at most 50,000 rows, with a
            warning where that is not all of them.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(samples.raw_rows_here(X) if collections.is_collection(X) else X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Learn from the first batch of a stream, and from later ones only new levels.

        Columns, means and scales stay those of the first batch, so that rows keep their meaning. A new level
        of a column with three levels or more gets its own indicator, which `MiniBatchKPOD` matches by name
        with ``set_output(transform="pandas")``. Columns absent from a later batch count as missing there.

        Parameters
        ----------
        X : dataframe, dict or list of dicts
            A batch. A dict is one row, with column names as keys.
        y : ignored

        Returns
        -------
        self
        """
        if not hasattr(self, "columns_"):
            self._fit(rows_as_frame(X))
            self._streamed = True
            return self
        self._streamed = True
        table = self._table(X)
        self.levels_ = more_levels(table, self.columns_, self.kinds_, self.levels_)
        self._n_features_out = sum(self._encoding.widths)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit, and prepare the same table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_columns_out)
        """
        if collections.is_collection(X):
            return self.fit(X).transform(X)
        _, encoding, values = self._fit(X)
        return encoding.encode(values)

    def transform(self, X: Any) -> Floats:
        """Prepare a table.

        A level that `fit` did not see has 0 in every indicator of its column; in a column with two levels,
        it is a gap. Both give a warning.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_samples, n_features)
            A table with the columns in use, matched by name; others are ignored. A DataFrame of Dask or Spark
            becomes a lazy DataFrame of the prepared columns; warnings about a partition appear on its worker.

        Returns
        -------
        ndarray of shape (n_samples, n_columns_out)
        """
        check_is_fitted(self)
        if collections.is_collection(X):
            return in_partitions.prepared(self, X, self.get_feature_names_out(), self.columns_)
        values, notes = self._values(self._table(X))
        for note in notes:
            warn(note.text)
        return self._encoding.encode(self._encoding.bend(values))

    def row_weights(self, X: Any) -> Floats | None:
        """The weights of the rows, from the column `weight`; None without one.

        Parameters
        ----------
        X : dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or None
            For `sample_weight` of KPOD's `fit`.
        """
        from kpod._columns.preparing.column_values import weights_of

        validation.refuse_dask(X)
        return None if self.weight is None else weights_of(self._table(X), self.weight)

    def _fit(self, X: Any) -> tuple[ColumnUsage, Encoding, AnyFloats]:
        """Learn from a table: what is used of it, how that is encoded, and its values, ready for that."""
        from kpod._columns.preparing import new_rows
        from kpod._columns.preparing.column_values import levels_of
        from kpod._columns.preparing.columns_in_use import choose_columns

        self._check_parameters()
        table = self._table(X, fitting=True)
        usage = choose_columns(
            table, self.columns or (), self.exclude, self.ids,
            roles=self.roles or {}, categories=self.categories, weight=self.weight,
        )  # fmt: skip
        kinds, levels = usage.kinds(table), levels_of(table, usage)
        values, _ = new_rows.values_of(table, usage.used, kinds, levels)
        if np.isnan(values).all():
            raise InputError(f"{table.source}: all entries of the columns to cluster are missing.")
        missing = np.isnan(values).mean(axis=0, dtype=np.float64)
        transforms = Transforms(usage.logs(table, self.log))
        if self.scale == "auto":
            judged = usage.judged_for_scale(kinds)
            transforms = choose_transforms(
                usage.used, values, judged, transforms.log, limit=self.clip is None
            )
        encoding = learn_encoding(
            usage.used, [kind if kind in (CATEGORY, ORDERED) else NUMBER for kind in kinds], levels, values,
            scale=self.scale, log=transforms.log, limited=transforms.limited, clip=self.clip,
            column_weights=usage.column_weights(table, self.column_weights or {}),
        )  # fmt: skip
        self._commit(table, usage, X, encoding, missing, transforms.notes)
        return usage, encoding, values

    def _commit(
        self,
        table: TableFile,
        usage: ColumnUsage,
        X: Any,
        encoding: Encoding,
        missing: Floats | None = None,
        more: Sequence[Note] = (),
    ) -> None:
        """Store the result of a fit; a fitted preparer does not change before the result is complete."""
        from kpod._columns import table_notes

        names = [column.name for column in table.columns]
        learnt = {f"{name}_": getattr(encoding, name) for name in PLAIN if name not in ("names", "kinds")}
        if is_read(X) or frame_kind(X) != "array":
            learnt["feature_names_in_"] = np.asarray(names, dtype=object)
        roles = [
            ColumnRole(name, role.role, name in usage.used, usage.reason(name))
            for name, role in usage.roles.items()
        ]
        learnt |= {
            "n_features_in_": len(names),
            "columns_": usage.used,
            "kinds_": usage.kinds(table),
            "roles_": RoleTable(roles),
            "notes_": Notes([*table_notes.notes_on(table, usage), *more]),
            "decimal_": table.dialect.decimal if table.dialect else self.decimal,
            "_frame": "pyarrow" if is_read(X) else frame_kind(X),
            "_n_features_out": sum(encoding.widths),
            "_streamed": False,
            **({} if missing is None else {"missing_shares_": missing}),
        }
        store_fitted(self, learnt)

    def _of_parts(self, table: TableFile, usage: ColumnUsage, encoding: Encoding) -> TablePreparer:
        """A fitted preparer of a table whose columns were scaled elsewhere, as those in pieces are."""
        self._commit(table, usage, table, encoding)
        return self

    def _table(self, X: Any, *, fitting: bool = False) -> TableFile:
        """The table that was given, its columns inspected; of new rows, those in use have to be there."""
        if not is_read(X):
            validation.refuse_dask(X)
            if sparse.issparse(X):
                raise TypeError(validation.NOT_SPARSE)
            if getattr(self, "_streamed", False):
                X = with_columns(rows_as_frame(X), [] if fitting else self.columns_)
            checked = copy.copy(self)  # which scikit-learn may change before all has succeeded
            if frame_kind(X) == "array":
                X = validate_data(checked, array_in(X), reset=fitting, dtype=None, ensure_all_finite=False)
            elif fitting:
                frames.frame_of(X)  # whose columns have to have different names
                validate_data(checked, X, reset=True, skip_check_array=True)
            answers = {} if fitting else self._answers
            X = table_of(
                X, self.missing_values, decimal=self._decimal(fitting), answers=answers, strict=self.strict
            )
        if not X.n_rows:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return X

    def _decimal(self, fitting: bool) -> str | None:
        """The decimal mark of numbers in text: the one given, or that of the fitted file."""
        return self.decimal if fitting or self.decimal is not None else self.decimal_

    @property
    def _answers(self) -> dict[str, set[str]]:
        """Of each category, the levels that would be taken for gaps elsewhere."""
        from kpod._columns.missing_codes import answers_among

        columns = zip(self.columns_, self.kinds_, self.levels_, strict=True)
        return {name: answers_among(levels) for name, kind, levels in columns if kind == CATEGORY}

    def _values(self, table: TableFile) -> tuple[AnyFloats, list[Note]]:
        """The encoded values of a table, and notes on values that the fit did not see."""
        from kpod._columns import table_notes
        from kpod._columns.preparing import new_rows

        new_rows.check_columns(table, self.columns_)
        new_rows.check_kinds(table, dict(zip(self.columns_, self.kinds_, strict=True)))
        values, notes = new_rows.values_of(table, self.columns_, self.kinds_, self.levels_)
        columns = [
            table.column(name)
            for name, kind in zip(self.columns_, self.kinds_, strict=True)
            if kind not in (CATEGORY, ORDERED)
        ]
        return values, [
            *(note for column in columns for note in table_notes.odd_notes(table, column)),
            *notes,
        ]

    def _notes_on(self, table: TableFile) -> Notes:
        """Notes on a table of new rows."""
        from kpod._columns.preparing import new_rows

        unused = [column.name for column in table.columns if column.name not in self.columns_]
        numbers = [name for name, kind in zip(self.columns_, self.kinds_, strict=True) if kind != CATEGORY]
        codes = new_rows.possible_codes(table, numbers)
        return Notes([*table.notes_without(unused), *self._values(table)[1], *codes])

    def _readable(self, X: Any) -> Floats:
        """A table in the columns of `transform`, but in units one can read; indicators are 0 and 1."""
        return self._encoding.readable(self._values(self._table(X))[0])

    def _check_parameters(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}.")
        for name in ("roles", "column_weights"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise TypeError(f"{name} must be a dict with columns as its keys, got {value!r}.")
        for name in ("columns", "exclude", "ids", "log"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a list of columns, got {getattr(self, name)!r}.")
        if self.clip is not None and not 0 < self.clip < 0.5:
            raise ValueError(f"clip must lie between 0 and 0.5, got {self.clip!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def is_read(X: Any) -> bool:
    """Whether the columns of a table have been inspected already."""
    return hasattr(X, "by_name")
