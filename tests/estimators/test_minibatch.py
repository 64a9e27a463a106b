"""MiniBatchKPOD: running means for each center and column, checked against a few lines of NumPy."""

import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.metrics import rand_score

import kpod
from kpod import KPOD, MiniBatchKPOD
from kpod._engine.executors import Executor
from kpod._engine.solvers import minibatch
from kpod._engine.solvers.minibatch import Running
from kpod._engine.solvers.order import Order
from kpod._engine.table import make_table
from kpod._engine.windows import pages_of
from kpod._estimators import mini_batch
from tests.helpers.tables import as_csr_for_engine, clustered


class Oracle:
    """The formula of the docstring, entry by entry."""

    def __init__(self, centers, half_life=None):
        self.centers, self.half_life = np.array(centers, float), half_life
        self.counts = np.zeros_like(self.centers)

    def partial_fit(self, X, weights):
        if self.half_life is not None:
            self.counts *= 2.0 ** (-len(X) / self.half_life)
        distances = np.nansum((X[:, None] - self.centers) ** 2, axis=2)
        labels = distances.argmin(axis=1)
        for center in range(len(self.centers)):
            for column in range(X.shape[1]):
                here = (labels == center) & ~np.isnan(X[:, column])
                n = weights[here].sum()
                if n == 0:
                    continue
                mean = (weights[here] * X[here, column]).sum() / n
                self.counts[center, column] += n
                step = n / self.counts[center, column]
                self.centers[center, column] += step * (mean - self.centers[center, column])


def stream(rng, n_batches=6, n_rows=80, **about):
    X, truth = clustered(rng, n_batches * n_rows, **about)
    return np.split(X, n_batches), np.split(truth, n_batches)


@pytest.mark.parametrize("half_life", [None, 100.0])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_every_entry_is_a_running_mean(rng, kind, half_life):
    batches, _ = stream(rng, missing=0.5)
    start = rng.normal(size=(5, 8))
    model = MiniBatchKPOD(5, init=start, half_life=half_life, reassignment_ratio=0)
    oracle = Oracle(start, half_life)
    for X in batches:
        weights = rng.random(len(X))
        model.partial_fit(X if kind == "dense" else as_csr_for_engine(X), sample_weight=weights)
        oracle.partial_fit(X, weights)
        assert_allclose(model.cluster_centers_, oracle.centers, rtol=1e-9)
        assert_allclose(model.counts_, oracle.counts, rtol=1e-9)
        assert_array_equal(model.labels_, model.predict(X))
        assert_allclose(model.inertia_, -model.score(X, sample_weight=weights), rtol=1e-12)
    assert model.n_steps_ == len(batches)


def test_a_column_that_first_appears_later(rng):
    batches, _ = stream(rng, n_rows=200, missing=0.2, spread=0.2)
    late = MiniBatchKPOD(5, random_state=0)
    blind = MiniBatchKPOD(5, random_state=0)
    for number, X in enumerate(batches[:3]):
        X[:, 3] = np.nan
        with (
            pytest.warns(UserWarning, match="No observed entries in column 3")
            if number == 0
            else nullcontext()
        ):
            late.partial_fit(X)
        blind.__dict__.update(pickle.loads(pickle.dumps(late.__dict__)))
    assert np.isnan(late.cluster_centers_[:, 3]).all()
    assert np.isnan(late.column_means_[3])
    for X in batches[3:]:
        late.partial_fit(X)
    assert not np.isnan(late.cluster_centers_).any()
    assert np.isfinite(late.transform(batches[-1])).all()
    # The batch in which it appears is assigned by the other columns, as if it had not.
    without = batches[3].copy()
    without[:, 3] = np.nan
    others = np.arange(8) != 3
    again = pickle.loads(pickle.dumps(blind)).partial_fit(batches[3])
    blind.partial_fit(without)
    assert_allclose(again.cluster_centers_[:, others], blind.cluster_centers_[:, others], rtol=1e-12)
    labels = late.predict(batches[-1])
    for center in np.unique(labels):
        mine = batches[-1][labels == center, 3]
        assert abs(np.nanmean(mine) - late.cluster_centers_[center, 3]) < 0.3


def test_starved_centers_are_put_where_the_loss_is(rng):
    """One center serves four clusters at equal distances: any other one takes a third of the loss."""
    start = np.vstack([np.zeros((1, 4)), np.full((3, 4), 1e6)])
    models = {
        ratio: MiniBatchKPOD(4, init=start, reassignment_ratio=ratio, random_state=0) for ratio in (0, 0.01)
    }
    for number in range(10):
        X = 10 * np.eye(4)[rng.integers(4, size=200)] + rng.normal(size=(200, 4))
        X[rng.random(X.shape) < 0.2] = np.nan
        X[np.isnan(X).all(axis=1)] = 0
        for model in models.values():
            model.partial_fit(X)
        if number == 0:  # too few rows to tell that no more will come
            assert (models[0.01].cluster_centers_[1:] == 1e6).all()
    assert (models[0].cluster_centers_[1:] == 1e6).all()
    assert (abs(models[0.01].cluster_centers_) < 100).all()
    assert models[0.01].inertia_ < 0.75 * models[0].inertia_


def test_a_center_that_was_put_at_a_row_rests_on_that_row_alone(rng):
    X, _ = clustered(rng, 300, 4, missing=0.2)
    table = make_table(X, Executor(), weights=rng.uniform(0.5, 2, size=300))
    learned = Running.at(np.vstack([np.zeros((2, 4)), np.full((2, 4), 1e6)]))
    learned.counts[:] = 50.0
    learned.column_means = table.column_means.copy()
    learned._reassign(np.array([2, 3]), table, rng)
    for center, counts in zip(learned.centers[2:], learned.counts[2:], strict=True):
        close = np.isclose(X, center, rtol=1e-9) | (np.isnan(X) & np.isnan(center))
        (row,) = np.flatnonzero(close.all(axis=1))
        assert_allclose(counts, np.where(np.isnan(X[row]), 0, table.weights[row]))
    assert (learned.counts[:2] == 50).all()


def test_centers_follow_a_drift_with_a_half_life(rng):
    steady, forgetful = MiniBatchKPOD(2, random_state=0), MiniBatchKPOD(2, random_state=0, half_life=200)
    for hour in range(20):
        X = rng.normal(size=(100, 4)) + 10 * rng.integers(2, size=(100, 1)) + 0.1 * hour
        X[rng.random(X.shape) < 0.3] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 0.1 * hour
        for model in (steady, forgetful):
            model.partial_fit(X)
    truth = np.array([[1.9] * 4, [11.9] * 4])
    errors = [abs(np.sort(model.cluster_centers_, axis=0) - truth).max() for model in (steady, forgetful)]
    assert errors[1] < 0.6 < errors[0]


def test_means_of_columns_fade_too():
    """Half of the first batch is left when the second, as large, has come."""
    model = MiniBatchKPOD(1, init=np.zeros((1, 2)), half_life=30)
    for value in (0.0, 1.0):
        model.partial_fit(np.full((30, 2), value))
    assert_allclose(model.column_means_, 2 / 3)
    assert_allclose(model.cluster_centers_, 2 / 3)


def test_weights_are_repetition(rng):
    (X, more), _ = stream(rng, n_batches=2)
    times = rng.integers(3, size=len(X))
    start = rng.normal(size=(5, 8))
    one = MiniBatchKPOD(5, init=start).partial_fit(more).partial_fit(X, sample_weight=times)
    other = MiniBatchKPOD(5, init=start).partial_fit(more).partial_fit(np.repeat(X, times, axis=0))
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-10)
    assert_allclose(one.counts_, other.counts_, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_two_epochs_are_close_to_lloyd(rng, kind):
    X, _ = clustered(rng, 6000, 12, k=8, missing=0, spread=0.7)
    X[rng.random(X.shape) < np.linspace(0.05, 0.95, 12)] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0
    table = X if kind == "dense" else as_csr_for_engine(X)
    full = KPOD(8, algorithm="lloyd", n_init=5, random_state=0).fit(X)
    model = MiniBatchKPOD(8, batch_size=500, random_state=0).fit(table)
    assert model.inertia_ < 1.05 * full.inertia_
    assert_array_equal(model.labels_, model.predict(table))
    assert model.n_steps_ == 24
    assert len(model.batch_losses_) == 24


def test_full_passes_end_where_lloyd_does(rng):
    X, _ = clustered(rng, 3000, spread=1.0)
    short = MiniBatchKPOD(5, batch_size=100, random_state=0).fit(X)
    exact = MiniBatchKPOD(5, batch_size=100, full_passes=300, random_state=0).fit(X)
    lloyd = KPOD(5, init=short.cluster_centers_, algorithm="lloyd").fit(X)
    assert exact.inertia_ <= short.inertia_
    assert_allclose(exact.inertia_, lloyd.inertia_, rtol=1e-9)
    assert rand_score(exact.labels_, lloyd.labels_) == 1  # whose clusters keep the order of their start


def test_any_number_of_threads_gives_the_same_bits(rng, monkeypatch):
    from kpod._engine import blocks

    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 9)
    X, _ = clustered(rng, 2000)
    one, three = (MiniBatchKPOD(5, batch_size=500, n_threads=n, random_state=0).fit(X) for n in (1, 3))
    assert_array_equal(one.cluster_centers_, three.cluster_centers_)
    assert_array_equal(one.labels_, three.labels_)


def test_a_batch_that_fails_changes_nothing(rng):
    batches, _ = stream(rng)
    model = MiniBatchKPOD(5, random_state=0).partial_fit(batches[0])
    before = pickle.dumps(model)
    bad = batches[1].copy()
    bad[3, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(bad)
    assert pickle.dumps(model) == before
    # Nor does one with nothing in it, but for its labels.
    centers = model.cluster_centers_.copy()
    model.partial_fit(np.full((3, 8), np.nan))
    assert_array_equal(model.cluster_centers_, centers)
    assert_array_equal(model.labels_, [-1, -1, -1])


def test_a_batch_that_is_given_up_draws_no_random_numbers(rng, monkeypatch):
    """Even at its end, after starved centers were moved: given again, it leads where it would have led."""
    X = rng.normal(size=(600, 3))
    far = np.vstack([X[:2], np.full((3, 3), 1e3)])  # three centers that get no rows
    model = MiniBatchKPOD(5, init=far, reassignment_ratio=0.5, random_state=0).partial_fit(X)
    before = pickle.dumps(model._random)
    with monkeypatch.context() as patch:
        patch.setattr(MiniBatchKPOD, "_finish", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(X)
    assert pickle.dumps(model._random) == before
    model.partial_fit(X)
    assert pickle.dumps(model._random) != before


def test_going_on_after_a_pickle_is_going_on(rng):
    batches, _ = stream(rng)
    one = MiniBatchKPOD(5, random_state=0).partial_fit(batches[0])
    other = pickle.loads(pickle.dumps(one))
    for X in batches[1:]:
        one.partial_fit(X)
        other.partial_fit(X)
    assert_array_equal(one.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"batch_size": 0}, "batch_size must be an integer of at least 1"),
        ({"n_epochs": 1.5}, "n_epochs must be an integer"),
        ({"full_passes": -1}, "full_passes must be an integer of at least 0"),
        ({"half_life": 0}, "half_life must be a finite number above 0"),
        ({"half_life": "day"}, "half_life must be a number"),
        ({"reassignment_ratio": 2}, "reassignment_ratio must be from 0 to 1"),
        ({"n_clusters": 1000}, "n_samples=300 should be >= n_clusters=1000"),
    ],
)
def test_bad_parameters(rng, parameters, why):
    X, _ = clustered(rng)
    for fit in ("fit", "partial_fit"):
        if "n_samples" in why and fit == "partial_fit":  # which keeps the rows until there are enough
            continue
        with pytest.raises(ValueError, match=why):
            getattr(MiniBatchKPOD(**parameters), fit)(X)


def test_other_columns_are_refused(rng):
    X, _ = clustered(rng)
    model = MiniBatchKPOD(3).partial_fit(X)
    with pytest.raises(ValueError, match="8 features"):
        model.partial_fit(X[:, :5])


def test_what_is_not_for_mini_batches_says_so(rng):
    X, _ = clustered(rng)
    model = MiniBatchKPOD(3, random_state=0).fit(X)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="sparse table dense"):
        MiniBatchKPOD(3, init="mean-fill").fit(sparse.csr_array(np.nan_to_num(X)))


# Tables on a disk


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_table_on_a_disk_is_read_once_an_epoch(rng, kind, tmp_path, monkeypatch):
    """Every batch of random rows read nearly all of the file."""
    monkeypatch.setattr(minibatch, "POOL_ENTRIES", 1 << 14)
    monkeypatch.setattr(minibatch, "STRETCH_ENTRIES", 1 << 9)
    X, _ = clustered(rng, 12_000, 8, missing=0.2)
    model = MiniBatchKPOD(5, batch_size=100, random_state=0)
    if kind == "dense":
        np.save(tmp_path / "x.npy", X)
        scanned = kpod.scan(tmp_path / "x.npy")
    else:
        X = as_csr_for_engine(X)
        sparse.save_npz(tmp_path / "x.npz", X, compressed=False)
        scanned = kpod.scan(tmp_path / "x.npz", scratch=tmp_path)
    read, real = [], mini_batch.some_rows

    def counting(values, rows):
        if pages_of(values.data if sparse.issparse(values) else values):
            read.append(len(rows))
        return real(values, rows)

    monkeypatch.setattr(mini_batch, "some_rows", counting)
    with scanned:
        on_disk = model.fit(scanned).cluster_centers_.copy()
    assert sum(read) <= (2 + 0.2) * 12_000  # two epochs, and the sample to start from
    assert len(read) <= 2 * 7 + 1  # pools, not batches
    assert_array_equal(on_disk, model.fit(X).cluster_centers_)


def test_pools_are_all_rows_once_from_all_over(rng, monkeypatch):
    monkeypatch.setattr(minibatch, "POOL_ENTRIES", 5_000)
    monkeypatch.setattr(minibatch, "STRETCH_ENTRIES", 50)
    rows = np.sort(rng.choice(40_000, 20_123, replace=False))
    found = list(minibatch.pools(rows, 30, 3, rng))
    assert_array_equal(np.sort(np.concatenate(found)), rows)
    assert {len(pool) for pool in found[:-1]} == {1650}
    for pool in found:
        assert (np.diff(pool) > 0).all()
        assert abs(pool.mean() - 20_000) < 4_000
    (whole,) = minibatch.pools(rows[:1_000], 30, 3, rng)
    assert_array_equal(whole, rows[:1_000])


def test_a_sorted_table_is_fitted_as_a_shuffled_one(rng, monkeypatch):
    monkeypatch.setattr(minibatch, "POOL_ENTRIES", 1 << 14)
    monkeypatch.setattr(minibatch, "STRETCH_ENTRIES", 1 << 8)
    X, truth = clustered(rng, 10_000, 8, k=5, missing=0.2, spread=0.5)
    loss = [
        MiniBatchKPOD(5, batch_size=200, random_state=0).fit(X[order]).inertia_
        for order in (np.argsort(truth, kind="stable"), rng.permutation(len(X)))
    ]
    assert loss[0] < 1.1 * loss[1]


# Streams


def test_a_batch_costs_the_same_however_many_came_before(rng):
    """What is kept of a stream does not grow with it."""
    X, _ = clustered(rng, 60, 4)
    model = MiniBatchKPOD(3, random_state=0).partial_fit(X)
    model._batch_losses.extend([1.0] * 5_000)
    model.n_steps_ += 5_000
    sizes = []
    for _ in range(3):
        model.partial_fit(X)
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes) - min(sizes) <= 8, "counters may take a byte more; a row takes 32"
    assert model.n_steps_ == 5_004
    assert len(model.batch_losses_) == 1_000
    assert len(MiniBatchKPOD(2, batch_size=1, n_epochs=20, random_state=0).fit(X).batch_losses_) == 1_000


def order_warnings(batches, **settings):
    model = MiniBatchKPOD(5, random_state=0, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for X in batches:
            model.partial_fit(X)
    return [str(one.message) for one in caught if "batches are not alike" in str(one.message)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [20, 100, 500])
def test_a_sorted_stream_is_noticed_once_and_no_other(seed, size):
    rng = np.random.default_rng(seed)
    X, truth = clustered(rng, 3000, 6, k=5, missing=0.4, spread=0.7)
    cuts = np.arange(size, len(X), size)
    cuts = cuts[cuts > 50]  # the first batch has to have rows for all clusters
    by_group = np.argsort(truth, kind="stable")
    (said,) = order_warnings(np.split(X[by_group], cuts))
    assert "shuffle rows" in said
    assert order_warnings(np.split(X[rng.permutation(len(X))], cuts)) == []
    assert order_warnings(np.split(X[by_group], cuts), half_life=500) == []


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_and_weights_are_no_order(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy(size=(2000, 30))
    X[rng.random(X.shape) < 0.9] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0
    assert order_warnings(np.array_split(X, 10)) == []
    model = MiniBatchKPOD(3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in np.array_split(rng.normal(size=(2000, 4)), 10):
            model.partial_fit(part, sample_weight=1e6 * rng.exponential(size=len(part)) ** 2)


def test_the_share_between_batches_is_that_of_an_analysis_of_variance(rng):
    shifts = ((0, 300), (1, 250), (2, 400))
    groups = [rng.normal(size=(size, 3)) + np.array([0, 0.2 * shift, 5 * shift]) for shift, size in shifts]
    order = Order.unknown(3)
    for X in groups:
        order.add(make_table(X, Executor()))
    share, columns = order.shares()
    among, within = 2, 950 - 3
    explained = among * stats.f_oneway(*groups).statistic
    explained = explained / (explained + within)
    assert_allclose(share, explained - among / within * (1 - explained), rtol=1e-6)
    assert_array_equal(columns, [2])
    in_parts = Order.unknown(3)
    for X in groups:
        for part in np.array_split(X[:200], 3):  # too short to be compared one by one
            in_parts.add(make_table(part, Executor()))
    whole = Order.unknown(3)
    for X in groups:
        whole.add(make_table(X[:200], Executor()))
    assert_allclose(in_parts.shares()[0], whole.shares()[0], rtol=1e-6)
