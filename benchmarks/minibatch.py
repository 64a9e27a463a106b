"""Mini-batches against full passes, on columns of which 5 to 95 % are missing."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Sheet, progress, timed
from kpod import KPOD, MiniBatchKPOD

# Rows, columns, clusters, and the standard deviation within one; that of their centers is 1.
SHAPES = [(200_000, 20, 20, 0.7), (200_000, 20, 20, 1.5), (200_000, 50, 50, 1.0), (500_000, 10, 8, 0.7)]
N_TABLES = 3


def table(n: int, p: int, k: int, spread: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, p))[rng.integers(k, size=n)] + spread * rng.normal(size=(n, p))
    X[rng.random(X.shape) < np.linspace(0.05, 0.95, p)] = np.nan
    return X.astype(np.float32)


def mean_filled(X: np.ndarray, k: int, seed: int) -> float:
    """scikit-learn's mini-batches on the table with its gaps at the column means, scored as the others."""
    from sklearn.cluster import MiniBatchKMeans

    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    model = MiniBatchKMeans(k, batch_size=4096, max_iter=2, random_state=seed, n_init=3).fit(filled)
    scorer = KPOD(k, init=model.cluster_centers_, algorithm="lloyd", max_iter=1, tol=1e30).fit(X[:10_000])
    scorer.cluster_centers_ = model.cluster_centers_.astype(X.dtype)
    return -scorer.score(X)


def run() -> None:
    sheet = Sheet(
        "minibatch",
        f"Loss over that of lloyd from one start, {N_TABLES} tables each; time over its time (median)",
        [
            "n",
            "p",
            "k",
            "spread",
            "2 epochs",
            "worst",
            "and 2 full passes",
            "mean-filled",
            "time",
            "with passes",
        ],
    )
    for n, p, k, spread in SHAPES:
        rows = []
        for seed in range(N_TABLES):
            progress(f"minibatch: {n} x {p}, k = {k}, table {seed + 1}")
            X = table(n, p, k, spread, seed)
            full, seconds = timed(lambda: KPOD(k, algorithm="lloyd", n_init=1, random_state=seed).fit(X))
            batches, short = timed(lambda: MiniBatchKPOD(k, random_state=seed).fit(X))
            passes, longer = timed(lambda: MiniBatchKPOD(k, full_passes=2, random_state=seed).fit(X))
            filled, _ = timed(lambda: mean_filled(X, k, seed))
            losses = np.array([batches.inertia_, passes.inertia_, filled]) / full.inertia_
            rows.append([*losses, short / seconds, longer / seconds])
        two, exact, filled, time, longer = np.median(rows, axis=0)
        worst = np.max(rows, axis=0)[0]
        sheet.add(n, p, k, spread, *map(float, (two, worst, exact, filled, time, longer)))
    sheet.show()


if __name__ == "__main__":
    run()
