"""KPOD with gaps that always count."""

from kpod import KPOD
from paper.datasets import Problem
from paper.methods import RESTS_ON_KPOD, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    model = KPOD(problem.n_clusters, missingness="informative", random_state=problem.seed, n_threads=1)
    return [Clustering(*timed(lambda: model.fit_predict(problem.X)))]


METHOD = Method("informative", {"informative": "KPOD, gaps used"}, fit, RESTS_ON_KPOD)
