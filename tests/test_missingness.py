import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from kpod.missingness import mar, mcar, nmar

MECHANISMS = {
    "mcar": mcar,
    "mar": mar,
    "mar as in the paper": lambda X, fraction, rng: mar(X, fraction, rng, columns=[0, 2, 3, 5]),
    "mar proper": lambda X, fraction, rng: mar(X, fraction, rng, depends_on=[1, 4]),
    "nmar": nmar,
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return MECHANISMS[request.param]


@pytest.mark.parametrize("fraction", [0, 0.05, 0.333, 0.5])
def test_exactly_the_asked_share_and_nothing_else_changes(mechanism, fraction, rng):
    X = rng.normal(size=(97, 7))
    before = X.copy()
    holed = mechanism(X, fraction, rng)
    assert np.isnan(holed).sum() == round(fraction * X.size)
    assert_array_equal(holed[~np.isnan(holed)], X[~np.isnan(holed)])
    assert_array_equal(X, before)


def test_same_seed_same_gaps(mechanism):
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert_array_equal(mechanism(X, 0.2, 7), mechanism(X, 0.2, 7))
    assert (np.isnan(mechanism(X, 0.2, 7)) != np.isnan(mechanism(X[::-1], 0.2, 8))).any()


def test_mcar_is_spread_evenly(rng):
    rates = np.isnan(mcar(np.zeros((20_000, 5)), 0.3, rng)).mean(axis=0)
    assert np.abs(rates - 0.3).max() < 0.02


def test_mar_touches_only_the_chosen_columns(rng):
    gaps = np.isnan(mar(rng.normal(size=(100, 6)), 0.2, rng, columns=[1, 4]))
    assert_array_equal(gaps.any(axis=0), [False, True, False, False, True, False])


def test_mar_proper_depends_on_what_stays(rng):
    X = rng.normal(size=(5000, 4))
    gaps = np.isnan(mar(X, 0.2, rng, depends_on=[0]))
    assert not gaps[:, 0].any()
    high, low = X[:, 0] > 1, X[:, 0] < -1
    assert gaps[high, 1:].mean() > 3 * gaps[low, 1:].mean()
    even = np.isnan(mar(X, 0.2, rng, depends_on=[0], slope=0))
    assert abs(even[high, 1:].mean() - even[low, 1:].mean()) < 0.06


def test_nmar_removes_the_lowest_of_every_column(rng):
    X = rng.normal(size=(100, 5))
    holed = nmar(X, 0.3, rng)
    for j in range(5):
        gone = np.isnan(holed[:, j])
        assert gone.sum() == 30
        assert X[gone, j].max() < X[~gone, j].min()


def test_dataframes_stay_dataframes(mechanism, rng):
    X = rng.normal(size=(40, 6))
    for frame in (pd.DataFrame(X, columns=list("abcdef")), pl.DataFrame(X, schema=list("abcdef"))):
        holed = mechanism(frame, 0.25, 3)
        assert type(holed) is type(frame)
        assert_array_equal(np.asarray(holed, dtype=float), mechanism(X, 0.25, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: mcar(X, 1.5), "fraction must lie between 0 and 1, got 1.5"),
        (lambda X: nmar(X, -0.1), "fraction must lie between 0 and 1"),
        (lambda X: mcar(np.where(X > 0, np.nan, X), 0.1), "already has gaps"),
        (lambda X: mar(X, 0.5, columns=[0]), r"5\d* gaps.*hold only 20 entries: at most 0.2 overall"),
        (lambda X: mar(X, 0.1, columns=[0, 7]), "columns must be different positions from 0 to 4"),
        (lambda X: mar(X, 0.1, columns=[0, 1], depends_on=[1]), r"share \[1\]"),
    ],
)
def test_bad_requests(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(20, 5)))
