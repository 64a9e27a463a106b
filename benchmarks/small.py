"""Wine: what a call costs. The paper's mixtures, 500 x 100: quality and time of one start and of ten."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from benchmarks import peers
from benchmarks.harness import Sheet, ari, progress, timed
from kpod import KPOD, ObservedScaler
from kpod.datasets import load_incomplete_wine, make_mixture
from kpod.missingness import mcar
from paper.objective import observed_loss

DESIGNS = [(10, 0.5), (10, 0.75), (25, 0.5), (25, 0.75)]
OURS = {
    "KPOD(), 10 starts": {},
    "hartigan, 1 start": {"n_init": 1},
    "lloyd, 1 start": {"n_init": 1, "algorithm": "lloyd"},
    "mm as published, 1 start": {"n_init": 1, "algorithm": "mm", "init": "mean-fill"},
}
IMPUTERS = {
    "SimpleImputer + KMeans": (peers.mean_imputer, 20),
    "KNNImputer + KMeans": (peers.neighbour_imputer, 3),
    "IterativeImputer(max_iter=1) + KMeans": (peers.iterative_imputer, 1),
}
N_DATA_SETS = 20
N_SLOW = 1  # for peers that take seconds to minutes a table


N_TURNS = 25
CALLS = 8  # of each turn


def overhead() -> None:
    """Wine, 178 x 13: what a fit and a prediction cost where there is hardly anything to compute.

    Processor time, kpod on the table with gaps and scikit-learn on the complete one in turns, on as many
    threads as OMP_NUM_THREADS says.
    """
    sheet = Sheet(
        "small-wine",
        "wine, a quarter missing; processor time, over scikit-learn's on the complete table, in turns",
        ["call", "kpod, ms", "KMeans, ms", "ratio"],
    )
    X = ObservedScaler().fit_transform(load_incomplete_wine().data)
    complete = ObservedScaler().fit_transform(load_wine().data)
    model, peer = KPOD(3, random_state=0).fit(X), KMeans(3, n_init=1, random_state=0).fit(complete)
    row, complete_row = X[:1].copy(), complete[:1].copy()
    calls = {
        "fit, 1 start": (
            lambda seed: KPOD(3, n_init=1, random_state=seed).fit(X),
            lambda seed: KMeans(3, n_init=1, random_state=seed).fit(complete),
        ),
        "fit, 10 starts": (
            lambda seed: KPOD(3, random_state=seed).fit(X),
            lambda seed: KMeans(3, n_init=10, random_state=seed).fit(complete),
        ),
        "predict, 1 row": (lambda _: model.predict(row), lambda _: peer.predict(complete_row)),
        "predict, all rows": (lambda _: model.predict(X), lambda _: peer.predict(complete)),
    }
    for name, both in calls.items():
        progress(f"small: wine, {name}")
        seconds = np.array([[processor_time(call, seed) for call in both] for seed in range(N_TURNS)])
        ours, theirs = 1000 * np.median(seconds, axis=0) / CALLS
        sheet.add(name, float(ours), float(theirs), float(np.median(seconds[:, 0] / seconds[:, 1])))
    sheet.show()


def processor_time(call: Callable[[int], Any], seed: int) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        call(seed)
    return time.process_time() - began


def run() -> None:
    overhead()
    sheet = Sheet(
        "small",
        "500 x 100 mixtures, missing completely at random; time over KMeans(n_init=10) on the complete table",
        ["k", "missing", "method", "data sets", "time ratio", "loss", "ARI"],
    )
    # Whoever comes first in a process pays for loading libraries.
    KMeans(2).fit(np.eye(9))
    KPOD(2).fit(np.eye(9))
    for k, missing in DESIGNS:
        measured = defaultdict(list)
        failed = {}
        for seed in range(N_DATA_SETS):
            X, truth = make_mixture(k, random_state=seed)
            complete = StandardScaler().fit_transform(X)
            holed = StandardScaler().fit_transform(mcar(X, missing, random_state=1000 + seed))
            _, base = timed(lambda: KMeans(k, n_init=10, random_state=seed).fit(complete))
            for name, settings in OURS.items():
                progress(f"small: k={k}, {missing:.0%} missing, data set {seed + 1}, {name}")
                model = KPOD(k, random_state=seed, **settings)
                labels, seconds = timed(lambda: model.fit_predict(holed))
                measured[name].append((seconds / base, observed_loss(holed, labels), ari(truth, labels)))
            for name, (imputer, n_data_sets) in IMPUTERS.items():
                if seed >= n_data_sets or (imputer is peers.iterative_imputer and (k, missing) != DESIGNS[0]):
                    continue
                progress(f"small: k={k}, {missing:.0%} missing, data set {seed + 1}, {name}")
                labels, seconds = timed(lambda: peers.impute_then_kmeans(imputer(), holed, k, seed))
                measured[name].append((seconds / base, observed_loss(holed, labels), ari(truth, labels)))
            if seed < N_SLOW:
                others = {
                    "StepMix (Gaussian, gaps)": lambda seed=seed: timed(
                        lambda: peers.stepmix(holed, k, seed)
                    ),
                    "PyPI kPOD 0.18": lambda: peers.pypi_kpod(holed, k),
                }
                for name, call in others.items():
                    progress(f"small: k={k}, {missing:.0%} missing, data set {seed + 1}, {name}")
                    try:
                        labels, seconds = call()
                    except Exception as error:  # a peer may fail in any way it likes
                        failed[name] = f"{type(error).__name__}: {error}"
                        continue
                    measured[name].append((seconds / base, observed_loss(holed, labels), ari(truth, labels)))
        for name, results in measured.items():
            sheet.add(k, f"{missing:.0%}", name, len(results), *map(float, np.mean(results, axis=0)))
        for name, reason in failed.items():
            sheet.add(k, f"{missing:.0%}", f"{name}: failed, {reason}", 0, None, None, None)
    sheet.show()
