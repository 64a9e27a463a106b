"""EM on observed entries, against formulas that invert full covariance matrices row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from kpod import KPOD
from kpod._mixture import confidence, em
from tests.helpers.tables import as_csr, clustered


def some_mixture(rng, k, p, q, own):
    return em.Mixture(
        rng.dirichlet(np.ones(k)),
        rng.normal(size=(k, p)),
        rng.normal(size=(k if own else 1, p, q)),
        rng.uniform(0.5, 2, size=p),
    )


def slow_log_density(X, m):
    """log(share * density) of the observed entries, with the covariance matrix written out."""
    out = np.empty((len(X), len(m.shares)))
    for i, row in enumerate(X):
        o = ~np.isnan(row)
        for c in range(len(m.shares)):
            loadings = m.loadings[c % len(m.loadings)][o]
            covariance = loadings @ loadings.T + np.diag(m.variances[o])
            density = multivariate_normal(m.centers[c, o], covariance).logpdf(row[o]) if o.any() else 0.0
            out[i, c] = np.log(m.shares[c]) + density
    return out


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("q", [0, 1, 3])
def test_densities_and_predictions_are_those_of_the_full_covariance(q, own, rng):
    X, _ = clustered(rng, n_rows=40, missing=0.4)
    m = some_mixture(rng, 3, X.shape[1], q, own)
    entries = em.Entries(X)
    expected = slow_log_density(X - entries.means, m)
    (part,) = entries.parts
    found = em.expect(part, m)
    assert_allclose(found.log_density + found.common[:, None], expected, rtol=1e-9)
    assert_allclose(found.evidence(), np.logaddexp.reduce(expected, axis=1), rtol=1e-9)
    posterior = np.exp(expected - np.logaddexp.reduce(expected, axis=1, keepdims=True))
    rows, columns = np.nonzero(np.isnan(X))
    predicted = em.predict_entries(entries, m, rows, columns)
    for i, j, value in zip(rows, columns, predicted, strict=True):
        o = ~np.isnan(X[i])
        given = 0.0
        for c in range(3):
            loadings = m.loadings[c % len(m.loadings)]
            covariance = loadings @ loadings.T + np.diag(m.variances)
            weights = np.linalg.solve(covariance[np.ix_(o, o)], covariance[o, j])
            mean = m.centers[c, j] + weights @ ((X[i] - entries.means - m.centers[c])[o])
            given += posterior[i, c] * mean
        assert value == pytest.approx(given + entries.means[j])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("q", [0, 1, 2])
def test_the_likelihood_never_falls(q, own, rng, monkeypatch):
    monkeypatch.setattr(em, "SHRINK_LOADINGS", 0.0)  # a prior trades likelihood for itself
    monkeypatch.setattr(em, "PRIOR", 1e-9)
    X, truth = clustered(rng, missing=0.3, spread=1.0)
    entries = em.Entries(X)
    m = em.from_labels(entries, truth, 5, isotropic=False)
    for _ in range(q):
        m = em.with_factor(entries, m)
    m = m.own() if own else m
    likelihoods = []
    for _ in range(25):
        m = em.step(entries, m, isotropic=False)
        likelihoods.append(m.log_likelihood)
    assert (np.diff(likelihoods) >= -1e-6 * np.abs(likelihoods[0])).all()
    assert likelihoods[-1] > likelihoods[0]


@pytest.mark.parametrize("q", [0, 2])
def test_sparse_and_chunked_tables_give_the_same_mixture(q, rng, monkeypatch):
    X, truth = clustered(rng, missing=0.5)
    weights = rng.uniform(0.5, 2, size=len(X))

    def fitted(X):
        entries = em.Entries(X, weights)
        m = em.from_labels(entries, truth, 5, isotropic=False)
        for _ in range(q):
            m = em.with_factor(entries, m)
        m = em.run(entries, m, isotropic=False, n_steps=5, tol=0)
        return m.shares, m.centers, m.variances, em.posterior(entries, m)

    whole = fitted(X)
    monkeypatch.setattr(em, "CHUNK", 37)
    for other in (fitted(X), fitted(as_csr(X))):
        for a, b in zip(whole, other, strict=True):
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
    entries = em.Entries(X)
    m = em.from_labels(entries, labels, 2, isotropic=False, gaps=True)
    plain = em.from_labels(entries, labels, 2, isotropic=False)
    observed = ~np.isnan(X)
    by_gaps = np.where(observed[:, None], m.rates, 1 - m.rates).prod(axis=2)
    expected = by_gaps * em.posterior(entries, plain)
    assert_allclose(em.posterior(entries, m), expected / expected.sum(axis=1, keepdims=True))
    fitted = em.run(entries, m, isotropic=False, n_steps=20, tol=1e-3)
    assert (em.posterior(entries, fitted).argmax(axis=1) == labels).mean() > 0.9
    again = em.run(entries, plain, isotropic=False, n_steps=20, tol=1e-3)
    assert again.rates is None
    assert (em.posterior(entries, again).argmax(axis=1) == labels).mean() < 0.8
    # From far off: at the end, what the priors cost may be more than what a step gains.
    moved = em.from_labels(entries, np.roll(labels, 30), 2, isotropic=False, gaps=True)
    steps = [moved]
    for _ in range(5):
        steps.append(em.step(entries, steps[-1], isotropic=False))
    assert (np.diff([each.log_likelihood for each in steps[1:]]) > 0).all()


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
    whole, covered = (em.Entries(container(X), hidden=some) for some in (None, hidden))
    mixtures = [em.from_labels(entries, labels, 3, isotropic=True, gaps=True) for entries in (whole, covered)]
    assert_allclose(mixtures[0].rates, mixtures[1].rates)
    covered_X = X.copy()
    covered_X[hidden] = np.nan
    alone = em.from_labels(em.Entries(covered_X), labels, 3, isotropic=True)
    assert_allclose(mixtures[1].centers, alone.centers)
    stepped = [em.step(entries, mixtures[1], isotropic=True) for entries in (whole, covered)]
    overall = (~np.isnan(X)).mean(axis=0)
    assert_allclose(covered.seen_counts / 60, overall)
    assert np.abs(stepped[0].rates - stepped[1].rates).max() < 0.1  # posteriors differ, masks do not


@pytest.mark.parametrize("container", [np.asarray, as_csr])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_surprise_of_gaps_is_the_likelihood_of_each_from_all_else(container, weighted, rng, monkeypatch):
    monkeypatch.setattr(em, "CHUNK", 23)
    monkeypatch.setattr(em, "COLUMNS_AT_ONCE", 3)
    X, labels, hidden = gaps_of_each_class(rng)
    weights = rng.uniform(0.5, 2, size=60) if weighted else np.ones(60)
    entries = em.Entries(container(X), weights, hidden=hidden)
    m = em.from_labels(entries, labels, 3, isotropic=True, gaps=True)
    seen = ~np.isnan(X)
    covered = X.copy()
    covered[hidden] = np.nan
    values = slow_log_density(covered - entries.means, m)
    likely = np.where(seen[:, None], m.rates, 1 - m.rates)  # rows, clusters, columns

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
            rates = (r[without].T @ seen[without, j] + q[j]) / (r[without].sum(axis=0) + 1)
            expected[i] -= 2 * np.log(others[i] @ (rates if seen[i, j] else 1 - rates))
    assert_allclose(em.surprise_of_gaps(entries, m), expected)


@pytest.mark.parametrize(("n", "own", "q"), [(5, 1, 1), (40, 3, 2), (3000, 1, 5), (700, 4, 6)])
def test_many_matrices_are_inverted_at_once(rng, n, own, q):
    """More numbers than are swept together, in some of the cases."""
    half = rng.normal(size=(n, own, q, q)) * 10.0 ** rng.uniform(-3, 3, size=(n, own, 1, 1))
    matrices = np.eye(q) + half @ half.swapaxes(2, 3)
    given = matrices.copy()
    inverses, log_determinants = em.inverted(matrices)
    assert_array_equal(matrices, given)
    unit = np.broadcast_to(np.eye(q), matrices.shape)
    assert_allclose(matrices @ inverses, unit, atol=1e-8)
    assert_allclose(log_determinants, np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=1e-9)
