"""Dask arrays and DataFrames as tables: every partition is a block.

With a client, blocks are made on the workers of its cluster and stay there; without one, Dask's own
scheduler computes them into this process's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._common.sentences.formatting import some
from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Units
from kpod._engine.executors import Executor
from kpod._engine.workers.dask_executor import DaskExecutor
from kpod._engine.workers.remote import RemoteBlock
from kpod._engine.workers.worker import About
from kpod._inputs import frames, partitions, validation
from kpod._inputs.partitions import Partitions


class DaskPartitions(Partitions):
    """Partitions of a Dask collection on the workers of a cluster."""

    def __init__(self, executor: DaskExecutor, *args: Any) -> None:
        super().__init__(*args)
        self.executor = executor

    def block(self, source: Any, about: About, first: int, units: Units, weights: Floats | None) -> Block:
        there = source if weights is None else self.executor.weighted(source, weights)
        return RemoteBlock(self.executor, there, about, first, units, weights)


def dask_table(X: Any, executor: Executor, weight: str | None = None) -> Partitions:
    """The partitions of a Dask array or DataFrame as blocks.

    Parameters
    ----------
    X : dask array with two dimensions, or dask DataFrame
    executor : where the partitions are made into blocks
    weight : the column of a DataFrame that has the weights of the rows, or None
    """
    from dask.base import compute
    from dask.delayed import delayed

    weights = None
    if weight is not None:
        X, weights = without_weights(X, weight)
    parts, header = partitions_of(X)
    make, there = delayed(partitions.resident, pure=False), isinstance(executor, DaskExecutor)
    # In this process, partitions are computed once.
    recipes = [make(part, number, header, checked=there) for number, part in enumerate(parts)]
    if isinstance(executor, DaskExecutor):
        sources, known = executor.make(recipes)
    else:
        sources = list(compute(*recipes))  # type: ignore[no-untyped-call]
        known = [source.about for source in sources]
    partitions.check_dtypes(known)
    about = [its._replace(name=f"Partition {number} of X") for number, its in enumerate(known)]
    pairs = list(zip(sources, about, strict=True))
    if isinstance(executor, DaskExecutor):
        return DaskPartitions(executor, header, pairs, weights)
    return Partitions(header, pairs, weights)


def without_weights(X: Any, weight: str) -> tuple[Any, Any]:
    """The other columns of a DataFrame, and the weights that one has."""
    if weight not in X.columns:
        raise ValueError(
            f"sample_weight is {weight!r}, which is no column of X: {some(list(map(str, X.columns)))}."
        )
    return X.drop(columns=[weight]), X[weight].compute().to_numpy()


def partitions_of(X: Any) -> tuple[list[Any], Any]:
    """The partitions of a collection as delayed values, and a table without rows like it."""
    X, header = whole_rows(X)
    parts = X.to_delayed()
    return list(parts if hasattr(X, "columns") else parts.ravel()), header


def whole_rows(X: Any) -> tuple[Any, Any]:
    """A collection in partitions of whole rows, and a table without rows like it."""
    validation.refuse_delayed(X, "X")
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"Expected a Dask array or DataFrame of rows and columns, got {type(X).__name__} with "
            f"{getattr(X, 'ndim', 'no')} dimensions."
        )
    if hasattr(X, "columns"):
        header = X._meta
        frames.frame_as_array(frames.frame_of(header))  # refuses text columns
        return X, header
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is unknown. Call X.compute_chunk_sizes() first.")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X, np.empty((0, X.shape[1]))


def raw_rows(X: Any, most: int) -> tuple[int, Any]:
    """The number of rows of a collection of Dask, and so many of them at random, in their order."""
    from dask.base import compute
    from dask.delayed import delayed

    is_frame = hasattr(X, "columns")
    parts = list(X.to_delayed() if is_frame else whole_rows(X)[0].to_delayed().ravel())
    lengths = compute(*(delayed(len)(part) for part in parts))  # type: ignore[no-untyped-call]
    edges = np.concatenate([[0], np.cumsum(lengths)])
    n_rows = int(edges[-1])
    drawn = np.random.default_rng(0).choice(n_rows, min(most, n_rows), replace=False, shuffle=False)
    drawn.sort()
    own = np.split(drawn, np.searchsorted(drawn, edges[1:-1]))
    some = [
        (part.iloc if is_frame else part)[at - edge]
        for part, at, edge in zip(parts, own, edges[:-1], strict=True)
    ]
    if is_frame:
        from dask.dataframe import from_delayed

        return n_rows, from_delayed(some, meta=X._meta).compute()
    return n_rows, np.concatenate(compute(*some))  # type: ignore[no-untyped-call]
