"""KPOD, or a Gaussian mixture where the groups are not round: shape "auto"."""

from kpod import KPOD
from kpod._findings.cluster_shapes import choose_shape
from paper.datasets import Problem
from paper.methods import RESTS_ON_KPOD, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    model = KPOD(problem.n_clusters, random_state=problem.seed, n_threads=1)
    return [Clustering(*timed(lambda: choose_shape(problem.X, model.fit(problem.X), "auto")[0].labels_))]


METHOD = Method("shapes", {"shapes": 'shape="auto"'}, fit, RESTS_ON_KPOD)
