"""k-means on a complete table, with one start and with ten."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans

from paper.datasets import Problem
from paper.methods import RESTS_ON_SKLEARN, Clustering, Method, timed

STARTS = (1, 10)


def kmeans_after(name: str, title: str, fill: Callable[[Problem], np.ndarray]) -> Method:
    """scikit-learn's k-means after `fill`, which gives a complete table."""

    def fit(problem: Problem) -> list[Clustering]:
        X, filling = timed(lambda: fill(problem))
        found = []
        for n_init in STARTS:
            model = KMeans(problem.n_clusters, n_init=n_init, random_state=problem.seed)
            labels, clustering = timed(lambda: model.fit_predict(X))  # noqa: B023
            found.append(Clustering(labels, filling + clustering))
        return found

    return Method(name, {name: title, f"{name}-10": f"{title}, 10 starts"}, fit, RESTS_ON_SKLEARN)
