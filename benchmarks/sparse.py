"""Ratings: absent means missing. Next to one sparse product, to k-means with zeros, to co-clustering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from benchmarks import peers
from benchmarks.harness import Sheet, ari, progress, timed
from kpod import KPOD, ObservedScaler
from kpod._engine import step as steps
from kpod._engine.executors import available_threads, threads
from kpod._engine.solvers.interface import Settings
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.table import make_table
from kpod._inputs.validation import as_csr
from kpod.datasets import make_ratings

N_DATA_SETS = 5
N_SLOW = 1  # for peers that take minutes


def best_of(n: int, function: Callable[[], Any]) -> float:
    return min(timed(function)[1] for _ in range(n))


def sparse_loss(X: sparse.csr_array, labels: np.ndarray, k: int) -> float:
    """The loss over stored entries of labels with their best centers."""
    rows = np.repeat(labels, np.diff(X.indptr)).astype(np.int64)
    cell = rows * X.shape[1] + X.indices
    n = np.bincount(cell, minlength=k * X.shape[1])
    means = np.bincount(cell, X.data, k * X.shape[1]) / np.maximum(n, 1)
    return float(((X.data - means[cell]) ** 2).sum())


def one_iteration(sheet: Sheet) -> None:
    """A full unbounded iteration, assignment and sums, over the bare product X @ centers.T."""
    rng = np.random.default_rng(0)
    n, p, k = 100_000, 20_000, 16
    X = sparse.random_array((n, p), density=0.01, format="csr", dtype=np.float32, rng=rng)
    centers = rng.normal(size=(k, p)).astype(np.float32)
    product = best_of(5, lambda: X @ centers.T)
    with threads(available_threads()) as executor:
        table = make_table(as_csr(X, None), executor)
        descent = Descent(table, executor, table.units.to(centers), Settings(bounded=False))
        step = best_of(5, lambda: (descent.assign(), descent.update()))

        def add_up() -> None:
            executor.accumulate(
                steps.AddUp(),
                table.blocks,
                descent.states,
                lambda: steps.Partial(descent.objective.empty_sums()),
            )

        everything = best_of(3, add_up)
    table_name = "100,000 x 20,000, 1 % stored, k=16"
    sheet.add(table_name, "every row compared, centers updated by the rows that changed", step / product)
    sheet.add(table_name, "every row compared, and every row added up", (step + everything) / product)


def ratings_iteration(sheet: Sheet) -> None:
    """The average iteration of a whole fit of the ratings design."""
    ratings, _ = make_ratings(random_state=0)
    X = ObservedScaler(rows="center", scale=False).fit_transform(ratings)
    centers = np.random.default_rng(0).normal(size=(12, X.shape[1])).astype(np.float32)
    product = best_of(5, lambda: X @ centers.T)
    start = X[np.argsort(-np.diff(X.indptr))[:12]].toarray()
    for algorithm in ("lloyd", "hartigan"):
        model = KPOD(12, init=start, algorithm=algorithm)
        _, seconds = timed(lambda model=model: model.fit(X))
        sheet.add(
            "ratings, 60,000 x 4,000, k=12",
            f"{algorithm}: whole fit / its iterations and sweeps",
            seconds / len(model.loss_curve_) / product,
        )


def quality() -> None:
    sheet = Sheet(
        "sparse",
        f"Ratings design (60,000 x 4,000, 2 % rated, 12 groups), means over {N_DATA_SETS} data sets",
        ["method", "data sets", "time ratio", "loss, rows centred", "ARI"],
    )
    measured: dict[str, list[tuple[float, float, float]]] = {}
    failed: dict[str, str] = {}
    for seed in range(N_DATA_SETS):
        progress(f"sparse: data set {seed + 1}")
        ratings, truth = make_ratings(random_state=seed)
        centred = ObservedScaler(rows="center", scale=False).fit_transform(ratings)
        methods = {
            "KPOD, rows centred, 5 starts": lambda: KPOD(12, n_init=5, random_state=seed).fit_predict(
                centred
            ),
            "KPOD, rows centred, 1 start": lambda: KPOD(12, n_init=1, random_state=seed).fit_predict(centred),
            "KPOD, ratings as they are, 5 starts": lambda: KPOD(12, n_init=5, random_state=seed).fit_predict(
                ratings
            ),
        }
        if seed < N_SLOW:
            methods["KMeans on the same CSR (absent = 0), 5 starts"] = lambda: KMeans(
                12, n_init=5, random_state=seed
            ).fit_predict(ratings)
            methods["KMeans on rows centred (absent = 0), 5 starts"] = lambda: KMeans(
                12, n_init=5, random_state=seed
            ).fit_predict(centred)
            methods["column means filled in, dense + KMeans, 1 start"] = lambda: filled_kmeans(centred)
            methods["Surprise CoClustering, 2 epochs"] = lambda: coclustering(ratings)
        base = None
        for name, call in methods.items():
            progress(f"sparse: data set {seed + 1}, {name}")
            try:
                labels, seconds = timed(call)
            except (peers.UnavailableError, MemoryError) as error:
                failed[name] = str(error)
                continue
            base = base or seconds
            measured.setdefault(name, []).append(
                (seconds / base, sparse_loss(centred, labels, 12), ari(truth, labels))
            )
    for name, results in measured.items():
        sheet.add(name, len(results), *map(float, np.mean(results, axis=0)))
    for name, reason in failed.items():
        sheet.add(f"{name}: {reason}", 0, None, None, None)
    sheet.show()


def filled_kmeans(X: sparse.csr_array) -> np.ndarray:
    """Column means are zero already, so that a dense copy is filled with them."""
    return KMeans(12, n_init=1, random_state=0).fit_predict(X.toarray())


def coclustering(X: sparse.csr_array) -> np.ndarray:
    """Surprise's co-clustering of users and items, which takes absent as missing."""
    data = peers.load("surprise", "Dataset")
    reader = peers.load("surprise", "Reader")(rating_scale=(1, 5))
    pandas = peers.load("pandas", "DataFrame")
    users = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    frame = pandas({"user": users, "item": X.indices, "rating": X.data})
    trainset = data.load_from_df(frame, reader).build_full_trainset()
    model = peers.load("surprise", "CoClustering")(n_cltr_u=12, n_cltr_i=12, n_epochs=2, random_state=0).fit(
        trainset
    )
    labels = np.zeros(X.shape[0], int)
    for inner, cluster in enumerate(model.cltr_u):
        labels[trainset.to_raw_uid(inner)] = cluster
    return labels


def run() -> None:
    speed = Sheet(
        "sparse-speed", "Time over one product X @ centers.T in scipy, float32", ["table", "what", "ratio"]
    )
    progress("sparse: one iteration")
    one_iteration(speed)
    progress("sparse: iterations of a whole fit")
    ratings_iteration(speed)
    speed.show()
    quality()
