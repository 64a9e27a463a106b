"""Stable where clusters are apart, not where a cloud was cut."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline

import kpod
from kpod import KPOD, ObservedScaler, stability
from kpod._findings.stability import in_words, similarities


def test_clusters_apart_are_stable_and_a_cut_cloud_is_not(rng):
    """Two clusters far apart, and a cloud that three centers cut at random."""
    X = rng.normal(size=(400, 8))
    X[:100] += 40
    X[100:200, :4] -= 40
    X[200:] *= 3
    X[:, 1:][rng.random((400, 7)) < 0.2] = np.nan  # the first column tells which group a row is in
    model = KPOD(5, random_state=0).fit(X)
    result = stability(model, X, n_resamples=20, random_state=0)
    groups = np.array([0] * 100 + [1] * 100 + [2] * 200)
    for c in range(5):
        (group, *others) = np.unique(groups[model.labels_ == c])
        assert not others
        if group < 2:
            assert result.jaccard_[c] > 0.9
            assert result.recovered_[c] > 0.75
        else:
            assert result.jaccard_[c] < 0.75
            assert str(c) in result.sentence_
    assert 0.5 < result.ari_ < 0.95
    assert_allclose(result.jaccard_, result.jaccard_samples_.mean(axis=0))
    assert "2 of 5 clusters are stable" in result.sentence_


def test_similarities_by_hand():
    labels, found = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert_allclose(similarities(labels, found, 3), [2 / 3, 2 / 3, np.nan])


def test_the_same_seed_gives_the_same_result_dense_sparse_or_in_a_pipeline(rng):
    X = rng.normal(size=(80, 5)) + 3 * rng.integers(2, size=(80, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    model = KPOD(2, random_state=0).fit(X)
    kept = model.cluster_centers_.copy()
    first = stability(model, X, n_resamples=5, random_state=1)
    assert_array_equal(first.jaccard_, stability(model, X, n_resamples=5, random_state=1).jaccard_)
    assert_allclose(first.jaccard_, stability(model, csr, n_resamples=5, random_state=1).jaccard_)
    assert_array_equal(model.cluster_centers_, kept)
    pipeline = make_pipeline(ObservedScaler(), KPOD(2, random_state=0)).fit(X)
    assert stability(pipeline, X, n_resamples=5, random_state=1).jaccard_.shape == (2,)


def test_the_order_of_the_rows_changes_nothing(rng, monkeypatch):
    """Not by a bit: Spark, for one, keeps no order. With rows that are there twice, at other weights, too."""
    monkeypatch.setattr("kpod._findings.stability.MOST_ROWS", 60)
    X = rng.normal(size=(90, 4)) + 2 * rng.integers(3, size=(90, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[10:20] = X[:10]
    weights = rng.integers(0, 4, 90).astype(float)
    model = KPOD(3, random_state=0).fit(X)
    first = stability(model, X, n_resamples=4, sample_weight=weights, random_state=0)
    assert first.n_rows_ == 60
    assert first.ari_ < 0.99  # not a table of which any draw gives the same
    for order in (rng.permutation(90), np.arange(90)[::-1]):
        again = stability(model, X[order], n_resamples=4, sample_weight=weights[order], random_state=0)
        assert_array_equal(again.jaccard_samples_, first.jaccard_samples_)
        assert_array_equal(again.ari_samples_, first.ari_samples_)


def test_rows_are_told_apart_by_value_column_and_gap():
    from kpod._engine.sampling import fingerprints

    X = np.array([[1.0, 2], [2, 1], [1, np.nan], [np.nan, 1], [0, 0], [np.nan, np.nan], [1, 2]])
    keys = fingerprints(X)
    assert len(set(keys.tolist())) == 6
    assert keys[0] == keys[6]
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    assert_array_equal(fingerprints(csr), keys)
    assert fingerprints(np.array([[-0.0, 0.0]]))[0] == keys[4]


def test_progress_and_refusals(rng):
    X = rng.normal(size=(30, 4))
    model = KPOD(2, random_state=0).fit(X)
    told = []
    stability(model, X, n_resamples=3, random_state=0, progress=lambda *args: told.append(args))
    assert told == [(1, 3, "resamples"), (2, 3, "resamples"), (3, 3, "resamples")]
    with pytest.raises(ValueError, match="n_resamples must be a whole number from 1 up, got 0"):
        stability(model, X, n_resamples=0)
    with pytest.raises(TypeError, match="got str"):
        stability("model", X)


def test_sentences():
    assert in_words(np.array([0.9, 0.8]), 0.9, 50).startswith("Both clusters are stable in 50")
    assert in_words(np.array([0.98, 0.8]), 0.54, 50).endswith(
        "index 0.54), but which rows belong to them is doubtful."
    )
    assert "None of the 2" in in_words(np.array([0.3, 0.5]), 0.1, 50)
    mixed = in_words(np.array([0.9, 0.7, 0.2]), 0.5, 50)
    assert mixed.startswith("1 of 3 clusters is stable")
    assert "belong to cluster 1 is doubtful" in mixed
    assert "Do not rely on cluster 2" in mixed
    assert "only one cluster" in in_words(np.array([1.0]), 1.0, 50)


def test_unstable_clusters_are_a_caution_that_the_finding_refers_to(rng):
    X = rng.normal(size=(60, 3)) + 9 * (np.arange(60) % 2)[:, None]
    model = KPOD("auto", random_state=0).fit(X)
    again = stability(model, X, n_resamples=2, random_state=0)

    def said(jaccard):
        found = replace(again, jaccard_=np.array(jaccard))
        data = kpod.report(model, X, stability=found).data
        return data["choice"]["sentence"], {c["title"]: c["text"] for c in data["cautions"]}

    assert said([0.9, 0.7]) == (model.choice_.sentence_, {})
    finding, cautions = said([0.9, 0.32])
    assert finding == f"{model.choice_.sentence_} But cluster 1 is not stable: see what to be careful about."
    assert cautions["Unstable clusters"].startswith(
        "Do not rely on cluster 1 (mean Jaccard similarity 0.32 in"
    )
