"""Rows of a table that is spread over machines, brought here, and an order that does not depend on where.

Spark promises no order of rows: after a join, the same query may give them in another one. What draws rows at
random draws them in the order of what they contain, and then finds the same wherever the table is.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._common.typing import Floats, Positions
from kpod._engine.blocks import Block, DenseBlock, SparseBlock, dense_with_gaps, row_pieces, some_rows
from kpod._engine.executors import Executor
from kpod._engine.sizes import SAMPLED_ENTRIES, SAMPLED_ROWS
from kpod._engine.table import Table


class Sample(NamedTuple):
    """Rows as they are, as an array or CSR array, their weights, and their positions in the table."""

    values: Any
    weights: Floats | None
    rows: Positions


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
    return Sample(values, None if table.weights is None else table.weights[rows], rows)


def rows_of_block(block: Block, rows: Positions) -> Any:
    """Those of some rows that are in a block, as they are."""
    first, stop = rows.searchsorted([block.first, block.first + block.n_rows])
    here = rows[first:stop] - block.first
    assert isinstance(block, DenseBlock | SparseBlock)
    out = some_rows(block.values, here)
    block.release()
    return out


def order_by_content(values: Any, weights: Floats | None) -> Positions:
    """Positions of the rows in an order that looks random, and is the same however the rows were ordered.

    Only rows that are the same, weight included, can change places. Dense and sparse tables with the same
    entries have the same order.
    """
    keys = fingerprints(values)
    return np.argsort(keys, kind="stable") if weights is None else np.lexsort((weights, keys))


def fingerprints(values: Any) -> NDArray[np.uint64]:
    """Of each row a number made of its observed entries: the sum of a hash of value and column."""
    n_rows, n_columns = values.shape
    out = np.zeros(n_rows, np.uint64)
    salt = scrambled(np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for start, stop in row_pieces(n_rows, n_columns):
        part = values[start:stop]
        if sparse.issparse(part):
            sums = np.cumsum(hashes(part.data, salt[part.indices]), dtype=np.uint64)
            ends = np.concatenate([np.zeros(1, np.uint64), sums])[part.indptr]
            out[start:stop] = ends[1:] - ends[:-1]
        else:
            out[start:stop] = hashes(part, salt).sum(axis=1, dtype=np.uint64)
    return out


def hashes(x: Any, salt: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of entries; 0 where they are missing."""
    numbers = np.asarray(x, np.float64) + 0.0  # -0.0 is 0.0
    return np.where(np.isnan(numbers), np.uint64(0), scrambled(numbers.view(np.uint64) ^ salt))


def scrambled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014): a bijection in which every bit matters."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
