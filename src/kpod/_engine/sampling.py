"""Samples of rows from a distributed table, in an order that does not depend on the workers.

Spark promises no order of rows: after a join, the same query may give them in another one. What draws rows at
random draws them in the order of what they contain, and then finds the same wherever the table is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kpod._common.typing import Counts, Floats, Positions
from kpod._engine.blocks import Block, DenseBlock, SparseBlock, dense_with_gaps, row_pieces, some_rows
from kpod._engine.executors import Executor
from kpod._engine.sizes import SAMPLED_ENTRIES, SAMPLED_ROWS
from kpod._engine.table import Table, measure, says_anything

RANKED_ROWS = 1 << 18  # of a mask that are listed at a time


class Sample(NamedTuple):
    """Rows as they are, as an array or CSR array, their weights, and their positions in the table."""

    values: Any
    weights: Floats | None
    rows: Positions


def rows_here(table: Table, executor: Executor, rng: np.random.Generator) -> Sample:
    """Rows with any information, at random, in the order of the table; all of them where they are few.

    Which ones depends on the table and the generator, not on the machines that it is on.
    """
    size = min(SAMPLED_ROWS, max(1, SAMPLED_ENTRIES // table.n_columns))
    rows, _ = rows_by_rank(table, executor, ranks_of(table, size, rng))
    parts = executor.map(partial(rows_of_block, rows=rows), table.blocks)
    if all(sparse.issparse(part) for part in parts):
        whole = sparse.csr_array(sparse.vstack(parts))
        values = some_rows(whole, np.arange(whole.shape[0]))
    else:
        values = np.vstack([dense_with_gaps(part) if sparse.issparse(part) else part for part in parts])
    return Sample(values, None if table.weights is None else table.weights[rows], rows)


def ranks_of(table: Table, size: int, rng: np.random.Generator) -> Positions:
    """So many ranks of rows among those with any information, at random, in order; all if there are fewer."""
    n = table.n_usable
    return np.arange(n) if size >= n else np.sort(rng.choice(n, size, replace=False, shuffle=False))


def rows_by_rank(table: Table, executor: Executor, ranks: Positions) -> tuple[Positions, Any]:
    """The rows with these ranks among those with any information, and what is observed of each.

    Of a table that is elsewhere, the blocks count their rows themselves.
    """
    if not table.blocks[0].elsewhere:
        rows = rows_in(table.usable, ranks)
        return rows, table.observed[rows]
    order = np.argsort(ranks, kind="stable")
    ends = np.cumsum([counts.n_usable for counts in table.about.rows])
    wanted = np.split(ranks[order], np.searchsorted(ranks[order], ends[:-1]))
    of_block = {
        block.first: own - (end - counts.n_usable)
        for block, own, end, counts in zip(table.blocks, wanted, ends, table.about.rows, strict=True)
    }
    found = executor.map(partial(ranked_rows, ranks=of_block), table.blocks)
    rows = np.empty(len(ranks), np.intp)
    observed = np.empty(len(ranks), np.intp)
    rows[order] = np.concatenate([part for part, _ in found])
    observed[order] = np.concatenate([part for _, part in found])
    return rows, observed


def ranked_rows(block: Block, ranks: Mapping[int, Positions]) -> tuple[Positions, Any]:
    """Rows of a block by their ranks among its own with any information, and what is observed of each."""
    own = ranks[block.first]
    if not len(own):
        return own, own
    observed = observed_of(block)
    rows = rows_in(says_anything(observed, block.weights), own)
    return block.first + rows, observed[rows]


def observed_of(block: Block) -> Counts:
    """The number of observed columns of each row of a block."""
    observed = measure(block)[3]
    assert observed is not None
    return observed


def rows_in(mask: NDArray[np.bool_], ranks: Positions) -> Positions:
    """The rows with these ranks among those in a mask; where these are many, without a list of them."""
    if len(mask) <= RANKED_ROWS or (np.diff(ranks) < 0).any():
        return np.flatnonzero(mask)[ranks]
    found, before = [np.empty(0, np.intp)], 0
    for start in range(0, len(mask), RANKED_ROWS):
        here = np.flatnonzero(mask[start : start + RANKED_ROWS])
        low, high = np.searchsorted(ranks, [before, before + len(here)])
        found.append(start + here[ranks[low:high] - before])
        before += len(here)
    return np.concatenate(found)


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
