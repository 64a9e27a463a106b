"""The step can be run anywhere: other processes, other orders, without its states."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kpod
from kpod._engine import blocks, fit, step
from kpod._engine.executors import Executor, threads
from kpod._engine.sizes import SMALL_ROOM
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.table import make_table
from kpod._engine.windows import scratch_of
from tests.helpers.processes import Processes, process_pool
from tests.helpers.tables import as_csr_for_engine, clustered, table_of


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
    settings = Settings(max_iter=60, shrinkage=0.5, by_size=True)
    here = fit.SOLVERS[algorithm](table, Executor(), start, settings)
    with threads(3) as executor:
        same(here, fit.SOLVERS[algorithm](table, executor, start, settings))
    same(here, fit.SOLVERS[algorithm](table, Processes(pool), start, settings))
    assert len(np.unique(here.labels)) == 6


def test_lost_states_are_made_again(problem, pool):
    """Half of them, in every iteration: labels are a function of rows and panel."""
    table, start = problem
    settings = Settings(max_iter=40, by_size=True)
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


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_what_runs_for_an_item_may_share_items_of_its_own(n_threads):
    """Three levels deep, with more items than threads at each: no two threads wait for each other."""
    with threads(n_threads) as executor:

        def leaf(item):
            return item * item

        def inner(item):
            return sum(executor.map(leaf, range(item, item + 5)))

        def outer(item):
            return executor.map(inner, range(item, item + 4))

        for _ in range(20):
            found = executor.map(outer, range(6))
            expected = [
                [sum(k * k for k in range(j, j + 5)) for j in range(item, item + 4)] for item in range(6)
            ]
            assert found == expected


def test_an_error_in_an_inner_share_reaches_the_caller_and_threads_go_on():
    def fail(item):
        if item == 2:
            raise RuntimeError("inner")
        return item

    with threads(3) as executor:
        with pytest.raises(RuntimeError, match="inner"):
            executor.map(lambda _: executor.map(fail, range(4)), range(5))
        assert executor.map(lambda item: item, range(9)) == list(range(9))


@pytest.mark.parametrize("size", [1e-12, 1.0, 3e7])
def test_units_take_off_what_is_far_from_zero_and_bring_entries_near_one(size, dtype, rng):
    """A column around zero keeps its zero, a constant one becomes zero, and one far out loses its mean."""
    X = rng.normal(size=(200, 4)) + np.array([0, 1000, 0.1, 0])
    X[:, 3] = 17
    X[rng.random(X.shape) < 0.2] = np.nan
    units = make_table((size * X).astype(dtype), Executor()).units
    shift = units.shift / size
    assert shift[0] == shift[2] == 0
    assert abs(shift[1] - 1000) < 1
    assert_allclose(shift[3], 17, rtol=1e-6)
    assert 1e-4 < size * units.scale < 1e4  # roughly: what rounding left of the constant counts, too
    assert np.log2(units.scale) % 1 == 0


def test_large_states_are_where_scratch_files_are(tmp_path):
    mapped = Path("/proc/self/maps")
    if not mapped.exists():
        pytest.skip("no list of what is mapped")
    values = step.room(SMALL_ROOM, np.dtype(np.float32), str(tmp_path))
    values[:] = 1
    assert str(tmp_path) in mapped.read_text()
    assert not list(tmp_path.iterdir()), "without a name, it goes with the process"
    with kpod.scan(saved(tmp_path / "a.npy"), scratch=tmp_path, scale=True) as table:
        assert scratch_of(table.values) == str(tmp_path)
    with kpod.scan(saved(tmp_path / "b.npy"), scratch=tmp_path) as table:
        assert scratch_of(table.values) == tempfile.gettempdir(), "what a user has is no place for ours"


def saved(path):
    np.save(path, np.ones((5, 2)))
    return path


@pytest.mark.parametrize(
    ("n_rows", "n_entries", "expected"),
    [
        (10, 100, 1),
        (1_000_000, 20_000_000, 64),
        (13_421_772, 64 << 22, 64),
        (13_421_773, (64 << 22) + 1, 65),
        (10**9, 20 * 10**9, 4769),
        (3, 10**9, 3),
    ],
)
def test_blocks_of_large_tables_are_of_32_megabytes(n_rows, n_entries, expected):
    """Of those above 2 GB, whatever runs over them; up to there, 64 of them are enough for many threads."""
    ranges = blocks.cut(n_rows, n_entries)
    assert len(ranges) == expected
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_rows
    assert all(stop == start for (_, stop), (start, _) in pairwise(ranges))
