"""Results that are as long as a table which is spread over machines: made where its partitions are.

Labels, distances, probabilities and imputed entries are functions of a row and the model. So nothing is
computed or gathered here: of a Dask collection they are another one, of a Spark DataFrame one with columns
more.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._common.sentences.formatting import some
from kpod._inputs import collections, dask_tables, spark_tables, validation

LABEL = "cluster"
NOT_SENT = ("labels_", "checkpoint", "_progress_line")


def applied(model: Any, X: Any, method: str, columns: Sequence[str] | None = ()) -> Any:
    """What a method of a fitted model gives for every row of a collection: a collection, not computed yet.

    The result has these columns; none are those of the table itself, and None is a label.
    """
    check_is_fitted(model)
    each = Applied.of(model, method, columns)
    return with_columns(each, X) if validation.is_spark(X) else of_partitions(each, X)


def prepared(preparer: Any, X: Any, columns: Sequence[str], names: Sequence[str]) -> Any:
    """A raw collection as prepared by a `TablePreparer`: a lazy one, with these columns.

    `names` are the columns that it takes.
    """
    each = Applied.of(preparer, "transform", columns, names)
    if not hasattr(X, "columns"):
        return of_partitions(each, X)
    collections.check_there(X, names)
    if validation.is_spark(X):
        schema = ", ".join(f"{spark_tables.escaped(name)} double" for name in columns)
        return X.select([spark_tables.escaped(name) for name in names]).mapInArrow(each.only, schema)
    return X.map_partitions(each.frame, meta=each.frame(X._meta))


def left_in_partitions(estimator: Any) -> Any:
    """A class whose `transform` leaves collections alone: with `set_output`, scikit-learn would load them."""

    def left(method: Any) -> Any:
        @wraps(method)
        def own(self: Any, X: Any, *args: Any, **how: Any) -> Any:
            chosen = inspect.unwrap(method) if collections.is_collection(X) else method
            return chosen(self, X, *args, **how)

        return own

    for name in ("transform", "fit_transform"):
        setattr(estimator, name, left(getattr(estimator, name)))
    return estimator


@dataclass(frozen=True)
class Applied:
    """A method of a model, for partitions of any number of rows, none included.

    Parameters
    ----------
    pickled : the model, without its results for the rows of its fit
    method : its name
    columns : of the result, see `applied`
    names : of the columns that it takes, if they have any
    """

    pickled: bytes
    method: str
    columns: tuple[str, ...] | None
    names: tuple[str, ...] | None

    @classmethod
    def of(
        cls, model: Any, method: str, columns: Sequence[str] | None, names: Sequence[str] | None = None
    ) -> Applied:
        slim = copy.copy(model)
        vars(slim).pop("_sklearn_output_config", None)
        for name in NOT_SENT:
            if name in vars(slim):
                setattr(slim, name, None)
        if hasattr(slim, "n_threads"):
            slim.n_threads = 1  # partitions are what runs side by side
        names = getattr(model, "feature_names_in_", None) if names is None else names
        given = None if names is None else tuple(names)
        new = None if columns is None else tuple(map(str, columns))
        return cls(pickle.dumps(slim, pickle.HIGHEST_PROTOCOL), method, new, given)

    @cached_property
    def model(self) -> Any:
        return pickle.loads(self.pickled)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model"}

    def dtype(self, given: Any) -> np.dtype[Any]:
        """Of the result, for entries of a type."""
        if self.columns is None:
            return np.dtype(np.int32)
        single = given == np.float32 and self.method != "predict_proba"
        return np.dtype(np.float32 if single else np.float64)

    def array(self, rows: Any) -> Any:
        """Of an array."""
        if not rows.shape[0]:
            shape = (0,) if self.columns is None else (0, len(self.columns) or rows.shape[1])
            return np.empty(shape, self.dtype(rows.dtype))
        return getattr(self.model, self.method)(rows)

    def frame(self, rows: Any) -> Any:
        """Of a pandas frame, with its index."""
        if not len(rows) and self.method == "impute":
            return rows
        values = self.array(rows if len(rows) else np.empty(rows.shape))
        if hasattr(values, "columns"):
            return values
        if self.columns is None:
            return type(rows)({LABEL: values}, index=rows.index)[LABEL]
        return type(rows)(values, index=rows.index, columns=list(self.columns or rows.columns))

    def only(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Of Arrow batches, nothing but the result."""
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                values = getattr(self.model, self.method)(pa.Table.from_batches([batch]))
                arrays = [pa.array(column, from_pandas=True) for column in np.ascontiguousarray(values.T)]
                yield pa.RecordBatch.from_arrays(arrays, list(self.columns or ()))

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Of Arrow batches, with columns more."""
        import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            names = list(self.names or table.column_names)
            rows = table.select(names)
            found = getattr(self.model, self.method)(rows)
            for j, name in enumerate([LABEL] if self.columns is None else self.columns or names):
                if hasattr(found, "column_names"):
                    own = found.column(name)
                else:
                    own = pa.array(found if self.columns is None else np.ascontiguousarray(found[:, j]))
                if self.columns == ():
                    at = table.schema.get_field_index(name)
                    table = table.set_column(at, name, own.cast(pa.float64()))
                else:
                    table = table.append_column(name, own)
            yield from table.combine_chunks().to_batches()


def of_partitions(each: Applied, X: Any) -> Any:
    """Of a Dask collection: another one."""
    X, header = dask_tables.whole_rows(X)
    validate_data(each.model, header, reset=False, skip_check_array=True)
    if hasattr(X, "columns"):
        meta = header if each.method == "impute" else each.frame(header)
        return X.map_partitions(each.frame, meta=meta)
    how: dict[str, Any] = {
        "dtype": each.dtype(X.dtype),
        "meta": each.array(np.empty((0, X.shape[1]), X.dtype)),
    }
    if each.columns is None:
        return X.map_blocks(each.array, drop_axis=1, **how)
    if not each.columns:
        return X.map_blocks(each.array, **how)
    return X.map_blocks(each.array, chunks=(X.chunks[0], (len(each.columns),)), **how)


def with_columns(each: Applied, X: Any) -> Any:
    """Of a Spark DataFrame: the same one with columns more, or with its gaps filled."""
    from pyspark.sql.types import DoubleType, FloatType, IntegerType, StructField, StructType

    names = list(each.names or X.columns)
    collections.check_there(X, names)
    validate_data(each.model, spark_tables.header_of(names), reset=False, skip_check_array=True)
    spark_tables.column_names(X.select([spark_tables.escaped(name) for name in names]), None)
    new = [LABEL] if each.columns is None else list(each.columns)
    twice = [repr(name) for name in new if name in X.columns]
    if twice:
        raise ValueError(f"X has a column {some(twice)} already. Rename or drop it.")
    kinds = dict(X.dtypes)
    single = all(kinds[name] == "float" for name in names) and each.method == "transform"
    kind = IntegerType() if each.columns is None else FloatType() if single else DoubleType()
    fields = [
        StructField(field.name, DoubleType(), True) if each.columns == () and field.name in names else field
        for field in X.schema.fields
    ]
    schema = StructType([*fields, *(StructField(name, kind) for name in new)])
    return X.mapInArrow(each.batches, schema)
