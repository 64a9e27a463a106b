"""Run one function over the blocks of a table: one after the other, or on several threads.

An executor is independent of what it runs. Whatever is merged from its results has the same bits
in any order, because the sums of a `Partial` are exact; another executor, on processes or on a
cluster, is a subclass of `Executor` with a `place`, `map` and `accumulate` of its own (`workers/`), which
`_inputs/choose_executor.py` chooses.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """Several threads, the calling one among them; made by `threads`.

    What runs for an item may share items of its own: threads that have run out of others help with these.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._helpers: list[threading.Thread] = []
        self._shares: list[_Share] = []  # that have items left, the innermost last
        self._n_shares = 0  # so far
        self._changed = threading.Condition()
        self._closed = False

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

    def close(self) -> None:
        """End the threads, each when it has finished its item."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()

    def _share(self, work: Callable[[Iterable[tuple[int, Item]]], None], items: Sequence[Item]) -> None:
        """Let every thread take items, one at a time, until none is left or one has failed."""
        share = _Share(work, items)
        if len(items) < 2:
            share.run()
            return
        try:  # from the first helper on: an interrupt stops them, whenever it comes
            self._call_helpers(share, len(items) - 1)
            share.run()
            self._wait_for(share)
        finally:
            share.stopped = True
        if share.error is not None:
            raise share.error

    def _call_helpers(self, share: _Share, most: int) -> None:
        with self._changed:
            while len(self._helpers) < min(self.n_threads - 1, most):
                helper = threading.Thread(target=self._help, name="kpod", daemon=True)
                self._helpers.append(helper)
                helper.start()
            self._n_shares += 1
            share.number = self._n_shares
            self._shares.append(share)
            self._changed.notify_all()

    def _wait_for(self, share: _Share) -> None:
        """Wait until no other thread works on it, and meanwhile help with items shared after it."""
        while True:
            with self._changed:
                while (other := self._next(after=share)) is None and share.n_helpers:
                    self._changed.wait()
                if other is None:
                    return
            self._work_on(other)

    def _help(self) -> None:
        """What a thread does: work on any share, until there are none any more."""
        while True:
            with self._changed:
                while (share := self._next()) is None and not self._closed:
                    self._changed.wait()
                if share is None:
                    return
            self._work_on(share)

    def _next(self, after: _Share | None = None) -> _Share | None:
        """The innermost share with items left, which this thread will work on."""
        self._shares = [share for share in self._shares if share.waiting and not share.stopped]
        for share in reversed(self._shares):
            if after is None or share.number > after.number:
                share.n_helpers += 1
                return share
        return None

    def _work_on(self, share: _Share) -> None:
        try:
            share.run()
        except BaseException as error:
            share.error, share.stopped = error, True
        finally:
            with self._changed:
                share.n_helpers -= 1
                self._changed.notify_all()


class _Share:
    """Items that threads take one at a time."""

    def __init__(self, work: Callable[[Iterable[tuple[int, Any]]], None], items: Sequence[Any]) -> None:
        self.work, self.number = work, 0  # the innermost has the highest number
        # A deque gives each item to one thread, which an iterator does not without the GIL.
        self.waiting = deque(enumerate(items))
        self.n_helpers = 0
        self.stopped = False
        self.error: BaseException | None = None

    def run(self) -> None:
        """Work on items until none is left."""
        self.work(self.queue())

    def queue(self) -> Iterator[tuple[int, Any]]:
        while not self.stopped:
            try:
                numbered = self.waiting.popleft()
            except IndexError:  # none is left
                return
            yield numbered


@contextmanager
def threads(n_threads: int) -> Iterator[Executor]:
    """An executor on so many threads, which end with the context."""
    if n_threads == 1:
        yield Executor()
        return
    executor = Threads(n_threads)
    try:
        yield executor
    finally:
        executor.close()
