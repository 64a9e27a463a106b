"""What the kernels of mixtures are handed is checked: a mismatch is an error, never a misread."""

import numpy as np
import pytest

from kpod._kernels import m_step, mixture
from kpod._kernels.rows import Rows, Workspace

K, P, Q = 3, 4, 2


@pytest.fixture
def rows(rng):
    return Rows(rng.normal(size=(10, P)), np.zeros(P))


def factors(p=P, q=Q):
    return mixture.Factors(np.zeros(K), np.zeros((K, p)), np.ones((K, p)), np.zeros((K, p, q)))


def expect(rows, model, *, labels=None, sums=(None, None), posterior=None, evidence=None, stop=10):
    more = posterior, evidence, None, None, Workspace(rows, 0, 1)
    return mixture.expect_factors(rows, 0, stop, model, labels, *sums, *more)


def test_factors_that_do_not_fit_are_refused(rows):
    with pytest.raises(ValueError, match="do not fit together"):
        mixture.Factors(np.zeros(K), np.zeros((K, P)), np.ones((K, P + 1)), np.zeros((K, P, Q)))
    with pytest.raises(ValueError, match="more than 24"):
        factors(q=25)
    model = factors()
    column_sums, cluster_sums = model.empty_sums()
    for wrong in (
        {"model": factors(P + 1)},
        {"labels": np.zeros(9, np.int32)},
        {"sums": (column_sums[:, :-1].copy(), cluster_sums)},
        {"sums": (column_sums, None)},
        {"posterior": np.zeros((10, K + 1))},
        {"evidence": np.zeros(11)},
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            expect(rows, **({"model": model} | wrong))
    with pytest.raises(IndexError):
        expect(rows, model, stop=11)


def test_covariances_and_patterns_that_do_not_fit_are_refused(rows):
    with pytest.raises(ValueError, match="do not fit together"):
        mixture.Covariances(np.zeros(K), np.zeros((K, P)), np.zeros((2, P, P)))
    model = mixture.Covariances(np.zeros(K), np.zeros((K, P)), np.eye(P)[None])
    space, nothing = Workspace(rows, 0, 1), (None,) * 7

    def expected(order, begins, model=model):
        order, begins = np.asarray(order, np.intp), np.asarray(begins, np.intp)
        return mixture.expect_covariances(rows, 0, 10, model, order, begins, *nothing, space)

    assert np.isfinite(expected(range(10), [0, 10]))
    with pytest.raises(IndexError):
        expected([*range(9), 10], [0, 10])
    for begins in ([0, 9], [0, 7, 4, 10], [1, 10]):
        with pytest.raises(ValueError, match=r"patterns|do not fit"):
            expected(range(10), begins)
    with pytest.raises(ArithmeticError, match="not positive definite"):
        expected(range(10), [0, 10], mixture.Covariances(np.zeros(K), np.zeros((K, P)), -np.eye(P)[None]))


def test_sums_of_another_shape_are_refused():
    columns, clusters = factors().empty_sums()
    of_columns = [np.ones(P)] * 3
    arguments = [columns, clusters, np.zeros((K, P)), np.ones((K, P)), False, False, False, 0.0, *of_columns]
    out = [np.zeros(P, np.uint8), np.zeros((K, P)), np.zeros((K, P)), np.zeros((K, P, Q))]
    m_step.maximise_factors(*arguments, *out)
    with pytest.raises(ValueError, match="do not fit together"):
        m_step.maximise_factors(*arguments, *out[:-1], np.zeros((K, P, Q + 1)))
    with pytest.raises(ValueError, match="do not fit together"):
        m_step.maximise_factors(*arguments, np.zeros(P + 1, np.uint8), *out[1:])
