"""Run one function over the blocks of a table: one after the other, or on several threads.

An executor is independent of what it runs. Whatever is merged from its results has the same bits
in any order, because the sums of a `Partial` are exact; another executor, on processes or on a
cluster, is a subclass of `Executor` with a `place`, `map` and `accumulate` of its own (`workers/`), which
`_inputs/choose_executor.py` chooses.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
State = TypeVar("State")


class Mergeable(Protocol):
    """What `Executor.accumulate` adds up."""

    def merge(self, other: Any) -> None:
        """Add another one to this one."""
        ...


Accumulator = TypeVar("Accumulator", bound=Mergeable)


def available_threads() -> int:
    """The processors this process may use, or fewer if OMP_NUM_THREADS is set."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(ValueError):
        n = min(n, max(1, int(os.environ.get("OMP_NUM_THREADS", ""))))
    return min(n, container_quota())


@cache
def container_quota() -> int:
    """The processors that a container may use."""
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, round(int(quota) / int(period)))
    return sys.maxsize


class Executor:
    """One item after the other, on the calling thread.

    `remote`: blocks are on other machines, and steps run there.
    """

    remote = False

    def place(self, blocks: list[Item]) -> list[Item]:
        """The blocks where this executor works on them."""
        return blocks

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of `function` for all items, in the order of the items."""
        return [function(item) for item in items]

    def accumulate(
        self,
        function: Callable[[Item, State, Accumulator], State],
        items: Sequence[Item],
        states: Sequence[State],
        empty: Callable[[], Accumulator],
    ) -> tuple[list[State], Accumulator]:
        """Run `function` on every item with its state, adding to accumulators made by `empty`.

        Returns the states and the sum of the accumulators. How many of these there are, and which
        items share one, is the executor's business.
        """
        total = empty()
        return [function(item, state, total) for item, state in zip(items, states, strict=True)], total


class Threads(Executor):
    """Several threads, the calling one among them; made by `threads`."""

    def __init__(self, n_threads: int, pool: ThreadPoolExecutor) -> None:
        self.n_threads = n_threads
        self._pool = pool

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        results: dict[int, Result] = {}

        def work(queue: Iterable[tuple[int, Item]]) -> None:
            for position, item in queue:
                results[position] = function(item)

        self._share(work, items)
        return [results[position] for position in range(len(items))]

    def accumulate(
        self,
        function: Callable[[Item, State, Accumulator], State],
        items: Sequence[Item],
        states: Sequence[State],
        empty: Callable[[], Accumulator],
    ) -> tuple[list[State], Accumulator]:
        after: dict[int, State] = {}
        accumulators: list[Accumulator] = []

        def work(queue: Iterable[tuple[int, Item]]) -> None:
            own = empty()
            for position, item in queue:
                after[position] = function(item, states[position], own)
            accumulators.append(own)

        self._share(work, items)
        total, *others = accumulators
        for other in others:
            total.merge(other)
        return [after[position] for position in range(len(items))], total

    def _share(self, work: Callable[[Iterable[tuple[int, Item]]], None], items: Sequence[Item]) -> None:
        """Let every thread take items, one at a time, until none is left or one has failed."""
        stopped = False
        # A deque gives each item to one thread, which an iterator does not without the GIL.
        waiting = deque(enumerate(items))

        def queue() -> Iterator[tuple[int, Item]]:
            while not stopped:
                try:
                    numbered = waiting.popleft()
                except IndexError:  # none is left
                    return
                yield numbered

        n_helpers = min(self.n_threads, len(items)) - 1
        try:  # from the first helper on: an interrupt stops them, whenever it comes
            helpers: list[Future[None]] = [self._pool.submit(work, queue()) for _ in range(n_helpers)]
            work(queue())
            for helper in helpers:
                helper.result()
        finally:
            stopped = True


@contextmanager
def threads(n_threads: int) -> Iterator[Executor]:
    """An executor on so many threads, which end with the context."""
    if n_threads == 1:
        yield Executor()
        return
    pool = ThreadPoolExecutor(n_threads - 1, "kpod")
    try:
        yield Threads(n_threads, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
