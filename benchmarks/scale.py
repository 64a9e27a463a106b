"""The cost model of docs/growing.md: calibrated on small tables, checked on three larger ones.

Seconds are processor seconds of one thread, which other load on the machine does not show in.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress
from kpod._engine.executors import Executor
from kpod._engine.sizes import FAN_IN, SPARK_BLOCK, SPARK_FAN_IN
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.step import Assign, Drift, Partial
from kpod._engine.table import Table, make_table, measure
from kpod._engine.workers.packing import pack
from kpod._engine.workers.spark_worker import BITS, Work
from kpod._engine.workers.worker import About, Share
from kpod._kernels.panel import Panel

MISSING = 0.3
SMALL = [(40_000, p, k) for p in (16, 64) for k in (8, 24, 72)]
SIZES = [(200_000, 20, 20), (400_000, 40, 40), (800_000, 50, 80), (10_000_000, 20, 20), (40_000_000, 20, 20)]
AT_ONCE = 1_000_000  # rows that are made at a time, and the same again and again beyond
# Rows and machines of the simulation: 20 columns of float32, 20 clusters.
HELD = [(10**9, 4), (10**11, 256)]
PARTITION = 1 << 27  # bytes of one
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
    some, _ = make(min(n, AT_ONCE), p, k, 2.0, np.float32)
    X = np.empty((n, p), np.float32)
    for start in range(0, n, AT_ONCE):
        X[start : start + AT_ONCE] = punch(some, MISSING)
    table = make_table(X, Executor())
    centers = table.units.to(some[:k])
    seconds = []
    for _ in range(N_ROUNDS if n <= AT_ONCE else 2):
        descent = Descent(table, Executor(), centers)
        began = time.process_time()
        descent.assign()
        descent.update()
        seconds.append(time.process_time() - began)
    return min(seconds), table, centers


def sent_bytes(table: Table, centers: np.ndarray) -> tuple[int, int]:
    """What a worker sends and is sent in an iteration: its partial result, and a panel."""
    k, panel = len(centers), Panel(centers)
    found = Partial.empty(k, *table.sums_units)
    Assign(panel, Drift.none(k))(table.blocks[0], None, found)
    return len(pickle.dumps(found, 5)), len(pickle.dumps(panel, 5))


class Passed(NamedTuple):
    """What a tree of merges comes to: its levels, the most that one of its nodes is sent, and the result."""

    levels: int
    most: int
    result: Any


def tree(parts: list[bytes], empty: Callable[[], Any], fan_in: int) -> Passed:
    """Merge results as a cluster does: at most `fan_in` by each node, the last of them by the client."""
    levels, most = 0, 0
    while True:
        groups = [parts[i : i + fan_in] for i in range(0, len(parts), fan_in)]
        most = max(most, *(sum(map(len, group)) for group in groups))
        merged = []
        for group in groups:
            total = empty()
            for part in group:
                total.merge(pickle.loads(part))
            merged.append(total)
        levels += 1
        if len(merged) == 1:
            return Passed(levels, most, merged[0])
        parts = [pickle.dumps(total, 5) for total in merged]


def held(p: int = 20, k: int = 20) -> Sheet:
    """What machines and the client hold and send, from measured parts of a table of a million rows."""
    sheet = Sheet(
        "scale-held",
        f"Simulated: {p} columns of float32, {k} clusters, partitions of {PARTITION >> 20} MB",
        ["place", "rows", "machines", "blocks", "GB each", "levels", "merged by a node: kB", "statistics: MB",
         "tasks: MB", "largest task: kB"],
    )  # fmt: skip
    X, _ = make(AT_ONCE, p, k, 2.0, np.float32)
    table = make_table(punch(X, MISSING), Executor())
    centers = table.units.to(X[:k])
    sums, panel = table.sums_units, Panel(centers)
    part = Partial.empty(k, *sums)
    Assign(panel, Drift.none(k))(table.blocks[0], None, part)
    empty = partial(Partial.empty, k, *sums)
    of_block = len(pickle.dumps({1: measure(table.blocks[0], by_row=False)}, 5))
    known = About.of(table.blocks[0])
    job = pack((Assign(panel, Drift.none(k)), empty, table.units, None))
    constant = len(job.data) + len(pickle.dumps(panel, 5))
    for rows, machines in HELD:
        n_partitions = rows * p * 4 // PARTITION
        for place, n_blocks, n_parts, fan_in in (
            ("Dask", n_partitions, machines, FAN_IN),
            ("Spark", rows * p * 8 // SPARK_BLOCK, n_partitions, SPARK_FAN_IN),
        ):
            progress(f"scale: {rows} rows on {place}")
            edges = np.linspace(0, n_blocks, n_parts + 1).astype(int)
            sent = [
                pickle.dumps(replace(part, gains={200_000 * i: 1.5 for i in range(*ends)}), 5)
                for ends in pairwise(edges.tolist())
            ]
            found = tree(sent, empty, fan_in)
            assert found.result.changed == n_parts * part.changed
            assert len(found.result.gains) == n_blocks
            about = [known._replace(checksum=2**31 + i, name=f"Partition {i} of X") for i in range(n_blocks)]
            if place == "Dask":
                n = n_blocks // machines
                firsts = [200_000 * i for i in range(n)]
                share = Share("f" * 32, 9, firsts, about[:n], [8] * n, THREADS)
                largest = len(pickle.dumps(share, 5)) + len(job.data)
                tasks = machines * largest + len(pickle.dumps(panel, 5))
            else:
                work = {i << BITS: Work(i * 200_000, its, 8) for i, its in enumerate(about)}
                largest = len(pickle.dumps(work, 5)) + constant
                tasks = largest  # once, from where executors get it
            sheet.add(
                place, f"{rows:.0e}", machines, n_blocks, rows * (p * 4 + 12) / machines / 1e9, found.levels,
                found.most / 1e3, n_blocks * of_block / 1e6, tasks / 1e6, largest / 1e3,
            )  # fmt: skip
    return sheet


def run() -> None:
    held().show()
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
