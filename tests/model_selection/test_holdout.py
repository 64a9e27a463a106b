"""Which entries are hidden, and what errors on them are worth."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpod._engine import blocks
from kpod._engine import table as engine_table
from kpod._engine.executors import Executor, threads
from kpod._engine.fit import Fit, FitPlan
from kpod._engine.solvers.interface import Solution
from kpod._model_selection import holdout
from kpod._model_selection.holdout import smallest_within
from kpod._model_selection.race import Race
from tests.helpers.tables import as_csr_for_engine as as_csr
from tests.helpers.tables import clustered, table_of


@pytest.fixture(params=[np.asarray, as_csr], ids=["dense", "sparse"])
def container(request):
    return request.param


def folds_of(X, seed, **settings):
    return holdout.folds(table_of(X), Executor(), seed, **settings)


def shown(fold):
    """What a fold leaves of the table, in its own units."""
    return fold.table.units.back(fold.table.entries(np.arange(fold.table.n_rows)))


@pytest.mark.parametrize("missing", [0, 0.3, 0.8])
def test_folds_hide_observed_entries_once_and_nothing_else_changes(missing, rng, container, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 7)  # several blocks
    X, _ = clustered(rng, missing=missing)
    before = X.copy()
    times_hidden, hidden_by = np.zeros(X.shape, int), np.full(X.shape, -1)
    sizes = []
    for number, fold in enumerate(folds_of(container(X), seed=3)):
        assert len(fold.table.blocks) > 1
        assert_array_equal(fold.values, X[fold.rows, fold.columns])
        assert not np.isnan(fold.values).any()
        assert (np.diff(fold.rows) >= 0).all()
        expected = X.copy()
        expected[fold.rows, fold.columns] = np.nan
        assert_allclose(shown(fold), expected, atol=1e-12)
        np.add.at(times_hidden, (fold.rows, fold.columns), 1)
        hidden_by[fold.rows, fold.columns] = number
        sizes.append(len(fold.rows))
    assert_array_equal(X, before)
    assert times_hidden.max() == 1
    assert not (times_hidden > ~np.isnan(X)).any()
    # Ten folds of a tenth hide everything once, but for one entry of a row that would lose all in one fold.
    for row in np.flatnonzero((times_hidden < ~np.isnan(X)).any(axis=1)):
        of_row = hidden_by[row, ~np.isnan(X[row])]
        assert (of_row == -1).sum() == 1
        assert len(set(of_row[of_row >= 0])) <= 1
    assert min(sizes) > 0.5 * max(sizes)


@pytest.mark.parametrize("missing", [0.3, 0.9])
def test_every_row_keeps_an_entry_and_every_column_two(missing, rng, container):
    X, _ = clustered(rng, n_rows=60, n_columns=4, missing=missing)
    observed = ~np.isnan(X)
    hidden = 0
    for fold in folds_of(container(X), seed=5, n_folds=2, share=0.5):
        kept = ~np.isnan(shown(fold))
        assert (kept.sum(axis=1) >= np.minimum(observed.sum(axis=1), 1)).all()
        assert (kept.sum(axis=0) >= np.minimum(observed.sum(axis=0), 2)).all()
        hidden += len(fold.rows)
    assert hidden > 0


def test_rows_and_columns_with_little_keep_it(container):
    X = np.full((40, 3), np.nan)
    X[:, 0] = np.arange(40)  # the only entry of most rows
    X[:2, 2] = 1.0  # a column of two
    for fold in folds_of(container(X), seed=0):
        assert set(fold.columns) <= {0}
        assert set(fold.rows) <= {0, 1}
        assert (~np.isnan(shown(fold))).sum(axis=0)[2] == 2
        assert (~np.isnan(shown(fold))).any(axis=1).all()


def test_a_sparse_table_hides_the_same_entries_as_the_dense_one(rng):
    X, _ = clustered(rng, missing=0.6)
    for dense, csr in zip(folds_of(X, seed=8), folds_of(as_csr(X), seed=8), strict=True):
        assert_array_equal(dense.rows, csr.rows)
        assert_array_equal(dense.columns, csr.columns)
        assert_array_equal(dense.values, csr.values)


def test_any_way_of_fitting_is_judged_on_the_same_entries(rng):
    """Against predictions written out: column means, and the centers of the truth."""
    X, truth = clustered(rng, missing=0.3)
    table = table_of(X)
    folds = holdout.folds(table, Executor(), 4)

    def at_labels(labels, k):
        def fit(table, executor):
            z = table.entries(np.arange(table.n_rows))
            centers = np.array([np.nanmean(z[labels == c], axis=0) for c in range(k)])
            return Solution(labels.astype(np.int32), centers, centers, 0.0, 0.0, [], 1, True, [])

        return fit

    told = []
    with threads(3) as executor:
        race = Race(folds, executor, told.append)
        race.run({1: at_labels(np.zeros(len(X), int), 1)})  # alone, so that neither is dropped
        race.run({5: at_labels(truth, 5)})
    assert sorted(told) == [1] * 10 + [5] * 10
    one, true = race.errors[1], race.errors[5]
    assert true.mean < one.mean
    squared = []
    for fold in folds:
        seen = X.copy()
        seen[fold.rows, fold.columns] = np.nan
        squared.append((fold.values - np.nanmean(seen, axis=0)[fold.columns]) ** 2)
    assert_allclose(one.mean, np.concatenate(squared).mean())
    assert len(race.labels(5, 10)) == 10


def test_errors_add_up_over_folds_by_row_and_column(rng):
    X, _ = clustered(rng, missing=0.3)
    weights = rng.integers(0, 4, size=len(X)).astype(float)
    folds = folds_of(X, 1)
    squared = [rng.random(len(fold.rows)) for fold in folds]
    errors = holdout.add_up(X.shape, folds, squared, weights)
    flat = np.concatenate(squared)
    weight = np.concatenate([weights[fold.rows] for fold in folds])
    column = np.concatenate([fold.columns for fold in folds])
    assert_allclose(errors.mean, np.average(flat, weights=weight))
    for j in range(X.shape[1]):
        assert_allclose(errors.column_means[j], np.average(flat[column == j], weights=weight[column == j]))


def test_the_paired_standard_error_covers_the_difference(rng):
    """Two predictions, one with an error of its own on top: the z values are standard normal."""
    z = []
    for _ in range(200):
        X = rng.normal(size=(60, 12))
        folds = folds_of(X, int(rng.integers(2**31)))
        noise = rng.normal(size=(2, *X.shape))
        one, other = (
            holdout.add_up(X.shape, folds, [n[f.rows, f.columns] ** 2 for f in folds]) for n in noise
        )
        above, error = one.above(other)
        z.append(above / error)
    assert 0.8 < np.std(z) < 1.2
    assert one.above(one) == (0.0, 0.0)


def test_what_is_added_to_rows_counts_where_nothing_was_hidden_too():
    errors = holdout.Errors(np.array([1.0, 3.0]), np.ones(1), 2.0, np.ones(1), np.array([0, 2]))
    more = np.array([1.0, 2.0, 0.5, 0.0])
    assert_array_equal(errors.plus(more).by_row, [2.0, 2.0, 3.5, 0.0])
    assert errors.plus(more).mean == 7.5 / 2
    assert_array_equal(more, [1.0, 2.0, 0.5, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0, 0.3, 0.8])
def test_folds_that_are_copies_give_the_same_bits(missing, dtype, rng, monkeypatch):
    """Whether what is hidden is a bitmap or a NaN makes no difference but in time."""
    X, _ = clustered(rng, 150, 9, 4, missing)
    found = []
    for most in (0, 1 << 20):
        monkeypatch.setattr(engine_table, "COPIED_ENTRIES", most)
        fold = folds_of(X.astype(dtype), seed=3)[0]
        assert fold.table.blocks[0].hidden.copied is bool(most)
        solution = Fit(FitPlan(4, n_starts=2), fold.table, Executor()).solve()
        found.append((fold.values, solution.labels, solution.centers, solution.loss, solution.trace))
    for with_bitmap, copied in zip(*found, strict=True):
        assert_array_equal(with_bitmap, copied)


@dataclass
class Noise:
    """A way of fitting that predicts zero plus noise of a size of its own, and is counted."""

    size: float
    n_fits: int = 0

    def __call__(self, table, executor):
        self.n_fits += 1
        noise = np.random.default_rng(self.n_fits).normal(size=(table.n_rows, table.n_columns))
        labels = np.arange(table.n_rows, dtype=np.int32)
        return Solution(labels, self.size * noise, noise, 0.0, 0.0, [], 1, True, [])


def race_of(folds, ways, **settings):
    race = Race(folds, Executor(), **settings)
    race.run(ways)
    return race


def test_ways_that_cannot_win_are_fitted_to_fewer_folds_and_judged_alike(rng, monkeypatch):
    """Where a way is dropped, its error and its distance from the best are about those on all folds."""
    folds = folds_of(rng.normal(size=(400, 10)), 1)
    dropped = []
    ways = {-size: Noise(size) for size in (0.0, 0.05, 0.6, 2.0)}  # smaller settings than the best
    race = race_of(folds, ways, dropped=lambda name, n: dropped.append((name, n)))
    n_fits = [way.n_fits for way in ways.values()]
    assert n_fits[:2] == [10, 10]
    assert n_fits[3] <= n_fits[2] < 10
    assert dropped == [(size, 10 - way.n_fits) for size, way in reversed(ways.items()) if way.n_fits < 10]
    larger = race_of(folds, {size: Noise(size) for size in (0.0, 0.05, 0.6, 2.0)})
    for size, of_smaller in zip((0.05, 0.6, 2.0), n_fits[1:], strict=True):
        assert larger.runners[size].n_folds <= of_smaller, "a larger setting is out before"
    assert larger.runners[0.6].n_folds < 10
    every = Race(folds, Executor())
    monkeypatch.setattr("kpod._model_selection.race.OUT", np.inf)
    every.run({-size: Noise(size) for size in (0.0, 0.05, 0.6, 2.0)})
    for size, errors in race.errors.items():
        exact = every.errors[size]
        assert abs(errors.mean - exact.mean) < 4 * errors.above(race.errors[0.0])[1] + 1e-12
        assert_allclose(errors.column_means.mean(), errors.mean, rtol=0.05)
        assert len(errors.rows) == len(exact.rows)
    assert smallest_within(race.errors, 1.0) == smallest_within(every.errors, 1.0)
    assert len(race.labels(-2.0, 10)) == 10  # on demand
    assert ways[-2.0].n_fits == 10
    assert_allclose(race.errors[-2.0].mean, every.errors[-2.0].mean)


def test_what_is_dropped_would_be_out_even_if_the_other_folds_showed_no_difference(rng):
    folds = folds_of(rng.normal(size=(200, 8)), 1)
    for size in (0.3, 0.5, 1.0, 3.0):
        race = race_of(folds, {2: Noise(0.0), 1: Noise(size)})
        best, other = race.runners[2], race.runners[1]
        m = other.n_folds
        if m == len(folds):
            continue
        squared = [*other.squared, *best.squared[m:]]
        errors = holdout.add_up((200, 8), folds, squared)
        assert holdout.above(errors, best.errors[-1]) > 2
