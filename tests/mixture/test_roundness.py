"""Probabilities of round clusters: said to be off where they are, by as much as they are."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import kpod
from kpod import KPOD, GaussianMixture
from kpod._common.warnings import RoundClustersWarning
from kpod._inputs import validation
from kpod._mixture.roundness import calibration_error, roundness
from kpod.missingness import mcar

K = 3


def drawn(spreads=(1, 1, 1), shares=(1, 1, 1), factor=0.0, seed=0, n=1200, p=6):
    """Normal clusters that overlap, with a common factor, 30 % missing, and which row is of which."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(K, size=n, p=np.array(shares) / sum(shares))
    X = 1.5 * rng.normal(size=(K, p))[truth] + np.array(spreads)[truth, None] * rng.normal(size=(n, p))
    X = mcar(X + factor * rng.normal(size=(n, 1)), 0.3, random_state=seed)
    seen = ~np.isnan(X).all(axis=1)
    return X[seen], truth[seen]


def calibration(model, X, truth):
    """How far confidence is from the share that is right, over its tenths; clusters by their majority."""
    found = model.predict_proba(X)
    of = np.array([np.bincount(truth[found.argmax(axis=1) == m], minlength=K).argmax() for m in range(K)])
    right, confidence = of[found.argmax(axis=1)] == truth, found.max(axis=1)
    tenth = np.minimum((10 * confidence).astype(int), 9)
    off = [abs((confidence - right)[tenth == b].sum()) for b in range(10)]
    return sum(off) / len(X)


@pytest.mark.parametrize("shares", [(1, 1, 1), (5, 3, 2)])
@pytest.mark.parametrize("seed", [0, 1])
def test_round_clusters_are_calibrated_and_nothing_is_said(shares, seed):
    X, truth = drawn(shares=shares, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KPOD(K, probability=True, random_state=0).fit(X)
    assert calibration(model, X, truth) < 0.04


@pytest.mark.parametrize(
    ("design", "why"),
    [
        ({"spreads": (0.3, 1.0, 2.5)}, "variances differ"),
        ({"spreads": (0.3, 1.0, 2.5), "shares": (6, 3, 1)}, "variances differ"),
        ({"factor": 1.5}, "columns are correlated within clusters"),
    ],
)
def test_it_says_so_where_they_are_not(design, why):
    """And by how much, or less; the mixture is calibrated there."""
    X, truth = drawn(**design)
    with pytest.warns(RoundClustersWarning, match=why):
        model = KPOD(K, probability=True, random_state=0).fit(X)
    found = roundness(X, model.labels_, model.predict_proba(X))
    assert found.contradicted
    error = calibration(model, X, truth)
    assert error / 3 < found.error < error + 0.05
    mixture = GaussianMixture(K, n_init=12, random_state=0).fit(X)
    assert calibration(mixture, X, truth) < 0.04


def test_the_error_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.93, 0.07], [0.35, 0.65]])
    expected = np.array([[0.85, 0.15], [0.99, 0.01], [0.4, 0.6]])
    assert calibration_error(probabilities, expected, None) == pytest.approx((0.04 + 0.05) / 3)
    assert calibration_error(probabilities, expected, np.array([2.0, 0, 1])) == pytest.approx(0.25 / 3)
    assert calibration_error(expected, expected, None) == 0


def test_weights_are_rows_and_gaps_need_not_be_stored():
    X, _ = drawn(spreads=(0.3, 1.0, 2.5), n=300)
    model = KPOD(K, random_state=0).fit(X)
    soft = KPOD(K, probability=True, random_state=0).fit(X).predict_proba(X)
    found = roundness(X, model.labels_, soft)
    doubled = roundness(np.vstack([X, X]), np.tile(model.labels_, 2), np.vstack([soft, soft]))
    weighted = roundness(X, model.labels_, soft, np.full(len(X), 2.0))
    assert_allclose(weighted.error, doubled.error, rtol=1e-6)
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    csr = validation.as_table(csr, model)
    assert_allclose(roundness(csr, model.labels_, soft).error, found.error, rtol=1e-6)


def test_it_is_a_caution_of_the_analysis_and_said_once():
    X, _ = drawn(factor=1.5, n=300)
    table = pd.DataFrame(X, columns=list("abcdef"))
    analysis = kpod.analyze(table, K, shape="round", probability=True)
    (caution,) = [one for one in analysis.cautions if one.kind == "clusters that are not round"]
    assert caution.severity == "caution"
    assert caution.values["correlated"]
    assert "GaussianMixture" in caution.text
    assert str(analysis).count("assume round clusters") == 1
    plain = kpod.analyze(table, K, shape="round")
    assert plain.confidence is not None
    assert any(one.kind == "clusters that are not round" for one in plain.cautions)


@pytest.mark.parametrize("options", [{"n_clusters": 1}, {"n_clusters": 2, "missingness": "informative"}])
def test_where_there_is_nothing_to_ask(options):
    X, _ = drawn(spreads=(0.3, 1.0, 2.5), n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RoundClustersWarning)
        KPOD(probability=True, random_state=0, **options).fit(X)
