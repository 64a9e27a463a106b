"""How the time of an iteration grows when rows, columns or clusters double."""

from __future__ import annotations

import numpy as np

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod import KPOD

BASE = {"n": 200_000, "p": 32, "k": 24}
N_ITER = 8


def run() -> None:
    sheet = Sheet(
        "growth",
        f"Seconds per iteration, first {N_ITER} iterations of lloyd, 30 % missing, float32; base {BASE}",
        ["doubled", "to", "time / half of it"],
    )
    for what, base in BASE.items():
        before = None
        for times in (1, 2, 4):
            shape = {**BASE, what: base * times}
            progress(f"growth: {shape}")
            X, _ = make(shape["n"], shape["p"], shape["k"], 2.0, np.float32)
            holed = punch(X, 0.3)
            model = KPOD(shape["k"], init=X[: shape["k"]], algorithm="lloyd", max_iter=N_ITER, tol=0)
            seconds = min(timed(lambda: model.fit(holed))[1] for _ in range(3))
            if before is not None:
                sheet.add(what, shape[what], seconds / before)
            before = seconds
    sheet.show()
