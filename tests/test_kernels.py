"""Every pass over a table agrees with the plain NumPy oracle."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpod._blocks import aligned_zeros
from kpod._kernels import chunks
from kpod._seeding import Spread
from kpod._solvers import Descent, Settings, nearest

from . import oracle
from .conftest import clustered, table_of

RTOL = {np.float32: 2e-5, np.float64: 1e-12}


@pytest.fixture(params=[1, 3, 8, 17], ids=lambda p: f"{p} columns")
def n_columns(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def case(request, rng, dtype, n_columns):
    """A table far from zero with an ignored column, weights, labels and centers."""
    X, _ = clustered(rng, 700, n_columns, missing=0.4, dtype=np.float64)
    X = (X + 50).astype(dtype)
    if n_columns > 1:
        X[:, 1] = np.nan
    weights = rng.random(len(X)) * rng.integers(0, 2, len(X)) if request.param else None
    table = table_of(X, 4, weights)
    labels = rng.integers(4, size=len(X)).astype(np.int32)
    labels[table.observed == 0] = -1
    return X.astype(np.float64), weights, table, labels


def test_totals(case, dtype):
    X, weights, table, labels = case
    sums, counts = oracle.totals(X, labels, 4, weights)
    got = table.totals(labels, 4)
    assert_allclose(got.counts, counts, rtol=1e-12)
    shift = np.nan_to_num(table.shift.astype(np.float64))
    assert_allclose(got.sums + shift * counts, sums, rtol=RTOL[dtype], atol=1e-9)


def test_column_statistics(case, dtype):
    X, weights, table, _ = case
    live = ~np.isnan(X).all(axis=0)
    w = np.ones(len(X)) if weights is None else weights
    mean = (np.nan_to_num(X) * w[:, None]).sum(axis=0)[live] / (~np.isnan(X) * w[:, None]).sum(axis=0)[live]
    assert_allclose(table.column_means[live], mean, rtol=1e-6)
    assert np.isnan(table.column_means[~live]).all()
    squared = np.nan_to_num((X[:, live] - mean) ** 2)
    variances = (squared * w[:, None]).sum(axis=0) / (~np.isnan(X[:, live]) * w[:, None]).sum(axis=0)
    assert_allclose(table.variance, variances.mean(), rtol=1e-4)
    assert_array_equal(table.observed, (~np.isnan(X)).sum(axis=1))


def test_losses_and_distances(case, dtype, rng):
    X, weights, table, labels = case
    centers = 50 + rng.normal(size=(4, X.shape[1]))
    shifted = np.nan_to_num(centers - table.shift.astype(np.float64))
    members = labels >= 0
    assert_allclose(
        table.distances(shifted)[members],
        oracle.distances(X, centers)[members],
        rtol=1e-4 if dtype is np.float32 else 1e-10,
        atol=1e-4 if dtype is np.float32 else 1e-10,
    )
    expected = oracle.loss(X, labels, centers, weights)
    assert_allclose(table.loss(labels, shifted), expected, rtol=1e-5)
    assert_allclose(table.losses(labels, shifted).sum(), expected, rtol=1e-5)


def test_nearest(case, dtype, rng):
    X, _, table, _ = case
    centers = 50 + rng.normal(size=(4, X.shape[1]))
    labels = nearest(table, np.nan_to_num(centers - table.shift.astype(np.float64)))
    distances = oracle.distances(X, centers)
    assert_array_equal(labels == -1, np.isnan(X).all(axis=1))
    got = distances[np.arange(len(X)), labels]
    # A tie within rounding may fall either way; the distance chosen may not be longer.
    assert_allclose(got[labels >= 0], distances.min(axis=1)[labels >= 0], rtol=1e-4, atol=1e-3)
    if dtype is np.float64:
        assert_array_equal(labels, oracle.assign(X, centers))


@pytest.mark.parametrize("k", range(1, chunks.MOST_FEW + 1))
def test_few_centers_are_compared_as_many_are(k, rng, dtype, n_columns, monkeypatch):
    """Rows that are not a multiple of eight, fewer columns than eight, some rows and columns empty."""
    X, _ = clustered(rng, 203, n_columns, missing=0.4, dtype=dtype)
    X[5] = np.nan
    if n_columns > 1:
        X[:, 1] = np.nan
    table = table_of(X, k)
    centers = rng.normal(size=(k, n_columns))
    fits = []
    for few in (k, 0):
        monkeypatch.setattr(table, "few", lambda k, few=few: few)
        fits.append(Descent(table, centers, Settings()))
        for _ in range(3):
            fits[-1].assign()
            fits[-1].update()
    few, many = fits
    assert_array_equal(few.labels, many.labels)
    assert_allclose(few.centers, many.centers, rtol=1e-6, atol=1e-6)
    assert_allclose(few.upper, many.upper, rtol=1e-4, atol=1e-4)
    assert_allclose(few.lower, many.lower, rtol=1e-4, atol=1e-4)


def test_many_gaps_or_clusters_are_too_many_for_rows_side_by_side(rng):
    dense, holed = (table_of(clustered(rng, 500, 20, missing=m)[0], 5) for m in (0.0, 0.9))
    assert dense.few(5) == holed.few(5) == 5
    assert dense.few(chunks.MOST_FEW) == chunks.MOST_FEW
    assert dense.few(chunks.MOST_FEW + 1) == holed.few(chunks.MOST_FEW) == 0


@pytest.mark.parametrize("scale", [1e-22, 1.0, 1e30])
@pytest.mark.parametrize("apart", [1e-9, 1e-7, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("k", [8, 20])
def test_near_ties_of_doubles_are_decided_in_double_precision(k, apart, scale, rng):
    """Single precision has the first look, and must know what it cannot tell."""
    X, _ = clustered(rng, 2000, 9, missing=0.6, spread=1.0)
    centers = rng.normal(size=9) + apart * rng.normal(size=(k, 9))
    X[:, 0] += 1e4 * rng.choice([-1, 1], size=len(X))
    centers[:, 0] += 1e4 * rng.choice([-1, 1], size=k)
    table = table_of(X * scale, k)
    centers = centers * scale - table.shift
    distances = oracle.distances(X * scale - table.shift, centers)
    best, second = np.sort(distances, axis=1)[:, :2].T
    clear = second > best * (1 + 1e-13)
    assert clear.mean() > 0.2
    assert_array_equal(nearest(table, centers)[clear], distances.argmin(axis=1)[clear])


@pytest.mark.parametrize("k", [5, 30])
def test_bounds_hold(k, rng, dtype):
    """After a few steps, upper and lower bounds still enclose the true distances."""
    X, _ = clustered(rng, 2000, 6, missing=0.5, spread=1.0, dtype=dtype)
    table = table_of(X, k)
    descent = Descent(table, rng.normal(size=(k, 6)), Settings())
    for _ in range(4):
        descent.assign()
        descent.update()
    descent.upper += descent.drift[descent.labels]
    descent.lower -= descent.others[descent.labels]
    shifted = X.astype(np.float64) - table.shift.astype(np.float64)
    distances = np.sqrt(oracle.distances(shifted, descent.centers))
    rows = np.arange(len(X))
    assert (distances[rows, descent.labels] <= descent.upper * (1 + 1e-6)).all()
    distances[rows, descent.labels] = np.inf
    assert (distances.min(axis=1) >= descent.lower * (1 - 1e-6)).all()


def test_bounds_skip_rows(rng):
    """The bounds are there to be used: near convergence most rows are not looked at."""
    X, truth = clustered(rng, 5000, 12, missing=0.2, spread=0.3)
    table = table_of(X, 5)
    descent = Descent(table, oracle.centers(X, truth, 5) - table.shift, Settings())
    for _ in range(3):
        descent.assign()
        descent.update()
    assert (descent.upper < descent.lower).mean() > 0.9


def shared_distance(X, i, j, variance):
    """Between two rows, rescaled from the columns they share, as the docstring of Spread says."""
    p = X.shape[1]
    shared = ~np.isnan(X[i]) & ~np.isnan(X[j])
    m, t = shared.sum(), (1 - shared.sum() / p) / 2
    return p / (m + t) * (((X[i] - X[j])[shared] ** 2).sum() + 2 * t * variance)


def test_seeds(rng):
    """Each step draws by the distance to the seeds so far and keeps the best of its candidates."""
    X, _ = clustered(rng, 60, 5, missing=0.6)
    spread = Spread(table_of(X, 3), 3, rng)
    nearest, mass = np.full(60, np.inf, np.float32), np.empty(60)
    buffers = [aligned_zeros((5, 8), np.dtype(np.float32)) for _ in range(2)]
    distances, potentials = np.empty((60, 8), np.float32), np.empty(8)
    expected, seeds = np.full(60, np.inf), []
    for step in range(3):
        uniform = rng.random(4 if step else 1)
        chance = np.cumsum(expected if step else np.ones(60))
        candidates = np.searchsorted(chance, uniform * chance[-1], side="right")
        options = [
            np.minimum(expected, [shared_distance(X, i, c, spread.table.variance) for i in range(60)])
            for c in candidates
        ]
        best = int(np.argmin([option.sum() for option in options]))
        expected = options[best]
        expected[candidates[best]] = 0
        seed = chunks.draw_seed(
            spread.start, spread.columns, spread.values, spread.weights, spread.table.variance,
            uniform, nearest, mass, *buffers, distances, potentials,
        )  # fmt: skip
        assert seed == candidates[best]
        assert_allclose(nearest, expected, rtol=1e-4, atol=1e-4)
        seeds.append(seed)
    assert len(set(seeds)) == 3
