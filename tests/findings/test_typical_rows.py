"""Members of clusters by their rank, found without a list of all of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kpod._engine import sampling
from kpod._findings.fitted_clusters import typical_rows


@pytest.mark.parametrize("at_once", [7, 1000])
def test_members_by_rank_are_those_of_a_list(monkeypatch, at_once):
    monkeypatch.setattr(typical_rows, "ROWS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 5, size=300).astype(np.int32)
    labels[labels == 3] = 0  # a cluster without rows
    members = [np.flatnonzero(labels == cluster) for cluster in range(6)]
    sizes = np.array([len(rows) for rows in members])
    for found, rows in zip(typical_rows.members_of(labels, sizes, 40), members, strict=True):
        drawn = np.random.default_rng(0).choice(rows, min(40, len(rows)), replace=False)
        assert_array_equal(found, rows if len(rows) <= 40 else np.sort(drawn))


@pytest.mark.parametrize("at_once", [7, 1000])
def test_rows_of_a_mask_by_rank(monkeypatch, at_once):
    monkeypatch.setattr(sampling, "RANKED_ROWS", at_once)
    rng = np.random.default_rng(0)
    mask = rng.random(300) < 0.6
    ranks = np.sort(rng.choice(int(mask.sum()), 50, replace=False))
    assert_array_equal(sampling.rows_in(mask, ranks), np.flatnonzero(mask)[ranks])
