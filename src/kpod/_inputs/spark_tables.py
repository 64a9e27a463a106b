"""Spark DataFrames as tables: every partition is a block, or several where it is large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.sentences.formatting import some
from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Units
from kpod._engine.sizes import SPARK_BLOCK
from kpod._engine.workers.remote import RemoteBlock
from kpod._engine.workers.spark_executor import BITS, SparkExecutor
from kpod._engine.workers.spark_worker import Folder, Row, answered
from kpod._engine.workers.worker import About
from kpod._inputs import partitions
from kpod._inputs.conversion import ENCODE
from kpod._inputs.partitions import Partitions

NUMBERS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Pack:
    """Make blocks of the rows of a partition, and leave them on the machine where this runs.

    Parameters
    ----------
    fit : whose files they are
    names : of the columns
    weight : the column with the weights, if any
    """

    fit: str
    names: Sequence[str]
    weight: str | None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Row]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition, some_rows = context.partitionId(), list[Any]()
        count = 0
        for batch in batches:
            some_rows.append(batch)
            if sum(part.num_rows for part in some_rows) * len(self.names) * 8 >= SPARK_BLOCK:
                yield self.block(pa.Table.from_batches(some_rows), partition, count)
                some_rows, count = [], count + 1
        table = pa.Table.from_batches(some_rows) if some_rows else None
        if table is not None and table.num_rows:
            yield self.block(table, partition, count)

    def block(self, table: Any, partition: int, count: int) -> Row:
        names = list(self.names)
        weights: Floats | None = None
        if self.weight is not None:
            weights = np.ascontiguousarray(table.column(self.weight).to_numpy(), np.float64)
        made = partitions.resident(table.select(names), partition, checked=True, weights=weights)
        number = (partition << BITS) + count
        entries, own = made.block.parts()[0].tobytes(), None if weights is None else weights.tobytes()
        Folder(self.fit).keep(number, made.about, entries, own)
        return number, answered(made.about), entries, own


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
    names = column_names(X, weight)
    frame = X.select([escaped(name) for name in (*names, *([] if weight is None else [weight]))])
    found = executor.pack(frame, Pack(executor.fit, names, weight))
    parts = [(number, about._replace(name=f"Partition {number >> BITS} of X")) for number, about, _ in found]
    weights = None if weight is None else np.concatenate([*(own for *_, own in found), np.empty(0)])
    return SparkPartitions(executor, header_of(names), parts, weights)


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
            f"k-means needs numbers, but these columns are not numeric: {some(text)}. Drop such columns, or "
            f"{ENCODE}."
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
