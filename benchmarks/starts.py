"""Starts of a large table: one, the best of ten on a sample of the rows (the default), or ten on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Sheet, ari, progress, timed
from kpod import KPOD
from kpod.missingness import mcar

SHAPES = [(500_000, 20, 10), (300_000, 50, 50), (200_000, 100, 100), (1_000_000, 10, 8), (60_000, 30, 12)]
MISSING = (0.3, 0.7)
SEEDS = range(3)
WAYS = {"one": 1, "sample": "auto", "ten": 10}


def compared(name: str, X: Any, truth: np.ndarray, k: int, sheet: Sheet) -> None:
    """Loss over that of ten starts, score and time over one start, in the mean over the seeds."""
    fits: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    for seed in SEEDS:
        progress(f"starts: {name}, {seed + 1} of {len(SEEDS)}")
        for way, n_init in WAYS.items():
            model, seconds = timed(lambda n=n_init, s=seed: KPOD(k, n_init=n, random_state=s).fit(X))
            fits[way].append((model.inertia_, ari(truth, model.labels_), seconds))
    loss, score, seconds = (
        {way: np.array([fit[at] for fit in found]) for way, found in fits.items()} for at in range(3)
    )
    for way in WAYS:
        sheet.add(
            name,
            way,
            float((loss[way] / loss["ten"]).mean()),
            float((loss[way] / loss["ten"]).max()),
            float(score[way].mean()),
            float(np.median(seconds[way] / seconds["one"])),
        )
    sheet.save()


def run() -> None:
    columns = ["table", "starts", "loss over ten", "worst", "adjusted Rand score", "time over one"]
    sheet = Sheet("starts", f"Starts of a large table, {len(SEEDS)} seeds", columns)
    for n, p, k in SHAPES:
        for missing in MISSING:
            rng = np.random.default_rng(0)
            truth = rng.integers(k, size=n)
            X = rng.standard_normal((n, p), dtype=np.float32)
            X += rng.normal(size=(k, p)).astype(np.float32)[truth]
            compared(
                f"{n} x {p}, k={k}, {missing:.0%} missing", mcar(X, missing, random_state=0), truth, k, sheet
            )
    sheet.show()


if __name__ == "__main__":
    run()
