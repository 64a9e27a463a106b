"""Run one function over the blocks of a table, on one thread or several.

Results come back in the order of the blocks, so whatever is merged from them has the same
bits on any number of threads. BLAS is held to one thread meanwhile: the threads are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import joblib
import scipy.linalg.cython_blas  # noqa: F401  (loads the BLAS that the kernels call)
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def blas_controller() -> ThreadpoolController:
    """The process's BLAS libraries; looking them up is slow next to a small fit."""
    return ThreadpoolController().select(user_api="blas")


def available_threads() -> int:
    """As many threads as BLAS would use, so that OMP_NUM_THREADS and joblib's limits count."""
    blas = [library["num_threads"] for library in blas_controller().info()]
    return max(1, min([int(joblib.cpu_count()), *blas]))


class Executor:
    """Maps functions over blocks on `n_threads` threads, the calling one among them."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[Executor]:
        """Hold BLAS to one thread, and keep ours, for as long as the context lasts."""
        with blas_controller().limit(limits=1):
            if self.n_threads > 1:
                self._pool = ThreadPoolExecutor(self.n_threads - 1, "kpod")
            try:
                yield self
            finally:
                if self._pool is not None:
                    self._pool.shutdown(wait=True, cancel_futures=True)
                    self._pool = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of `function` for all items, in the order of the items."""
        if self._pool is None or len(items) == 1:
            return [function(item) for item in items]
        results: dict[int, Result] = {}
        waiting = iter(enumerate(items))
        stopped = False

        def work(queue: Iterable[tuple[int, Item]]) -> None:
            for position, item in queue:
                if stopped:
                    return
                results[position] = function(item)

        helpers: list[Future[Any]] = [
            self._pool.submit(work, waiting) for _ in range(min(self.n_threads, len(items)) - 1)
        ]
        try:
            work(waiting)
            for helper in helpers:
                helper.result()
        finally:
            stopped = True
        return [results[position] for position in range(len(items))]
