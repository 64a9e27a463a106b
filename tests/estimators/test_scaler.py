import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kpod import ObservedScaler
from tests.helpers.tables import as_csr, clustered


@parametrize_with_checks([ObservedScaler(), ObservedScaler(rows="center", scale=False)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng, dtype):
    X = (10 + 3 * clustered(rng, 80, 6)[0]).astype(dtype)
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 4)  # a constant column
    return X


def test_on_dense_columns_it_is_standard_scaler(X):
    ours, theirs = ObservedScaler().fit(X), StandardScaler().fit(X)
    assert_allclose(ours.mean_, theirs.mean_, rtol=1e-5)
    assert_allclose(ours.scale_, theirs.scale_, rtol=1e-5)
    assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-3, atol=1e-5)
    assert ours.transform(X).dtype == X.dtype


@pytest.mark.parametrize("rows", [None, "center"])
@pytest.mark.parametrize("scale", [True, False])
def test_csr_is_dense(X, rows, scale):
    scaler = ObservedScaler(rows=rows, scale=scale)
    dense, csr = scaler.fit_transform(X), scaler.fit_transform(as_csr(X))
    assert csr.dtype == X.dtype
    assert_array_equal(csr.indices, as_csr(X).indices)
    assert_allclose(csr.data, dense[~np.isnan(X)], rtol=1e-4, atol=1e-5)
    assert_array_equal(np.isnan(dense), np.isnan(X))


def test_rows_are_centred_first(X):
    Z = ObservedScaler(rows="center", scale=False).fit_transform(X)
    offset = np.random.default_rng(0).normal(size=(len(X), 1)).astype(X.dtype)
    moved = ObservedScaler(rows="center", scale=False).fit_transform(X + offset)
    assert_allclose(moved, Z, atol=1e-4)
    assert_allclose(np.nanmean(Z, axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("rows", [None, "center"])
@pytest.mark.parametrize("container", [np.asarray, as_csr])
def test_inverse(X, rows, container):
    table = container(X)
    scaler = ObservedScaler(rows=rows).fit(table)
    means = scaler.row_means(table) if rows else None
    back = scaler.inverse_transform(scaler.transform(table), row_means=means)
    if sparse.issparse(table):
        back, table = back.data, table.data
    assert_allclose(back, table, rtol=1e-4)


def test_names_and_containers():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 9.0]})
    scaler = ObservedScaler().set_output(transform="pandas")
    assert list(scaler.fit_transform(frame).columns) == ["a", "b"]


def test_nothing_observed_in_a_column_or_row():
    X = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    Z = ObservedScaler(rows="center").fit_transform(X)
    assert np.isnan(Z[:, 1]).all()
    assert np.isnan(Z[2]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ObservedScaler(rows="scale").fit(np.eye(2)), "rows must be None or 'center', got 'scale'"),
        (lambda: ObservedScaler().fit([[np.inf, 1.0], [1.0, 2.0]]), r"infinity.* in column 0"),
        (lambda: ObservedScaler().fit(np.eye(3)).inverse_transform(np.eye(2)), "X has 2 columns, expected 3"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
