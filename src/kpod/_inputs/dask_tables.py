"""Dask arrays and DataFrames as tables: every partition is a block.

With a client, blocks are made on the workers of its cluster and stay there; without one, Dask's own
scheduler computes them into this process's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kpod._common.sentences.formatting import kind_of, some
from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Units, block_of
from kpod._engine.executors import Executor
from kpod._engine.workers import worker
from kpod._engine.workers.dask_executor import DaskExecutor, RemoteBlock
from kpod._engine.workers.worker import About, Resident
from kpod._inputs import validation


def refuse(X: Any, model: Any, method: str) -> None:
    """Say how to get what is as large as the table itself: in partitions."""
    if not validation.is_dask(X):
        return
    validation.refuse_delayed(X, "X")
    if method == "fit_transform":
        apply = in_partitions(X, "transform", "model.n_clusters_")
        how = f"Call model.fit(X), then {apply}"
    else:
        check_is_fitted(model)
        how = f"Use {in_partitions(X, method, model.n_clusters_)}"
    raise TypeError(
        f"{method} takes tables in memory, not those of Dask: its result is as long as the table. {how}, "
        "which applies it to each partition."
    )


def in_partitions(X: Any, method: str, n_clusters: int | str) -> str:
    """The line of Python that applies a method to each partition of X."""
    if hasattr(X, "columns"):
        return f"X.map_partitions(model.{method})"
    # Dask would find out the type by a table of one column, which no model takes.
    single = getattr(X, "dtype", None) == np.float32 and method != "predict_proba"
    dtype = "'float32'" if single else "float"
    whole_rows = ".rechunk({1: -1})" if len(getattr(X, "chunks", ())) == 2 and X.numblocks[1] > 1 else ""
    chunks = "" if method == "impute" else f", chunks=(X.chunks[0], ({n_clusters},))"
    return f"X{whole_rows}.map_blocks(model.{method}, dtype={dtype}{chunks})"


class DaskTable:
    """The partitions of a Dask array or DataFrame as blocks.

    Parameters
    ----------
    X : dask array with two dimensions, or dask DataFrame
    executor : where the partitions are made into blocks

    Attributes
    ----------
    shape : (n_rows, n_columns)
    header : a table without rows that has the names of the columns, if they have any
    """

    def __init__(self, X: Any, executor: Executor) -> None:
        from dask.base import compute
        from dask.delayed import delayed

        parts, self.header = partitions(X)
        n_columns = self.header.shape[1]
        make = delayed(resident, pure=False)
        self.cluster = executor if isinstance(executor, DaskExecutor) else None
        # In this process, partitions are computed once.
        recipes = [
            make(part, number, self.header, checked=self.cluster is not None)
            for number, part in enumerate(parts)
        ]
        if self.cluster is None:
            sources = list(compute(*recipes))  # type: ignore[no-untyped-call]
            about = [source.about for source in sources]
        else:
            sources, about = self.cluster.make(recipes)
        check_dtypes(about)
        about = [its._replace(name=f"Partition {number} of X") for number, its in enumerate(about)]
        self.parts = [(it, its) for it, its in zip(sources, about, strict=True) if its.n_rows]
        if not self.parts:
            raise ValueError("X has no rows: every partition is empty.")
        self.shape = sum(its.n_rows for _, its in self.parts), n_columns

    def blocks(self, units: Units, weights: Floats | None) -> list[Block]:
        """One block for each partition that has rows."""
        out: list[Block] = []
        first = 0
        for source, about in self.parts:
            own = None if weights is None else weights[first : first + about.n_rows]
            if self.cluster is None:
                local = source if own is None else source.weighted(own)
                out.append(local.block_in(first, units, None))
            else:
                remote = source if own is None else self.cluster.weighted(source, own)
                out.append(RemoteBlock(remote, about, first, units, own))
            first += about.n_rows
        return out


def partitions(X: Any) -> tuple[list[Any], Any]:
    """The partitions of a collection as delayed values, and a table without rows like it."""
    validation.refuse_delayed(X, "X")
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"Expected a Dask array or DataFrame of rows and columns, got {type(X).__name__} with "
            f"{getattr(X, 'ndim', 'no')} dimensions."
        )
    if hasattr(X, "columns"):
        header = X._meta
        validation.frame_as_array(validation.frame_of(header))  # refuses text columns
        return list(X.to_delayed()), header
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is unknown. Call X.compute_chunk_sizes() first.")
    whole_rows = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return list(whole_rows.to_delayed().ravel()), np.empty((0, X.shape[1]))


def resident(part: Any, number: int, header: Any, *, checked: bool) -> Resident:
    """A partition as a block, wherever this runs; the header is a table without rows as it should be."""
    try:
        check_partition(part, header)
        values = validation.as_table(part, None) if part.shape[0] else np.empty(part.shape)
    except (TypeError, ValueError) as error:
        # Not the very type of the error, which may take more than a text.
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"Partition {number} of X{worker.on_worker()}: {error}") from error
    block = block_of(values, 0, Units(np.zeros(header.shape[1]), 1.0))
    return Resident(block, block.checksum() if checked else None)


def check_partition(part: Any, header: Any) -> None:
    """A partition is what the collection says it is: of that kind, with those columns."""
    is_frame, n_columns = hasattr(header, "columns"), header.shape[1]
    needed = ("ndim", "shape", "columns") if is_frame else ("ndim", "shape")
    if not all(hasattr(part, name) for name in needed):
        raise ValueError(f"it is {kind_of(part)}, expected {kind_of(header) if is_frame else 'an array'}")
    if is_frame:
        found, names = [str(name) for name in part.columns], [str(name) for name in header.columns]
        if found != names:
            raise ValueError(f"its columns are {some(found)}, expected {some(names)}")
    if part.ndim != 2 or part.shape[1] != n_columns:
        raise ValueError(f"its shape is {part.shape}, expected {n_columns} columns")


def check_dtypes(about: Sequence[About]) -> None:
    """All partitions with rows have the same precision."""
    by_dtype = {
        str(dtype): [str(i) for i, its in enumerate(about) if its.n_rows and its.dtype == dtype]
        for dtype in ("float32", "float64")
    }
    if all(by_dtype.values()):
        found = " and ".join(f"{dtype} in partition {some(which)}" for dtype, which in by_dtype.items())
        raise ValueError(f"X is {found}. Convert all of it with X.astype('float64').")
