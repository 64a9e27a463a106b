"""Spark DataFrames as tables: every partition is a block, or several where it is large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kpod._common.sentences.formatting import some
from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Units
from kpod._engine.workers.remote import RemoteBlock
from kpod._engine.workers.spark_executor import SparkExecutor
from kpod._engine.workers.spark_worker import BITS
from kpod._engine.workers.worker import About
from kpod._inputs.conversion import ENCODE
from kpod._inputs.partitions import Partitions
from kpod._inputs.spark_packing import EXACT, ROWS, WEIGHT, Pack

NUMBERS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


class SparkPartitions(Partitions):
    """Partitions of a Spark DataFrame on its executors."""

    def __init__(self, executor: SparkExecutor, *args: Any) -> None:
        super().__init__(*args)
        self.executor = executor

    def block(self, source: Any, about: About, first: int, units: Units, weights: Floats | None) -> Block:
        return RemoteBlock(self.executor, source, about, first, units, weights)


def spark_table(X: Any, executor: SparkExecutor, weight: str | None = None) -> SparkPartitions:
    """A DataFrame of Spark in blocks.

    Parameters
    ----------
    X : DataFrame of numbers
    executor : where its partitions are made into blocks
    weight : the column that has the weights of the rows, or None
    """
    names, kinds = column_names(X, weight), dict(X.dtypes)
    exact = {j: name for j, name in enumerate(names) if kinds[name] == "bigint"}
    rows = values_of_rows(X, {name: kinds[name] for name in names}, weight, exact)
    found = executor.pack(rows, Pack(executor.fit, len(names), exact))
    parts = [(number, about._replace(name=f"Partition {number >> BITS} of X")) for number, about, _ in found]
    weights = None if weight is None else np.concatenate([*(own for *_, own in found), np.empty(0)])
    return SparkPartitions(executor, header_of(names), parts, weights)


def values_of_rows(X: Any, kinds: Mapping[str, str], weight: str | None, exact: Mapping[int, str]) -> Any:
    """The columns as an array for each row, NaN where there is no value; see `Pack`.

    Parameters
    ----------
    X : DataFrame of numbers
    kinds : Spark's types of the columns, by their names
    weight : the column with the weights, if any
    exact : names of columns of whole numbers of 64 bits by their position, which come by themselves as well:
        some of them would lose digits, and are then refused
    """
    from pyspark.sql import functions as f

    kind = "float" if set(kinds.values()) == {"float"} else "double"
    gap = f.lit(float("nan")).cast(kind)
    values = [
        gap if j in exact else f.coalesce(f.col(escaped(name)).cast(kind), gap)
        for j, name in enumerate(kinds)
    ]
    return X.select(
        f.array(*values).alias(ROWS),
        *(f.col(escaped(name)).alias(f"{EXACT}{j}") for j, name in exact.items()),
        *([] if weight is None else [f.col(escaped(weight)).alias(WEIGHT)]),
    )


def column_names(X: Any, weight: str | None) -> list[str]:
    """The names of the columns, all of which hold numbers."""
    kinds = dict(X.dtypes)
    if len(kinds) < len(X.columns):
        twice = [repr(name) for name in kinds if X.columns.count(name) > 1]
        raise ValueError(f"X has several columns named {some(twice)}. Rename or drop them.")
    if weight is not None and weight not in kinds:
        raise ValueError(f"sample_weight is {weight!r}, which is no column of X: {some(list(kinds))}.")
    text = [f"{name!r} ({kind})" for name, kind in kinds.items() if kind.partition("(")[0] not in NUMBERS]
    if text:
        raise ValueError(
            f"Only numbers can be clustered, but these columns are not numeric: {some(text)}. Drop such "
            f"columns, or {ENCODE}."
        )
    names = [name for name in X.columns if name != weight]
    if not names:
        raise ValueError("X has no columns.")
    return names


def escaped(name: str) -> str:
    """A column's name as `select` takes it: a dot in it is no field of a struct."""
    return "`" + name.replace("`", "``") + "`"


def header_of(names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.float64()) for name in names})
