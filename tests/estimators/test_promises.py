"""What a fitted model says of itself is true, and what it was is not lost."""

import copy
import inspect
import pickle
import signal
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import nan_euclidean_distances
from sklearn.pipeline import make_pipeline

import kpod
from kpod import KPOD, MiniBatchKPOD, ObservedScaler, TablePreparer
from kpod._engine import executors
from kpod._engine.executors import available_threads
from kpod._engine.solvers import hartigan, lloyd
from tests.helpers import oracle
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import as_csr, clustered

ATTRIBUTES = ["labels_", "cluster_centers_", "counts_", "inertia_", "loss_curve_", "losses_", "column_means_"]


class TestARefitThatFails:
    """Leaves the model as it was, to the bit."""

    @pytest.fixture
    def model(self, rng):
        X, _ = clustered(rng, 100, 60)
        return KPOD(3, random_state=0).fit(X), X

    def check(self, model, X, before, predicted):
        assert vars(model).keys() == before.keys()
        for name, value in before.items():
            assert_array_equal(getattr(model, name), value)
        assert_array_equal(model.predict(X), predicted)
        with pytest.raises(ValueError, match="60 features"):
            model.predict(X[:, :5])

    @pytest.mark.parametrize(
        ("refused", "message"),
        [
            (np.full((100, 5), np.inf), "infinity"),
            (np.full((100, 5), np.nan), "0 have an observed entry"),
            (np.eye(2), "should be >= n_clusters"),
            (np.array([["a", "b"]]), "Only numbers can be clustered"),
            (np.ones((3, 4, 5)), "two dimensions"),
        ],
        ids=["infinity", "nothing observed", "too few rows", "text", "three dimensions"],
    )
    @INFORMATIVE_BY_HAND
    def test_when_refused(self, model, refused, message):
        model, X = model
        before, predicted = dict(vars(model)), model.predict(X)
        with pytest.raises(ValueError, match=message):
            model.fit(refused)
        self.check(model, X, before, predicted)

    def test_when_a_warning_is_an_error(self, model, rng):
        model, X = model
        model.set_params(max_iter=1)
        before, predicted = dict(vars(model)), model.predict(X)
        with pytest.raises(ConvergenceWarning):  # warnings are errors in this suite
            model.fit(clustered(rng, 200, 7, spread=2.0)[0])
        self.check(model, X, before, predicted)

    def test_when_interrupted(self, model, rng, monkeypatch):
        model, X = model
        before, predicted = dict(vars(model)), model.predict(X)
        # Where a shell started us in the background, SIGINT is ignored.
        monkeypatch.setattr(lloyd.Descent, "finish", lambda *_: signal.raise_signal(signal.SIGINT))
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            model.fit(clustered(rng, 200, 7)[0])
        signal.signal(signal.SIGINT, handler)
        monkeypatch.undo()
        self.check(model, X, before, predicted)

    def test_names_are_those_of_the_last_fit(self, rng):
        pandas = pytest.importorskip("pandas")
        X, _ = clustered(rng, 100, 3)
        model = KPOD(2, random_state=0).fit(pandas.DataFrame(X, columns=["a", "b", "c"]))
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        assert not hasattr(model.fit(X), "feature_names_in_")

    def test_with_another_number_of_clusters(self, model):
        """The old model goes on, whatever the parameters of the fit that failed."""
        model, X = model
        predicted = model.predict(X)
        with pytest.raises(ValueError, match="infinity"):
            model.set_params(n_clusters=5).fit(np.full((100, 5), np.inf))
        assert_array_equal(model.predict(X), predicted)


def calls_until(call, stop=None):
    """How many functions of the package a call enters; a keyboard interrupt at the one numbered `stop`."""
    package, n_calls = str(Path(kpod.__file__).parent), 0

    def count(frame, event, _):
        nonlocal n_calls
        # A generator is entered once more to be closed, where exceptions are ignored.
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if event == "call" and frame.f_code.co_filename.startswith(package) and not generator:
            n_calls += 1
            if n_calls == stop:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8, 0.95])
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (KPOD(3, n_init=2, random_state=0), "fit"),
        (KPOD(3, n_init=1, probability=True, random_state=0), "fit"),
        (KPOD(3, n_init=1, missingness="informative", random_state=0), "fit"),
        (KPOD(3, n_init=1, missingness="auto", random_state=0), "fit"),
        (KPOD(3, n_init=1, shrinkage="auto", random_state=0), "fit"),
        (MiniBatchKPOD(3, batch_size=30, full_passes=2, random_state=0), "fit"),
        (MiniBatchKPOD(3, random_state=0), "partial_fit"),
        (ObservedScaler(), "fit"),
        (TablePreparer(categories="all"), "fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)
@INFORMATIVE_BY_HAND
def test_a_refit_interrupted_anywhere_changes_nothing(model, method, share):
    pandas, rng = pytest.importorskip("pandas"), np.random.default_rng(0)
    X, Y = (pandas.DataFrame(clustered(rng, 120, 4)[0], columns=list(names)) for names in ("abcd", "efgh"))
    if hasattr(model, "n_threads"):
        model.set_params(n_threads=1)  # calls are counted in this thread
    model = clone(model).fit(X)
    batch = X[:50] if method == "partial_fit" else Y
    n_calls = calls_until(lambda: getattr(copy.deepcopy(model), method)(batch))
    model = pickle.loads(pickle.dumps(model))  # as it is compared below
    before = pickle.dumps(vars(model))
    with pytest.raises(KeyboardInterrupt):
        calls_until(lambda: getattr(model, method)(batch), stop=max(1, int(share * n_calls)))
    assert pickle.dumps(vars(model)) == before


def test_centers_of_another_width_are_never_read(rng):
    """Whoever sets an attribute by hand gets an error, not somebody else's memory."""
    X, _ = clustered(rng, 100, 6)
    model = KPOD(3, random_state=0).fit(X)
    for name, value in [
        ("cluster_centers_", np.zeros((3, 2))),
        ("cluster_centers_", np.zeros((3, 2000))),
        ("_shift", np.zeros(2)),
        ("_shift", np.zeros(2000)),
        ("_shift", np.float64(0)),
    ]:
        broken = KPOD(3, random_state=0).fit(X)
        setattr(broken, name, value)
        with pytest.raises((ValueError, TypeError)):
            broken.predict(X)
    assert_array_equal(model.predict(X), model.labels_)


class TestLabelsArePredictions:
    """However a fit ended, and whatever its table is like."""

    @pytest.mark.filterwarnings("ignore:Not converged")
    @pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
    @pytest.mark.parametrize("settings", [{}, {"tol": 0}, {"max_iter": 3}, {"tol": 1.0}, {"shrinkage": 2.0}])
    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    def test_always(self, container, settings, algorithm, rng, dtype):
        X = container(clustered(rng, 3000, 12, k=8, missing=0.5, spread=1.5, dtype=dtype)[0])
        weights = rng.random(3000) * rng.integers(0, 2, 3000)
        model = KPOD(8, algorithm=algorithm, n_init=1, random_state=0, **settings)
        model.fit(X, sample_weight=weights)
        assert_array_equal(model.labels_, model.predict(X))
        assert_allclose(model.inertia_, -model.score(X, sample_weight=weights), rtol=1e-12)

    def test_on_a_table_of_many_entries(self, rng):
        """Where single-row moves may stop short of the last one."""
        X, _ = clustered(rng, 20_000, 30, k=10, missing=0.4, spread=2.0)
        model = KPOD(10, n_init=1, random_state=0).fit(X)
        assert_array_equal(model.labels_, model.predict(X))

    def test_on_ties(self, rng):
        X = rng.integers(0, 3, size=(400, 3)).astype(float)
        X[rng.random(X.shape) < 0.3] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 1
        model = KPOD(9, random_state=0).fit(X)
        assert_array_equal(model.labels_, model.predict(X))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
    def test_where_rows_go_on_changing_their_cluster(self, algorithm, rng):
        """Rows of next to no weight, which change it long after the loss has stopped falling."""
        X = rng.integers(0, 2, size=(200, 40)).astype(float)
        X[rng.random(X.shape) < 0.9] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 1
        weights = np.where(rng.random(200) < 0.5, 1e-30, 1.0)
        model = KPOD(33, algorithm=algorithm, init="random", n_init=1, tol=1.0, random_state=0)
        assert_array_equal(model.fit(X, sample_weight=weights).labels_, model.predict(X))

    def test_next_to_an_outlier(self, rng):
        """One value at 1e12 costs no other row its nearest center."""
        X, _ = clustered(rng, 2000, 8, missing=0.3)
        X[17, 3] = 1e12
        model = KPOD(6, random_state=0).fit(X)
        assert_array_equal(model.labels_, model.predict(X))
        distances = oracle.distances(X, model.cluster_centers_)
        distances[17] = 0
        own = distances[np.arange(2000), model.labels_]
        assert (own <= distances.min(axis=1) * (1 + 1e-9)).all()

    def test_dense_and_sparse_to_the_bit(self, rng, dtype):
        X, _ = clustered(rng, 2000, 9, missing=0.6, spread=1.5, dtype=dtype)
        dense, csr = (KPOD(7, random_state=0).fit(table) for table in (X, as_csr(X)))
        assert_array_equal(dense.labels_, csr.labels_)
        assert_array_equal(dense.cluster_centers_, csr.cluster_centers_)


class TestDigits:
    """No cluster loses a digit to others that are larger or heavier by far."""

    @pytest.fixture
    def table(self, rng):
        """Five clusters around 10, 20, ..., 50 and one row far away, with centers to start from."""
        truth = np.arange(301) % 5
        X = 10.0 * (1 + truth[:, None]) + rng.normal(size=(301, 4))
        X[:, 1:][rng.random((301, 3)) < 0.2] = np.nan
        X[:5] = 10.0 * (1 + truth[:5, None])
        X[-1], truth[-1] = 1e13, 5
        return X, truth, np.vstack([X[:5], X[-1:]])

    def test_of_centers(self, table):
        X, truth, start = table
        model = KPOD(6, init=start).fit(X)
        assert_array_equal(model.labels_, truth)
        assert_allclose(model.cluster_centers_, oracle.centers(X, truth, 6), rtol=1e-13)

    def test_of_counts(self, table, rng):
        X, truth, start = table
        weights = rng.random(len(X))
        weights[-1] = 1e13
        model = KPOD(6, init=start).fit(X, sample_weight=weights)
        assert_array_equal(model.labels_, truth)
        assert_allclose(model.counts_, oracle.totals(X, truth, 6, weights)[1], rtol=1e-12)

    @pytest.mark.parametrize("heavy", [1e9, 1e15, 1e20])
    def test_of_centers_next_to_a_heavy_row(self, heavy, dtype):
        X = np.array([[5.3, 1.7], [1.2, 2.9], [1.4, 3.3], [9.1, 8.2]], dtype)
        model = KPOD(3, init=X[[0, 1, 3]]).fit(X, sample_weight=[1, 1, 1, heavy])
        assert_array_equal(model.labels_, [0, 1, 1, 2])
        assert_allclose(model.cluster_centers_[1], X[1:3].mean(axis=0), rtol=10 * np.finfo(dtype).eps)


class TestConverged:
    """True only of a fit that converged."""

    def test_not_after_so_many_sweeps(self, rng, monkeypatch):
        X, _ = clustered(rng, 3000, 10, k=10, missing=0.6, spread=2.0)
        assert KPOD(10, n_init=1, tol=0, random_state=0).fit(X).converged_
        monkeypatch.setattr(
            lloyd.Descent, "lloyd", lambda d: (d.assign(), d.update(), d.note("lloyd", 1, 0.0))
        )
        with pytest.warns(ConvergenceWarning, match="Not converged after 2 iterations"):
            model = KPOD(10, n_init=1, tol=0, max_iter=2, random_state=0).fit(X)
        assert not model.converged_
        assert len(model.loss_curve_) == 1 + 2, "as many sweeps as iterations"

    def test_no_cap_but_max_iter(self, rng, monkeypatch):
        """However many entries a table has."""
        X, _ = clustered(rng, 400, 10, k=5, missing=0.5, spread=2.0)
        moves = iter([(5, 1.0)] * 150)
        monkeypatch.setattr(hartigan.Moves, "sweep", lambda self: next(moves, (0, 0.0)))
        monkeypatch.setattr(lloyd.Descent, "is_simple", False)  # where sweeps are one call
        assert KPOD(5, n_init=1, tol=0, random_state=0).fit(X).converged_
        assert next(moves, None) is None


class TestLossCurve:
    """Never negative, never rising beyond rounding, exact at its end."""

    @pytest.mark.filterwarnings("ignore:Not converged")
    @pytest.mark.parametrize("spread", [1.0, 1e-4, 1e-8, 0.0])
    @pytest.mark.parametrize("weighting", ["none", "extreme"])
    @pytest.mark.parametrize("algorithm", ["lloyd", "hartigan", "mm"])
    def test_it_falls(self, algorithm, weighting, spread, rng, dtype):
        X, _ = clustered(rng, 500, 6, k=5, missing=0.3, spread=spread, dtype=dtype)
        weights = None if weighting == "none" else 10.0 ** rng.uniform(-12, 12, 500)
        model = KPOD(5, algorithm=algorithm, init="random", n_init=1, random_state=1, max_iter=25)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Number of distinct")
            model.fit(X, sample_weight=weights)
        curve = model.loss_curve_
        assert (curve >= 0).all()
        assert (np.diff(curve) <= 1e-9 * curve[:-1]).all()
        assert curve[-1] == model.inertia_
        exact = oracle.loss(X.astype(float), model.labels_, model.cluster_centers_.astype(float), weights)
        assert_allclose(model.inertia_, exact, rtol=1e-6, atol=1e-25 if weights is None else 1e-12)

    @pytest.mark.filterwarnings("ignore:Not converged")
    @pytest.mark.parametrize("algorithm", ["lloyd", "hartigan", "mm"])
    def test_centers_that_are_rounded(self, algorithm, rng):
        """Far from zero in single precision, where rounding the centers costs more than iterations gain."""
        X = 1e6 + clustered(rng, 700, 2, k=33, missing=0.2, spread=1.5)[0]
        model = KPOD(33, algorithm=algorithm, n_init=1, tol=0, max_iter=4, random_state=0)
        curve = model.fit(X.astype(np.float32)).loss_curve_
        assert (np.diff(curve) <= 0).all()
        assert curve[-1] == model.inertia_

    @pytest.mark.parametrize("spread", [1e-5, 1e-8, 0.0])
    @INFORMATIVE_BY_HAND
    def test_with_gaps_that_count(self, spread, rng, dtype):
        """The loss may rise then, and what is minimised may not; neither falls below what it can be."""
        X, _ = clustered(rng, 300, 6, k=5, missing=0.3, spread=spread, dtype=dtype)
        model = KPOD(5, missingness="informative", init="random", n_init=1, tol=0, random_state=1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Number of distinct")
            model.fit(X)
        assert (model.loss_curve_ >= 0).all()
        assert model.loss_curve_[-1] == model.inertia_
        falls = -np.diff(model.objective_curve_)
        assert (falls >= -1e-9 * np.abs(model.objective_curve_[:-1])).all()

    def test_it_is_the_loss_after_each_iteration(self, rng):
        """As a fit with fewer of them says."""
        X, _ = clustered(rng, 500, 8, missing=0.5, spread=1.5)
        start = X[rng.choice(500, 6, replace=False)]
        full = KPOD(6, algorithm="lloyd", init=start, tol=0).fit(X)
        labels = oracle.assign(X, np.where(np.isnan(start), np.nanmean(X, axis=0), start))
        for value in full.loss_curve_[:3]:
            centers = oracle.centers(X, labels, 6)
            assert_allclose(value, oracle.loss(X, labels, centers), rtol=1e-9)
            labels = oracle.assign(X, centers)

    def test_moves_go_on_where_lloyd_ended(self, rng):
        X, _ = clustered(rng, 400, 6, spread=1.5)
        lloyds, both = (
            KPOD(6, algorithm=algorithm, init=np.nan_to_num(X[:6]), tol=0).fit(X)
            for algorithm in ("lloyd", "hartigan")
        )
        assert len(both.loss_curve_) > len(lloyds.loss_curve_)
        assert_allclose(both.loss_curve_[: lloyds.n_iter_], lloyds.loss_curve_, rtol=1e-9)


class TestScaleFree:
    """A table times a power of two gives the same labels, seeds included."""

    @pytest.mark.parametrize("power", [-400, -150, -75, -40, -1, 1, 40, 66, 150, 400])
    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    def test_double(self, container, power, rng):
        X, _ = clustered(rng, 400, 6, spread=1.0)
        plain, scaled = (
            KPOD(6, n_init=2, random_state=0).fit(container(table)) for table in (X, np.ldexp(X, power))
        )
        assert_array_equal(scaled.labels_, plain.labels_)
        assert_array_equal(scaled.cluster_centers_, np.ldexp(plain.cluster_centers_, power))
        assert scaled.inertia_ == np.ldexp(plain.inertia_, 2 * power)

    @pytest.mark.parametrize("power", [-400, -40, 40, 400])
    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    @pytest.mark.parametrize(
        ("model", "method", "squares"),
        [
            (KPOD(6, missingness="informative", n_init=2), "fit", ["inertia_", "noise_variance_"]),
            (KPOD(6, shrinkage=2.0, n_init=1), "fit", ["inertia_", "objective_", "losses_"]),
            (MiniBatchKPOD(6, batch_size=50, full_passes=2), "fit", ["inertia_", "batch_losses_"]),
            (MiniBatchKPOD(6), "partial_fit", ["inertia_", "batch_losses_"]),
        ],
        ids=["gaps", "shrinkage", "mini-batches", "one batch"],
    )
    @INFORMATIVE_BY_HAND
    def test_every_way_of_fitting(self, model, method, squares, container, power, rng):
        X, _ = clustered(rng, 400, 6, spread=1.0)
        tables = [container(X), container(np.ldexp(X, power))]
        plain, scaled = (getattr(clone(model).set_params(random_state=0), method)(t) for t in tables)
        assert_array_equal(scaled.labels_, plain.labels_)
        assert_array_equal(scaled.cluster_centers_, np.ldexp(plain.cluster_centers_, power))
        assert_array_equal(scaled.predict(tables[1]), plain.predict(tables[0]))
        for name in squares:
            assert_array_equal(getattr(scaled, name), np.ldexp(getattr(plain, name), 2 * power))

    @pytest.mark.parametrize("power", [-400, -40, 40, 400])
    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    def test_scaler(self, container, power, rng):
        X, _ = clustered(rng, 100, 5)
        tables = [container(X), container(np.ldexp(X, power))]
        plain, scaled = (ObservedScaler().fit(table) for table in tables)
        assert_array_equal(scaled.mean_, np.ldexp(plain.mean_, power))
        assert_array_equal(scaled.scale_, np.ldexp(plain.scale_, power))

    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    @pytest.mark.parametrize("late", [False, True])
    @pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e-320), (np.float32, 1e-43)])
    def test_numbers_too_small_for_all_their_digits(self, dtype, size, late, container, rng):
        """Subnormal numbers, which no power of two brings near 1; also after rows that are all 0."""
        truth = np.arange(90) % 3
        X = rng.integers(0, 4, size=(90, 5)) + 40.0 * truth[:, None]
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:3] = 40.0 * truth[:3, None]
        X = np.vstack([np.zeros((200 * late, 5)), size * X]).astype(dtype)
        model = KPOD(3, init=X[-90:-87]).fit(container(X))
        assert_array_equal(model.labels_[-90:], truth)
        assert_array_equal(model.predict(container(X)), model.labels_)

    @pytest.mark.parametrize(("size", "fits"), [(1e-145, True), (1e-170, False)])
    @INFORMATIVE_BY_HAND
    def test_gaps_need_a_variance(self, size, fits, rng):
        X = size * clustered(rng, 200, 4)[0]
        model = KPOD(3, missingness="informative", n_init=1, random_state=0)
        if fits:
            assert_array_equal(model.fit(X).labels_, model.predict(X))
            return
        with pytest.raises(ValueError, match="too small to compute with"):
            model.fit(X)

    @pytest.mark.parametrize("power", [-100, -78, -40, 40, 66, 100])
    def test_single(self, power, rng):
        X = clustered(rng, 400, 6, spread=1.0, dtype=np.float32)[0]
        plain, scaled = (KPOD(6, n_init=2, random_state=0).fit(table) for table in (X, np.ldexp(X, power)))
        assert_array_equal(scaled.labels_, plain.labels_)

    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    @pytest.mark.parametrize(
        ("dtype", "small", "large"),
        [
            (np.float32, 1e-30, 1e8),
            (np.float32, 1e-20, 1.0),
            (np.float64, 1e-300, 1e100),
            (np.float64, 1e-20, 1.0),
        ],
    )
    def test_whatever_the_first_rows_are_like(self, dtype, small, large, container, rng):
        """A first glance at the table sees a few rows, which may be much smaller than the rest."""
        X = np.vstack([small * rng.normal(size=(80, 6)), large * clustered(rng, 300, 6)[0]]).astype(dtype)
        model = KPOD(5, algorithm="lloyd", init=np.nan_to_num(X[-5:]))
        first, last = (clone(model).fit(container(table)) for table in (X, X[::-1]))
        assert_array_equal(first.labels_, last.labels_[::-1])

    @pytest.mark.parametrize("container", [np.asarray, as_csr])
    def test_one_row_that_is_not_glanced_at(self, container, rng):
        """In units of the other rows it is infinite in single precision."""
        X = (1e-30 * rng.normal(size=(10_000, 2))).astype(np.float32)
        X[4321] = 1e12
        model = KPOD(2, init=X[[0, 4321]]).fit(container(X))
        assert_array_equal(np.flatnonzero(model.labels_ == 1), [4321])

    @pytest.mark.parametrize(("dtype", "small"), [(np.float32, 1e-20), (np.float64, 1e-100)])
    def test_seeds_too(self, dtype, small, rng):
        """Clusters that nobody could miss are found, however small the first rows."""
        truth = np.repeat(np.arange(6), 80)
        X = rng.normal(size=(480, 6)) + 1e3 * np.eye(6)[truth]
        X[truth == 0] *= small
        labels = KPOD(6, n_init=2, random_state=0).fit(X.astype(dtype)).labels_
        assert len(np.unique(labels)) == 6
        assert (labels == labels[80 * truth]).all()

    def test_weights(self, rng):
        """Only their ratios matter to the labels."""
        X, _ = clustered(rng, 400, 6, spread=1.0)
        weights = rng.random(400)
        fits = [
            KPOD(6, random_state=0).fit(X, sample_weight=weights * 2.0**power) for power in (0, -200, 200)
        ]
        for other in fits[1:]:
            assert_array_equal(fits[0].labels_, other.labels_)

    @pytest.mark.parametrize(("size", "word"), [(1e154, "large"), (1e300, "large"), (1e-160, "small")])
    def test_weights_that_cannot_be_computed_with(self, size, word, rng):
        X, _ = clustered(rng, 50, 3)
        with pytest.raises(ValueError, match=f"too {word} to compute with"):
            KPOD(2).fit(X, sample_weight=np.full(50, size))


class TestTheProcessIsLeftAsItWas:
    def test_threads_of_blas(self, rng):
        """Fits that overlap in threads change no setting of the process."""
        controllers = pytest.importorskip("threadpoolctl").ThreadpoolController()
        X, _ = clustered(rng, 3000, 10)
        before = [library["num_threads"] for library in controllers.info()]
        n_before = available_threads()
        fits = [threading.Thread(target=lambda: KPOD(5, n_init=3, random_state=0).fit(X)) for _ in range(6)]
        for fit in fits:
            fit.start()
        for fit in fits:
            fit.join()
        assert [library["num_threads"] for library in controllers.info()] == before
        assert available_threads() == n_before

    def test_fits_in_threads_get_the_same_result(self, rng):
        X, _ = clustered(rng, 3000, 10)
        results = []
        fits = [
            threading.Thread(target=lambda: results.append(KPOD(5, random_state=0).fit(X).inertia_))
            for _ in range(4)
        ]
        for fit in fits:
            fit.start()
        for fit in fits:
            fit.join()
        assert len(set(results)) == 1

    def test_filters_and_handlers(self, rng):
        filters, handler = list(warnings.filters), signal.getsignal(signal.SIGINT)
        n_threads = threading.active_count()
        KPOD(3, n_threads=3).fit(clustered(rng)[0])
        assert list(warnings.filters) == filters
        assert signal.getsignal(signal.SIGINT) is handler
        assert threading.active_count() == n_threads

    @pytest.mark.parametrize("value", ["1", "nonsense", "0", ""])
    def test_omp_num_threads_counts(self, value, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() >= 1
        if value in ("0", "1"):
            assert available_threads() == 1


@pytest.mark.parametrize(
    ("says", "processors"),
    [("150000 100000", 2), ("10000 100000", 1), ("max 100000", sys.maxsize), ("", sys.maxsize)],
)
def test_what_a_container_may_use(says, processors, monkeypatch):
    monkeypatch.setattr(executors.Path, "read_text", lambda *_: says)
    assert executors.container_quota.__wrapped__() == processors


def test_true_is_no_number_of_starts(rng):
    with pytest.raises(ValueError, match="n_init must be 'auto' or an integer"):
        KPOD(2, n_init=True).fit(clustered(rng)[0])


def test_losses_of_all_starts(rng):
    X, _ = clustered(rng, spread=1.5)
    model = KPOD(5, n_init=7, random_state=0).fit(X)
    assert model.losses_.shape == (7,)
    assert model.losses_.min() == model.inertia_


def test_an_unaligned_table_is_read_rightly(rng):
    X, _ = clustered(rng, 100, 4)
    raw = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(float).reshape(X.shape)
    assert not raw.flags.aligned
    assert_array_equal(KPOD(3, random_state=0).fit(raw).labels_, KPOD(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_distances_are_in_the_tables_units(size, rng):
    X = size * clustered(rng, 100, 5)[0]
    model = KPOD(3, random_state=0).fit(X)
    assert_allclose(model.transform(X), nan_euclidean_distances(X, model.cluster_centers_), rtol=1e-9)


def test_a_model_whose_centers_do_not_fit_is_refused(rng):
    X, _ = clustered(rng, 100, 5)
    model = KPOD(3, random_state=0).fit(X)
    model.cluster_centers_ = model.cluster_centers_[:, :4]
    for use in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=r"its centers have shape \(3, 4\), expected \(3, 5\)"):
            use(X)


@pytest.mark.parametrize(("name", "value"), [("missing_rates_", [[0.5]]), ("cluster_shares_", [1.0])])
@INFORMATIVE_BY_HAND
def test_a_model_whose_gaps_do_not_fit_is_refused(name, value, rng):
    X, _ = clustered(rng, 100, 5)
    model = KPOD(3, missingness="informative", random_state=0).fit(X)
    setattr(model, name, np.array(value))
    for use in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="its missing rates do not match its clusters"):
            use(X)


@pytest.mark.parametrize(
    "call",
    [
        lambda X: KPOD(2, random_state=0).fit(X),
        lambda X: KPOD(2, random_state=0).fit_predict(X),
        lambda X: KPOD(2, max_iter=1, tol=0, random_state=0).fit_transform(X),
        lambda X: KPOD("auto", random_state=0).fit(X),
        lambda X: KPOD(2, missingness="auto", random_state=0).fit(X),
        lambda X: KPOD(2, init=np.eye(2, 3), n_init=5).fit(X),
        lambda X: MiniBatchKPOD(2, random_state=0).fit(X),
        lambda X: kpod.choose_k(X, range(1, 4), random_state=0),
        lambda X: KPOD(2, random_state=0).fit(as_csr(np.where(X > 0, 1.0, np.nan))),
        lambda X: make_pipeline(ObservedScaler(), KPOD(2, random_state=0)).fit(X),
    ],
)
def test_warnings_point_at_the_line_that_called(call):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[5], X[:, 2] = np.nan, np.nan
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(X)
    assert told
    assert {(w.filename, w.lineno) for w in told} == {(__file__, call.__code__.co_firstlineno)}


def test_rows_without_weight_do_not_fill_empty_clusters():
    """A resample of as many rows as clusters draws fewer of them: the rest have no weight."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = KPOD(30, random_state=0).fit(X)
    assert_array_equal(kpod.stability(model, X, n_resamples=5, random_state=0).ari_samples_, np.ones(5))


def test_masked_weights_are_refused():
    weights = np.ma.masked_array(np.ones(30), mask=np.arange(30) == 3)
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        KPOD(2).fit(np.random.default_rng(0).normal(size=(30, 3)), sample_weight=weights)
