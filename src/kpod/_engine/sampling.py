"""A sample of the rows of a table that is spread over machines, brought here to decide by."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kpod._common.typing import Floats, Positions
from kpod._engine.blocks import Block, DenseBlock, SparseBlock, dense_with_gaps, some_rows
from kpod._engine.executors import Executor
from kpod._engine.sizes import SAMPLED_ENTRIES, SAMPLED_ROWS
from kpod._engine.table import Table


class Sample(NamedTuple):
    """Rows as they are, as an array or CSR array, and their weights."""

    values: Any
    weights: Floats | None


def rows_here(table: Table, executor: Executor, rng: np.random.Generator) -> Sample:
    """Rows that say anything, at random, in the order of the table; all of them where they are few.

    Which ones depends on the table and the generator, not on the machines that it is on.
    """
    usable = np.flatnonzero(table.usable)
    size = min(SAMPLED_ROWS, max(1, SAMPLED_ENTRIES // table.n_columns))
    rows = usable if len(usable) <= size else np.sort(rng.choice(usable, size, replace=False, shuffle=False))
    parts = executor.map(partial(rows_of_block, rows=rows), table.blocks)
    if all(sparse.issparse(part) for part in parts):
        whole = sparse.csr_array(sparse.vstack(parts))
        values = some_rows(whole, np.arange(whole.shape[0]))
    else:
        values = np.vstack([dense_with_gaps(part) if sparse.issparse(part) else part for part in parts])
    return Sample(values, None if table.weights is None else table.weights[rows])


def rows_of_block(block: Block, rows: Positions) -> Any:
    """Those of some rows that are in a block, as they are."""
    first, stop = rows.searchsorted([block.first, block.first + block.n_rows])
    here = rows[first:stop] - block.first
    assert isinstance(block, DenseBlock | SparseBlock)
    out = some_rows(block.values, here)
    block.release()
    return out
