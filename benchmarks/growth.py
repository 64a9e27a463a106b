"""How the time of an iteration grows when rows, columns or clusters double."""

from __future__ import annotations

import numpy as np

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod import KPOD
from kpod._solvers import Descent, Settings

BASE = {"n": 200_000, "p": 32, "k": 24}


def seconds_per_iteration(n: int, p: int, k: int) -> float:
    """A full iteration, every row compared with every center: skipping would blur the growth."""
    X, _ = make(n, p, k, 2.0, np.float32)
    model = KPOD(k, init=X[:k])
    with model._table(model._validate(punch(X, 0.3), reset=True)) as table:
        descent = Descent(table, X[:k] - table.shift.astype(np.float64), Settings(bounded=False))
        return min(timed(lambda: (descent.assign(), descent.update()))[1] for _ in range(10))


def run() -> None:
    sheet = Sheet(
        "growth",
        f"Time of a full iteration of lloyd, 30 % missing, float32; base {BASE}",
        ["doubled", "to", "time / half of it"],
    )
    for what, base in BASE.items():
        before = None
        for times in (1, 2, 4, 8):
            shape = {**BASE, what: base * times}
            progress(f"growth: {shape}")
            seconds = seconds_per_iteration(**shape)
            if before is not None:
                sheet.add(what, shape[what], seconds / before)
            before = seconds
    sheet.show()
