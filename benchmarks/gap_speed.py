"""What it costs to let gaps count: one assignment of all rows, and a whole fit, over a plain one.

Whole fits are of at most 100,000 rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.harness import Sheet, geometric_mean, progress, timed
from kpod import KPOD, ObservedScaler
from kpod._engine.executors import Executor
from kpod._engine.objective import GapModel, panel_of
from kpod._engine.step import Assign, Drift, Partial
from kpod._engine.table import make_table
from kpod._kernels.panel import Panel
from kpod.datasets import make_ratings

MOST_ROWS = 100_000  # of a whole fit
SHAPES = [
    (1_000_000, 20, 10), (500_000, 50, 50), (1_000_000, 10, 8), (200_000, 100, 100), (20_000, 30, 12)
]  # fmt: skip


def assignment(X: Any, k: int) -> float:
    """Time of an assignment in which no row is skipped, gaps counting over not."""
    table, rng = make_table(X, Executor()), np.random.default_rng(0)
    observed = np.asarray(table.about.weights / table.n_rows)
    rates = np.clip(1 - observed * rng.uniform(0.8, 1.2, size=(k, table.n_columns)), 0.01, 0.999)
    centers = rng.normal(size=(k, table.n_columns))
    panels = Panel(centers), panel_of(centers, GapModel(rates, np.full(k, 1 / k), 1.0))

    def once(panel: Panel) -> float:
        began = time.process_time()
        Executor().accumulate(
            Assign(panel, Drift.none(k)), table.blocks, [None] * len(table.blocks), lambda: Partial(None)
        )
        return time.process_time() - began

    ratios = []
    for _ in range(9):
        plain, gaps = (once(panel) for panel in panels)
        ratios.append(gaps / plain)
    return float(np.median(ratios))


def fits(X: Any, k: int, init: Any) -> float:
    """Time of a whole fit with `lloyd`, gaps counting over not."""
    ratios = []
    for _ in range(3):
        plain, gaps = (
            timed(lambda m=m: KPOD(k, init=init, algorithm="lloyd", missingness=m).fit(X))[1]
            for m in ("ignore", "informative")
        )
        ratios.append(gaps / plain)
    return float(np.median(ratios))


def run() -> None:
    sheet = Sheet(
        "gap_speed", "Gaps that count over gaps ignored: processor time", ["table", "assignment", "lloyd"]
    )
    for dtype in (np.float32, np.float64):
        for n, p, k in SHAPES:
            name = f"{n} x {p}, k={k}, 30 % missing, {np.dtype(dtype)}"
            progress(f"gap_speed: {name}")
            rng = np.random.default_rng(0)
            X = (
                rng.standard_normal((n, p)).astype(dtype)
                + rng.normal(size=(k, p)).astype(dtype)[rng.integers(k, size=n)]
            )
            init = X[rng.choice(n, k, replace=False)]
            X[rng.random(X.shape, dtype=np.float32) < 0.3] = np.nan
            sheet.add(name, assignment(X, k), fits(X[:MOST_ROWS], k, init))
            sheet.save()
    ratings = ObservedScaler(rows="center", scale=False).fit_transform(make_ratings(random_state=0)[0])
    ratings = sparse.csr_array(ratings)
    ratings.indptr = ratings.indptr.astype(np.int64)
    init = ratings[np.argsort(-np.diff(ratings.indptr))[:12]].toarray()
    sheet.add("ratings 60000 x 4000, k=12", assignment(ratings, 12), fits(ratings, 12, init))
    sheet.show()
    for column in ("assignment", "lloyd"):
        ratios = sheet.column(column)
        print(f"{column}: geometric mean {geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    run()
