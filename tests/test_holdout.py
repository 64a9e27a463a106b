"""Which entries are hidden, and what errors on them are worth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from kpod import _holdout
from tests.conftest import clustered


def as_csr(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def as_dense(table):
    if not sparse.issparse(table):
        return table
    X = np.full(table.shape, np.nan)
    coo = table.tocoo()
    X[coo.row, coo.col] = coo.data
    return X


@pytest.mark.parametrize("missing", [0, 0.3, 0.8])
def test_folds_hide_observed_entries_once_and_nothing_else_changes(missing, rng):
    X, _ = clustered(rng, missing=missing)
    before = X.copy()
    times_hidden = np.zeros(X.shape, int)
    for fold in _holdout.folds(X, seed=3, n_folds=10, share=0.1):
        assert_array_equal(fold.values, X[fold.rows, fold.columns])
        assert not np.isnan(fold.values).any()
        expected = X.copy()
        expected[fold.rows, fold.columns] = np.nan
        assert_array_equal(fold.table, expected)
        np.add.at(times_hidden, (fold.rows, fold.columns), 1)
    assert_array_equal(X, before)
    assert times_hidden.max() == 1
    # Ten folds of a tenth hide nearly everything once.
    observed = ~np.isnan(X)
    assert times_hidden.sum() >= observed.sum() - len(X)
    assert not (times_hidden > observed).any()


@pytest.mark.parametrize("missing", [0.3, 0.9])
def test_every_row_keeps_an_entry_and_every_column_two(missing, rng):
    X, _ = clustered(rng, n_rows=60, n_columns=4, missing=missing)
    observed = ~np.isnan(X)
    hidden = 0
    for fold in _holdout.folds(X, seed=5, n_folds=2, share=0.5):
        kept = ~np.isnan(fold.table)
        assert (kept.sum(axis=1) >= np.minimum(observed.sum(axis=1), 1)).all()
        assert (kept.sum(axis=0) >= np.minimum(observed.sum(axis=0), 2)).all()
        hidden += len(fold.rows)
    assert hidden > 0


def test_rows_and_columns_with_little_keep_it():
    X = np.full((40, 3), np.nan)
    X[:, 0] = np.arange(40)  # the only entry of its row
    X[:2, 2] = 1.0  # a column of two
    for fold in _holdout.folds(X, seed=0):
        assert len(fold.rows) == 0 or set(fold.columns) <= {0}
        assert (~np.isnan(fold.table)).sum(axis=0)[2] == 2
        assert (~np.isnan(fold.table)).any(axis=1).all()


def test_a_sparse_table_hides_the_same_entries_as_the_dense_one(rng):
    X, _ = clustered(rng, missing=0.6)
    for dense, csr in zip(_holdout.folds(X, seed=8), _holdout.folds(as_csr(X), seed=8), strict=True):
        assert_array_equal(dense.rows, csr.rows)
        assert_array_equal(dense.columns, csr.columns)
        assert_array_equal(dense.values, csr.values)
        assert_array_equal(as_dense(csr.table), dense.table)


def test_the_hash_is_uniform_and_its_arguments_matter():
    rows, columns = (a.ravel() for a in np.indices((300, 200)))
    u = _holdout.uniform(rows, columns, 1)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.histogram(u, 20, (0, 1))[0]
    assert ((counts - 3000) ** 2 / 3000).sum() < 60  # chi squared, 19 degrees of freedom: p = 4e-6
    table = u.reshape(300, 200)
    assert abs(np.corrcoef(table[:-1].ravel(), table[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(table[:, :-1].ravel(), table[:, 1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(u, _holdout.uniform(rows, columns, 2))[0, 1]) < 0.02
    assert abs(np.corrcoef(u, _holdout.uniform(columns, rows, 1))[0, 1]) < 0.02


def test_errors_add_up_over_folds_by_row_and_column(rng):
    X, _ = clustered(rng, missing=0.3)
    weights = rng.integers(0, 4, size=len(X)).astype(float)
    folds = list(_holdout.folds(X, seed=1))
    squared = [rng.random(len(fold.rows)) for fold in folds]
    errors = _holdout.add_up(X.shape, folds, squared, weights)
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
        folds = list(_holdout.folds(X, int(rng.integers(2**31))))
        noise = rng.normal(size=(2, *X.shape))
        one, other = (
            _holdout.add_up(X.shape, folds, [n[f.rows, f.columns] ** 2 for f in folds]) for n in noise
        )
        above, error = one.above(other)
        z.append(above / error)
    assert 0.8 < np.std(z) < 1.2
    assert one.above(one) == (0.0, 0.0)
