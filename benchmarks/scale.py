"""The cost model of docs/growing.md: calibrated on small tables, checked on three larger ones.

Seconds are processor seconds of one thread, which other load on the machine does not show in.
"""

from __future__ import annotations

import pickle
import time

import numpy as np
from scipy.optimize import nnls

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress
from kpod._engine.executors import Executor
from kpod._engine.sizes import FAN_IN
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.step import Assign, Drift, Partial
from kpod._engine.table import Table, make_table
from kpod._kernels.panel import Panel

MISSING = 0.3
SMALL = [(40_000, p, k) for p in (16, 64) for k in (8, 24, 72)]
SIZES = [(200_000, 20, 20), (400_000, 40, 40), (800_000, 50, 80)]
# Entries of a table, columns, clusters, machines: of 8 threads, on a network of 1.25 GB/s.
PREDICTED = [
    (1e9, 50, 50, 1),
    (1e9, 50, 50, 4),
    (1e11, 100, 100, 32),
    (1e11, 100, 100, 128),
    (1e11, 100, 1000, 128),
]
THREADS, NETWORK, OVERHEAD = 8, 1.25e9, 0.06
N_ROUNDS = 7


def work(n: float, p: float, k: float, missing: float = MISSING) -> np.ndarray:
    """What an iteration does: rows, observed entries, and observed entries times centers."""
    observed = n * p * (1 - missing)
    return np.array([n, observed, observed * k])


def calibrated() -> np.ndarray:
    """Processor seconds of a row, an entry, and an entry and a center: least squares of relative errors."""
    seconds = np.array([first_iteration(*shape)[0] for shape in SMALL])
    works = np.array([work(*shape) for shape in SMALL])
    return nnls(works / seconds[:, None], np.ones(len(SMALL)))[0]


def merged_bytes(k: float, p: float, n_levels: int = 1) -> float:
    """Sums at each level and counts, in double precision."""
    return 8 * k * p * (n_levels + 1)


def first_iteration(n: int, p: int, k: int) -> tuple[float, Table, np.ndarray]:
    """Processor seconds of a first iteration, which compares every row with every center."""
    X, _ = make(n, p, k, 2.0, np.float32)
    table = make_table(punch(X, MISSING), Executor())
    centers = table.units.to(X[:k])
    seconds = []
    for _ in range(N_ROUNDS):
        descent = Descent(table, Executor(), centers)
        began = time.process_time()
        descent.assign()
        descent.update()
        seconds.append(time.process_time() - began)
    return min(seconds), table, centers


def sent_bytes(table: Table, centers: np.ndarray) -> tuple[int, int]:
    """What a worker sends and is sent in an iteration: its partial result, and a panel."""
    k, panel = len(centers), Panel(centers)
    partial = Partial.empty(k, *table.sums_units)
    Assign(panel, Drift.none(k))(table.blocks[0], None, partial)
    return len(pickle.dumps(partial, 5)), len(pickle.dumps(panel, 5))


def run() -> None:
    progress("scale: calibrating")
    cost = calibrated()
    row, entry, center = 1e9 * cost
    print(
        f"\nNanoseconds of a thread: {row:.1f} a row, {entry:.2f} an entry, {center:.3f} an entry and center"
    )
    sheet = Sheet(
        "scale",
        "First iterations of lloyd, 30 % missing, float32, one thread: measured over predicted",
        [
            "n",
            "p",
            "k",
            "read: MB",
            "seconds",
            "measured / predicted",
            "merged: kB",
            "/ predicted",
            "panel: kB",
        ],
    )
    for n, p, k in SIZES:
        progress(f"scale: {n} x {p}, k = {k}")
        seconds, table, centers = first_iteration(n, p, k)
        merged, panel = sent_bytes(table, centers)
        n_levels = len(table.sums_units[0])
        sheet.add(
            n, p, k, n * p * 4 / 1e6, seconds, seconds / (cost @ work(n, p, k)), merged / 1e3,
            merged / merged_bytes(k, p, n_levels), panel / 1e3,
        )  # fmt: skip
    sheet.show()
    sheet = Sheet(
        "scale-predicted",
        f"Predicted: machines of {THREADS} threads, {NETWORK / 1e9:.3g} GB/s, float32, 30 % missing",
        ["entries", "p", "k", "machines", "GB each", "compute: s", "merge: ms", "iteration: s"],
    )
    for entries, p, k, machines in PREDICTED:
        compute = cost @ work(entries / p, p, k) / (machines * THREADS)
        rounds = np.ceil(np.log(max(machines, 2)) / np.log(FAN_IN))
        merge = rounds * FAN_IN * merged_bytes(k, p) / NETWORK if machines > 1 else 0.0
        total = compute + merge + (OVERHEAD if machines > 1 else 0.0)
        gigabytes = entries * 4 / machines / 1e9
        sheet.add(f"{entries:.0e}", p, k, machines, gigabytes, compute, 1000 * merge, total)
    sheet.show()
    rows = FAN_IN * merged_bytes(1, 1) * 2 / NETWORK / (cost[2] * (1 - MISSING)) * THREADS
    print(f"\nMerging takes as long as comparing at {rows:,.0f} rows a machine with many centers.")


if __name__ == "__main__":
    run()
