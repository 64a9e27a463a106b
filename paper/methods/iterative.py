"""scikit-learn's IterativeImputer: columns regressed on each other in turn, at its defaults."""

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from paper.datasets import Problem
from paper.methods._kmeans import kmeans_after


def fill(problem: Problem) -> np.ndarray:
    return IterativeImputer(random_state=problem.seed).fit_transform(problem.X)


METHOD = kmeans_after("iterative", "IterativeImputer", fill)
