"""Gaps that say something of the cluster a row is in."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

import kpod
from kpod import KPOD
from kpod._engine import step
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.fit import SOLVERS
from kpod._engine.objective import GapModel, GapObjective, panel_of
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.solvers.nearest import nearest_labels
from kpod._engine.table import make_table
from kpod._kernels.moves import Gaps
from kpod._kernels.panel import Panel
from tests.helpers.tables import as_csr


def speaking(rng, n=200, p=6, k=3, dtype=float, apart=1.0):
    """Rows whose gaps, more than their values, say which cluster they are in."""
    truth = rng.integers(k, size=n)
    X = (rng.normal(size=(n, p)) + apart * rng.normal(size=(k, p))[truth]).astype(dtype)
    rates = np.where(np.arange(p) % k == np.arange(k)[:, None], 0.8, 0.1)
    rates[:, 0] = 0
    X[rng.random((n, p)) < rates[truth]] = np.nan
    return X, truth


def brute_objective(X, labels, k, weights=None, variance=None):
    """F of some labels, straight from its definition."""
    w = np.ones(len(X)) if weights is None else weights
    seen = ~np.isnan(X)
    q = w @ seen / w.sum()
    speaks = (q > 0) & (q < 1)
    loss, likelihood = 0.0, 0.0
    for cluster in range(k):
        mine = labels == cluster
        weight = w[mine].sum()
        for j in range(X.shape[1]):
            here = mine & seen[:, j]
            observed = w[here].sum()
            if observed:
                center = w[here] @ X[here, j] / observed
                loss += w[here] @ (X[here, j] - center) ** 2
            if speaks[j]:
                a, b = observed + q[j], weight - observed + 1 - q[j]
                likelihood += xlogy(a, a) + xlogy(b, b) - xlogy(weight + 1, weight + 1)
        likelihood += xlogy(weight + 1, weight + 1)
    n_observed = (w @ seen).sum()
    degrees = n_observed - min(k * (q > 0).sum(), n_observed / 2)
    if variance is None:
        variance = loss / degrees
    return loss / variance + degrees * np.log(variance) - 2 * likelihood


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0**40])
def test_the_objective_is_what_it_says(algorithm, weighted, scale, rng):
    X, _ = speaking(rng)
    weights = rng.integers(1, 4, size=len(X)).astype(float) if weighted else None
    model = KPOD(3, missingness="informative", algorithm=algorithm, tol=0, random_state=0)
    model.fit(X * scale, sample_weight=weights)
    assert_allclose(model.objective_, brute_objective(X * scale, model.labels_, 3, weights), rtol=1e-10)
    assert (np.diff(model.objective_curve_) <= 1e-9 * abs(model.objective_)).all()
    assert model.objective_curve_[-1] == model.objective_
    assert model.objective_ == model.losses_.min()
    assert_allclose(model.inertia_, model.loss_curve_[-1])


def test_the_parameters_are_those_of_the_labels(rng):
    X, _ = speaking(rng)
    model = KPOD(3, missingness="informative", tol=0, random_state=0).fit(X)
    q = (~np.isnan(X)).mean(axis=0)
    for cluster in range(3):
        mine = X[model.labels_ == cluster]
        expected = (np.isnan(mine).sum(axis=0) + 1 - q) / (len(mine) + 1)
        assert_allclose(model.missing_rates_[cluster], np.where(q < 1, expected, 0))
        assert_allclose(model.cluster_centers_[cluster], np.nanmean(mine, axis=0))
        assert_allclose(model.cluster_shares_[cluster], (len(mine) + 1) / (len(X) + 3))
    assert_allclose(model.noise_variance_, model.inertia_ / ((~np.isnan(X)).sum() - 3 * 6))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_single_row_can_be_moved_for_less(weighted, rng):
    X, _ = speaking(rng, n=80)
    weights = rng.uniform(0.5, 2, size=80) if weighted else None
    model = KPOD(3, missingness="informative", tol=0, random_state=0, n_init=2).fit(X, sample_weight=weights)
    variance = model.noise_variance_
    now = brute_objective(X, model.labels_, 3, weights, variance)
    for row in range(80):
        for cluster in range(3):
            other = model.labels_.copy()
            other[row] = cluster
            assert brute_objective(X, other, 3, weights, variance) >= now - 1e-7


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_gaps_gain_and_cost_what_the_objective_changes_by(weight, rng):
    X, _ = speaking(rng, n=50)
    weights = np.full(50, 1.0)
    weights[7] = weight
    labels = rng.integers(3, size=50).astype(np.int32)
    table = make_table(X, Executor(), weights=weights)
    objective = GapObjective(table, 3)
    states = [step.State.unknown(50, labels)]
    _, found = Executor().accumulate(
        step.AddUp(), table.blocks, states, lambda: step.Partial(objective.empty_sums())
    )
    gaps = Gaps(found.sums, objective.observed, 1.0, weight)
    seen = ~np.isnan(X[7])
    moved = labels.copy()
    moved[7] = (labels[7] + 1) % 3
    gain = gaps.leave_offsets[labels[7]] + gaps.leave[labels[7], seen].sum()
    cost = gaps.join_offsets[moved[7]] + gaps.join[moved[7], seen].sum()
    flat = np.where(np.isnan(X), np.nan, 0.0)  # no values, only gaps
    change = brute_objective(flat, moved, 3, weights, 1.0) - brute_objective(flat, labels, 3, weights, 1.0)
    assert_allclose(weight * (cost - gain), change, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("container", [np.asarray, as_csr])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [3, 20])
def test_labels_are_what_predict_says(algorithm, container, dtype, k, rng):
    X, _ = speaking(rng, n=400, p=12, k=4, dtype=dtype)
    X[5] = np.nan  # placed by its gaps
    table = container(X)
    model = KPOD(k, missingness="informative", algorithm=algorithm, random_state=0, n_init=2).fit(table)
    assert_array_equal(model.labels_, model.predict(table))
    assert_array_equal(model.labels_, model.transform(X).argmin(axis=1))
    assert model.labels_[5] >= 0
    assert model.converged_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [4, 30])
def test_bounds_sparse_rows_and_threads_change_nothing(dtype, k, rng):
    X, _ = speaking(rng, n=3000, p=10, k=6, dtype=dtype)
    start = Start(rng.normal(size=(k, 10)))
    results = []
    for values, bounded in ((X, True), (X, False), (as_csr(X), True)):
        if sparse.issparse(values):
            values.indptr = values.indptr.astype(np.int64)
            values.indices = values.indices.astype(np.int32)
        table = make_table(values, Executor())
        settings = Settings(tol=0, gaps=True, bounded=bounded)
        results.append(SOLVERS["lloyd"](table, Executor(), start, settings))
    for other in results[1:]:
        assert_array_equal(other.labels, results[0].labels)
        assert_array_equal(other.centers, results[0].centers)
    models = [KPOD(k, missingness="informative", random_state=3, n_threads=n).fit(X) for n in (1, 3)]
    assert_array_equal(models[0].labels_, models[1].labels_)
    assert_array_equal(models[0].missing_rates_, models[1].missing_rates_)


def test_weights_are_repetition(rng):
    X, _ = speaking(rng, n=90)
    times = rng.integers(1, 4, size=90)
    init = X[:3]
    settings = {"missingness": "informative", "init": np.nan_to_num(init), "tol": 0, "algorithm": "lloyd"}
    weighted = KPOD(3, **settings).fit(X, sample_weight=times)
    repeated = KPOD(3, **settings).fit(np.repeat(X, times, axis=0))
    assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert_allclose(weighted.objective_, repeated.objective_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 3, 4, 7, 8, 13, 50])
@pytest.mark.parametrize("k", [17, 24, 105, 115, 217])
@pytest.mark.parametrize("size", [3.0, 3000.0])
def test_gaps_looked_up_in_tables_are_those_added_one_by_one(p, k, size, dtype):
    """Groups of four columns, the last one not whole; strips of centers of uneven widths; terms so large that
    their digits in the table cannot tell centers apart.
    """
    rng = np.random.default_rng(p)
    X = rng.normal(size=(300, p)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[0], X[1] = np.nan, 1
    centers, terms = rng.normal(size=(k, p)), 6 * size * rng.random((k, p))
    terms[1::2] = terms[: k - 1 : 2]  # pairs that only values tell apart
    offsets = 5 * rng.random(k)
    offsets[1::2] = offsets[: k - 1 : 2]
    table = make_table(X, Executor(), units=Units(np.zeros(p), 1.0))
    states, _ = Executor().accumulate(
        step.Assign(Panel(centers, offsets, terms), step.Drift.none(k)),
        table.blocks,
        [None] * len(table.blocks),
        lambda: step.Partial(None),
    )
    (state,) = states
    each = (X.astype(np.float64)[:, None] - centers) ** 2 + terms
    compared = offsets + np.nansum(each, axis=2)
    assert_array_equal(state.labels, compared.argmin(axis=1))
    assert len(set(state.labels)) > min(p, 3)
    nearest, second = np.sqrt(np.partition(compared, 1, axis=1)[:, :2].T)
    assert (nearest <= state.upper * (1 + 1e-6)).all()
    assert (second >= state.lower * (1 - 1e-6)).all()


@pytest.mark.parametrize("size", [0.0, 1e-40, 1e36])
def test_terms_that_no_table_can_hold(size, rng):
    """Equal, below what single precision holds, and beyond it."""
    X = rng.normal(size=(50, 6))
    X[rng.random(X.shape) < 0.4] = np.nan
    centers = rng.normal(size=(30, 6))
    terms = size * rng.random((30, 6))
    table = make_table(X, Executor(), units=Units(np.zeros(6), 1.0))
    labels = nearest_labels(table, Executor(), Panel(centers, None, terms))
    compared = np.nansum((X[:, None] - centers) ** 2 + terms, axis=2)
    assert_array_equal(labels, compared.argmin(axis=1))


@pytest.mark.parametrize("what", ["centers", "rates", "shares", "all"])
def test_no_row_is_compared_by_more_than_the_drift_otherwise(what, rng):
    """Bounds rest on it. Where shares alone change, nothing makes up for a drift that is too small."""
    X, _ = speaking(rng, n=300, p=6, k=5)
    table = make_table(X, Executor(), units=Units(np.zeros(6), 1.0))
    objective = GapObjective(table, 5, 0.0)
    panels, compared = [], []
    centers, rates, shares = (
        rng.normal(size=(5, 6)),
        rng.uniform(0.05, 0.95, (5, 6)),
        rng.dirichlet(np.ones(5)),
    )
    seen = ~np.isnan(X)
    for _ in range(2):
        variance = 1.3
        panels.append(panel_of(centers, GapModel(rates, shares, variance)))
        of_values = np.nansum((X[:, None] - centers) ** 2, axis=2)
        of_gaps = -2 * np.log(np.where(seen[:, None], 1 - rates, rates)).sum(axis=2) - 2 * np.log(shares)
        compared.append(np.sqrt(of_values + variance * of_gaps))
        if what in ("centers", "all"):
            centers = centers + 0.1 * rng.normal(size=centers.shape)
        if what in ("rates", "all"):
            rates = np.clip(rates + rng.uniform(-0.1, 0.1, rates.shape), 0.02, 0.98)
        if what in ("shares", "all"):
            shares = rng.dirichlet(np.ones(5))
    drift = objective.drift(*panels)
    change = np.abs(compared[1] - compared[0])
    assert (change <= drift.own).all()
    first = objective.drift(panel_of(panels[0].centers), panels[1])  # as a start does, from values alone
    plain = np.sqrt(np.nansum((X[:, None] - panels[0].centers) ** 2, axis=2))
    assert (np.abs(compared[1] - plain) <= first.own).all()
    for c in range(5):
        assert drift.other[c] >= np.delete(drift.own, c).max()


def test_gaps_that_speak_find_the_clusters(rng):
    X, truth = speaking(rng, n=600, p=12, apart=0.5)
    plain = KPOD(3, random_state=0).fit(X)
    informed = KPOD(3, random_state=0, missingness="informative", probability=True).fit(X)
    assert adjusted_rand_score(truth, informed.labels_) > adjusted_rand_score(truth, plain.labels_) + 0.1
    assert adjusted_rand_score(truth, informed.labels_) > 0.9
    chances = informed.predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1)
    assert_array_equal(chances.argmax(axis=1), informed.labels_)


def test_gaps_in_one_cluster_only(rng):
    """Rates of 0 and 1 are smoothed by one row.

    The values lie close together: a row far out would gain more by joining the others, where nobody else has
    its columns and the center is its own value there, than its gaps cost it.
    """
    X = rng.uniform(-1, 1, size=(80, 3))
    X[40:, 1:] = np.nan
    with pytest.warns(UserWarning, match="do not differ in which entries are missing"):
        model = KPOD(2, missingness="informative", random_state=0).fit(X)
    assert len(set(model.labels_[:40])) == 1
    assert len(set(model.labels_[40:])) == 1
    assert model.labels_[0] != model.labels_[40]
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_a_cluster_that_empties_takes_a_row(algorithm, rng):
    X, _ = speaking(rng, n=100, apart=3.0)
    init = np.vstack([np.nan_to_num(X[:2]), np.full((1, 6), 1e3)])
    model = KPOD(3, missingness="informative", algorithm=algorithm, init=init).fit(X)
    assert (np.bincount(model.labels_, minlength=3) > 0).all()
    assert np.abs(model.cluster_centers_).max() < 100


def test_one_cluster_has_all_of_the_weight(rng):
    """And by rounding no more than that, which has no root: warnings are errors here."""
    X, _ = speaking(rng, n=50)
    for _ in range(20):
        model = KPOD(1, missingness="informative", random_state=0).fit(X, sample_weight=rng.random(50))
        assert_array_equal(model.labels_, 0)


@pytest.mark.filterwarnings("ignore:Number of distinct")
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize(
    "X", [[[1, np.nan, 3], [np.nan, 1, np.nan]], [[1, np.nan], [1, 1], [1, 1]]], ids=["once", "constant"]
)
def test_columns_that_do_not_vary(X, algorithm):
    """No entry says how much they differ; what is left are the gaps, and not a word of warning."""
    model = KPOD(2, missingness="informative", algorithm=algorithm, random_state=0).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == 0
    assert np.isfinite(model.objective_curve_).all()


def test_a_complete_table_has_nothing_to_use(rng):
    X = rng.normal(size=(50, 3))
    informed = KPOD(2, missingness="informative", random_state=0).fit(X)
    plain = KPOD(2, random_state=0).fit(X)
    assert_array_equal(informed.labels_, plain.labels_)
    assert not hasattr(informed, "missing_rates_")


def test_refitting_forgets_the_gaps(rng):
    X, _ = speaking(rng)
    model = KPOD(3, missingness="informative", random_state=0).fit(X)
    model.set_params(missingness="ignore").fit(X)
    assert not hasattr(model, "missing_rates_")
    assert_array_equal(model.labels_, KPOD(3, random_state=0).fit(X).labels_)


def test_models_are_saved_with_what_gaps_say(tmp_path, rng):
    X, _ = speaking(rng)
    model = KPOD(3, missingness="informative", random_state=0).fit(X)
    kpod.save(model, tmp_path / "model.kpod")
    assert_array_equal(kpod.load(tmp_path / "model.kpod").predict(X), model.labels_)


@pytest.mark.parametrize("settings", [{"missingness": "guess"}, {"missingness": None}, {"missingness": True}])
def test_an_unknown_word_is_refused(settings):
    with pytest.raises(ValueError, match=r"missingness must be one of \['ignore', 'informative'"):
        KPOD(2, **settings).fit(np.zeros((5, 2)))


def test_mm_knows_no_gaps():
    with pytest.raises(ValueError, match="missingness='informative' is not supported with algorithm='mm'"):
        KPOD(2, missingness="informative", algorithm="mm").fit(np.zeros((5, 2)))
