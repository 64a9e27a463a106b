"""The step can be run anywhere: other processes, other orders, without its states."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kpod._engine import blocks, fit
from kpod._engine.executors import Executor, threads
from kpod._engine.lloyd import Settings, Start

from .conftest import clustered, table_of
from .processes import Processes, process_pool
from .test_sparse import as_csr_for_engine


@pytest.fixture(scope="module")
def pool():
    with process_pool() as pool:
        yield pool


@pytest.fixture(params=["dense", "csr"])
def problem(request, dtype, monkeypatch):
    """A table in many blocks, with weights, and a start from which one cluster is emptied."""
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 11)
    rng = np.random.default_rng(3)
    X, _ = clustered(rng, 2500, 8, k=6, missing=0.5, spread=1.0, dtype=dtype)
    X[::97] = np.nan
    table = table_of(X if request.param == "dense" else as_csr_for_engine(X), rng.random(2500))
    assert len(table.blocks) > 3
    start = np.vstack([rng.normal(size=(5, 8)), np.full((1, 8), 1e3)])
    return table, Start(start)


def same(one, other):
    for name in ("labels", "centers", "counts"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.loss == other.loss
    assert one.trace == other.trace
    assert one.n_iter == other.n_iter


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_other_processes_get_the_same_bits(algorithm, problem, pool):
    table, start = problem
    settings = Settings(max_iter=60, shrinkage=0.5)
    here = fit.SOLVERS[algorithm](table, Executor(), start, settings)
    with threads(3) as executor:
        same(here, fit.SOLVERS[algorithm](table, executor, start, settings))
    same(here, fit.SOLVERS[algorithm](table, Processes(pool), start, settings))
    assert len(np.unique(here.labels)) == 6


def test_lost_states_are_made_again(problem, pool):
    """Half of them, in every iteration: labels are a function of rows and panel."""
    table, start = problem
    settings = Settings(max_iter=40)
    executor = Processes(pool, lost=0.5)
    same(
        fit.SOLVERS["lloyd"](table, Executor(), start, settings),
        fit.SOLVERS["lloyd"](table, executor, start, settings),
    )
    assert executor.n_lost > 20


def test_the_cut_into_blocks_shows_in_no_label_or_center(monkeypatch):
    rng = np.random.default_rng(0)
    X, _ = clustered(rng, 3000, 6, missing=0.4, spread=1.0)
    start = rng.normal(size=(5, 6))
    weights, units = rng.random(3000), table_of(X).units
    solutions = []
    for entries in (1 << 30, 1 << 12, 1 << 10):
        monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", entries)
        table = table_of(X, weights, units=units)
        solutions.append(fit.SOLVERS["hartigan"](table, Executor(), Start(start), Settings()))
    for other in solutions[1:]:
        assert_array_equal(solutions[0].labels, other.labels)
        assert_array_equal(solutions[0].centers, other.centers)


def test_no_compiled_call_is_long(monkeypatch):
    """So that Ctrl-C is heard: rows are handed over in pieces, none of them twice."""
    monkeypatch.setattr(blocks, "CALL_WORK", 1000)
    (block,) = table_of(np.ones((101, 7))).blocks
    for k in (1, 3, 500):
        pieces = list(block.pieces(k))
        assert [row for start, stop in pieces for row in range(start, stop)] == list(range(101))
        assert all((stop - start) * 7 * k <= 1000 or stop - start == 1 for start, stop in pieces)
        assert len(pieces) <= np.ceil(101 / max(1, 1000 // (7 * k)))


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(item):
        if item == 3:
            raise RuntimeError("three")
        return item

    with threads(3) as executor, pytest.raises(RuntimeError, match="three"):
        executor.map(fail, range(10))
