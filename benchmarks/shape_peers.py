"""Shape "auto" next to what one would use instead: adjusted Rand scores with the true number of clusters.

Tables are those of `benchmarks.mixture`. Peers: k-nearest neighbours or iterative filling, then KMeans or
scikit-learn's GaussianMixture (full, tied); StepMix, if it is installed; R's mclust on a table that mice
completed, if both are. `N_TABLES` and `DESIGNS` in the environment ask for fewer tables.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks import mixture, peers
from benchmarks.harness import Sheet, ari, progress
from kpod import KPOD
from kpod._findings.cluster_shapes import choose_shape

N_TABLES = int(os.environ.get("N_TABLES", "3"))
MECHANISM = "30 % missing"
Peer = Callable[[np.ndarray, int, int], np.ndarray]


def fill_then_mixture(make: Callable[[], object], shape: str, X: np.ndarray, k: int, seed: int) -> np.ndarray:
    filled = make().fit_transform(X)
    return GaussianMixture(k, covariance_type=shape, n_init=5, random_state=seed).fit_predict(filled)


def fill_then_kmeans(make: Callable[[], object], X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return peers.impute_then_kmeans(make(), X, k, seed)


def mclust_on_mice(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """R's mclust, the shape by BIC, on a table that mice completed once."""
    if not (mixture.has_package("mclust") and mixture.has_package("mice")):
        raise peers.UnavailableError("R's mclust and mice are not installed")
    with tempfile.TemporaryDirectory() as folder:
        table, labels = Path(folder, "table.csv"), Path(folder, "labels.csv")
        np.savetxt(table, X, delimiter=",")
        script = (
            f"suppressMessages({{library(mclust); library(mice)}}); x <- read.csv('{table}', header = FALSE, "
            f"na.strings = 'nan'); x <- complete(mice(x, m = 1, printFlag = FALSE, seed = {seed + 1})); "
            f"write.csv(Mclust(x, G = {k}, verbose = FALSE)$classification, '{labels}', row.names = FALSE)"
        )
        subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, timeout=600)
        return np.loadtxt(labels, skiprows=1)


PEERS: dict[str, Peer] = {
    "KNN, KMeans": partial(fill_then_kmeans, peers.neighbour_imputer),
    "KNN, full": partial(fill_then_mixture, peers.neighbour_imputer, "full"),
    "KNN, tied": partial(fill_then_mixture, peers.neighbour_imputer, "tied"),
    "iterative, KMeans": partial(fill_then_kmeans, peers.iterative_imputer),
    "iterative, full": partial(fill_then_mixture, peers.iterative_imputer, "full"),
    "iterative, tied": partial(fill_then_mixture, peers.iterative_imputer, "tied"),
    "StepMix": peers.stepmix,
    "mice, mclust": mclust_on_mice,
}


def scores(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Of KPOD, shape "auto" and the peers; NaN where one fails or cannot be had."""
    k = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod = KPOD(k, random_state=seed).fit(X)
        model, _ = choose_shape(X, kpod, "auto")
        found = [ari(y, kpod.labels_), ari(y, model.labels_)]
        for peer in PEERS.values():
            try:
                found.append(ari(y, peer(X, k, seed)))
            except (peers.UnavailableError, subprocess.SubprocessError, ValueError, np.linalg.LinAlgError):
                found.append(np.nan)
    return found


def tables(name: str, seed: int) -> mixture.Design:
    if name in mixture.DESIGNS:
        design, share = mixture.DESIGNS[name]
        rng = np.random.default_rng([list(mixture.DESIGNS).index(name), seed])
        X, y = design(rng)
        return mixture.with_gaps(X, share, rng), y
    X, y = mixture.REAL[name]()
    return mixture.MECHANISMS[MECHANISM](X, np.random.default_rng([99, seed])), y


def run() -> None:
    sheet = Sheet("shape_peers", "Shapes next to peers", ["table", "KPOD", "shape auto", *PEERS])
    for name in os.environ.get("DESIGNS", ",".join([*mixture.DESIGNS, *mixture.REAL])).split(","):
        found = []
        for seed in range(mixture.FIRST_SEED, mixture.FIRST_SEED + N_TABLES):
            progress(f"{name}, table {seed}")
            found.append(scores(*tables(name, seed), seed))
        by_method = [
            [score for score in scores_of if np.isfinite(score)] for scores_of in zip(*found, strict=True)
        ]
        sheet.add(name, *(round(float(np.mean(some)), 2) if some else "" for some in by_method))
        sheet.save()
    sheet.show()
