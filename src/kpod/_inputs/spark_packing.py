"""What makes blocks of a Spark DataFrame, on its executors.

Spark converts columns to Arrow value by value. With the values of a row as one array, this takes two thirds
of the time, and they arrive as the rows of a block. Imports of every Python process there are part of what
packing takes: scikit-learn is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.typing import AnyFloats, Floats
from kpod._engine.sizes import SPARK_BLOCK
from kpod._engine.workers.spark_worker import BITS, Folder, Row, answered
from kpod._engine.workers.worker import resident

ROWS, WEIGHT, EXACT = "rows", "weight", "exact"
"""Columns as the task gets them: values of a row, its weight, and (numbered) what must not be rounded."""


@dataclass(frozen=True)
class Pack:
    """Make blocks of the rows of a partition, and leave them on the machine where this runs.

    Parameters
    ----------
    fit : whose files they are
    n_columns : of the table
    exact : names of columns of whole numbers of 64 bits, by their position
    """

    fit: str
    n_columns: int
    exact: Mapping[int, str]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Row]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition, some_rows = context.partitionId(), list[Any]()
        count = 0
        for batch in batches:
            some_rows.append(batch)
            if sum(part.num_rows for part in some_rows) * self.n_columns * 8 >= SPARK_BLOCK:
                yield self.block(some_rows, partition, count)
                some_rows, count = [], count + 1
        if sum(part.num_rows for part in some_rows):
            yield self.block(some_rows, partition, count)

    def block(self, batches: list[Any], partition: int, count: int) -> Row:
        weights: Floats | None = None
        if WEIGHT in batches[0].schema.names:
            parts = [batch.column(WEIGHT).to_numpy(zero_copy_only=False) for batch in batches]
            weights = np.concatenate(parts).astype(np.float64, copy=False)
        made = resident(lambda: self.values(batches), partition, checked=True, weights=weights)
        number = (partition << BITS) + count
        own = None if weights is None else weights.tobytes()
        Folder(self.fit).keep(number, made.about, made.block.parts()[0], own)
        return number, answered(made.about), own

    def values(self, batches: list[Any]) -> AnyFloats:
        flat = [batch.column(ROWS).flatten().to_numpy(zero_copy_only=False) for batch in batches]
        values = np.concatenate(flat).reshape(-1, self.n_columns)
        if self.exact:
            import pyarrow as pa

            from kpod._inputs import frames

            table = pa.Table.from_batches(batches)
            for j, name in self.exact.items():
                column = frames.frame_of(table.select([f"{EXACT}{j}"]).rename_columns([name]))[name]
                values[:, j] = frames.column_as_floats(column)
        return values
