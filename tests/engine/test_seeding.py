"""k-means||: rounds over all rows, wherever they are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kpod import KPOD
from kpod._engine import seeding
from kpod._engine.executors import Executor, threads
from kpod._engine.fit import FitPlan
from kpod._engine.seeding import Drawn, FarRows, KMeansParallel
from kpod._kernels.panel import Panel
from tests.helpers.processes import Processes, process_pool
from tests.helpers.tables import clustered, lloyd, table_of


def test_rounds_find_every_cluster_that_is_far_from_the_rest(rng):
    """Of 8 clusters far apart every one gets a seed, also the one of a hundredth of the rows."""
    truth = np.r_[rng.integers(7, size=1980), np.full(20, 7)]
    X = 100 * np.eye(8)[truth] + rng.normal(size=(2000, 8))
    table = table_of(X)
    for _ in range(3):
        seeds = table.units.back(KMeansParallel(table, Executor(), 8, rng).draw(rng).centers)
        assert sorted(seeds.argmax(axis=1)) == list(range(8))


def test_rounds_are_as_good_as_a_sample(rng, monkeypatch):
    X, _ = clustered(rng, 4000, 10, k=10, spread=0.5)
    losses = {}
    for limit in (1 << 27, 0):
        monkeypatch.setattr(seeding, "MOST_SAMPLE_ENTRIES", limit)
        losses[limit] = KPOD(10, n_init=8, algorithm="lloyd", random_state=0, n_threads=1).fit(X).inertia_
    assert losses[0] < 1.05 * losses[1 << 27]


def test_chances_are_in_proportion_to_the_loss():
    """Two rows, one with three times the loss of the other: drawn first three times as often."""
    X = np.array([[1.0], [np.sqrt(3.0)], [0.0]])
    (block,) = table_of(X, units=seeding.Units(np.zeros(1), 1.0)).blocks
    first = []
    for seed in range(4000):
        drawn = Drawn(1)
        FarRows([Panel(np.zeros((1, 1)))], 1, seed, 1.0)(block, None, drawn)
        first.append(int(drawn.rows[0]))
    assert 2 not in first
    assert np.mean(first) == pytest.approx(0.75, abs=0.03)


def test_lost_states_are_made_again(rng, monkeypatch):
    from kpod._engine import blocks

    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)
    X, _ = clustered(rng, 1500, 6)
    table = table_of(X, rng.random(1500))

    class Forgetful(Processes):
        def accumulate(self, function, items, states, empty):
            lost = [None if i % 2 else state for i, state in enumerate(states)]
            return super().accumulate(function, items, lost, empty)

    with process_pool() as pool:
        one = KMeansParallel(table, Executor(), 5, rng).draw(np.random.default_rng(1))
        other = KMeansParallel(table, Forgetful(pool), 5, rng).draw(np.random.default_rng(1))
    assert_array_equal(one.centers, other.centers)


def test_rows_that_are_all_alike_are_seeds_too(rng):
    table = table_of(np.ones((50, 3)))
    start = KMeansParallel(table, Executor(), 4, rng).draw(rng)
    assert lloyd(table, table.units.back(start.centers)).loss == 0


@pytest.mark.parametrize("state", [0, 7, 2**32 - 1, np.random.RandomState(3)])
def test_seeds_are_the_first_numbers_of_the_generator(state):
    """Whoever seeded the generator of this thread before."""
    plan = FitPlan(3, random_state=state)
    expected = plan.generator().randint(np.iinfo(np.int32).max, size=5)
    FitPlan(3, random_state=11).seeds(2)
    with threads(3) as executor:
        for found in executor.map(lambda _: plan.seeds(5), range(9)):
            assert_array_equal(found, expected)


def test_seeds_of_fewer_clusters_are_the_first_of_those_of_more(rng):
    """And those of as many as are drawn at once, whatever was asked for before."""
    X, _ = clustered(rng, 200, missing=0.4)
    prepared = seeding.KMeansPlusPlus(table_of(X), Executor(), 9, np.random.default_rng(0))
    at_once = prepared.drawing(np.random.default_rng(5)).first(9)
    drawing = prepared.drawing(np.random.default_rng(5))
    for n in (3, 2, 7, 9, 1):
        assert_array_equal(drawing.first(n), at_once[:n])
    assert_array_equal(prepared.draw(np.random.default_rng(5)).centers, prepared.start(drawing, 9).centers)
