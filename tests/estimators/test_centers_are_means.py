"""Centers against the means of the rows labelled as theirs: equal, unless `tol` ends the fit first."""

import numpy as np
import pytest

from kpod import KPOD


def table(seed):
    """Without groups, so that many rows lie near borders; with ties, long tails and gaps in some."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(50, 600)), int(rng.integers(2, 10))))
    X = [X, np.round(2 * X) / 2, np.exp(X)][seed % 3]
    if seed % 2:
        X[rng.random(X.shape) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
    return X, int(rng.integers(2, 8))


def means_of(X, labels, k):
    return np.array([np.nanmean(X[labels == m], axis=0) for m in range(k)])


@pytest.mark.parametrize("algorithm", ["hartigan", "lloyd"])
@pytest.mark.parametrize("seed", range(30))
def test_centers_are_the_means_of_their_rows_where_no_row_moves_any_more(seed, algorithm):
    X, k = table(seed)
    model = KPOD(k, algorithm=algorithm, tol=0, n_init=1, random_state=seed).fit(X)
    assert model.converged_
    np.testing.assert_allclose(model.cluster_centers_, means_of(X, model.labels_, k), atol=1e-9)


@pytest.mark.parametrize("algorithm", ["hartigan", "lloyd"])
def test_ended_by_tol_labels_are_those_of_the_centers(algorithm):
    """A large `tol` makes it happen in many tables: labels follow the centers, not the other way round."""
    apart = 0
    for seed in range(30):
        X, k = table(seed)
        model = KPOD(k, algorithm=algorithm, tol=0.05, n_init=1, random_state=seed).fit(X)
        assert model.converged_
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        apart += not np.allclose(model.cluster_centers_, means_of(X, model.labels_, k), atol=1e-9)
    assert apart > 0
