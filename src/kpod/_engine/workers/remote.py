"""Blocks on other machines as seen from this process, and what executors of such blocks have in common.

`worker.py` is the half that runs where the blocks are. How it gets there is the business of an executor:
`dask_executor.py`, `spark_executor.py`.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import AnyFloats, Floats, Positions
from kpod._engine.blocks import Block, Hidden, Units
from kpod._engine.executors import Executor
from kpod._engine.workers.packing import Job, pack
from kpod._engine.workers.worker import About
from kpod._kernels.rows import Rows


class RemoteBlock(Block):
    """A block on a worker, as seen by the client.

    Parameters
    ----------
    executor : what runs steps on it
    source : its name for the executor
    about : its shape
    """

    elsewhere = True

    def __init__(self, executor: RemoteExecutor, source: Any, about: About, *args: Any) -> None:
        super().__init__(*args)
        self.executor, self.source, self.about = executor, source, about
        self.n_rows, self.n_columns, self.n_entries, self.dtype = about[:4]

    def _open(self, bitmap: NDArray[np.uint8] | None = None) -> Rows:
        raise TypeError("These rows are on another machine, where steps can open them.")

    def parts(self) -> tuple[Any, ...]:
        return self._open()  # type: ignore[return-value]  # which says why not

    def replace(self, *, units: Units | None = None, hidden: Hidden | None = None) -> RemoteBlock:
        how = self.first, units or self.units, self.weights, hidden
        out = RemoteBlock(self.executor, self.source, self.about, *how)
        out.file = self.file
        return out

    def glance(self, n: int) -> AnyFloats:
        return self._ask("glance", n)

    def entries(self, index: Positions) -> Floats:
        return self._ask("entries", index)

    def beyond(self, limit: float) -> tuple[Positions, Positions]:
        return self._ask("beyond", limit)

    def _ask(self, what: str, *args: Any) -> Any:
        return self.executor.map(Ask(what, args), [self])[0]


@dataclass(frozen=True)
class Ask:
    """A call of a method of a block, on the worker that has it."""

    what: str
    args: tuple[Any, ...]

    def __call__(self, block: Block) -> Any:
        return getattr(block, self.what)(*self.args)


@dataclass(frozen=True)
class Kept:
    """A state on a worker: the number of the pass that made it."""

    number: int


@dataclass(frozen=True)
class Each:
    """A function of a block as a step: `found` gathers its results by block."""

    function: Callable[[Any], Any]

    def __call__(self, block: Block, state: None, found: Results) -> None:
        found.parts[block.first] = self.function(block)


@dataclass
class Results:
    """Results by the first row of the block."""

    parts: dict[int, Any] = field(default_factory=dict)

    def merge(self, other: Results) -> None:
        self.parts.update(other.parts)


class RemoteExecutor(Executor):
    """An executor of blocks on other machines, where their states stay from one pass to the next."""

    remote = True

    def __init__(self) -> None:
        self.fit = uuid.uuid4().hex
        self.number = 0  # of the pass

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        _, found = self.accumulate(Each(function), items, [None] * len(items), Results)
        return [found.parts[block.first] for block in items]

    def accumulate(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        states: Sequence[Any],
        empty: Callable[[], Any],
    ) -> tuple[list[Any], Any]:
        self.number += 1
        made = [None if state is None else state.number for state in states]
        job, total = pack((function, empty, items[0].units, items[0].hidden)), empty()
        for part in self.run_pass(job, items, made):
            total.merge(part)
        return [Kept(self.number)] * len(items), total

    @abstractmethod
    def run_pass(self, job: Job, blocks: Sequence[Any], states: Sequence[int | None]) -> Sequence[Any]:
        """What a step found, in a few parts.

        Parameters
        ----------
        job : the step, an empty result, the units of the blocks and what is hidden of them
        blocks : all of the executor's own
        states : the passes that made the states that the step needs
        """
