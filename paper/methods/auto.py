"""KPOD with gaps that count if the table says they should."""

from kpod import KPOD
from paper.datasets import Problem
from paper.methods import RESTS_ON_KPOD, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    model = KPOD(problem.n_clusters, missingness="auto", random_state=problem.seed, n_threads=1)
    return [Clustering(*timed(lambda: model.fit_predict(problem.X)))]


METHOD = Method("auto", {"auto": 'KPOD, missingness="auto"'}, fit, RESTS_ON_KPOD)
