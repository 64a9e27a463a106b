"""StepMix: a Gaussian mixture with diagonal covariances, fitted to what was observed by EM."""

from importlib.util import find_spec

from paper.datasets import Problem
from paper.methods import RESTS_ON_SKLEARN, Clustering, Method, timed


def fit(problem: Problem) -> list[Clustering]:
    from stepmix.stepmix import StepMix

    model = StepMix(
        problem.n_clusters,
        measurement="gaussian_diag_nan",
        random_state=problem.seed,
        progress_bar=0,
        verbose=0,
    )
    return [Clustering(*timed(lambda: model.fit(problem.X).predict(problem.X)))]


def missing() -> str | None:
    return None if find_spec("stepmix") else "stepmix not installed"


METHOD = Method(
    "stepmix",
    {"stepmix": "StepMix, Gaussian mixture"},
    fit,
    ("stepmix", *RESTS_ON_SKLEARN),
    missing,
)
