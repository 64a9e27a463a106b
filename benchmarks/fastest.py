"""kpod on tables with gaps over the fastest k-means on the complete table: four peers in one run.

All begin at the same start, but superkmeans, which draws its own. The fits of scikit-learn, intelex and
kpod stop by themselves, at the same tolerance; faiss and superkmeans have no such rule, and take as many
iterations as KMeans did, on all rows. Seconds on all threads, the shortest of `TURNS` turns; float32.
`LEVEL=avx2` in the environment keeps kpod from AVX-512, for which the peers have code, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from benchmarks import peers
from benchmarks.dense import SHAPES, TOL, make, punch
from benchmarks.harness import Sheet, geometric_mean, progress, timed
from kpod import KPOD
from kpod._kernels import lloyd

TURNS = int(os.environ.get("TURNS", "2"))
LEVEL = os.environ.get("LEVEL", "")
PEERS = ("KMeans", "intelex", "faiss", "superkmeans")
MISSING = (0.3, 0.7)


def faiss_kmeans(X: np.ndarray, start: np.ndarray, n_iter: int) -> Any:
    k, p = start.shape
    options = {"niter": n_iter, "nredo": 1, "seed": 0, "min_points_per_centroid": 1}
    model = peers.load("faiss", "Kmeans")(p, k, max_points_per_centroid=len(X), **options)
    model.train(X, init_centroids=start)
    return model.index.search(X, 1)[1]


def superkmeans(X: np.ndarray, start: np.ndarray, n_iter: int) -> Any:
    k, p = start.shape
    model = peers.load("superkmeans", "SuperKMeans")(
        k, p, hierarchical=False, iters=n_iter, sampling_fraction=1.0, early_termination=False
    )
    return model.assign(X, model.train(X))


def contenders(X: np.ndarray, start: np.ndarray, n_iter: int) -> dict[str, Callable[[], Any]]:
    k, given = len(start), {"init": start, "n_init": 1, "tol": TOL}
    ours = {
        f"kpod, {missing:.0%} missing": lambda table: KPOD(k, init=start, algorithm="lloyd", tol=TOL).fit(
            table
        )
        for missing in MISSING
    }
    tables = [punch(X, missing) for missing in MISSING]
    return {
        "KMeans": lambda: KMeans(k, **given).fit(X),
        "intelex": lambda: peers.intelex_kmeans()(k, algorithm="lloyd", **given).fit(X),
        "faiss": lambda: faiss_kmeans(X, start, n_iter),
        "superkmeans": lambda: superkmeans(X, start, n_iter),
        **{
            name: lambda fit=fit, table=table: fit(table)
            for (name, fit), table in zip(ours.items(), tables, strict=True)
        },
    }


def run() -> None:
    if LEVEL:
        lloyd.use_level(LEVEL)
    names = [*PEERS, *(f"kpod, {missing:.0%} missing" for missing in MISSING)]
    ratios = [f"{missing:.0%} over the fastest" for missing in MISSING]
    sheet = Sheet(
        "fastest" + (f"-{LEVEL}" if LEVEL else ""),
        "Seconds, and kpod with gaps over the fastest peer without them",
        ["shape", "iterations of KMeans", *names, "fastest", *ratios],
    )
    for n, p, k, spread in SHAPES:
        X, _ = make(n, p, k, spread, np.float32)
        sample = X[np.random.default_rng(2).choice(n, min(n, 20_000), replace=False)]
        start = np.ascontiguousarray(kmeans_plusplus(sample, k, random_state=0)[0])
        n_iter = int(timed(lambda x=X, s=start: KMeans(len(s), init=s, n_init=1, tol=TOL).fit(x))[0].n_iter_)
        seconds: dict[str, float | None] = {}
        fits = contenders(X, start, n_iter)
        for _ in range(TURNS):
            for name, fit in fits.items():
                progress(f"fastest: {n} x {p}, k={k}, {spread}: {name}")
                try:
                    seconds[name] = min(timed(fit)[1], seconds.get(name) or np.inf)
                except peers.UnavailableError:
                    seconds[name] = None
        fastest = min((peer for peer in PEERS if seconds[peer]), key=lambda peer: seconds[peer])
        over = [float(seconds[name]) / float(seconds[fastest]) for name in names[len(PEERS) :]]
        sheet.add(f"{n} x {p}, k={k}, {spread}", n_iter, *(seconds[name] for name in names), fastest, *over)
        sheet.save()
    sheet.show()
    for ratio in ratios:
        found = sheet.column(ratio)
        print(f"{ratio}: geometric mean {geometric_mean(found):.2f}, worst {max(found):.2f}")


if __name__ == "__main__":
    run()
