"""EM in one compiled call: the same as step after step."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._kernels import em
from kpod._kernels.rows import Rows, Workspace
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em import iteration
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import from_labels, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints, maximise
from kpod._mixture.em.mixture_parameters import Prior
from tests.helpers.tables import clustered

K, P = 3, 6
SHAPES = [
    Shape("tied_diag"),
    Shape("diag"),
    Shape("tied_spherical"),
    Shape("spherical"),
    Shape("tied", 2),
    Shape("tied_diag", 1),
    Shape("diag", 3),
    Shape("full", 6),
]


def step_after_step(entries, shape, start, within, n_steps, tol):
    """`run`, written out: parameters, the trace, and whether it converged."""
    parameters, trace = start, []
    for step in range(n_steps + 1):
        sums = entries.sums(parameters)
        trace.append(sums.log_likelihood + within.log_density(parameters))
        if step and trace[-1] - trace[-2] <= tol * entries.weight:
            return parameters, trace, True
        if step < n_steps:
            parameters = maximise(shape, parameters, sums, within)
    return parameters, trace, False


def made(rng, dtype, *, weighted=False, gaps=False, bound=False):
    """A table with gaps, labels of its rows, and constraints of some kind."""
    X, labels = clustered(rng, 80, P, K, missing=0.3)
    if gaps:
        X[:, -1] = np.where(rng.random(len(X)) < 0.3, 0.0, np.nan)  # it stands for the first column
    weights = rng.random(len(X)) if weighted else None
    table = make_table(X.astype(dtype), Executor(), weights=weights)
    floor = smallest_variances(table.variances, table.live, 1e-3)
    within = Constraints(floor, table.fallback, Prior())
    if gaps:
        observed = np.where(np.arange(P) % 2, (~np.isnan(X)).mean(axis=0), 0.5)
        within = replace(within, observed=observed, shadowed=np.array([0], np.intp))
    if bound:
        within = replace(
            within, prior=Prior(4.0, table.variances + 0.1), uninformative=np.arange(P) > 3, loading_rows=2.0,
            columns_per_entry=1.5, more_entries=7.0,
        )  # fmt: skip
    return Entries(table, Executor()), np.ascontiguousarray(labels, np.int32), within


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"gaps": True}, {"bound": True}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_call_is_the_same_as_its_steps(shape, dtype, options, rng, monkeypatch):
    entries, labels, within = made(rng, dtype, **options)
    start = from_labels(entries, shape, labels, K, within)
    for n_steps, tol in ((7, -1.0), (200, 1e-3)):
        expected, trace, converged = step_after_step(entries, shape, start, within, n_steps, tol)
        for work in (1 << 40, 1):  # in one call, and in a call for each step
            monkeypatch.setattr(iteration, "CALL_WORK", work)
            found = run(entries, shape, start, within, n_steps, tol)
            assert found.converged == converged
            assert_allclose(found.trace, trace, rtol=1e-9)
            assert found.parameters.n_shadows == expected.n_shadows
            for name in ("shares", "means", "variances", "loadings", "rates"):
                mine, other = (getattr(of, name) for of in (found.parameters, expected))
                assert (mine is None) == (other is None)
                if mine is not None:
                    assert_allclose(mine, other, rtol=1e-6, atol=1e-9)
            assert_allclose(found.log_likelihood, entries.sums(found.parameters).log_likelihood, rtol=1e-12)
            assert_allclose(start.means, from_labels(entries, shape, labels, K, within).means)  # untouched


def test_parameters_and_constraints_that_do_not_fit_are_refused(rng):
    rows = Rows(rng.normal(size=(10, P)), np.zeros(P))
    of_columns = [np.ones(P), np.ones(P), np.zeros(P), np.zeros(P, np.uint8)]

    def bounds(*, columns=of_columns, observed=None, shadowed=()):
        more = 0.0, 1.0, 0.0, observed, np.array(shadowed, np.intp), 1e-3
        return em.Bounds(False, False, False, 0.0, *columns, *more)

    def called(*, within=None, stop=10, n=3, **changed):
        given = {
            "shares": np.full(K, 1 / K), "means": rng.normal(size=(K, P)), "variances": np.ones((K, P)),
            "loadings": np.zeros((K, P, 1)), "rates": None, **changed,
        }  # fmt: skip
        more = False, np.inf, 0.0, True, np.empty(n), Workspace(rows, 0, 1)
        return em.run_factors(rows, 0, stop, within or bounds(), *given.values(), *more)

    assert called()[0] > 1
    with pytest.raises(ValueError, match="do not fit together"):
        bounds(columns=[np.ones(P + 1), *of_columns[1:]])
    with pytest.raises(ValueError, match="do not fit together"):
        bounds(observed=np.ones(P - 1))
    for shadowed in ([P - 1], [-1]):
        with pytest.raises(IndexError, match="shadows"):
            bounds(shadowed=shadowed)
    with pytest.raises(IndexError):
        called(stop=11)
    for wrong in (
        {"shares": np.ones(K + 1)},
        {"means": np.zeros((K, P + 1))},
        {"variances": np.ones((K + 1, P))},
        {"loadings": np.zeros((K, P + 1, 1))},
        {"loadings": np.zeros((K, P, 25))},
        {"rates": np.full((K, P), 0.5)},
        {"within": bounds(observed=np.full(P, 0.5)), "rates": np.full((K, P + 1), 0.5)},
        {"n": 0},
        {"stop": 0},
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            called(**wrong)
