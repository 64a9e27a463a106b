import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from kpod.missingness import (
    by_class,
    by_driver,
    by_nuisance_group,
    by_row,
    by_value,
    detection_limit,
    dropout,
    mar,
    mcar,
    modules,
    nmar,
)

MECHANISMS = {
    "mcar": mcar,
    "mar": mar,
    "mar as in the paper": lambda X, fraction, rng: mar(X, fraction, rng, columns=[0, 2, 3, 5]),
    "mar proper": lambda X, fraction, rng: mar(X, fraction, rng, depends_on=[1, 4]),
    "nmar": nmar,
    "detection limit, both ends": lambda X, fraction, rng: detection_limit(X, fraction, rng, end="both"),
    "detection limit, some columns": lambda X, fraction, rng: detection_limit(
        X, fraction, rng, end="high", columns=[5, 2, 3, 0]
    ),
    "by value": by_value,
    "by value, some columns": lambda X, fraction, rng: by_value(
        X, fraction, rng, slope=[1, -1, 0, 3], columns=[5, 2, 3, 0]
    ),
    "by class": lambda X, fraction, rng: by_class(X, fraction, rng, labels=thirds(X)),
    "by nuisance group": by_nuisance_group,
    "by row": by_row,
    "by driver": by_driver,
    "modules of one column": lambda X, fraction, rng: modules(X, fraction, rng, size=1),
    "dropout": dropout,
    "dropout by class": lambda X, fraction, rng: dropout(X, fraction, rng, labels=thirds(X)),
}


def thirds(X):
    return np.arange(len(X)) % 3


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


def test_detection_limits_cut_the_ends_of_the_chosen_columns(rng):
    X = rng.normal(size=(100, 5))
    both = np.isnan(detection_limit(X, 0.2, rng, end="both"))
    high = np.isnan(detection_limit(X, 0.2, rng, end="high", columns=[1, 3]))
    for j in range(5):
        order = np.argsort(X[:, j])
        assert_array_equal(np.flatnonzero(both[order, j]), [*range(10), *range(90, 100)])
        assert_array_equal(np.flatnonzero(high[order, j]), range(50, 100) if j in (1, 3) else [])


def test_gaps_by_value_follow_the_slope(rng):
    X = 5 + 3 * rng.normal(size=(4000, 3))
    gaps = np.isnan(by_value(X, 0.3, rng, slope=[-2, 0, 2]))
    off = [(X[gaps[:, j], j].mean() - 5) / 3 for j in range(3)]
    assert off[0] < -0.5
    assert abs(off[1]) < 0.15
    assert off[2] > 0.5


def test_gaps_by_class_differ_between_classes_alone(rng):
    labels = np.repeat(["a", "b", "c"], 4000)
    X = rng.normal(size=(12_000, 6))
    gaps = np.isnan(by_class(X, 0.3, rng, labels=labels))
    rates = np.array([gaps[labels == name].mean(axis=0) for name in "abc"])
    assert np.ptp(rates, axis=0).max() > 0.2
    for name in "abc":  # given the class, neither the values nor the other gaps matter
        inside, values = gaps[labels == name].astype(float), X[labels == name]
        inside = inside[:, (inside.sum(axis=0) > 20) & (inside.sum(axis=0) < 3980)]  # others hardly vary
        related = np.corrcoef(np.hstack([inside, values]).T) - np.eye(inside.shape[1] + 6)
        assert np.abs(related)[: inside.shape[1]].max(initial=0) < 0.08
    even = np.isnan(by_class(X, 0.3, rng, labels=labels, by_column=False))
    for name in "abc":
        assert np.ptp(even[labels == name].mean(axis=0)) < 0.06
    assert np.ptp([even[labels == name].mean() for name in "abc"]) > 0.05


def test_a_nuisance_group_makes_gaps_hang_together_and_values_nothing(rng):
    X = rng.normal(size=(4000, 6))
    gaps = np.isnan(by_nuisance_group(X, 0.3, rng, spread=3, columns=[0, 1, 2, 3]))
    varying = np.flatnonzero((gaps.sum(axis=0) > 20) & (gaps.sum(axis=0) < 3980))
    related = np.corrcoef(gaps[:, varying].T) - np.eye(len(varying))
    assert np.abs(related).max() > 0.15
    assert abs(np.corrcoef(gaps[:, varying[0]], X[:, 5])[0, 1]) < 0.08
    assert not gaps[:, 4:].any()


def test_rows_that_answer_little(rng):
    X = np.zeros((4000, 10))
    per_row = np.isnan(by_row(X, 0.3, rng)).sum(axis=1)
    even = np.isnan(by_row(X, 0.3, rng, spread=0)).sum(axis=1)
    assert per_row.var() > 2 * even.var()
    assert abs(even.var() / (10 * 0.3 * 0.7) - 1) < 0.15


def test_one_driver_stays_and_decides(rng):
    X = rng.normal(size=(4000, 4))
    gaps = np.isnan(by_driver(X, 0.2, rng, column=2))
    assert not gaps[:, 2].any()
    assert gaps[X[:, 2] > 1].mean() > 3 * gaps[X[:, 2] < -1].mean()


@pytest.mark.parametrize("labels", [None, "classes"])
def test_modules_are_there_or_not(labels, rng):
    labels = None if labels is None else np.repeat([0, 1], 1000)
    gaps = np.isnan(modules(np.zeros((2000, 8)), 0.4, rng, size=3, labels=labels))
    for block in (slice(0, 3), slice(3, 6), slice(6, 8)):
        assert (gaps[:, block].all(axis=1) == gaps[:, block].any(axis=1)).all()
    assert abs(gaps.sum() - 0.4 * gaps.size) <= 1.5
    differ = np.abs(gaps[:1000].mean(axis=0) - gaps[1000:].mean(axis=0)).max()
    assert (differ > 0.12) == (labels is not None)


def test_dropout_never_comes_back_and_classes_differ(rng):
    labels = np.repeat([0, 1, 2, 3], 1000)
    gaps = np.isnan(dropout(np.zeros((4000, 8)), 0.4, rng, labels=labels))
    assert (np.diff(gaps.astype(int), axis=1) >= 0).all()
    assert not gaps[:, 0].any()
    by_class_ = [gaps[labels == c].mean() for c in range(4)]
    assert np.ptp(by_class_) > 0.1
    assert (
        np.ptp([np.isnan(dropout(np.zeros((4000, 8)), 0.4, rng))[labels == c].mean() for c in range(4)])
        < 0.06
    )


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
        (lambda X: detection_limit(X, 0.1, end="left"), "end must be 'low', 'high' or 'both', got 'left'"),
        (lambda X: detection_limit(X, 0.5, columns=[0]), "hold only 20 entries: at most 0.2 overall"),
        (lambda X: by_value(X, 0.1, slope=[1, 2]), "slope must be a number or one for each of the 5 columns"),
        (lambda X: by_class(X, 0.1, labels=[0, 1]), "one label for each of the 20 rows"),
        (lambda X: by_nuisance_group(X, 0.1, n_groups=0), "n_groups must be at least 1, got 0"),
        (lambda X: by_driver(X, 0.1, column=7), "depends_on must be different positions from 0 to 4"),
        (lambda X: modules(X, 0.1, size=0), "size must be at least 1, got 0"),
        (lambda X: dropout(X, 0.9), "the first column stays"),
    ],
)
def test_bad_requests(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(20, 5)))
