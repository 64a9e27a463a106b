"""Large dense tables to convergence, next to k-means on the complete table from the same start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks import peers
from benchmarks.harness import Sheet, ari, geometric_mean, progress, timed
from kpod import KPOD
from paper.objective import observed_loss

# rows, columns, clusters, spread of the clusters around unit-normal means
SHAPES = [
    (1_000_000, 20, 10, 1.0),
    (500_000, 50, 50, 2.0),
    (500_000, 50, 50, 1.0),
    (1_000_000, 10, 8, 0.7),
    (200_000, 100, 100, 1.0),
    (20_000, 30, 12, 1.0),
]
N_STARTS = 3
MANY_ROWS = 200_000
TOL = 1e-4


def make(n: int, p: int, k: int, spread: float, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(k, size=n)
    X = rng.standard_normal((n, p), dtype=dtype)
    X *= dtype(spread)
    X += rng.normal(size=(k, p)).astype(dtype)[truth]
    return X, truth


def punch(X: np.ndarray, missing: float) -> np.ndarray:
    holed = X.copy()
    rng = np.random.default_rng(1)
    for rows in np.array_split(np.arange(len(X)), max(1, X.size // 4_000_000)):
        part = holed[rows[0] : rows[-1] + 1]
        part[rng.random(part.shape, dtype=np.float32) < missing] = np.nan
    return holed


def load_intelex() -> type:
    """intelex's KMeans, or scikit-learn's again where there is none."""
    try:
        return peers.intelex_kmeans()
    except peers.UnavailableError:
        return KMeans


def judge(model: KMeans | KPOD | Pipeline, table: np.ndarray, truth: np.ndarray) -> tuple[int, float, float]:
    """Iterations, loss per observed entry, and adjusted Rand score of one fit."""
    if isinstance(model, Pipeline):
        model = model[-1]
        loss = observed_loss(table, model.labels_)
    else:
        loss = model.inertia_
    n_observed = table.size - np.count_nonzero(np.isnan(table))
    return int(model.n_iter_), float(loss) / n_observed, ari(truth, model.labels_)


def contenders(X: np.ndarray, k: int) -> dict[str, tuple[np.ndarray, Callable[[np.ndarray], Any]]]:
    """Every method by name: its table, and the model it makes of a start."""
    theirs, ours = {"n_init": 1, "tol": TOL}, {"tol": TOL}
    methods = {
        "KMeans, complete": (X, lambda start: KMeans(k, init=start, **theirs)),
        "KMeans(elkan), complete": (
            X,
            lambda start: KMeans(k, init=start, algorithm="elkan", **theirs),
        ),
        "intelex KMeans, complete": (
            X,
            lambda start: peers.intelex_kmeans()(k, init=start, algorithm="lloyd", **theirs),
        ),
        "KPOD(lloyd), complete": (X, lambda start: KPOD(k, init=start, algorithm="lloyd", **ours)),
    }
    for missing in (0.3, 0.7):
        holed = punch(X, missing)
        name = f"{missing:.0%} missing"
        methods[f"KPOD(lloyd), {name}"] = (
            holed,
            lambda start: KPOD(k, init=start, algorithm="lloyd", **ours),
        )
        if missing < 0.5:
            methods[f"KPOD(), {name}"] = (holed, lambda start: KPOD(k, init=start, **ours))
            methods[f"SimpleImputer + KMeans, {name}"] = (
                holed,
                lambda start: make_pipeline(SimpleImputer(), KMeans(k, init=start, **theirs)),
            )
    return methods


def run() -> None:
    sheet = Sheet(
        "dense",
        f"To convergence (tol {TOL:g}), {N_STARTS} k-means++ starts shared by all: median ratio of times, "
        "sum of iterations, loss per observed entry and ARI of the best",
        ["shape", "dtype", "method", "iterations", "time / KMeans", "time / intelex", "loss", "ARI"],
    )
    # Whoever comes first in a process pays for loading libraries.
    for warm_up in (KMeans, KPOD, load_intelex()):
        timed(lambda: warm_up(2, n_init=1).fit(np.random.default_rng(0).normal(size=(5000, 10))))
    for dtype in (np.float32, np.float64):
        for n, p, k, spread in SHAPES:
            X, truth = make(n, p, k, spread, dtype)
            sample = X[np.random.default_rng(2).choice(n, min(n, 20_000), replace=False)]
            starts = [kmeans_plusplus(sample, k, random_state=seed)[0] for seed in range(N_STARTS)]
            methods = contenders(X, k)
            seconds, results, reasons = defaultdict(lambda: [np.inf] * N_STARTS), defaultdict(list), {}
            for _ in range(max(1, MANY_ROWS // n)):  # what takes milliseconds is taken again, best of all
                for number, start in enumerate(starts):
                    for name, (table, make_model) in methods.items():
                        progress(f"dense: {n} x {p}, k={k}, {dtype.__name__}, start {number + 1}, {name}")
                        try:
                            model, time = timed(lambda: make_model(start).fit(table))
                        except peers.UnavailableError as reason:
                            reasons[name] = reason
                            continue
                        seconds[name][number] = min(time, seconds[name][number])
                        if len(results[name]) == number:
                            results[name].append(judge(model, table, truth))
            shape = f"{n} x {p}, k={k}, {spread}"
            for name, reason in reasons.items():
                sheet.add(shape, dtype.__name__, f"{name}: {reason}", *[None] * 5)
            for name, judged in results.items():
                ratios = [
                    float(np.median(np.divide(seconds[name], seconds[peer])))
                    if seconds[peer][0] < np.inf
                    else None
                    for peer in ("KMeans, complete", "intelex KMeans, complete")
                ]
                iterations = sum(iterations for iterations, _, _ in judged)
                best = min((loss, score) for _, loss, score in judged)
                sheet.add(shape, dtype.__name__, name, iterations, *ratios, *best)
    sheet.show()
    for method in ("KPOD(lloyd), 30% missing", "KPOD(), 30% missing", "KPOD(lloyd), 70% missing"):
        ratios = sheet.column("time / KMeans", method=method)
        against = [ratio for ratio in sheet.column("time / intelex", method=method) if ratio]
        summary = (
            f"{method}: over KMeans, geometric mean {geometric_mean(ratios):.2f}, worst {max(ratios):.2f}"
        )
        if against:
            summary += f"; over intelex, {geometric_mean(against):.2f}"
        print(summary)
