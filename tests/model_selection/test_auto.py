"""KPOD(n_clusters="auto") and shrinkage="auto": chosen by the error on hidden entries, in pipelines too."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import kpod
from kpod import KPOD, choose_k
from kpod._common.blas import one_thread
from kpod._model_selection import number_search
from kpod.datasets import make_mixture
from kpod.missingness import mcar


@pytest.fixture
def three():
    X, truth = make_mixture(3, n_samples=120, n_features=8, random_state=1)
    return mcar(X, 0.25, random_state=1), truth


def test_it_is_the_model_of_that_many_clusters(three):
    X, _ = three
    model = KPOD("auto", random_state=0).fit(X)
    given = KPOD(3, random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert model.get_params()["n_clusters"] == "auto"
    assert_array_equal(model.labels_, given.labels_)
    assert_array_equal(model.cluster_centers_, given.cluster_centers_)
    assert_array_equal(model.transform(X), given.transform(X))
    assert_array_equal(model.predict(X), model.labels_)
    assert list(model.get_feature_names_out()) == ["kpod0", "kpod1", "kpod2"]
    assert given.n_clusters_ == 3
    assert not hasattr(given, "choice_")


def test_it_is_what_choose_k_chooses(three):
    X, _ = three
    model = KPOD("auto", random_state=3).fit(X)
    choice = choose_k(X, random_state=3)
    assert model.choice_.best_k_ == choice.best_k_
    assert model.choice_.sentence_ == choice.sentence_
    assert_array_equal(model.choice_.table_["error"], choice.table_["error"])
    assert model.choice_.model_ is None
    assert_array_equal(choice.model_.labels_, model.labels_)
    assert not hasattr(choice.model_, "choice_")


def test_any_number_of_threads_chooses_the_same(three):
    X, _ = three
    one, many = (KPOD("auto", random_state=0, n_threads=n).fit(X) for n in (1, 3))
    assert_array_equal(one.choice_.table_["error"], many.choice_.table_["error"])
    assert_allclose(one.choice_.table_["correlated_error"], many.choice_.table_["correlated_error"])
    assert_array_equal(one.cluster_centers_, many.cluster_centers_)


def test_the_range_goes_on_where_more_clusters_help(rng, monkeypatch):
    monkeypatch.setattr(number_search, "FIRST_RANGE", 3)
    X, _ = make_mixture(5, n_samples=200, n_features=15, random_state=rng)
    model = KPOD("auto", random_state=0).fit(mcar(X, 0.2, rng))
    assert model.n_clusters_ == 5
    assert model.choice_.table_["k"][-1] == 6


def test_a_choice_that_is_not_clear_is_warned_of(rng, monkeypatch):
    monkeypatch.setattr(number_search, "FIRST_RANGE", 3)
    monkeypatch.setattr(number_search, "LAST_RANGE", 3)
    X, _ = make_mixture(5, n_samples=200, n_features=15, random_state=rng)
    with pytest.warns(UserWarning, match="still falling at 3 clusters") as caught:
        model = KPOD("auto", random_state=0).fit(X)
    assert not model.choice_.clear_
    assert [str(one.message) for one in caught] == [model.choice_.sentence_]
    assert caught[0].filename == __file__
    kpod.choose_k(X, random_state=0)  # which returns it, and warns of nothing


def test_clone_refit_and_pickle(three):
    X, _ = three
    model = KPOD("auto", random_state=0).fit(X)
    again = clone(model)
    assert again.n_clusters == "auto"
    assert not hasattr(again, "n_clusters_")
    assert not hasattr(again, "choice_")
    assert pickle.loads(pickle.dumps(model)).choice_.best_k_ == 3
    model.set_params(n_clusters=2).fit(X)
    assert model.n_clusters_ == 2
    assert not hasattr(model, "choice_"), "that of another fit"


def test_a_refused_refit_leaves_the_model_as_it_was(three):
    X, _ = three
    model = KPOD("auto", random_state=0).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.full((40, 3), np.inf))
    assert model.n_clusters_ == 3
    assert_array_equal(model.predict(X), model.labels_)


def test_pipelines_cross_validation_and_grid_search(three, monkeypatch):
    """Every training set has a choice of its own; the best setting is fitted again on all rows."""
    monkeypatch.setattr(number_search, "FIRST_RANGE", 4)
    X, _ = three
    pipeline = make_pipeline(StandardScaler(), KPOD("auto", random_state=0)).fit(100 * X)
    assert pipeline[-1].n_clusters_ == 3
    found = cross_validate(pipeline, X, cv=3, return_estimator=True)
    assert [e[-1].n_clusters_ for e in found["estimator"]] == [3, 3, 3]
    assert np.isfinite(found["test_score"]).all()
    grid = {"kpod__algorithm": ["hartigan", "lloyd"]}
    best = GridSearchCV(make_pipeline(StandardScaler(), KPOD("auto", random_state=0)), grid, cv=2).fit(X)
    assert best.best_estimator_[-1].n_clusters_ == 3
    assert best.predict(X).max() == 2


def test_sparse_weights_and_probability(three):
    X, _ = three
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    noise = np.vstack([X, 50 + 100 * np.random.default_rng(0).normal(size=(30, 8))])
    weights = np.r_[np.ones(len(X)), np.zeros(30)]
    assert KPOD("auto", random_state=0).fit(csr).n_clusters_ == 3
    with_empty = sparse.vstack([csr, sparse.csr_array((2, 8))])
    with pytest.warns(UserWarning, match="2 of 122 rows have nothing observed"):
        model = KPOD("auto", random_state=0).fit(with_empty)
    assert model.n_clusters_ == 3
    assert kpod.stability(model, with_empty, n_resamples=2, random_state=0).n_rows_ == 120
    model = KPOD("auto", random_state=0, probability=True).fit(noise, sample_weight=weights)
    assert model.n_clusters_ == 3
    assert model.predict_proba(X).shape == (120, 3)


def test_models_in_files(three, tmp_path):
    X, _ = three
    model = make_pipeline(StandardScaler(), KPOD("auto", random_state=0, shrinkage="auto")).fit(X)
    kpod.save(model, tmp_path / "m.kpod")
    opened = kpod.load(tmp_path / "m.kpod")
    assert opened[-1].n_clusters == "auto"
    assert opened[-1].n_clusters_ == 3
    assert opened[-1].shrinkage_ == model[-1].shrinkage_
    assert_array_equal(opened.predict(X), model[-1].labels_)
    before, after = model[-1].choice_, opened[-1].choice_
    assert str(after) == str(before)
    assert (after.best_k_, after.clear_, after.n_rows_) == (3, before.clear_, 120)
    for name, values in before.table_.items():
        assert_array_equal(after.table_[name], values)


@pytest.mark.parametrize("X", [np.arange(40.0)[:, None], np.eye(3)], ids=["one column", "few"])
def test_one_cluster_with_a_warning_where_there_is_nothing_to_hide(X):
    with pytest.warns(
        UserWarning, match=r"(one column|too few observed).*Give the number of clusters yourself"
    ):
        model = KPOD("auto", shrinkage="auto").fit(X)
    assert (model.n_clusters_, model.shrinkage_) == (1, 0)
    assert not model.choice_.clear_
    assert "One cluster is used" in str(model.choice_)
    with pytest.warns(UserWarning, match=r"(from|two\))\. No shrinkage is used"):
        assert KPOD(2, shrinkage="auto").fit(X).n_clusters_ == 2


def test_blas_is_left_as_it_was_by_overlapping_users():
    def n_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert set(n_threads()) == {1}
        first.__exit__(None, None, None)
        assert set(n_threads()) == {1}, "the second still multiplies"
        second.__exit__(None, None, None)
        assert n_threads() == before


def test_verbose_says_why(three, capsys):
    X, _ = three
    KPOD("auto", random_state=0, verbose=1).fit(X)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("3 clusters: when observed values are hidden")
    assert said[1].startswith("The best loss was found in")  # by the search: nothing is fitted again


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": "many"}, "n_clusters must be 'auto' or an integer of at least 1, got 'many'"),
        ({"n_clusters": "auto", "init": np.zeros((3, 8))}, "n_clusters='auto' .* init must be one of"),
        ({"shrinkage": "auto", "init": lambda X, k, random_state: X[:k]}, "shrinkage='auto' .* init"),
        ({"shrinkage": "much"}, "shrinkage must be 'auto' or a finite number"),
        ({"shrinkage": "auto", "algorithm": "mm"}, "not supported with algorithm='mm'"),
    ],
)
def test_settings_that_do_not_go_together(three, settings, message):
    with pytest.raises(ValueError, match=message):
        KPOD(**settings).fit(three[0])


def test_shrinkage_is_chosen_where_centers_rest_on_little(rng):
    """Overlapping clusters with one entry in ten observed: drawn to the mean, centers predict better."""
    truth = rng.integers(6, size=400)
    X = mcar(rng.normal(size=(6, 100))[truth] + rng.normal(size=(400, 100)), 0.9, rng)
    X[np.isnan(X).all(axis=1), 0] = 0.0
    model = KPOD(6, shrinkage="auto", random_state=0).fit(X)
    assert model.shrinkage_ >= 1
    assert KPOD(6, random_state=0).fit(X).shrinkage_ == 0
    assert model.get_params()["shrinkage"] == "auto"
    assert_array_equal(model.labels_, KPOD(6, shrinkage=model.shrinkage_, random_state=0).fit(X).labels_)


def test_shrinkage_stays_small_where_centers_rest_on_much_and_goes_by_weight(three):
    X, _ = three
    model = KPOD(3, shrinkage="auto", random_state=0).fit(X)
    assert model.shrinkage_ <= 2
    heavy = KPOD(3, shrinkage="auto", random_state=0).fit(X, sample_weight=np.full(len(X), 1000.0))
    assert_allclose(heavy.shrinkage_, 1000 * model.shrinkage_)


def test_both_are_chosen_together(three):
    X, _ = three
    model = KPOD("auto", shrinkage="auto", random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert model.shrinkage_ == KPOD(3, shrinkage="auto", random_state=0).fit(X).shrinkage_


def test_the_report_says_why(three):
    X, _ = three
    report = kpod.report(KPOD("auto", random_state=0).fit(X), X)
    assert report.data["choice"]["sentence"].startswith("3 clusters: when observed values are hidden")
    assert kpod.report(KPOD(3, random_state=0).fit(X), X).data["choice"] is None
