"""What makes blocks of a Spark DataFrame, on its executors.

Imports of every Python process there are part of what packing takes: scikit-learn is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.sizes import SPARK_BLOCK
from kpod._engine.workers.spark_worker import BITS, Folder, Row, answered
from kpod._engine.workers.worker import resident
from kpod._inputs import frames


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
        rows = frames.frame_of(table.select(list(self.names)))
        weights: Floats | None = None
        if self.weight is not None:
            weights = np.ascontiguousarray(table.column(self.weight).to_numpy(), np.float64)
        made = resident(lambda: frames.frame_as_array(rows), partition, checked=True, weights=weights)
        number = (partition << BITS) + count
        entries, own = made.block.parts()[0].tobytes(), None if weights is None else weights.tobytes()
        Folder(self.fit).keep(number, made.about, entries, own)
        return number, answered(made.about), entries, own
