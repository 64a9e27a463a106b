"""Results that are as long as a table which is spread over machines: made where its partitions are.

Labels, distances, probabilities and imputed entries are functions of a row and the model. So nothing is
computed or gathered here: of a Dask collection they are another one, of a Spark DataFrame one with columns
more.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._common.sentences.formatting import some
from kpod._inputs import dask_tables, spark_tables, validation

LABEL = "cluster"
NOT_SENT = ("labels_", "checkpoint", "_progress_line")


def applied(model: Any, X: Any, method: str) -> Any:
    """What a method of a fitted model gives for every row of a collection: a collection, not computed yet."""
    check_is_fitted(model)
    each = Applied.of(model, method)
    return with_columns(each, X) if validation.is_spark(X) else of_partitions(each, X)


@dataclass(frozen=True)
class Applied:
    """A method of a model, for partitions of any number of rows, none included.

    Parameters
    ----------
    model : pickled, without what it says of the rows of its fit
    method : its name
    columns : of the result; None for a single one
    names : of the columns that it takes, if they have any
    """

    pickled: bytes
    method: str
    columns: tuple[str, ...] | None
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, model: Any, method: str) -> Applied:
        slim = copy.copy(model)
        for name in NOT_SENT:
            if name in vars(slim):
                setattr(slim, name, None)
        slim.n_threads = 1  # partitions are what runs side by side
        names = getattr(model, "feature_names_in_", None)
        columns = {
            "predict": None,
            "transform": tuple(map(str, model.get_feature_names_out())),
            "predict_proba": tuple(f"{LABEL}_{i}" for i in range(model.n_clusters_)),
            "impute": (),
        }[method]
        given = None if names is None else tuple(names)
        return cls(pickle.dumps(slim, pickle.HIGHEST_PROTOCOL), method, columns, given)

    @cached_property
    def model(self) -> Any:
        return pickle.loads(self.pickled)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model"}

    def dtype(self, given: Any) -> np.dtype[Any]:
        """Of the result, for entries of a type."""
        if self.method == "predict":
            return np.dtype(np.int32)
        single = given == np.float32 and self.method != "predict_proba"
        return np.dtype(np.float32 if single else np.float64)

    def array(self, rows: Any) -> Any:
        """Of an array."""
        if not rows.shape[0]:
            shape = {"predict": (0,), "impute": rows.shape}.get(self.method, (0, len(self.columns or ())))
            return np.empty(shape, self.dtype(rows.dtype))
        return getattr(self.model, self.method)(rows)

    def frame(self, rows: Any) -> Any:
        """Of a pandas frame, with its index."""
        if self.method == "impute":
            return self.model.impute(rows) if len(rows) else rows
        values = self.array(rows) if len(rows) else self.array(np.empty(rows.shape))
        if self.columns is None:
            return rows[[]].assign(**{LABEL: values})[LABEL]
        return rows[[]].assign(**{name: values[:, j] for j, name in enumerate(self.columns)})

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Of Arrow batches, with columns more."""
        import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            names = list(self.names or table.column_names)
            rows = table.select(names)
            if self.method == "impute":
                filled = self.model.impute(rows)
                for name in names:
                    at = table.schema.get_field_index(name)
                    table = table.set_column(at, name, filled.column(name).cast(pa.float64()))
            else:
                values = np.asarray(getattr(self.model, self.method)(rows))
                for j, name in enumerate(self.columns or [LABEL]):
                    column = values if self.columns is None else np.ascontiguousarray(values[:, j])
                    table = table.append_column(name, pa.array(column))
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
    if each.method == "predict":
        return X.map_blocks(each.array, drop_axis=1, **how)
    if each.method == "impute":
        return X.map_blocks(each.array, **how)
    return X.map_blocks(each.array, chunks=(X.chunks[0], (len(each.columns or ()),)), **how)


def with_columns(each: Applied, X: Any) -> Any:
    """Of a Spark DataFrame: the same one with columns more, or with its gaps filled."""
    from pyspark.sql.types import DoubleType, FloatType, IntegerType, StructField, StructType

    names = list(each.names or X.columns)
    absent = [repr(name) for name in names if name not in X.columns]
    if absent:
        raise ValueError(f"X lacks columns that the model was fitted on: {some(absent)}.")
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
        StructField(field.name, DoubleType(), True)
        if each.method == "impute" and field.name in names
        else field
        for field in X.schema.fields
    ]
    schema = StructType([*fields, *(StructField(name, kind) for name in new)])
    return X.mapInArrow(each.batches, schema)
