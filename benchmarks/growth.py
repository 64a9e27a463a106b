"""How the time of an iteration grows when rows, columns or clusters double."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod._engine.executors import available_threads, threads
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.table import make_table

BASE = {"n": 200_000, "p": 32, "k": 24}
N_ROUNDS = 12


@contextmanager
def first_iteration(n: int, p: int, k: int) -> Iterator[Callable[[], float]]:
    """Seconds of a first iteration: every row is compared with every center, and added up.

    Later ones skip rows, the more the nearer they are to the end, which would blur the growth.
    """
    X, _ = make(n, p, k, 2.0, np.float32)
    with threads(available_threads()) as executor:
        table = make_table(punch(X, 0.3), executor)
        centers = table.units.to(X[:k])

        def seconds() -> float:
            descent = Descent(table, executor, centers)
            return timed(lambda: (descent.assign(), descent.update()))[1]

        yield seconds


def run() -> None:
    sheet = Sheet(
        "growth",
        f"Time of the first iteration of lloyd, 30 % missing, float32; base {BASE}",
        ["doubled", "to", "time / half of it"],
    )
    for what, base in BASE.items():
        sizes = [base * times for times in (1, 2, 4, 8)]
        with ExitStack() as stack:
            progress(f"growth: {what} = {sizes}")
            shapes = [{**BASE, what: size} for size in sizes]
            iterations = [stack.enter_context(first_iteration(**shape)) for shape in shapes]
            # In turn, and the median of each: what else the machine does hits all sizes alike.
            rounds = [[seconds() for seconds in iterations] for _ in range(N_ROUNDS)]
        typical = np.median(rounds, axis=0)
        for size, before, after in zip(sizes[1:], typical[:-1], typical[1:], strict=True):
            sheet.add(what, size, after / before)
    sheet.show()
