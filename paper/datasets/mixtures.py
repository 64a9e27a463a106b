"""Round normal clusters, 500 x 100: means of standard deviation 10, covariance 10 I."""

import numpy as np

from kpod.datasets import make_mixture
from paper.datasets import Design

PERCENTS = {"MCAR": (25, 50, 75), "NMAR": (25, 50, 75)}


def mixture(k: int, numbers: tuple[int, int]) -> Design:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return make_mixture(k, random_state=rng)

    return Design(f"k{k}", f"simulated, {k} clusters", k, make, PERCENTS, numbers)


MIXTURES = (mixture(10, (3, 4)), mixture(25, (5, 6)))
