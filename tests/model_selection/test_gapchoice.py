"""missingness="auto": gaps are used where they speak of the clusters, and nowhere else."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import kpod
from kpod import KPOD
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._estimators.choices import Choices
from kpod._model_selection import number_search
from kpod._model_selection.informative_missingness import (
    MissingnessDecision,
    decide_missingness,
    prediction_errors,
    share_lost,
    verdict,
    within_cluster_dependence,
)
from kpod._model_selection.number_search import Search
from kpod.missingness import by_class, by_driver, by_row, detection_limit, mcar, modules


def four(seed, n=400, p=12, spread=0.9):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n)
    return spread * rng.normal(size=(4, p))[truth] + rng.normal(size=(n, p)), truth


SPEAKING = {
    "by class": lambda X, y: by_class(X, 0.3, 1, labels=y),
    "detection limit": lambda X, y: detection_limit(X, 0.3, 1),
}
SILENT = {
    "chance": lambda X, y: mcar(X, 0.3, 1),
    "a driver": lambda X, y: by_driver(X, 0.4, 1),
    "modules": lambda X, y: modules(X, 0.3, 1, size=4),
    "modules by class": lambda X, y: modules(X, 0.3, 1, size=4, labels=y),
    "rows": lambda X, y: by_row(X, 0.3, 1),
}


def fit(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows with nothing observed
        return KPOD(4, random_state=0, **options).fit(X)


@pytest.mark.parametrize("cause", SPEAKING)
def test_gaps_that_speak_are_used(cause):
    X = SPEAKING[cause](*four(3))
    auto, used = fit(X, missingness="auto"), fit(X, missingness="informative")
    assert auto.missingness_ == "informative"
    assert str(auto.missingness_decision_).startswith(
        "gaps used: the clusters differ in which values are missing (p = 0.01), and"
    )
    assert_array_equal(auto.labels_, used.labels_)
    assert_array_equal(auto.missing_rates_, used.missing_rates_)
    assert auto.missingness_decision_.use
    assert auto.missingness_decision_.n_better > 6


@pytest.mark.parametrize("cause", SILENT)
def test_gaps_that_speak_of_something_else_are_ignored(cause):
    X = SILENT[cause](*four(3))
    auto, plain = fit(X, missingness="auto"), fit(X)
    assert auto.missingness_ == "ignore"
    assert str(auto.missingness_decision_).startswith("gaps ignored: the clusters d")
    assert_array_equal(auto.labels_, plain.labels_)
    assert not hasattr(auto, "missing_rates_")
    assert not auto.missingness_decision_.use


def test_sparse_tables_are_decided_alike():
    for cause in (SPEAKING["by class"], SILENT["a driver"]):
        X = cause(*four(3))
        rows, columns = np.nonzero(~np.isnan(X))
        csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
        dense, same = fit(X, missingness="auto"), fit(csr, missingness="auto")
        assert same.missingness_decision_ == dense.missingness_decision_
        assert_array_equal(same.labels_, dense.labels_)


def test_weights_decide_whose_gaps_count():
    """Rows of weight 0 say nothing, neither in the table nor of its gaps."""
    X, y = four(3)
    holed = by_class(X, 0.3, 1, labels=y)
    padded = np.vstack([holed, mcar(X, 0.3, 1)])
    weights = np.repeat([1.0, 0.0], len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KPOD(4, random_state=0, missingness="auto").fit(padded, sample_weight=weights)
    assert found.missingness_decision_.p == 0.01
    assert found.missingness_decision_.use


@pytest.mark.parametrize(
    ("X", "k", "reason"),
    [
        (four(0)[0], 4, "gaps ignored: nothing is missing"),
        (mcar(four(0)[0], 0.2, 0), 1, "gaps ignored: there is one cluster only"),
        (mcar(four(0)[0][:, :2], 0.2, 0), 2, "gaps ignored: of 2 columns, none can be spared"),
        (mcar(four(0)[0][:10], 0.2, 0), 2, "gaps ignored: 10 rows are too few"),
    ],
)
def test_where_there_is_nothing_to_decide(X, k, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decision = KPOD(k, missingness="auto", random_state=0).fit(X).missingness_decision_
        assert str(decision).startswith(reason)


def test_gaps_in_one_cluster_alone():
    X, y = four(2, spread=2)
    X[np.ix_(y == 1, [0, 1, 2, 3])] = np.nan
    assert fit(X, missingness="auto").missingness_decision_.p == 0.01


def test_rows_with_nothing_observed_are_warned_of_where_gaps_are_ignored():
    X = mcar(four(3)[0], 0.2, 0)
    X[:3] = np.nan
    with pytest.warns(UserWarning, match="3 of 400 rows have nothing observed"):
        found = KPOD(4, random_state=0, missingness="auto").fit(X)
    assert_array_equal(found.labels_[:3], -1)


def test_bad_requests():
    X, _ = four(0)
    with pytest.raises(ValueError, match="missingness='auto' also fits parts of the table"):
        KPOD(4, init=X[:4], missingness="auto").fit(X)
    with pytest.raises(ValueError, match="missingness='auto' is not supported with algorithm='mm'"):
        KPOD(4, algorithm="mm", missingness="auto").fit(X)
    with pytest.raises(ValueError, match=r"missingness must be one of \['ignore', 'informative', 'auto'\]"):
        KPOD(4, missingness="sometimes").fit(X)


def test_a_refit_forgets_what_was_decided():
    X = SPEAKING["by class"](*four(3))
    model = fit(X, missingness="auto")
    model.set_params(missingness="ignore").fit(X)
    assert model.missingness_ == "ignore"
    assert not hasattr(model, "missingness_decision_")


def test_the_number_of_clusters_and_the_gaps_together():
    X, y = four(5, spread=1.5)
    X = by_class(X, 0.4, 1, labels=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KPOD("auto", missingness="auto", random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert model.missingness_decision_.use == hasattr(model, "missing_rates_")


def test_models_are_saved_without_the_reasons(tmp_path):
    X = SPEAKING["by class"](*four(3))
    model = fit(X, missingness="auto")
    kpod.save(model, tmp_path / "model.kpod")
    assert_array_equal(kpod.load(tmp_path / "model.kpod").predict(X), model.labels_)


def test_verbose_says_it(capsys):
    fit(SILENT["a driver"](*four(3)), missingness="auto", verbose=1)
    assert "gaps ignored: the clusters differ in which values are missing" in capsys.readouterr().out


def test_prediction_errors_leave_the_entry_out(rng):
    X = mcar(rng.normal(size=(40, 3)), 0.3, rng)
    labels = rng.integers(-1, 4, size=40).astype(np.int32)
    weights = rng.uniform(0.5, 2, size=40)
    expected = np.zeros(3)
    for j in range(3):
        seen = ~np.isnan(X[:, j])
        mean = np.average(X[seen, j], weights=weights[seen])
        for i in np.flatnonzero(seen):
            others = seen & (labels == labels[i]) & (np.arange(40) != i)
            guess = mean
            if labels[i] >= 0 and others.any():
                guess = np.average(X[others, j], weights=weights[others])
            expected[j] += weights[i] * (X[i, j] - guess) ** 2
    assert_allclose(prediction_errors(X, weights, 4, labels), expected)


def test_gaps_that_hang_together(rng):
    labels = rng.integers(3, size=500).astype(np.int32)
    alone = np.isnan(by_class(np.zeros((500, 12)), 0.3, rng, labels=labels))
    assert 0.8 < within_cluster_dependence(alone, labels, rng) < 1.3
    assert (
        within_cluster_dependence(np.isnan(modules(np.zeros((500, 12)), 0.3, rng, size=6)), labels, rng) > 3
    )
    assert (
        within_cluster_dependence(np.isnan(by_row(np.zeros((500, 12)), 0.3, rng, spread=3)), labels, rng) > 3
    )


def test_a_second_clustering_predicts_what_the_first_leaves(rng):
    X = rng.normal(size=(60, 2))
    first, second = (rng.integers(3, size=60).astype(np.int32) for _ in range(2))
    weights = np.ones(60)

    def left(values, labels):
        out = np.empty_like(values)
        for i in range(60):
            others = (labels == labels[i]) & (np.arange(60) != i)
            out[i] = values[i] - values[others].mean(axis=0)
        return out

    expected = (left(left(X - X.mean(axis=0), first), second) ** 2).sum(axis=0)
    assert_allclose(prediction_errors(X, weights, 3, first, second), expected)
    assert_allclose(prediction_errors(X, weights, 3), ((X - X.mean(axis=0)) ** 2).sum(axis=0))


def test_what_clusters_found_with_the_gaps_lose(rng):
    """All of it if they are about something else, nothing if they are the same or finer."""
    classes, other = (rng.integers(3, size=3000).astype(np.int32) for _ in range(2))
    X = 2 * rng.normal(size=(3, 6))[classes] + rng.normal(size=(3000, 6))

    def lost(found):
        by = ((), (classes,), (found,), (found, classes))
        return share_lost(np.stack([prediction_errors(X, np.ones(3000), 3, *labels) for labels in by]))

    assert lost(other) > 0.95
    assert abs(lost(classes)) < 0.01
    half = np.where(rng.random(3000) < 0.5, classes, other)
    assert 0.3 < lost(half.astype(np.int32)) < 0.9


def test_the_verdict():
    better = np.array([-0.1, -0.05, -0.08, -0.02, 0.01])
    assert verdict(better, 0.05, 0.01, 1.2).use
    assert verdict(better, 0.05, 0.01, 5.0).use  # 4 of 5, clearly
    assert (
        "predict 4 of 5 left-out columns better (the median error falls by 4.9%)"
        in verdict(better, 0, 0.01, 1).reason
    )
    worse = verdict(better + 0.09, 0.05, 0.01, 1.2)
    assert not worse.use
    assert worse.reason.endswith(
        "predict only 1 of 5 left-out columns better (the median error rises by 4.1%)"
    )
    some = np.array([-0.1, -0.05, 0.02, -0.02, 0.01])
    assert verdict(some, 0.05, 0.01, 1.2).use
    refused = verdict(some, 0.05, 0.01, 5.0)
    assert not refused.use
    assert "are correlated within them, 5.0 times" in refused.reason
    assert not verdict(np.array([-5.0, 0.01, 0.02, 0.03, 0.01]), 0.05, 0.01, 1.0).use  # one column alone
    elsewhere = verdict(better, 0.4, 0.01, 1.2)
    assert not elsewhere.use
    assert "but they miss 40% of what clusters of the values alone explain" in elsewhere.reason
    assert str(MissingnessDecision(use=True, reason="why not")) == "gaps used: why not"


def test_more_clusters_are_tried_only_for_gaps_that_have_to_do_with_clusters(monkeypatch):
    """Gaps by questionnaire make a cluster of each pattern, and more and more of them.

    None are tried with gaps that have nothing to do with the values; and no more than the first few where
    that shows only with as many clusters as the gaps ask for.
    """
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=300)
    X = 2 * rng.normal(size=(3, 12))[truth] + rng.normal(size=(300, 12))
    X[:, 3:][np.repeat(rng.random((300, 3)) < 0.5, 3, axis=1)] = np.nan
    tried = []
    once = Search.try_centers

    def try_centers(search, ks):
        ks = list(ks)
        tried.append((search.gaps, max(ks)))
        once(search, ks)

    monkeypatch.setattr(Search, "try_centers", try_centers)
    monkeypatch.setattr(number_search, "FIRST_RANGE", 5)
    model = KPOD("auto", missingness="auto", random_state=0, n_init=2).fit(X)
    assert model.n_clusters_ == 3
    assert not model.missingness_decision_.use
    assert model.missingness_decision_.p > 0.01
    assert tried == [(False, 5)]
    tried.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Choices, "unrelated_gaps", lambda *_: None)
        again = KPOD("auto", missingness="auto", random_state=0, n_init=2).fit(X)
    assert tried == [(False, 5), (True, 5)]
    assert_array_equal(again.labels_, model.labels_)
    assert not again.missingness_decision_.use
    tried.clear()
    with pytest.warns(UserWarning, match="do not differ in which entries are missing"):
        KPOD("auto", missingness="informative", random_state=0, n_init=2).fit(X)
    assert len(tried) > 1, "gaps alone ask for more clusters"


def test_gaps_have_to_beat_the_clusters_that_would_be_taken_without_them(rng):
    """With as many clusters as gaps ask for, plain ones may be so poor that any others are better."""
    truth = rng.integers(4, size=400)
    X = rng.normal(size=(4, 10))[truth] + 0.5 * rng.normal(size=(400, 10))
    group = rng.integers(2, size=400)
    X[:, 1:][rng.random((400, 9)) < np.where(group, 0.5, 0.1)[:, None]] = np.nan
    noisy = np.where(rng.random(400) < 0.3, rng.integers(4, size=400), truth) + 4 * group
    poor = np.where(rng.random(400) < 0.3, rng.integers(8, size=400), group)

    def fit(table, _executor, k, gaps):
        assert table.n_columns in (8, 10)
        return noisy if gaps else truth if k == 4 else poor

    table = make_table(X, Executor())
    decisions = [
        decide_missingness(X, table, Executor(), fit, 8, np.random.default_rng(0), n_plain)
        for n_plain in (None, 4)
    ]
    assert [decision.use for decision in decisions] == [True, False]
    assert decisions[1].n_better == 0
