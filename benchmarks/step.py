"""One full iteration, no row skipped: what share of the machine's arithmetic and reading it uses."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.dense import SHAPES, make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod._engine.executors import available_threads, threads
from kpod._engine.solvers.interface import Settings
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.table import make_table


def peak_flops(dtype: type) -> float:
    """Multiply-adds per second, times two, of a large matrix product on all threads."""
    a = np.ones((3000, 3000), dtype)
    with threadpool_limits(available_threads()):
        return 2 * 3000**3 / min(timed(lambda: a @ a)[1] for _ in range(5))


def reading_speed(X: np.ndarray) -> float:
    """Bytes per second of one thread's plain sum, times the threads: close to what memory gives."""
    flat = X.reshape(-1)
    half = len(flat) // 2
    return available_threads() * flat[:half].nbytes / min(timed(flat[:half].sum)[1] for _ in range(3))


def run() -> None:
    sheet = Sheet(
        "step",
        "A full assignment, every row: 3 operations per observed entry and center, against a matrix "
        "product's peak (2 per fused multiply-add) and a plain read, in the same run",
        ["shape", "dtype", "missing", "share of arithmetic peak", "share of reading speed"],
    )
    for dtype in (np.float32, np.float64):
        peak = peak_flops(dtype)
        for n, p, k, spread in SHAPES[:5]:
            X, _ = make(n, p, k, spread, dtype)
            bandwidth = reading_speed(X)
            for missing in (0.3, 0.7):
                progress(f"step: {n} x {p}, k={k}, {dtype.__name__}, {missing:.0%} missing")
                holed = punch(X, missing)
                with threads(available_threads()) as executor:
                    table = make_table(holed, executor)
                    descent = Descent(table, executor, table.units.to(X[:k]), Settings(bounded=False))
                    for _ in range(3):
                        descent.assign()
                        descent.update()
                    seconds = min(timed(descent.assign)[1] for _ in range(7))
                    work = 3.0 * float(table.n_observed) * k
                sheet.add(
                    f"{n} x {p}, k={k}",
                    dtype.__name__,
                    f"{missing:.0%}",
                    work / seconds / peak,
                    X.nbytes / seconds / bandwidth,
                )
    sheet.show()
