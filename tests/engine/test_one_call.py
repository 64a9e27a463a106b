"""Small tables: the iterations of one compiled call are those of the steps, and few rows need no table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kpod import KPOD
from kpod._engine import fit
from kpod._engine.executors import Executor
from kpod._engine.objective import GapModel
from kpod._engine.solvers import lloyd
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.solvers.lloyd import Descent
from kpod._estimators import nearest_center
from kpod._kernels import descent, gap_likelihood
from kpod._kernels.gap_likelihood import GapLikelihood
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Sums
from tests.helpers.tables import as_csr_for_engine, clustered, random_rows, table_of


def in_steps(solve):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Descent, "is_simple", property(lambda self: False))
        return solve()


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    algorithm=st.sampled_from(["lloyd", "hartigan", "mm"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    k=st.integers(1, 8),
    missing=st.sampled_from([0.0, 0.3, 0.7]),
    tol=st.sampled_from([0.0, 1e-4, 0.1]),
    max_iter=st.sampled_from([1, 2, 5, 60]),
    creep=st.sampled_from([1, 3, 20]),
    more=st.sampled_from(["", "weights", "sparse", "empty", "shrinkage", "by_size"]),
    gaps=st.sampled_from(["ignored", "used", "known"]),
)
def test_one_call_takes_the_same_steps(seed, algorithm, dtype, k, missing, tol, max_iter, creep, more, gaps):
    rng = np.random.default_rng(seed)
    X, _ = clustered(rng, int(rng.integers(10, 200)), int(rng.integers(1, 12)), 4, missing, 1.0, dtype)
    table = table_of(
        as_csr_for_engine(X) if more == "sparse" and algorithm != "mm" else X,
        rng.random(len(X)) if more == "weights" else None,
    )
    (centers,) = random_rows(X, k, rng, 1)
    if more == "empty":  # a center that no row is next to
        centers[-1] = 1e3
    options = {"tol": tol, "max_iter": max_iter, "by_size": more == "by_size"}
    if more == "shrinkage" and algorithm != "mm":
        options["shrinkage"] = 0.5
    model = None
    if gaps != "ignored" and algorithm != "mm":
        options["gaps"] = True
        if gaps == "known":  # by the start
            model = GapModel(rng.uniform(0.1, 0.9, size=centers.shape), rng.dirichlet(np.ones(k)), 0.5)

    def solve():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lloyd, "CREEP", creep)  # after so many iterations, momentum
            start = Start(table.units.to(centers), gaps=model)
            return fit.SOLVERS[algorithm](table, Executor(), start, Settings(**options))

    one, other = solve(), in_steps(solve)
    for name in ("labels", "centers", "counts"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("loss", "trace", "losses", "n_iter", "converged"):
        assert getattr(one, name) == getattr(other, name)
    for of_one, of_other in zip(one.gaps or (), other.gaps or (), strict=True):
        assert_array_equal(of_one, of_other)


def test_one_call_is_what_runs_on_a_small_table(rng, monkeypatch):
    calls, real = [], descent.descend
    monkeypatch.setattr(descent, "descend", lambda *args: calls.append(1) or real(*args))
    X, _ = clustered(rng, 100)
    KPOD(3, n_init=2, random_state=0).fit(X)
    assert len(calls) == 2
    KPOD(3, n_init=2, random_state=0, verbose=2).fit(X)  # who is told of iterations sees them one by one
    assert len(calls) == 2


def test_what_does_not_fit_together_is_refused(rng):
    X, _ = clustered(rng, 50, 4)
    run = Descent(table_of(X), None, X[:3].astype(float))
    for centers, message in ((np.zeros((2, 4)), "do not fit"), (np.zeros((3, 5)), "do not fit")):
        with pytest.raises(ValueError, match=message):
            descent.excess(np.zeros((3, 4)), centers, np.zeros((3, 4)))
        with pytest.raises(ValueError, match=message):
            descent.squared_distance(np.zeros((3, 4)), centers)
        with pytest.raises(ValueError, match=message):
            descent.along(centers, np.zeros((3, 4)), np.zeros((3, 4)))
        with pytest.raises(ValueError, match=message):
            descent.go_beyond(centers, np.zeros((3, 4)), np.zeros((3, 4)), 2)
    (block,) = run.table.blocks
    means, state = run.objective.empty_means(), [np.zeros(50, t) for t in (np.int32, np.float32, np.float32)]
    about = (np.zeros((2, 4)), np.zeros(4), np.zeros((3, 4)), *means)
    numbers = (np.inf, np.inf, 0.0, 0.0, 0.0, np.zeros((3, 4)), 0, 0, 20, 30, np.empty(2), np.empty(2))
    likelihood = GapLikelihood(np.full(4, 0.5), 3, 50.0, 100.0, 1e-9)
    of_gaps = gap_likelihood.terms(np.full((3, 4), 0.5), np.full(3, 0.3), 1.0)
    with block.rows() as rows, run.spaces.of(rows, 8, rows.chunk) as space:
        for panel, gaps, arrays in (
            (Panel(np.zeros((2, 4))), None, state),
            (Panel(np.zeros((3, 4)), np.ones(3)), None, state),
            (Panel(np.zeros((3, 4))), None, [state[0][:-1], *state[1:]]),
            (Panel(np.zeros((3, 4))), likelihood, state),
            (Panel(np.zeros((3, 4)), *of_gaps[:2], np.zeros((3, 2, 4))), likelihood, state),
            (Panel(np.zeros((3, 4)), *of_gaps), GapLikelihood(np.ones(4), 2, 50.0, 9.0, 1e-9), state),
        ):
            with pytest.raises(ValueError, match=r"fit together|offsets|roots"):
                descent.descend(rows, panel, gaps, run.totals, *about, *arrays, *numbers, space)
        state[0][7] = 3
        with pytest.raises(IndexError, match="beyond the 3 clusters"):
            descent.descend(rows, Panel(np.zeros((3, 4))), None, run.totals, *about, *state, *numbers, space)
    with pytest.raises(ValueError, match="another shape"):
        likelihood.value(Sums(2, *run.table.sums_units), 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        gap_likelihood.terms(np.full((3, 4), 0.5), np.ones(2), 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        gap_likelihood.distance_moved(np.zeros((3, 2, 4)), np.zeros((3, 3, 4)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows_get_the_labels_that_many_get(dtype, rng, monkeypatch):
    X, _ = clustered(rng, 200, missing=0.5, dtype=dtype)
    X[:, 3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    with pytest.warns(UserWarning, match="No observed entries"):
        model = KPOD(4, random_state=0).fit(X)
    X[[5, 9]] = np.nan
    X[9, 3] = 1.0  # of a column that the fit has not seen
    few = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    monkeypatch.setattr(nearest_center, "FEW_ENTRIES", 0)
    assert_array_equal(few, model.predict(X))
    assert few[5] == few[9] == -1
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"infinity.* in column 1 \(first in row 0\)"):
        model.predict(np.array([[0.0, np.inf, *[0.0] * 6]], dtype))
    with pytest.raises(ValueError, match="7 features"):
        model.predict(np.ones((1, 7), dtype))
