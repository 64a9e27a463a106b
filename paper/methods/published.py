"""k-POD as published: majorise-minimise from one start on the mean-filled table."""

from kpod import KPOD
from paper.datasets import Problem
from paper.methods import RESTS_ON_KPOD, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    model = KPOD(
        problem.n_clusters, algorithm="mm", init="mean-fill", n_init=1, random_state=problem.seed, n_threads=1
    )
    return [Clustering(*timed(lambda: model.fit_predict(problem.X)))]


METHOD = Method("published", {"published": "k-POD as published"}, fit, RESTS_ON_KPOD, published=True)
