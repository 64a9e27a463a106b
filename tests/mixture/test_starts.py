"""Where EM starts: a sample in units of its own, and rows far apart."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture import starts
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import from_labels, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Prior
from tests.helpers.tables import clustered


@pytest.mark.parametrize("shape", [Shape("tied", 2), Shape("full"), Shape("diag")], ids=str)
def test_the_sample_and_the_table_have_the_same_likelihood(shape, rng):
    X, y = clustered(rng, k=3)
    table = make_table(X * rng.uniform(0.01, 100, size=8) + 30 * rng.normal(size=8), Executor())
    sample = starts.standardised_sample(table, rng)
    floor = smallest_variances(sample.table.variances, sample.table.live, 1e-6)
    within = Constraints(floor, sample.table.fallback, Prior())
    parameters = from_labels(sample.entries, shape, y.astype(np.int32), 3, within)
    of_table = Entries(table, Executor()).sums(sample.in_table(parameters)).log_likelihood
    of_sample = sample.entries.sums(parameters).log_likelihood
    assert sample.log_likelihood(of_sample) == pytest.approx(of_table, rel=1e-9)


def test_large_tables_are_sampled(rng, monkeypatch):
    monkeypatch.setattr(starts, "SAMPLE_ENTRIES", 400)
    monkeypatch.setattr(starts, "FEWEST_ROWS", 20)
    X, _ = clustered(rng)
    X[3] = np.nan
    sample = starts.standardised_sample(make_table(X, Executor()), rng)
    assert sample.table.n_rows == 50
    assert 3 not in sample.rows
    assert_array_equal(sample.rows, np.unique(sample.rows))


def test_rows_far_apart_are_of_different_groups_where_these_are(rng):
    X = np.repeat(100.0 * np.eye(4), 25, axis=0) + rng.normal(size=(100, 4))
    mask, values = np.ones_like(X), X
    for _ in range(10):
        chosen = starts.far_apart(mask, values, np.ones(100), 4, rng)
        assert len({row // 25 for row in chosen}) == 4
    alike = starts.far_apart(mask, np.zeros_like(X), np.ones(100), 4, rng)
    assert len(alike) == 4
