"""Sums of squares add up, and are those of the loss."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.pipeline import make_pipeline

from kpod import KPOD, ObservedScaler, stability, summary
from tests.helpers.tables import clustered


def test_frames_keep_their_names(rng):
    """No warning about names that the user's table has; and columns in another order are refused."""
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame = frame.mask(rng.random((40, 3)) < np.array([0, 0.2, 0.2]))
    for model in (KPOD(2, random_state=0), make_pipeline(ObservedScaler(), KPOD(2, random_state=0))):
        model.fit(frame)
        assert summary(model, frame).sizes_.sum() == 40
        assert stability(model, frame, n_resamples=2, random_state=0).n_rows_ > 30
        for ask in (summary, stability):
            with pytest.raises(ValueError, match="feature names"):
                ask(model, frame[["b", "a", "c"]])


def test_within_and_between_add_up_and_within_is_the_loss(rng):
    X, _ = clustered(rng, missing=0.3)
    weights = rng.uniform(0.5, 2, size=len(X))
    model = KPOD(4, random_state=0).fit(X, sample_weight=weights)
    result = summary(model, X, sample_weight=weights)
    assert_allclose(result.within_ss_.sum(), model.inertia_)
    total = np.nansum(weights[:, None] * (X - np.ma.average(np.ma.masked_invalid(X), 0, weights)) ** 2)
    assert_allclose(result.total_ss_, total)
    assert_allclose(result.between_ss_ + result.within_ss_.sum(), result.total_ss_)
    assert_allclose(result.sizes_.sum(), weights.sum())
    for c in range(4):
        own = X[model.labels_ == c]
        w = weights[model.labels_ == c][:, None]
        assert_allclose(result.within_ss_[c], np.nansum(w * (own - model.cluster_centers_[c]) ** 2))


def test_sparse_tables_and_pipelines(rng):
    X, _ = clustered(rng, missing=0.3)
    model = KPOD(3, random_state=0).fit(X)
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    assert_allclose(summary(model, csr).within_ss_, summary(model, X).within_ss_)
    pipeline = make_pipeline(ObservedScaler(), KPOD(3, random_state=0)).fit(X)
    assert_allclose(summary(pipeline, X).within_ss_.sum(), pipeline[-1].inertia_)


def test_it_says_how_many_starts_found_the_best_loss(rng):
    X, _ = clustered(rng)
    model = KPOD(3, random_state=0).fit(X)
    model.losses_ = np.array([2.0, 1.0, 1.0])
    text = str(summary(model, X))
    assert "best loss was found in 2 of 3 starts" in text
    assert "between_SS / total_SS = " in text


def test_a_row_with_nothing_observed_counts_for_nothing(rng):
    X, _ = clustered(rng)
    model = KPOD(3, random_state=0).fit(X)
    more = np.vstack([X, np.full((1, X.shape[1]), np.nan)])
    assert_allclose(summary(model, more).within_ss_, summary(model, X).within_ss_)
    assert summary(model, more).sizes_.sum() == len(X)


def test_other_models_are_refused(rng):
    with pytest.raises(TypeError, match="fitted KPOD"):
        summary("kmeans", rng.normal(size=(3, 2)))
