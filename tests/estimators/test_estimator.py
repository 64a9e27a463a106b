"""The public face of KPOD: methods, attributes, and what odd input gets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kpod import KPOD
from tests.helpers import oracle
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import clustered

nan = np.nan


@pytest.fixture
def X():
    return clustered(np.random.default_rng(0))[0]


@pytest.fixture(params=["hartigan", "lloyd", "mm"])
def algorithm(request):
    return request.param


@pytest.fixture(params=["k-means++", "mean-fill", "random"])
def init(request):
    return request.param


def test_attributes(X, algorithm, init):
    model = KPOD(5, algorithm=algorithm, init=init, random_state=0).fit(X)
    assert model.algorithm_ == algorithm
    assert model.cluster_centers_.shape == model.counts_.shape == (5, 8)
    assert model.labels_.shape == (300,)
    assert model.labels_.dtype == np.int32
    assert_allclose(model.inertia_, oracle.loss_of_labels(X, model.labels_, 5))
    assert model.loss_curve_[-1] == model.inertia_
    assert model.n_iter_ <= len(model.loss_curve_)
    assert model.n_features_in_ == 8
    assert model.converged_
    assert_allclose(model.counts_.sum(), (~np.isnan(X)).sum())
    assert_allclose(model.column_means_, np.nanmean(X, axis=0))


def test_predict_transform_score_agree_with_the_fit(X):
    model = KPOD(5, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(clone(model).fit_predict(X), model.labels_)
    assert_allclose(model.transform(X), nan_euclidean_distances(X, model.cluster_centers_))
    assert_allclose(clone(model).fit_transform(X), model.transform(X))
    assert_allclose(model.score(X), -model.inertia_)
    weights = np.arange(300.0)
    assert_allclose(
        model.score(X, sample_weight=weights),
        -oracle.loss(X, model.labels_, model.cluster_centers_, weights),
    )


def test_impute_fills_gaps_from_the_rows_center(X):
    model = KPOD(5, random_state=0).fit(X)
    filled = model.impute(X)
    gaps = np.isnan(X)
    assert_array_equal(filled[~gaps], X[~gaps])
    assert_array_equal(filled[gaps], model.cluster_centers_[model.labels_][gaps])
    assert np.isnan(X).any(), "the user's table is left alone"


def test_results_are_reproducible(X):
    one, two = (KPOD(5, random_state=3).fit(X) for _ in range(2))
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert KPOD(5, random_state=np.random.RandomState(3)).fit(X).inertia_ == one.inertia_


def test_more_starts_never_end_higher(X):
    losses = [KPOD(8, n_init=n, random_state=0).fit(X).inertia_ for n in (1, 5, 20)]
    assert losses == sorted(losses, reverse=True)


def test_array_init_is_where_the_fit_starts(X):
    start = X[:5]
    model = KPOD(5, init=start, algorithm="lloyd", tol=0).fit(X)
    means = np.where(np.isnan(start), np.nanmean(X, axis=0), start)
    assert_array_equal(model.labels_, oracle.lloyd(X, means, 300)[0])
    with pytest.warns(RuntimeWarning, match="a single start is run and n_init=4 is ignored"):
        KPOD(5, init=start, n_init=4).fit(X)


def test_callable_init_gets_the_table_and_the_random_state(X):
    seen = []

    def init(table, k, random_state):
        seen.append((table.shape, k, type(random_state)))
        return table[random_state.permutation(len(table))[:k]]

    KPOD(5, init=init, n_init=3, random_state=0).fit(X)
    assert seen == [((300, 8), 5, np.random.RandomState)] * 3


def test_auto_starts(X, capsys):
    KPOD(2, verbose=1, random_state=0).fit(X)
    assert capsys.readouterr().out.count("start ") == 10
    KPOD(2, verbose=1, init=X[:2]).fit(X)
    assert capsys.readouterr().out.count("start ") == 1
    big = np.random.default_rng(0).normal(size=(100_001, 10))
    KPOD(2, verbose=1, algorithm="lloyd", random_state=0).fit(big)
    assert capsys.readouterr().out.count("start ") == 1


def test_verbose_prints_every_iteration(X, capsys):
    model = KPOD(3, n_init=1, verbose=2, random_state=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.loss_curve_) + 1


@pytest.mark.parametrize("size", [1.0, 300.0])
@pytest.mark.parametrize(
    ("algorithm", "missingness"),
    [("hartigan", "ignore"), ("lloyd", "ignore"), ("mm", "ignore"), ("lloyd", "informative")],
)
@INFORMATIVE_BY_HAND
def test_what_verbose_prints_is_what_is_minimised(X, size, algorithm, missingness, capsys):
    """In the units of the table."""
    settings = {"algorithm": algorithm, "missingness": missingness, "n_init": 1, "random_state": 0}
    model = KPOD(3, verbose=2, **settings).fit(size * X)
    lines = capsys.readouterr().out.splitlines()
    word = "loss" if missingness == "ignore" else "objective"
    printed = [float(line.partition(f": {word} ")[2]) for line in lines]
    assert len(printed) > 2
    assert_allclose(printed[-1], model.objective_, rtol=1e-5)
    n = len(printed) - 2  # mm ends with other centers than its last iteration has
    assert_allclose(printed[:n], model.objective_curve_[:n], rtol=1e-5)


@pytest.mark.parametrize("algorithm", ["hartigan", "lloyd"])
def test_a_larger_tol_stops_sooner(algorithm):
    """And not far from where a smaller one does."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 6))
    X[:, 1:][rng.random((2000, 5)) < 0.3] = np.nan
    settings = {"algorithm": algorithm, "init": np.nan_to_num(X[:12])}
    sooner, later = (KPOD(12, tol=tol, **settings).fit(X) for tol in (1e-2, 1e-7))
    assert len(sooner.loss_curve_) < len(later.loss_curve_)
    assert sooner.converged_
    assert later.inertia_ < sooner.inertia_ < 1.1 * later.inertia_


def test_precision_is_kept(X, dtype):
    model = KPOD(3, random_state=0).fit(X.astype(dtype))
    assert model.cluster_centers_.dtype == model.transform(X.astype(dtype)).dtype == dtype
    assert model.impute(X.astype(dtype)).dtype == dtype


def test_in_a_pipeline_with_names_out(X):
    pipe = make_pipeline(StandardScaler(), KPOD(3, random_state=0)).set_output(transform="pandas")
    out = pipe.fit_transform(X)
    assert list(out.columns) == ["kpod0", "kpod1", "kpod2"]


def test_unfitted_is_said_so(X):
    for method in ("predict", "transform", "score", "impute"):
        with pytest.raises(NotFittedError):
            getattr(KPOD(), method)(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be .auto. or an integer of at least 1, got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be .auto. or an integer"),
        ({"n_init": 0}, "n_init must be 'auto' or an integer of at least 1, got 0"),
        ({"n_init": "many"}, "n_init must be 'auto'"),
        ({"algorithm": "elkan"}, r"algorithm must be one of \['hartigan', 'lloyd', 'mm'\], got 'elkan'"),
        ({"init": "kmeans++"}, "init must be one of"),
        ({"init": [[1.0, 2.0]]}, r"initial centers have shape \(1, 2\), expected \(8, 8\)"),
        ({"init": np.full((8, 8), np.inf)}, "initial centers contain infinity"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"tol": -1}, "tol must be a finite number of at least 0"),
        ({"tol": nan}, "tol must be a finite number of at least 0"),
        ({"shrinkage": -1}, "shrinkage must be .auto. or a finite number of at least 0"),
        ({"n_threads": 0}, "n_threads must be an integer of at least 1"),
        ({"n_threads": -1}, "n_threads must be an integer of at least 1"),
    ],
)
def test_bad_parameters(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        KPOD(**parameters).fit(X)


class TestOddInput:
    """The table of odd inputs, row by row."""

    def test_infinity_names_the_column(self):
        X = np.array([[1.0, 2.0], [3.0, nan], [5.0, -np.inf]])
        with pytest.raises(ValueError, match=r"infinity.* in column 1 \(first in row 2\)"):
            KPOD(2).fit(X)
        model = KPOD(2).fit(X[:2])
        for method in (model.predict, model.transform, model.score, model.impute):
            with pytest.raises(ValueError, match=r"infinity.* in column 1"):
                method(X)

    def test_a_value_too_large_to_square_is_infinity(self):
        with pytest.raises(ValueError, match=r"too large to compute with in float64, in column 0"):
            KPOD(1).fit(np.array([[1e200], [1.0], [-1e200]]))

    def test_float32_squares_what_it_cannot_hold(self):
        """Values near its limit are scaled before they are squared."""
        X = np.array([[1e30, 1], [1.1e30, 2], [-1e30, 3], [-1.1e30, 4]], np.float32)
        model = KPOD(2, random_state=0).fit(X)
        assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]
        assert_allclose(model.inertia_, 1e58, rtol=1e-5)

    def test_a_row_with_nothing_observed(self, X, algorithm):
        holed = np.vstack([X[:100], np.full((2, 8), nan), X[100:]])
        plain = KPOD(4, algorithm=algorithm, random_state=0).fit(X)
        with pytest.warns(UserWarning, match="2 of 302 rows have nothing observed"):
            model = KPOD(4, algorithm=algorithm, random_state=0).fit(holed)
        assert_array_equal(model.labels_[100:102], [-1, -1])
        assert_array_equal(np.delete(model.labels_, [100, 101]), plain.labels_)
        assert_allclose(model.cluster_centers_, plain.cluster_centers_)
        assert_allclose(model.inertia_, plain.inertia_)
        empty = np.full((1, 8), nan)
        assert_array_equal(model.predict(empty), [-1])
        assert np.isnan(model.transform(empty)).all()
        assert_allclose(model.impute(empty)[0], np.nanmean(X, axis=0))
        assert model.score(empty) == 0

    def test_a_column_with_nothing_observed(self, X, algorithm):
        holed = np.insert(X, 3, nan, axis=1)
        plain = KPOD(4, algorithm=algorithm, random_state=0).fit(X)
        with pytest.warns(UserWarning, match="No observed entries in column 3: ignored"):
            model = KPOD(4, algorithm=algorithm, random_state=0).fit(holed)
        assert np.isnan(model.cluster_centers_[:, 3]).all()
        assert_array_equal(model.labels_, plain.labels_)
        filled = holed.copy()
        filled[:, 3] = 7
        assert_array_equal(model.predict(filled), model.predict(holed))
        assert_allclose(model.transform(filled), nan_euclidean_distances(filled, model.cluster_centers_))

    def test_more_clusters_than_rows_with_anything_observed(self):
        with pytest.raises(ValueError, match=r"n_samples=2 should be >= n_clusters=3: of 4 rows, 2"):
            KPOD(3).fit([[1.0], [2.0], [nan], [nan]])

    def test_fewer_distinct_rows_than_clusters(self, algorithm):
        X = np.repeat([[1.0, nan], [2.0, 2.0]], 5, axis=0)
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters"):
            model = KPOD(3, algorithm=algorithm, random_state=0).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        assert model.inertia_ == 0

    def test_constant_columns_and_duplicated_rows(self, X, algorithm):
        X = np.repeat(np.insert(X, 0, 5.0, axis=1), 2, axis=0)
        model = KPOD(4, algorithm=algorithm, random_state=0).fit(X)
        assert_array_equal(model.cluster_centers_[:, 0], np.full(4, 5.0))

    def test_one_row(self, algorithm):
        model = KPOD(1, algorithm=algorithm).fit([[1.0, 3.0]])
        assert model.inertia_ == 0

    def test_one_column(self, algorithm):
        model = KPOD(2, algorithm=algorithm, random_state=0).fit([[1.0], [2.0], [10.0], [11.0]])
        assert_array_equal(np.sort(model.cluster_centers_, axis=0), [[1.5], [10.5]])

    def test_one_cluster_is_the_column_means(self, X, algorithm):
        model = KPOD(1, algorithm=algorithm).fit(X)
        assert_allclose(model.cluster_centers_[0], np.nanmean(X, axis=0))

    def test_as_many_clusters_as_rows(self, algorithm, rng):
        X, _ = clustered(rng, 30)
        model = KPOD(30, algorithm=algorithm, random_state=0).fit(X)
        assert_allclose(model.inertia_, 0, atol=1e-20)

    def test_no_rows_or_columns(self):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            KPOD(1).fit(np.empty((0, 3)))
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            KPOD(1).fit(np.empty((3, 0)))

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (-np.ones(300), "Negative values in sample_weight: row 0 has -1.0"),
            (np.zeros(300), "zero for every row"),
            (np.ones(299), r"expected \(300,\)"),
            (np.full(300, nan), "NaN or infinity"),
        ],
    )
    def test_bad_weights(self, X, weights, message):
        with pytest.raises(ValueError, match=message):
            KPOD(3).fit(X, sample_weight=weights)

    def test_a_row_of_weight_zero_is_labelled_and_moves_nothing(self, X, algorithm):
        weights = np.ones(310)
        weights[300:] = 0
        # The weightless rows observe a column that nobody else does.
        table = np.full((310, 9), nan)
        table[:300, :8] = X
        table[300:, :8] = X[:10] + 0.01
        table[300:, 8] = 1e6
        start = np.hstack([X[:4], np.zeros((4, 1))])
        plain = KPOD(4, algorithm=algorithm, init=X[:4], tol=0).fit(X)
        with pytest.warns(UserWarning, match="No observed entries in column 8"):
            model = KPOD(4, algorithm=algorithm, init=start, tol=0).fit(table, sample_weight=weights)
        assert_array_equal(model.labels_[:300], plain.labels_)
        assert_allclose(model.cluster_centers_[:, :8], plain.cluster_centers_)
        if algorithm != "mm":
            assert_array_equal(model.labels_[300:], model.predict(table)[300:])

    def test_not_converged(self, X):
        with pytest.warns(ConvergenceWarning, match="Not converged after 1 iterations"):
            model = KPOD(5, algorithm="lloyd", max_iter=1, random_state=0).fit(X)
        assert not model.converged_
        assert model.predict(X).shape == (300,)

    def test_other_columns_at_predict(self, X):
        model = KPOD(3).fit(X)
        with pytest.raises(ValueError, match="X has 7 features, but KPOD is expecting 8"):
            model.predict(X[:, :7])
