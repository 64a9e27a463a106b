"""KPOD at its defaults, and with one start."""

from kpod import KPOD
from paper.datasets import Problem
from paper.methods import RESTS_ON_KPOD, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    found = []
    for n_init in (1, "auto"):
        model = KPOD(problem.n_clusters, n_init=n_init, random_state=problem.seed, n_threads=1)
        found.append(Clustering(*timed(lambda: model.fit_predict(problem.X))))  # noqa: B023
    return found


METHOD = Method("default", {"default-1": "KPOD, 1 start", "default": "KPOD's default"}, fit, RESTS_ON_KPOD)
