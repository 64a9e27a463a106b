"""EM on observed entries, against formulas that invert full covariance matrices row by row."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from kpod import KPOD
from kpod._common.column_groups import ColumnGroups
from kpod._engine.executors import Executor
from kpod._mixture import confidence
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em import prediction
from kpod._mixture.em.iteration import run
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._model_selection.hidden_values import PLAIN, Covered, HiddenEntries
from kpod._model_selection.missingness_likelihood import missingness_deviance
from tests.helpers.tables import as_csr, clustered


def covered(X, *, weights=None, hidden=None, seen=None):
    """A table as `choose_k` fits mixtures to it, without some entries (rows and columns).

    With the mask `seen`, gaps count.
    """
    rates = None if seen is None else np.average(seen, axis=0, weights=weights)
    some = None if hidden is None else HiddenEntries(*hidden, np.zeros(len(hidden[0])))
    return Covered.of(X, weights, some, ColumnGroups.none(X.shape[1]), rates, Executor())


def in_own_units(of, m):
    """Parameters in the units of the table that is given."""
    units = of.entries.table.units
    return m.rescaled(units.shift, units.scale)


def some_mixture(rng, k, p, q, own):
    loadings = rng.normal(size=(k if own else 1, p, q))
    variances = rng.uniform(0.5, 2, size=p)
    return Parameters(
        rng.dirichlet(np.ones(k)),
        rng.normal(size=(k, p)),
        np.tile(variances, (k, 1)),
        np.repeat(loadings, 1 if own else k, axis=0),
    )


def slow_log_density(X, m):
    """log(share * density) of the observed entries, with the covariance matrix written out."""
    out = np.empty((len(X), m.k))
    for i, row in enumerate(X):
        o = ~np.isnan(row)
        for c in range(m.k):
            covariance = m.covariance(c)[np.ix_(o, o)]
            density = multivariate_normal(m.means[c, o], covariance).logpdf(row[o]) if o.any() else 0.0
            out[i, c] = np.log(m.shares[c]) + density
    return out


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("q", [0, 1, 3])
def test_predictions_are_those_of_the_full_covariance(q, own, rng):
    X, _ = clustered(rng, n_rows=40, missing=0.4)
    of = covered(X)
    z = of.entries.table.entries(np.arange(40))
    m = some_mixture(rng, 3, X.shape[1], q, own)
    expected = slow_log_density(z, m)
    posterior = np.exp(expected - np.logaddexp.reduce(expected, axis=1, keepdims=True))
    assert_allclose(of.posterior(m), posterior, rtol=1e-9, atol=1e-12)
    rows, columns = np.nonzero(np.isnan(X))
    units = of.entries.table.units
    for i, j, value in zip(rows, columns, of.predict(m, rows, columns), strict=True):
        o = ~np.isnan(X[i])
        given = 0.0
        for c in range(3):
            covariance = m.covariance(c)
            weights = np.linalg.solve(covariance[np.ix_(o, o)], covariance[o, j])
            given += posterior[i, c] * (m.means[c, j] + weights @ (z[i] - m.means[c])[o])
        assert value == pytest.approx(given / units.scale + units.shift[j])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("q", [1, 2])
def test_the_likelihood_never_falls(q, own, rng):
    X, truth = clustered(rng, missing=0.3, spread=1.0)
    of = covered(X)
    m = of.with_factors(of.from_labels(truth, 5), q)
    shape = Shape("tied_diag" if own else "tied", q)
    free = replace(of.within, loading_rows=0.0)  # a prior trades likelihood for itself
    found = run(of.entries, shape, m, free, 25, 0.0)
    assert (np.diff(found.trace) >= -1e-6 * abs(found.trace[0])).all()
    assert found.trace[-1] > found.trace[0]
    assert (found.parameters.loadings[0] != found.parameters.loadings[1]).any() == own


@pytest.mark.parametrize("q", [0, 2])
def test_sparse_tables_give_the_same_mixture(q, rng):
    X, truth = clustered(rng, missing=0.5)
    weights = rng.uniform(0.5, 2, size=len(X))
    hidden = tuple(at[::7] for at in np.nonzero(~np.isnan(X)))

    def fitted(X):
        of = covered(X, weights=weights, hidden=hidden)
        m = of.settled(of.from_labels(truth, 5), PLAIN)
        m = of.with_factors(m, q) if q else m
        own = in_own_units(of, m)
        return own.shares, own.means, own.variances, of.posterior(m), of.predict(m, *hidden)

    for a, b in zip(fitted(X), fitted(as_csr(X)), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_weights_equal_repetition(rng):
    X, truth = clustered(rng, missing=0.3)
    times = rng.integers(1, 4, size=len(X))
    weighted = confidence.soften(X, truth.astype(np.int32), 5, times.astype(float))
    repeated = confidence.soften(np.repeat(X, times, axis=0), np.repeat(truth, times).astype(np.int32), 5)
    assert_allclose(weighted.centers, repeated.centers, rtol=1e-6)
    assert_allclose(weighted.variance, repeated.variance, rtol=1e-6)
    assert_allclose(weighted.shares, repeated.shares, rtol=0.02)  # the start smooths by one row


def test_on_complete_tables_it_is_scikit_learns_spherical_mixture(rng, monkeypatch):
    """Equal variances in truth, so that scikit-learn's one variance for each cluster is near ours."""
    monkeypatch.setattr(confidence, "TOL", 1e-9)
    X, truth = clustered(rng, n_rows=3000, missing=0, k=3, spread=0.5)
    soft = confidence.soften(X, truth.astype(np.int32), 3)
    peer = GaussianMixture(3, covariance_type="spherical", means_init=soft.centers, tol=1e-8).fit(X)
    assert_allclose(soft.centers, peer.means_, atol=0.02)
    assert_allclose(soft.shares, peer.weights_, atol=0.01)
    assert_allclose(soft.variance, peer.covariances_.mean(), rtol=0.05)
    assert np.abs(soft.probabilities(X) - peer.predict_proba(X)).mean() < 0.01


def test_odd_rows_and_columns(rng):
    X, truth = clustered(rng, missing=0.3)
    labels = truth.astype(np.int32)
    X[:5] = np.nan
    labels[:5] = -1
    X[:, 3] = np.nan
    X[:, 4] = 7.0
    soft = confidence.soften(X, labels, 5)
    assert np.isnan(soft.centers[:, 3]).all()
    assert_allclose(soft.centers[:, 4], 7.0)
    probabilities = soft.probabilities(X)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_allclose(probabilities[:5], np.tile(soft.shares, (5, 1)))
    own, second, other, largest = confidence.sureness(probabilities, labels)
    assert np.isnan(own[:5]).all()
    assert (second[:5] == -1).all()
    assert not other[:5].any()
    placed = labels >= 0
    assert (second[placed] != labels[placed]).all()
    assert_allclose(largest[placed], probabilities[placed].max(axis=1))
    order = np.argsort(-probabilities, axis=1)
    same = placed & (order[:, 0] == labels)
    assert_allclose(own[same], probabilities[same].max(axis=1))
    assert (second[same] == order[same, 1]).all()
    assert (other[placed] == (order[placed, 0] != labels[placed])).all()


def calibration_error(confidence, hit):
    tenth = np.minimum((confidence * 10).astype(int), 9)
    return sum(
        abs(hit[tenth == b].mean() - confidence[tenth == b].mean()) * (tenth == b).mean()
        for b in np.unique(tenth)
    )


@pytest.mark.parametrize("spread", [0.9, 1.5])
def test_probabilities_mean_what_they_say_and_centers_are_consistent(spread, rng):
    """Of rows at 80 %, 80 % are right; and centers are nearer the truth than those of k-means."""
    truth = rng.integers(4, size=5000)
    # Centers at the corners of a simplex, so that the overlap is the same in every draw.
    means = spread * np.kron(np.eye(4), np.ones(3)) * 1.5
    X = means[truth] + rng.normal(size=(5000, 12))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = KPOD(4, random_state=0).fit(X)
    soft = confidence.soften(X, model.labels_, 4)
    probabilities = soft.probabilities(X)
    found = probabilities.argmax(axis=1)
    table = np.zeros((4, 4))
    np.add.at(table, (found, truth), 1)
    of = linear_sum_assignment(-table)[1]
    assert calibration_error(probabilities.max(axis=1), of[found] == truth) < 0.03
    error = np.sqrt(((soft.centers - means[of]) ** 2).mean())
    assert error < 0.08
    if spread < 1:
        assert error < np.sqrt(((model.cluster_centers_ - means[of]) ** 2).mean())


def test_a_row_far_out_in_one_column_is_placed_by_the_others(rng):
    """What all clusters share of a distance must not take the digits of what they differ in."""
    X = rng.normal(size=(400, 3)) + [0, 0, 6] * (np.arange(400) % 2)[:, None]
    model = KPOD(2, probability=True, random_state=0).fit(X)
    low, high = model.predict([[0, 0, 0], [0, 0, 6]])
    assert_allclose(model.predict_proba([[1e12, 0, 0]]).sum(), 1)
    near = model.mixture_centers_[:, :2].mean(axis=0)
    model.mixture_centers_[:, :2] = near  # so that only the last column tells
    for far in (1e3, 1e6, 1e9, 1e12):
        rows = model.predict_proba([[near[0] + far, near[1], 0.0], [near[0] + far, near[1], 6.0]])
        assert_allclose(rows.sum(axis=1), 1)
        assert rows[0, low] > 0.999
        assert rows[1, high] > 0.999


@pytest.mark.parametrize("power", [-400, 400])
def test_probabilities_do_not_depend_on_the_scale(power, rng):
    X, _ = clustered(rng, missing=0.3, spread=1.2)
    here, there = (KPOD(5, probability=True, random_state=0).fit(X * 2.0**e) for e in (0, power))
    assert_allclose(there.predict_proba(X * 2.0**power), here.predict_proba(X), atol=1e-9)


def test_infinity_has_no_probabilities(rng):
    X, _ = clustered(rng)
    model = KPOD(5, probability=True, random_state=0).fit(X)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinity.* column 2 \(first in row 3\)"):
        model.predict_proba(X)


def test_gaps_count_in_the_posterior_where_they_have_rates(rng):
    """Two groups with the same values that lack different columns: only the gaps tell them apart."""
    labels = np.repeat([0, 1], 100).astype(np.int32)
    X = rng.normal(size=(200, 6))
    gone = np.where(labels[:, None] == 0, [0.8, 0.8, 0.8, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.8, 0.8, 0.8])
    X[rng.random(X.shape) < gone] = np.nan
    with_gaps, without = covered(X, seen=~np.isnan(X)), covered(X)
    m, plain = with_gaps.from_labels(labels, 2), without.from_labels(labels, 2)
    by_gaps = np.where(~np.isnan(X)[:, None], m.rates, 1 - m.rates).prod(axis=2)
    expected = by_gaps * without.posterior(plain)
    assert_allclose(with_gaps.posterior(m), expected / expected.sum(axis=1, keepdims=True))
    fitted = with_gaps.settled(m, PLAIN)
    assert (with_gaps.posterior(fitted).argmax(axis=1) == labels).mean() > 0.9
    again = without.settled(plain, PLAIN)
    assert again.rates is None
    assert (without.posterior(again).argmax(axis=1) == labels).mean() < 0.8


def gaps_of_each_class(rng, n=60, p=5, k=3):
    """Rows with gaps, classes, and hidden entries in the order of rows."""
    X = rng.normal(size=(n, p))
    labels = rng.integers(k, size=n)
    X[rng.random((n, p)) < np.array([0.1, 0.4, 0.7])[labels][:, None]] = np.nan
    X[:, 0] = rng.normal(size=n)  # all rows have it, so that it says nothing
    hidden = np.nonzero(~np.isnan(X) & (rng.random((n, p)) < 0.2))
    return X, labels, hidden


@pytest.mark.parametrize("container", [np.asarray, as_csr])
def test_hidden_entries_are_hidden_from_values_not_from_gaps(container, rng):
    X, labels, hidden = gaps_of_each_class(rng)
    whole, some = (covered(container(X), hidden=h, seen=~np.isnan(X)) for h in (None, hidden))
    m, part = whole.round_from_labels(labels, 3), some.round_from_labels(labels, 3)
    assert_allclose(part.rates[:, :5], m.rates)
    left = X.copy()
    left[hidden] = np.nan
    alone = covered(left)
    assert_allclose(
        in_own_units(some, part).means[:, :5], in_own_units(alone, alone.round_from_labels(labels, 3)).means
    )
    values = slow_log_density(some.entries.table.entries(np.arange(60)), part)  # shadows: the same in all
    seen = np.where(~np.isnan(X)[:, None], part.rates[:, :5], 1 - part.rates[:, :5])
    expected = np.exp(values - values.max(axis=1, keepdims=True)) * seen.prod(axis=2)
    assert_allclose(some.posterior(part), expected / expected.sum(axis=1, keepdims=True), rtol=1e-7)
    stepped = some.settled(part, PLAIN)
    assert_allclose(stepped.rates[:, some.within.shadowed], stepped.rates[:, 5:])


@pytest.mark.parametrize("container", [np.asarray, as_csr])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_deviance_of_gaps_is_the_likelihood_of_each_from_all_else(container, weighted, rng, monkeypatch):
    monkeypatch.setattr("kpod._model_selection.missingness_likelihood.COLUMNS_AT_ONCE", 3)
    X, labels, hidden = gaps_of_each_class(rng)
    weights = rng.uniform(0.5, 2, size=60) if weighted else np.ones(60)
    of = covered(container(X), weights=weights, hidden=hidden, seen=~np.isnan(X))
    m = of.round_from_labels(labels, 3)
    seen, rates = ~np.isnan(X), m.rates[:, :5]
    values = slow_log_density(of.entries.table.entries(np.arange(60)), m)
    likely = np.where(seen[:, None], rates, 1 - rates)  # rows, clusters, columns

    def posterior(of_gaps):
        weight = np.exp(values) * of_gaps
        return weight / weight.sum(axis=1, keepdims=True)

    r = posterior(likely.prod(axis=2)) * weights[:, None]
    q = weights @ seen / weights.sum()
    expected = np.zeros(60)
    for j in range(1, 5):
        others = posterior(np.delete(likely, j, axis=2).prod(axis=2))
        for i in range(60):
            without = np.arange(60) != i
            leaving = (r[without].T @ seen[without, j] + q[j]) / (r[without].sum(axis=0) + 1)
            expected[i] -= 2 * np.log(others[i] @ (leaving if seen[i, j] else 1 - leaving))
    found = missingness_deviance(seen.astype(float), of.posterior(m), m.rates, weights, np.arange(1, 5))
    assert_allclose(found, expected)


def test_new_factors_are_the_same_from_sparse_and_dense_residuals(rng, monkeypatch):
    X = clustered(rng, 60, 6, 3)[0]
    X[rng.random(X.shape) < 0.3] = np.nan
    of = covered(X)
    start = of.settled(of.from_labels(np.arange(60) % 3, 3), PLAIN)
    dense = prediction.add_factors(of.entries, of.observed, start, 2)
    monkeypatch.setattr(prediction, "SPARSE", 0)
    sparse = prediction.add_factors(of.entries, of.observed, start, 2)
    assert_allclose(dense.loadings, sparse.loadings, rtol=1e-9, atol=1e-12)
