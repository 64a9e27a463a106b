"""Tables of all shapes: kpod on the table with gaps over k-means on the complete one, from the same start.

Rows, columns, clusters and the share of missing entries are drawn at random, evenly on a scale of logarithms,
and the same each time, so that two versions can be compared. `CELLS` in the environment says how many (40),
`MOST_ENTRIES` how large a table may be (5,000,000; 500,000,000 float32 are 2 GB), `FIRST_CELL` where to
begin. Processor time over all threads, the median of several turns; KMeans on one thread or two, whichever
takes less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from threadpoolctl import threadpool_limits

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, geometric_mean, progress, timed
from kpod import KPOD

CELLS = int(os.environ.get("CELLS", "40"))
FIRST_CELL = int(os.environ.get("FIRST_CELL", "0"))
MOST_ENTRIES = int(os.environ.get("MOST_ENTRIES", "5000000"))
TURN_ENTRIES = 2_000_000  # entries times turns of a cell
WORST = 12


class Shape(NamedTuple):
    """One cell of the sweep."""

    rows: int
    columns: int
    clusters: int
    missing: float
    spread: float


def shapes() -> list[Shape]:
    """The cells, the same each time."""
    rng, found = np.random.default_rng(0), list[Shape]()
    while len(found) < FIRST_CELL + CELLS:
        rows, columns, clusters = (int(np.exp(rng.uniform(np.log(low), np.log(high))))
                                   for low, high in ((100, 1e7), (2, 200), (2, 200)))  # fmt: skip
        missing, spread = float(rng.uniform(0.05, 0.9)), float(rng.choice([0.5, 1.0, 2.0]))
        if rows * columns <= MOST_ENTRIES and clusters * 4 <= rows:
            found.append(Shape(rows, columns, clusters, missing, spread))
    return found[FIRST_CELL:]


def processor_time(function: Callable[[], Any]) -> tuple[Any, float]:
    before = time.process_time()
    return timed(function)[0], time.process_time() - before


def measure(shape: Shape) -> tuple[float, float, int, int]:
    """Milliseconds of both, and their iterations."""
    X, _ = make(*shape[:3], shape.spread, np.float32)
    holed = punch(X, shape.missing)
    holed[np.isnan(holed).all(axis=1), 0] = 0.0
    sample = X[np.random.default_rng(2).choice(len(X), min(len(X), 10_000), replace=False)]
    start = kmeans_plusplus(sample, shape.clusters, random_state=0)[0]
    ours, theirs = [], []
    for _ in range(max(3, min(15, TURN_ENTRIES // X.size))):
        model, seconds = processor_time(
            lambda: KPOD(shape.clusters, init=start, algorithm="lloyd").fit(holed)
        )
        ours.append(seconds)
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                peer, seconds = processor_time(lambda: KMeans(shape.clusters, init=start, n_init=1).fit(X))
            theirs.append((seconds, n_threads))
    fastest = min(np.median([s for s, n in theirs if n == threads]) for threads in (1, 2))
    return 1000 * float(np.median(ours)), 1000 * float(fastest), int(model.n_iter_), int(peer.n_iter_)


def run() -> None:
    columns = ["rows", "columns", "clusters", "missing", "spread", "kpod, ms", "KMeans, ms", "ratio",
               "iterations", "of KMeans"]  # fmt: skip
    title = "KPOD(lloyd) with gaps over KMeans on the complete table, from the same start, processor time"
    sheet = Sheet("sweep", title, columns)
    for number, shape in enumerate(shapes()):
        progress(f"sweep: {number + 1} of {CELLS}, {shape}")
        ours, theirs, iterations, of_peer = measure(shape)
        sheet.add(*shape, ours, theirs, ours / theirs, iterations, of_peer)
        sheet.save()
    ratios = sheet.column("ratio")
    above = float(np.mean([ratio > 1 for ratio in ratios]))
    sheet.rows.sort(key=lambda row: -row[columns.index("ratio")])
    worst = Sheet("sweep-worst", f"{title}: the worst of {len(ratios)} cells", columns)
    worst.rows = sheet.rows[:WORST]
    worst.show()
    print(f"\ngeometric mean {geometric_mean(ratios):.2f}, worst {max(ratios):.2f}, {above:.0%} above 1")
