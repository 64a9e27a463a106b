"""What every solver promises, then what each one does."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD
from kpod._engine import blocks, seeding, step
from kpod._engine import fit as engine_fit
from kpod._engine.executors import Executor
from kpod._engine.solvers import lloyd as engine_lloyd
from kpod._engine.solvers.lloyd import Descent
from kpod._kernels import descent
from kpod._kernels.panel import Panel
from tests.helpers import oracle
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import SOLVERS, as_csr, clustered, hartigan, lloyd, mm, random_rows, table_of


@pytest.fixture(params=sorted(SOLVERS))
def solver(request):
    return SOLVERS[request.param]


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def weights(request, rng):
    return rng.integers(1, 4, size=300).astype(np.float64) if request.param else None


def test_solution_is_consistent(solver, rng, dtype, weights):
    X, _ = clustered(rng, dtype=dtype)
    table = table_of(X, weights)
    for start in random_rows(X, 5, rng):
        solution = solver(table, start)
        exact = oracle.centers(X.astype(np.float64), solution.labels, 5, weights)
        rtol = 1e-4 if dtype is np.float32 else 1e-9
        assert_allclose(solution.centers, exact, rtol=rtol, atol=rtol)
        assert_allclose(
            solution.loss, oracle.loss(X.astype(np.float64), solution.labels, exact, weights), rtol=rtol
        )
        assert_allclose(solution.counts, oracle.totals(X, solution.labels, 5, weights)[1])
        assert solution.converged


def test_trace_never_rises(solver, rng, dtype, weights):
    X, _ = clustered(rng, missing=0.5, spread=1.0, dtype=dtype)
    table = table_of(X, weights)
    rounding = 1e-6 if dtype is np.float32 else 1e-12
    for start in random_rows(X, 7, rng):
        trace = np.array(solver(table, start).trace)
        assert (np.diff(trace) <= rounding * trace[:-1]).all()


def test_max_iter_is_respected_and_reported(solver, rng):
    X, _ = clustered(rng, spread=2.0)
    table = table_of(X)
    (start,) = random_rows(X, 5, rng, 1)
    short = solver(table, start, max_iter=1)
    assert short.n_iter == 1
    if solver is not mm:
        assert not short.converged


def test_lloyd_is_the_oracles(rng, weights, monkeypatch):
    monkeypatch.setattr(engine_lloyd, "CREEP", 1000)
    X, _ = clustered(rng, missing=0.5, spread=1.0)
    table = table_of(X, weights)
    for start in random_rows(X, 5, rng):
        labels, _ = oracle.lloyd(X, start, 300, weights)
        if len(np.unique(labels)) == 5:
            assert_array_equal(lloyd(table, start).labels, labels)


def creeping(rng, dtype=np.float64, n=5000):
    """A table that takes Lloyd many steps, hundreds if it is long, and a start."""
    X, _ = clustered(rng, n, 20, k=20, missing=0.7, spread=2.0, dtype=dtype)
    table = table_of(X)
    return table, random_rows(X, 20, rng, 1)[0]


def test_momentum_saves_iterations(rng, monkeypatch):
    """And ends lower in the mean: single tables may fall into another minimum."""
    carried, plain = [], []
    for _ in range(5):
        table, start = creeping(rng, n=20_000)
        with monkeypatch.context() as patch:
            carried.append(lloyd(table, start, max_iter=2000))
            patch.setattr(engine_lloyd, "CREEP", 2000)
            plain.append(lloyd(table, start, max_iter=2000))
    assert sum(fit.n_iter for fit in carried) < sum(fit.n_iter for fit in plain)
    assert np.mean([fit.loss for fit in carried]) < np.mean([fit.loss for fit in plain])


@pytest.mark.parametrize("momentum", [0.9, 5.0, 100.0])
def test_with_any_momentum_the_loss_never_rises_and_centers_come_to_rest(momentum, rng, dtype, monkeypatch):
    """A step that goes too far is taken back."""
    monkeypatch.setattr(Descent, "is_simple", property(lambda self: False))
    monkeypatch.setattr(descent, "go_beyond", lambda out, at, step, run: np.add(at, momentum * step, out=out))
    monkeypatch.setattr(engine_lloyd, "CREEP", 2)
    table, start = creeping(rng, dtype)
    for max_iter in (2000, 7, 8):
        end = lloyd(table, start, max_iter=max_iter)
        rounding = 1e-6 if dtype is np.float32 else 1e-12
        assert (np.diff(end.trace) <= rounding * end.loss).all()
        assert end.n_iter == len(end.trace)
    labels_unchanged = lloyd(table, start, max_iter=2000)
    assert labels_unchanged.converged
    again = lloyd(table, labels_unchanged.centers, max_iter=1)
    assert (again.labels != labels_unchanged.labels).mean() < (1e-2 if dtype is np.float32 else 1e-12)


def test_complete_tables_get_no_momentum(rng, monkeypatch):
    """There Lloyd is scikit-learn's to the last iteration."""
    monkeypatch.setattr(engine_lloyd, "CREEP", 1)
    X, _ = clustered(rng, 2000, 12, k=10, missing=0, spread=2.0)
    table = table_of(X)
    (start,) = random_rows(X, 10, rng, 1)
    theirs = KMeans(10, init=start, n_init=1, tol=0).fit(X)
    assert_array_equal(lloyd(table, start).labels, theirs.labels_)


def test_lloyd_on_complete_data_is_scikit_learns(rng, dtype):
    X, _ = clustered(rng, 500, missing=0, spread=1.0, dtype=dtype)
    table = table_of(X)
    for start in random_rows(X, 6, rng):
        theirs = KMeans(6, init=start.astype(dtype), n_init=1, tol=0).fit(X)
        ours = lloyd(table, start)
        assert_allclose(ours.loss, theirs.inertia_, rtol=1e-4 if dtype is np.float32 else 1e-10)
        if dtype is np.float64:
            assert_array_equal(ours.labels, theirs.labels_)


def test_bounded_and_unbounded_lloyd_agree(rng, dtype):
    X, _ = clustered(rng, 3000, 10, spread=1.0, dtype=dtype)
    plain_table = table_of(X)
    for table, start in [
        *((plain_table, start) for start in random_rows(X, 8, rng)),
        creeping(rng, dtype),
    ]:
        bounded = lloyd(table, start)
        unbounded = lloyd(table, start, bounded=False)
        assert_array_equal(bounded.labels, unbounded.labels)
        assert bounded.loss == unbounded.loss


@pytest.mark.parametrize("k", [2, 9, 40])
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.85])
@pytest.mark.parametrize("ties", [False, True])
def test_bounded_and_unbounded_lloyd_agree_on_short_rows_ties_and_weights(ties, missing, k, rng, dtype):
    """To the last bit. Rows of one or two entries, some of no weight; whole numbers, so rows repeat."""
    X, _ = clustered(rng, 1500, 12, missing=missing, spread=1.0, dtype=dtype)
    X = np.round(X) if ties else X
    table = table_of(X, rng.integers(0, 3, size=len(X)).astype(np.float64))
    for start in random_rows(X, k, rng):
        bounded = lloyd(table, start, max_iter=50)
        unbounded = lloyd(table, start, max_iter=50, bounded=False)
        assert_array_equal(bounded.labels, unbounded.labels)
        assert bounded.trace == unbounded.trace


@pytest.mark.parametrize("scale", [1e-15, 1e-17, 1e-20, 1e-22, 1e-23, 1e-30])
def test_bounded_and_unbounded_lloyd_agree_on_tiny_values(scale, rng, dtype):
    """Whose squares single precision, which bounds are kept in, does not hold."""
    X, _ = clustered(rng, 1500, 6, missing=0.4, spread=1.0)
    table = table_of((X * scale).astype(dtype))
    for start in random_rows(X, 8, rng):
        bounded, unbounded = (lloyd(table, start, bounded=bounded) for bounded in (True, False))
        assert_array_equal(bounded.labels, unbounded.labels)
        assert bounded.trace == unbounded.trace


@pytest.mark.parametrize("spread", [1e-5, 1e-4])
@pytest.mark.parametrize("missing", [0, 0.3])
def test_bounded_and_unbounded_lloyd_agree_on_tight_clusters_far_apart(missing, spread, rng):
    """Where a center's move of less than a rounding of single precision may round to a whole one."""
    for _ in range(3):
        X = spread * rng.normal(size=(20_000, 4)) + rng.choice([-1, 1], size=(20_000, 1))
        X[rng.random(X.shape) < missing] = np.nan
        table = table_of(X.astype(np.float32))
        (start,) = random_rows(X, 12, rng, 1)
        bounded, unbounded = (lloyd(table, start, bounded=bounded) for bounded in (True, False))
        assert_array_equal(bounded.labels, unbounded.labels)
        assert bounded.trace == unbounded.trace


def test_a_constant_table_converges_whatever_its_weights(rng, dtype):
    """The variance is 0, and rounding must not make it less."""
    for _ in range(20):
        X = np.full((50, 3), rng.normal(), dtype)
        model = KPOD(1, algorithm="lloyd", random_state=0).fit(X, sample_weight=rng.random(50))
        assert model.converged_
        assert model.n_iter_ <= 2


@pytest.mark.filterwarnings("ignore:1 of 50 rows has nothing observed")
@pytest.mark.parametrize("scale", [1e37, 1e39, 1e100])
def test_empty_rows_have_no_label_however_far_centers_move(scale, rng):
    X, _ = clustered(rng, 50, 3)
    X[7] = np.nan
    model = KPOD(3, algorithm="lloyd", n_init=3, random_state=0).fit(X * scale)
    assert_array_equal(np.flatnonzero(model.labels_ == -1), [7])


def test_whole_numbers_come_to_rest(rng):
    """Centers that coincide but for rounding do not pass rows to and fro."""
    for _ in range(20):
        X = rng.integers(0, 3, size=(500, 3)).astype(np.float64)
        X[rng.random(X.shape) < 0.3] = np.nan
        table = table_of(X)
        for start in random_rows(X, 20, rng):
            assert lloyd(table, start).converged


@pytest.mark.filterwarnings("ignore:Number of distinct")
def test_more_clusters_than_distinct_rows_with_weights_of_zero(rng):
    """Empty clusters get no row that weighs nothing or has no loss, and weights that cancel leave no NaN."""
    for seed in range(30):
        n = int(rng.integers(8, 20))
        X = rng.integers(0, 2, size=(n, 2)).astype(np.float64)
        weights = rng.random(n) * rng.integers(0, 2, n)
        weights[:7] += 0.1
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
            model = KPOD(7, n_init=3, random_state=seed).fit(X, sample_weight=weights)
        assert_allclose(model.inertia_, oracle.loss_of_labels(X, model.labels_, 7, weights), atol=1e-12)


@pytest.mark.filterwarnings("ignore:Number of distinct")
def test_a_first_row_without_weight_is_given_to_no_empty_cluster():
    """And without a word: warnings are errors here."""
    X = np.ones((4, 2))
    model = KPOD(3, init=[[1, 1], [8, 8], [9, 9]]).fit(X, sample_weight=[0, 1, 1, 1])
    assert_array_equal(model.labels_, 0)


def test_lloyd_ignores_the_order_of_rows_and_columns(rng):
    X, _ = clustered(rng)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    table, permuted = table_of(X), table_of(X[rows][:, columns])
    (start,) = random_rows(X, 5, rng, 1)
    one = lloyd(table, start)
    other = lloyd(permuted, start[:, columns])
    assert_array_equal(one.labels[rows], other.labels)
    assert_allclose(one.loss, other.loss)


@pytest.mark.parametrize("name", ["lloyd", "hartigan"])
def test_a_weight_is_a_repetition(name, rng):
    X, _ = clustered(rng)
    times = rng.integers(1, 4, size=len(X))
    weighted, repeated = table_of(X, times.astype(float)), table_of(np.repeat(X, times, axis=0))
    (start,) = random_rows(X, 5, rng, 1)
    one = SOLVERS[name](weighted, start)
    other = SOLVERS[name](repeated, start)
    if name == "lloyd":
        assert_array_equal(np.repeat(one.labels, times), other.labels)
        assert_allclose(one.loss, other.loss)
    else:
        # Copies of a row may move one by one, which can only help.
        assert_allclose(one.loss, oracle.loss_of_labels(X, one.labels, 5, times))


def test_hartigan_never_ends_above_lloyd(rng, dtype):
    for missing in (0.1, 0.5, 0.8):
        X, _ = clustered(rng, 200, missing=missing, spread=1.0, dtype=dtype)
        table = table_of(X)
        for start in random_rows(X, 6, rng, 5):
            low = hartigan(table, start).loss
            assert low <= lloyd(table, start).loss * (1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_single_move_is_left(weighted, rng):
    """Checked by computing the loss of every possible move from scratch."""
    X, _ = clustered(rng, 40, 5, missing=0.5, spread=1.0)
    weights = rng.integers(0, 4, size=40).astype(float) if weighted else None
    table = table_of(X, weights)
    for start in random_rows(X, 4, rng):
        solution = hartigan(table, start)
        assert oracle.best_single_move(X, solution.labels, 4, weights) <= 1e-8 * solution.loss


def test_an_end_of_hartigan_is_a_fixed_point_of_lloyd(rng):
    X, _ = clustered(rng, missing=0.5)
    table = table_of(X)
    for start in random_rows(X, 5, rng):
        end = hartigan(table, start)
        assert_array_equal(lloyd(table, end.centers, max_iter=1).labels, end.labels)


def test_mm_is_above_lloyd_is_above_hartigan_in_the_mean():
    """Filling in is a penalty on leaving; single tables may differ, many do not."""
    losses = {name: [] for name in SOLVERS}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, _ = clustered(rng, 150, 10, missing=0.5, spread=0.8)
        table = table_of(X)
        (start,) = random_rows(X, 5, rng, 1)
        for name, solver in SOLVERS.items():
            losses[name].append(solver(table, start).loss)
    assert np.mean(losses["hartigan"]) <= np.mean(losses["lloyd"]) <= np.mean(losses["mm"])


def test_mm_step_is_the_papers(rng):
    """One outer step: fill from the start's own centers, k-means, exact observed centers."""
    X, _ = clustered(rng, 100, 6, k=3, missing=0.3, spread=0.4)
    table = table_of(X)
    (start,) = random_rows(X, 3, rng, 1)
    solution = mm(table, start, max_iter=1)
    given = start
    filled = np.where(np.isnan(X), given[oracle.assign(X, given)], X)
    complete = table_of(filled)
    inner = hartigan(complete, given)
    assert_array_equal(solution.labels, inner.labels)


def test_mm_on_complete_data_is_k_means(rng):
    X, _ = clustered(rng, missing=0)
    table = table_of(X)
    (start,) = random_rows(X, 5, rng, 1)
    assert_array_equal(
        mm(table, start).labels,
        hartigan(table, start).labels,
    )


def test_single_and_double_precision_agree_on_separated_clusters(solver, rng):
    X, truth = clustered(rng, 400, 20, missing=0.3, spread=0.2)
    start = oracle.centers(X, truth, 5)
    tables = [table_of(X.astype(dtype)) for dtype in (np.float32, np.float64)]
    single, double = (solver(table, start) for table in tables)
    assert_array_equal(single.labels, double.labels)
    assert_allclose(single.loss, double.loss, rtol=1e-4)


def test_data_far_from_zero_does_not_cancel(rng):
    X, truth = clustered(rng, 400, 10, missing=0.3, spread=0.2)
    X = (X + 1000).astype(np.float32)
    model = KPOD(5, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert_allclose(model.inertia_, oracle.loss_of_labels(X.astype(np.float64), model.labels_, 5), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_same_bits_on_any_number_of_threads(n_threads, rng, dtype, monkeypatch):
    """With many more blocks than threads, so that the order of merging is put to the test."""
    monkeypatch.setattr(engine_fit, "SHORT_WORK", 0)
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 14)
    X, _ = clustered(rng, 60_000, 7, spread=1.5, dtype=dtype)
    weights = rng.random(len(X))
    fits = [
        KPOD(6, n_init=2, max_iter=20, n_threads=n, random_state=0, tol=0).fit(X, sample_weight=weights)
        for n in (1, n_threads)
    ]
    assert len(table_of(X).blocks) > 2 * n_threads
    for name in ("labels_", "cluster_centers_", "inertia_", "counts_", "loss_curve_"):
        assert_array_equal(*(getattr(fit, name) for fit in fits))


def test_starts_shared_by_threads_give_the_same_bits(rng):
    X, _ = clustered(rng)
    one, many = (KPOD(5, n_threads=n, random_state=0).fit(X) for n in (1, 4))
    assert_array_equal(one.cluster_centers_, many.cluster_centers_)
    assert one.inertia_ == many.inertia_


def test_an_emptied_cluster_takes_the_farthest_row(solver, rng):
    """A center far from everything attracts no row, and is not left there."""
    X, _ = clustered(rng, 100, 4, k=3)
    start = np.nanmean(X, axis=0) + rng.normal(size=(3, 4)) * 0.1
    start[1] = 1e4
    table = table_of(X)
    solution = solver(table, start)
    assert len(np.unique(solution.labels)) == 3
    assert np.isfinite(solution.centers).all()


def test_a_center_beyond_single_precision_comes_back(rng, dtype):
    """Its square overflows in the bounds, which must not settle the rows for good."""
    X, _ = clustered(rng, 200, 4, k=2)
    start = rng.normal(size=(2, 4))
    start[1] = 1e25
    table = table_of(X.astype(dtype))
    bounded, unbounded = (lloyd(table, start, bounded=bounded) for bounded in (True, False))
    assert_array_equal(bounded.labels, unbounded.labels)


def test_a_cluster_that_got_a_row_has_that_rows_center(solver, rng, weights, dtype):
    """Nobody is near the last center; the row that it is given instead counts in one cluster alone."""
    X, _ = clustered(rng, missing=0.3, spread=1.0, dtype=dtype)
    (start,) = random_rows(X, 5, rng, 1)
    end = solver(table_of(X, weights), np.vstack([start, np.full(8, 1e6)]))
    assert len(np.unique(end.labels)) == 6
    rounding = 1e-5 if dtype is np.float32 else 1e-12
    assert_allclose(end.centers, oracle.centers(X, end.labels, 6, weights), rtol=rounding, atol=rounding)
    assert_allclose(end.counts, oracle.totals(X, end.labels, 6, weights)[1], rtol=rounding)


@pytest.mark.parametrize("k", [4, 7])
def test_fewer_different_rows_than_clusters(solver, k, rng):
    """Clusters that no row is left for stay empty, the last ones among them."""
    X = np.repeat(rng.permutation(np.arange(12.0)).reshape(3, 4), 10, axis=0)
    end = solver(table_of(X), np.vstack([X[[0, 10, 20]], np.full((k - 3, 4), 1e6)]))
    assert_array_equal(end.labels, np.repeat([0, 1, 2], 10))
    assert end.loss == 0


def test_seeds_are_drawn_from_a_sample_of_different_rows(rng, monkeypatch):
    monkeypatch.setattr(seeding, "LARGE_TABLE", 100)
    monkeypatch.setattr(seeding, "SAMPLE_ENTRIES", 1600)
    X, _ = clustered(rng, 400, 8)
    X[::50] = np.nan
    rows = seeding.KMeansPlusPlus(table_of(X), Executor(), 2, rng).rows
    assert len(rows) == len(np.unique(rows)) == 200
    assert not np.isnan(X[rows]).all(axis=1).any()


@pytest.fixture
def small_is_large(monkeypatch):
    """Tables of more than 3,000 observed entries are large."""
    for module in (engine_fit, seeding):
        monkeypatch.setattr(module, "LARGE_TABLE", 3000)
    monkeypatch.setattr(engine_fit, "SAMPLE_ROWS_PER_CLUSTER", 20)


def sample_in(monkeypatch):
    """The samples that starts are tried on, as they are made."""
    made = []
    of = engine_fit.sample_of
    monkeypatch.setattr(engine_fit, "sample_of", lambda *args: made.append(of(*args)) or made[-1])
    return made


@pytest.mark.parametrize("options", [{}, {"algorithm": "lloyd"}, {"missingness": "informative"}])
@pytest.mark.usefixtures("small_is_large")
@INFORMATIVE_BY_HAND
def test_a_large_table_goes_on_from_the_best_of_ten_on_a_sample(options, rng, dtype, monkeypatch):
    X, _ = clustered(rng, 2000, 8, k=6, missing=0.4, spread=0.3, dtype=dtype)
    made = sample_in(monkeypatch)
    model = KPOD(6, random_state=0, **options).fit(X)
    (sample,) = made
    assert 200 < sample.n_rows < 1000
    assert len(model.losses_) == 1
    tried = KPOD(6, random_state=0, n_init=10, **options).fit(X)
    if options.get("missingness") == "informative":
        assert model.objective_ <= tried.objective_ + 1e-3 * abs(tried.objective_)
    else:
        assert model.inertia_ <= 1.001 * tried.inertia_
    one_thread = KPOD(6, random_state=0, **options, n_threads=1).fit(X)
    assert_array_equal(model.labels_, one_thread.labels_)


@pytest.mark.usefixtures("small_is_large")
def test_a_number_of_starts_is_run_on_all_rows(rng, monkeypatch):
    X, _ = clustered(rng, 2000, 8)
    made = sample_in(monkeypatch)
    assert len(KPOD(5, n_init=4).fit(X).losses_) == 4
    KPOD(5, init="random").fit(X)
    KPOD(5).fit(X[:300])
    KPOD(5).fit(as_csr(X))
    wide, _ = clustered(rng, 100, 60)  # as many rows as a sample of five clusters has, but for one
    wide[0] = np.nan
    with pytest.warns(UserWarning, match="nothing observed"):
        KPOD(5).fit(wide)
    assert not made


@pytest.mark.usefixtures("small_is_large")
def test_a_sample_has_weights_and_may_lack_a_column(rng, monkeypatch):
    X, truth = clustered(rng, 3000, 6, k=3, missing=0.2, spread=0.3)
    weights = (truth != 2).astype(np.float64)  # nobody of the third cluster counts
    lone = np.where(np.arange(3000) == weights.argmax(), 1.0, np.nan)
    X = np.column_stack([X, lone])
    made = sample_in(monkeypatch)
    model = KPOD(2, random_state=0).fit(X, sample_weight=weights)
    assert (made[0].weights == 1).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert adjusted_rand_score(truth[truth != 2], model.labels_[truth != 2]) > 0.9


def test_the_papers_seeds_are_plain_k_means_plus_plus(rng):
    X, _ = clustered(rng)
    assert seeding.MeanFill(table_of(X), Executor(), 5, rng).seeds.n_candidates == 1


def test_random_starts_are_different_rows(rng):
    X = rng.normal(size=(30, 4))
    centers = seeding.RandomRows(table_of(X), Executor(), 30, rng).draw(rng).centers
    assert len(np.unique(centers, axis=0)) == 30


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_lloyd_stops_when_centers_move_by_tol_times_the_variance(tol, rng, monkeypatch):
    monkeypatch.setattr(engine_lloyd, "CREEP", 1000)
    X, _ = clustered(rng, 1000, spread=1.0)
    (start,) = random_rows(X, 5, rng, 1)
    centers, n_iter, moved = start, 0, np.inf
    while moved > tol * np.nanvar(X, axis=0).mean():
        before, centers = centers, oracle.centers(X, oracle.assign(X, centers), 5)
        moved, n_iter = ((centers - before) ** 2).sum(), n_iter + 1
    assert lloyd(table_of(X), start, tol=tol).n_iter == n_iter


@pytest.mark.parametrize("bounded", [True, False])
def test_without_bounds_every_row_is_compared(bounded, rng):
    """Bounds that say, wrongly, that every row is where it belongs."""
    X, _ = clustered(rng)
    table = table_of(X)
    centers = table.units.to(random_rows(X, 5, rng, 1)[0])
    state = step.State(np.zeros(300, np.int32), np.zeros(300, np.float32), np.full(300, 1e6, np.float32))
    assign = step.Assign(Panel(centers), step.Drift.none(5), bounded=bounded)
    labels = assign(table.blocks[0], state, step.Partial(None)).labels
    assert_array_equal(labels, 0 if bounded else oracle.assign(X, table.units.back(centers)))


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_lloyd_stops_as_soon_as_the_centers_move_by_no_more_than_tol(rng, tol):
    """The sum of squares of their moves, over the mean variance of a column, as scikit-learn has it."""
    X, _ = clustered(rng, 300, 6, k=4, spread=1.0)
    start = np.nan_to_num(X[:4])
    found = KPOD(4, init=start, algorithm="lloyd", tol=tol).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        after = [
            KPOD(4, init=start, algorithm="lloyd", tol=0, max_iter=n).fit(X).cluster_centers_
            for n in range(1, min(found.n_iter_, 19) + 1)  # momentum comes after twenty
        ]
    moves = [((now - before) ** 2).sum() for before, now in itertools.pairwise([start, *after])]
    enough = np.array(moves) <= tol * np.nanvar(X, axis=0).mean()
    assert not enough[:-1].any()
    assert enough[-1] or found.n_iter_ > 19
