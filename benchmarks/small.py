"""The paper's mixtures, 500 x 100: quality of one start and of the default, time next to k-means."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from benchmarks import peers
from benchmarks.harness import Sheet, ari, progress, timed
from kpod import KPOD
from kpod.datasets import make_mixture
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


def run() -> None:
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
