"""A CSR table is the same table dense with NaN: what is not stored is missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from kpod import KPOD
from kpod._engine import blocks
from kpod._engine import fit as engine_fit
from kpod._engine.executors import Executor
from kpod._engine.seeding import SEEDINGS
from tests.helpers.tables import as_csr, as_csr_for_engine, clustered, lloyd, table_of


@pytest.fixture(params=[0.3, 0.9], ids=["30 % missing", "90 % missing"])
def X(request, rng, dtype):
    X = clustered(rng, 400, 30, missing=request.param, dtype=dtype)[0]
    X[rng.random(X.shape) < 0.05] *= 0  # zeros that were observed
    return X


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("weighted", [False, True])
def test_csr_is_dense_through_every_method(X, algorithm, weighted, rng):
    weights = rng.random(len(X)) if weighted else None
    models = []
    for table in (X, as_csr(X)):
        model = KPOD(5, algorithm=algorithm, init=X[:5], tol=0).fit(table, sample_weight=weights)
        models.append(
            (model, model.predict(table), model.transform(table), model.score(table, sample_weight=weights))
        )
    (dense, *theirs), (csr, *ours) = models
    assert_array_equal(csr.labels_, dense.labels_)
    assert_allclose(csr.cluster_centers_, dense.cluster_centers_, rtol=1e-5, atol=1e-6)
    assert_allclose(csr.inertia_, dense.inertia_, rtol=1e-6)
    assert_allclose(csr.loss_curve_, dense.loss_curve_, rtol=1e-6)
    assert_allclose(csr.counts_, dense.counts_)
    assert_array_equal(ours[0], theirs[0])
    assert_allclose(ours[1], theirs[1], rtol=1e-4)
    assert_allclose(ours[2], theirs[2], rtol=1e-5)
    # and across: a model of either predicts the other
    assert_array_equal(csr.predict(X), dense.predict(as_csr(X)))


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_same_seeds_are_drawn(X, init):
    starts = []
    for table in (table_of(X), table_of(as_csr_for_engine(X))):
        rng = np.random.default_rng(0)
        starts.append(SEEDINGS[init](table, Executor(), 5, rng).draw(rng).centers)
    assert_allclose(*starts, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_formats_and_index_types(kind, index):
    X = clustered(np.random.default_rng(0), 60, 6)[0]
    table = as_csr(X, kind)
    if hasattr(table, "indices"):
        table.indices, table.indptr = table.indices.astype(index), table.indptr.astype(index)
    assert_array_equal(KPOD(3, random_state=0).fit(table).labels_, KPOD(3, random_state=0).fit(X).labels_)


def test_integers_are_taken_as_floats():
    table = sparse.csr_array(np.array([[1, 2, 0], [0, 2, 3], [9, 9, 0], [9, 0, 8]]))
    assert KPOD(2, random_state=0).fit(table).cluster_centers_.dtype == np.float64


def test_unsorted_indices_are_put_right_without_touching_the_users():
    X = clustered(np.random.default_rng(0), 60, 6)[0]
    table = as_csr(X)
    for start, stop in zip(table.indptr[:-1], table.indptr[1:], strict=True):
        table.indices[start:stop] = table.indices[start:stop][::-1]
        table.data[start:stop] = table.data[start:stop][::-1]
    table.has_sorted_indices = False
    before = table.indices.copy()
    assert_array_equal(KPOD(3, random_state=0).fit(table).labels_, KPOD(3, random_state=0).fit(X).labels_)
    assert_array_equal(table.indices, before)


def test_stored_nan_is_missing():
    X = clustered(np.random.default_rng(0), 60, 6)[0]
    stored = sparse.csr_array(np.where(np.isnan(X), 7.0, X))
    stored.data[np.isnan(X).ravel()] = np.nan
    assert_array_equal(KPOD(3, random_state=0).fit(stored).labels_, KPOD(3, random_state=0).fit(X).labels_)


def test_everything_stored_just_works():
    X = clustered(np.random.default_rng(0), 60, 6, missing=0)[0]
    assert_array_equal(KPOD(3, random_state=0).fit(as_csr(X)).labels_, KPOD(3, random_state=0).fit(X).labels_)


def test_infinity_names_row_and_column():
    table = sparse.csr_array(np.array([[1.0, 2.0], [0.0, np.inf], [3.0, 1.0]]))
    with pytest.raises(ValueError, match=r"infinity.* in column 1 \(first in row 1\)"):
        KPOD(2).fit(table)


def test_empty_rows_get_minus_one():
    table = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]]))
    with pytest.warns(UserWarning, match="1 of 3 rows has nothing observed"):
        assert KPOD(2).fit(table).labels_[1] == -1


def test_nothing_stored_at_all():
    with pytest.raises(ValueError, match="of 3 rows, 0 have an observed entry"):
        KPOD(1).fit(sparse.csr_array((3, 4)))


@pytest.mark.parametrize("bad", [5, -1])
def test_indices_out_of_range(bad):
    table = sparse.csr_array(np.array([[1.0, 2.0], [3.0, 1.0]]))
    table.indices[1] = bad
    with pytest.raises(ValueError, match="indices"):
        KPOD(2).fit(table)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (sparse.csr_array, "indices"),
        (sparse.csr_array, "indptr"),
        (sparse.csc_array, "indices"),
        (sparse.csc_array, "indptr"),
        (sparse.coo_array, "coords"),
    ],
)
def test_malformed_tables_are_refused_before_scipy_follows_them(kind, part, dtype, monkeypatch):
    """Converting integers, or from another format, would read and write out of bounds."""
    table = kind(np.array([[1, 2, 0], [3, 1, 4]], dtype=dtype))
    if part == "coords":
        table.coords = (table.coords[0], table.coords[1] + 10**6)
    else:
        getattr(table, part)[1] = 10**6
    for name in ("astype", "tocsr", "tocoo"):
        monkeypatch.setattr(type(table), name, lambda *_, **__: pytest.fail("SciPy got to see it"))
    with pytest.raises(ValueError, match="X is not a valid sparse table"):
        KPOD(2).fit(table)


def test_more_columns_than_the_indices_can_count():
    table = sparse.csr_array(
        (np.ones(2), np.array([5, 2**31 + 5]), np.array([0, 1, 2])), shape=(2, 2**31 + 9)
    )
    with pytest.raises(ValueError, match=r"X has 2,147,483,657 columns; a sparse table may have at most"):
        KPOD(2).fit(table)


def test_entries_stored_twice_are_refused():
    coo = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match="stores some entries more than once"):
        KPOD(1).fit(coo)
    csr = sparse.csr_array(
        (np.array([4.0, 1.0, 2.0]), np.array([0, 1, 1]), np.array([0, 1, 3])), shape=(2, 2)
    )
    with pytest.raises(ValueError, match=r"more than once.*row 1, column 1"):
        KPOD(1).fit(csr)


def test_indicators_are_pointed_out():
    with pytest.warns(UserWarning, match=r"All stored values of X are equal \(1\).*missing here, not as 0"):
        KPOD(1).fit(sparse.csr_array(np.eye(3)))


def test_impute_refuses_a_sparse_table():
    table = as_csr(clustered(np.random.default_rng(0), 60, 6)[0])
    with pytest.raises(ValueError, match="impute does not accept sparse tables"):
        KPOD(2).fit(table).impute(table)


@pytest.mark.parametrize("setting", [{"algorithm": "mm"}, {"init": "mean-fill"}])
def test_filling_in_refuses_a_sparse_table(setting):
    table = as_csr(clustered(np.random.default_rng(0), 60, 6)[0])
    with pytest.raises(ValueError, match="would make a sparse table dense"):
        KPOD(2, **setting).fit(table)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_same_bits_on_any_number_of_threads(n_threads, rng, monkeypatch):
    monkeypatch.setattr(engine_fit, "SHORT_WORK", 0)
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 13)
    table = as_csr(clustered(rng, 40_000, 12, missing=0.8, spread=1.0)[0])
    assert len(table_of(as_csr_for_engine(table)).blocks) > 2 * n_threads
    fits = [KPOD(4, n_init=1, n_threads=n, random_state=0).fit(table) for n in (1, n_threads)]
    for name in ("labels_", "cluster_centers_", "inertia_", "loss_curve_"):
        assert_array_equal(*(getattr(fit, name) for fit in fits))


class TestShrinkage:
    """shrinkage is weight at the column's mean that never moves."""

    @pytest.fixture(params=["lloyd", "hartigan"])
    def algorithm(self, request):
        return request.param

    @pytest.fixture(params=[np.asarray, as_csr], ids=["dense", "csr"])
    def container(self, request):
        return request.param

    def test_centers_and_objective(self, algorithm, container, rng):
        X = clustered(rng, missing=0.7)[0]
        model = KPOD(5, algorithm=algorithm, shrinkage=3.0, random_state=0).fit(container(X))
        mean = np.nanmean(X, axis=0)
        for c in range(5):
            own = X[model.labels_ == c]
            expected = (np.nansum(own, axis=0) + 3 * mean) / ((~np.isnan(own)).sum(axis=0) + 3)
            assert_allclose(model.cluster_centers_[c], expected)
        plain = np.nansum((X - model.cluster_centers_[model.labels_]) ** 2)
        assert_allclose(model.inertia_, plain)
        penalty = 3 * ((model.cluster_centers_ - mean) ** 2).sum()
        assert_allclose(model.loss_curve_[-1], plain + penalty)
        assert (np.diff(model.loss_curve_) <= 1e-9 * plain).all()

    def test_it_is_k_more_rows_at_the_mean(self, rng):
        """Held in its cluster, a row at the column means with that weight gives the same centers."""
        X = clustered(rng, 100)[0]
        mean = np.nanmean(X, axis=0)
        model = KPOD(3, algorithm="lloyd", shrinkage=2.5, init=X[:3], tol=0).fit(X)
        padded = np.vstack([X, np.tile(mean, (3, 1))])
        weights = np.r_[np.ones(100), np.full(3, 2.5)]
        labels = np.r_[model.labels_, 0, 1, 2]
        for c in range(3):
            own = labels == c
            sums = np.nansum(weights[own, None] * padded[own], axis=0)
            counts = (weights[own, None] * ~np.isnan(padded[own])).sum(axis=0)
            assert_allclose(model.cluster_centers_[c], sums / counts)

    def test_no_single_move_is_left(self, container, rng):
        X = clustered(rng, 40, 5, missing=0.5, spread=1.0)[0]
        model = KPOD(4, shrinkage=1.5, n_init=1, tol=0, random_state=0).fit(container(X))
        mean = np.nanmean(X, axis=0)

        def objective(labels):
            total = 0.0
            for c in range(4):
                own = X[labels == c]
                counts = (~np.isnan(own)).sum(axis=0) + 1.5
                center = (np.nansum(own, axis=0) + 1.5 * mean) / counts
                total += np.nansum((own - center) ** 2) + 1.5 * ((center - mean) ** 2).sum()
            return total

        before = objective(model.labels_)
        assert_allclose(before, model.loss_curve_[-1])
        sizes = np.bincount(model.labels_, minlength=4)
        for i in range(40):
            for c in range(4):
                moved = model.labels_.copy()
                moved[i] = c
                if sizes[model.labels_[i]] > 1:
                    assert objective(moved) >= before * (1 - 1e-8)

    def test_a_large_one_pulls_every_center_to_the_mean(self, container, rng):
        X = clustered(rng, 100)[0]
        model = KPOD(2, shrinkage=1e9, random_state=0).fit(container(X))
        assert_allclose(model.cluster_centers_, np.tile(np.nanmean(X, axis=0), (2, 1)), atol=1e-5)

    def test_none_is_the_plain_loss(self, algorithm, rng):
        X = clustered(rng)[0]
        plain, zero = (
            KPOD(4, algorithm=algorithm, random_state=0, **s).fit(X) for s in ({}, {"shrinkage": 0})
        )
        assert plain.inertia_ == zero.inertia_ == zero.loss_curve_[-1]

    def test_mm_refuses_it(self):
        with pytest.raises(ValueError, match="shrinkage is not supported with algorithm='mm'"):
            KPOD(2, algorithm="mm", shrinkage=1).fit(np.eye(3))


def test_an_emptied_cluster_is_refilled_only_if_the_objective_falls(rng):
    """Next to two tight clusters, one row alone gains little and costs its way from the mean."""
    X = np.repeat([[0.0], [10.0]], 50, axis=0) + 0.01 * rng.normal(size=(100, 1))
    start = np.array([[0.0], [1e4], [10.0]])
    table = table_of(X)
    for shrinkage, clusters in ((0.0, 3), (1.0, 2)):
        solution = lloyd(table, start, max_iter=1, shrinkage=shrinkage)
        assert len(np.unique(solution.labels)) == clusters


def test_stored_values_with_strides(rng):
    X = rng.normal(size=(50, 4))
    plain = sparse.csr_array(X)
    twice = np.repeat(plain.data, 2)
    twice[1::2] = 1e6
    strided = sparse.csr_array(plain)
    strided.data = twice[::2]
    assert not strided.data.flags.c_contiguous
    fits = [KPOD(3, random_state=0).fit(table) for table in (plain, strided)]
    assert_array_equal(*(fit.column_means_ for fit in fits))
    assert_array_equal(*(fit.labels_ for fit in fits))
