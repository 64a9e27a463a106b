"""Clusters are numbered from the largest to the smallest, unless their centers were given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpod import KPOD, MiniBatchKPOD, choose_k
from kpod._engine import blocks
from kpod._engine.solvers.nearest import by_size
from tests.conftest import FIRST_SEED
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import SOLVERS, as_csr, clustered, random_rows, table_of


@pytest.fixture
def rng():
    return np.random.default_rng(FIRST_SEED)


def is_by_size(labels):
    return (np.diff(np.bincount(labels[labels >= 0])) <= 0).all()


def uneven(rng, dtype=np.float64, n_rows=300):
    """Groups of very different sizes, the last the largest; with rows that have nothing observed."""
    X, truth = clustered(rng, n_rows, k=4, spread=0.3, dtype=dtype)
    X = X[np.argsort(truth, kind="stable")]
    X = np.vstack([X[truth[np.argsort(truth, kind="stable")] == c][: 10 * (c + 1) ** 2] for c in range(4)])
    X[[3, -2]] = np.nan
    return X


@pytest.mark.filterwarnings("ignore:.*nothing observed")
@INFORMATIVE_BY_HAND
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm": "lloyd", "tol": 0.1},
        {"algorithm": "lloyd", "max_iter": 2},
        {"algorithm": "mm"},
        {"probability": True},
        {"missingness": "informative", "probability": True},
        {"init": "random", "shrinkage": 0.1},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("weighted", [False, True])
def test_by_the_number_of_rows(settings, weighted, rng, dtype):
    X = uneven(rng, dtype)
    weights = rng.random(len(X)) ** 4 if weighted else None
    model = KPOD(4, n_init=2, random_state=0, **settings).fit(X, sample_weight=weights)
    assert is_by_size(model.labels_)
    if settings.get("algorithm") != "mm":
        assert_array_equal(model.predict(X), model.labels_)
    weight = np.ones(len(X)) if weights is None else weights
    for c in range(4):
        here = model.labels_ == c
        assert_allclose(model.counts_[c], weight[here] @ ~np.isnan(X[here]))
    if settings.get("missingness"):
        shares = np.bincount(model.labels_, weight, minlength=4) / weight.sum()
        assert_allclose(model.cluster_shares_, shares, atol=0.03)
        assert_array_equal(model.predict_proba(X).argmax(axis=1), model.labels_)
    elif settings.get("probability"):
        assert_allclose(model.mixture_centers_, model.cluster_centers_, atol=0.5)


def test_sparse_tables_blocks_and_threads(rng, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 9)
    X = uneven(rng)
    X = X[~np.isnan(X).all(axis=1)]
    dense, three = (KPOD(4, random_state=0, n_threads=n).fit(X) for n in (1, 3))
    csr = KPOD(4, random_state=0).fit(as_csr(X))
    assert is_by_size(dense.labels_)
    assert_array_equal(csr.labels_, dense.labels_)
    assert_array_equal(three.labels_, dense.labels_)
    assert_array_equal(three.cluster_centers_, dense.cluster_centers_)


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan", "mm"])
def test_nothing_but_the_numbers_changes(algorithm, rng, dtype):
    X, _ = clustered(rng, 200, spread=0.8, dtype=dtype)
    table = table_of(X)
    for centers in random_rows(X, 5, rng):
        before = SOLVERS[algorithm](table, centers, tol=1e-4)
        after = SOLVERS[algorithm](table, centers, tol=1e-4, by_size=True)
        order = by_size(np.bincount(before.labels, minlength=5), before.centers)
        assert_array_equal(order[after.labels], before.labels)
        assert_array_equal(after.centers, before.centers[order])
        assert_array_equal(after.counts, before.counts[order])
        assert after.trace == before.trace


def test_rows_at_the_same_distance_go_to_the_larger_cluster(rng):
    """Over few columns, whole numbers are as near to one center as to another: `predict` takes the first."""
    n_tied = 0
    for seed in range(40):
        X = rng.integers(3, size=(30, 3)).astype(float)
        X[rng.random(X.shape) < 0.4] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 1.0
        model = KPOD(5, n_init=1, random_state=seed).fit(X)
        assert is_by_size(model.labels_)
        assert_array_equal(model.predict(X), model.labels_)
        distances = model.transform(X)
        tied = distances <= distances.min(axis=1, keepdims=True) * (1 + 1e-12)
        assert_array_equal(tied.argmax(axis=1), model.labels_)
        n_tied += (tied.sum(axis=1) > 1).any()
    assert n_tied


def test_of_equal_clusters_the_lower_center_comes_first():
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    for seed in range(5):
        model = KPOD(4, random_state=seed).fit(np.repeat(corners, 7, axis=0))
        assert_array_equal(model.cluster_centers_, [[0, 0], [0, 1], [1, 0], [1, 1]])


def test_centers_that_are_given_keep_their_order(rng):
    X = uneven(rng)
    X = X[~np.isnan(X).all(axis=1)]
    found = KPOD(4, random_state=0).fit(X)
    for order in ([3, 2, 1, 0], [1, 3, 0, 2]):
        model = KPOD(4, init=found.cluster_centers_[order]).fit(X)
        assert_allclose(model.cluster_centers_, found.cluster_centers_[order], atol=1e-6)


def test_a_function_that_makes_centers_is_a_start_like_others(rng):
    X = uneven(rng)
    X = X[~np.isnan(X).all(axis=1)]
    found = KPOD(4, random_state=0).fit(X)
    model = KPOD(4, init=lambda *_, **__: found.cluster_centers_[::-1], n_init=1).fit(X)
    assert_array_equal(model.labels_, found.labels_)


@pytest.mark.filterwarnings("ignore:No clear choice")
@pytest.mark.parametrize("n_columns", [5, 80])  # beyond 20,000 entries, the search has fewer starts
def test_a_search_over_all_rows_hands_out_the_fit_of_its_number(n_columns, rng):
    X, _ = clustered(rng, 300, n_columns, k=3, missing=0.1)
    choice = choose_k(X, range(2, 4), random_state=3)
    alone = KPOD(choice.best_k_, random_state=3).fit(X)
    for name in ("labels_", "cluster_centers_", "counts_", "losses_", "loss_curve_", "inertia_"):
        assert_array_equal(getattr(choice.model_, name), getattr(alone, name))


def test_mini_batches(rng):
    X = uneven(rng, n_rows=3000)
    X = X[~np.isnan(X).all(axis=1)]
    model = MiniBatchKPOD(4, batch_size=50, random_state=0).fit(X)
    assert is_by_size(model.labels_)
    assert_array_equal(model.predict(X), model.labels_)
    centers = model.cluster_centers_.copy()
    model.partial_fit(X[model.labels_ == 3])  # a cluster that grows keeps its number
    assert_allclose(model.cluster_centers_[:3], centers[:3])
