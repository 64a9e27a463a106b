"""Tables that are spread over machines: collections of Dask, and DataFrames of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpod._common.sentences.formatting import some
from kpod._inputs import validation
from kpod._inputs.dask_tables import dask_table
from kpod._inputs.partitions import Partitions
from kpod._inputs.spark_tables import spark_table
from kpod._inputs.validation import is_spark


def is_collection(X: Any) -> bool:
    """Whether X is a collection of Dask or a DataFrame of Spark; neither is imported to find out."""
    return validation.is_dask(X) or is_spark(X)


def table_of(X: Any, executor: Any, weight: str | None) -> Partitions:
    """The partitions of a collection as blocks."""
    return spark_table(X, executor, weight) if is_spark(X) else dask_table(X, executor, weight)


def without(X: Any, weight: Any) -> Any:
    """A collection without the column that has the weights, where they are given by its name."""
    return X.drop(columns=[weight]) if isinstance(weight, str) and validation.is_dask(X) else X


def check_there(X: Any, names: Sequence[str]) -> None:
    """Refuse a DataFrame of Dask or Spark without the columns of a model."""
    absent = [repr(name) for name in names if name not in X.columns]
    if absent:
        raise ValueError(f"X lacks columns that the model was fitted on: {some(absent)}.")


def weight_column(X: Any, sample_weight: Any) -> str | None:
    """The column of X that has the weights of the rows, where they are given by its name."""
    if not isinstance(sample_weight, str):
        if sample_weight is not None and is_spark(X):
            raise TypeError(
                "The rows of a Spark DataFrame have no order by which weights could be given: put them into "
                "a column of X, and pass its name, sample_weight='weight'."
            )
        return None
    if is_collection(X) and hasattr(X, "columns"):
        return sample_weight
    raise TypeError(
        f"sample_weight={sample_weight!r} is the name of a column, which DataFrames of Spark and Dask may "
        f"have their weights in. Pass the weights themselves: sample_weight=X[{sample_weight!r}]."
    )
