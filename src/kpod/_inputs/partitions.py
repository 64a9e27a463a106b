"""Partitions of a distributed table: each is checked and turned into a block on its worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._common.sentences.formatting import kind_of, some
from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Units, copied
from kpod._engine.executors import Executor
from kpod._engine.workers import worker
from kpod._engine.workers.worker import About, Resident
from kpod._inputs import validation


class Partitions:
    """A table in partitions, each of which is a block, or several; here they are in this process.

    Parameters
    ----------
    header : a table without rows that has the names of the columns, if they have any
    parts : what each block is known by, and its shape
    weights : those of the rows, where a column of the table has them
    """

    def __init__(self, header: Any, parts: Sequence[tuple[Any, About]], weights: Any = None) -> None:
        self.header, self.weights = header, weights
        self.parts = [(source, about) for source, about in parts if about.n_rows]
        if not self.parts:
            raise ValueError("X has no rows: every partition is empty.")
        self.shape = sum(about.n_rows for _, about in self.parts), header.shape[1]
        self.size = sum(about.n_entries for _, about in self.parts)

    def blocks(self, units: Units, weights: Floats | None) -> list[Block]:
        """One for each part."""
        out: list[Block] = []
        first = 0
        for source, about in self.parts:
            own = None if weights is None else weights[first : first + about.n_rows]
            out.append(self.block(source, about, first, units, own))
            first += about.n_rows
        return out

    def block(self, source: Any, about: About, first: int, units: Units, weights: Floats | None) -> Block:
        """A part of the table as a block, with the weights of its rows."""
        made: Resident = source if weights is None else source.weighted(weights)
        return made.block_in(first, units, None)

    def brought_here(self, executor: Executor) -> Partitions:
        """The same partitions, in the memory of this process."""
        blocks = self.blocks(Units(np.zeros(self.shape[1]), 1.0), None)
        copies = executor.map(copied, blocks)
        parts = [(Resident(copy), about) for copy, (_, about) in zip(copies, self.parts, strict=True)]
        return Partitions(self.header, parts, self.weights)


def resident(part: Any, number: int, header: Any, *, checked: bool) -> Resident:
    """A partition as a block; the header is a table without rows as it should be."""

    def values() -> Any:
        check_partition(part, header)
        return validation.as_table(part, None) if part.shape[0] else np.empty(part.shape)

    return worker.resident(values, number, checked=checked)


def check_partition(part: Any, header: Any) -> None:
    """Check that a partition has the kind and the columns that the collection declares."""
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
