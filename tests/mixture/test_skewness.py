"""Skewed columns: what a power transform by column adds, given clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import yeojohnson, yeojohnson_llf

from kpod._mixture.skewness import POWERS, gain_of_transforms, power_transform


@pytest.mark.parametrize("power", [-2.0, 0.0, 0.5, 1.0, 2.0, 3.5])
def test_the_transform_is_that_of_yeo_and_johnson(power, rng):
    x = rng.normal(size=40)
    assert_allclose(power_transform(x, power), yeojohnson(x, power), rtol=1e-10)


def test_the_gain_of_one_cluster_is_that_of_its_profile_likelihood(rng):
    X = np.column_stack([np.exp(rng.normal(size=300)), rng.normal(size=300)])
    X[rng.random(X.shape) < 0.2] = np.nan
    expected, n = 0.0, 0
    for column in X.T:
        z = column[~np.isnan(column)]
        z = (z - z.mean()) / z.std()
        expected += max(yeojohnson_llf(power, z) for power in POWERS) - yeojohnson_llf(1.0, z)
        n += len(z)
    found = gain_of_transforms(X, np.zeros(300, np.int32), np.ones(300))
    assert found == pytest.approx(expected / n, rel=0.02)


def test_clusters_of_normal_columns_gain_nothing_and_skewed_ones_much(rng):
    labels = np.repeat([0, 1], 300).astype(np.int32)
    normal = rng.normal(size=(600, 3)) * [1, 2, 3] + 8 * labels[:, None]
    weights = np.ones(600)
    assert gain_of_transforms(normal, labels, weights) < 0.01
    assert gain_of_transforms(np.exp(normal / 4), labels, weights) > 0.07
    # The same table seen as one cluster has two modes, which no transform makes one.
    twice = np.vstack([normal, normal])
    assert gain_of_transforms(twice, np.tile(labels, 2), np.ones(1200)) == pytest.approx(
        gain_of_transforms(normal, labels, 2 * weights)
    )


def test_rows_of_no_cluster_and_columns_without_entries_count_for_nothing(rng):
    X = np.exp(rng.normal(size=(100, 2)))
    labels = np.zeros(100, np.int32)
    with_others = np.vstack([X, np.full((5, 2), 1e6)])
    with_others = np.column_stack([with_others, np.full(105, np.nan), np.ones(105)])
    found = gain_of_transforms(with_others, np.append(labels, [-1] * 5).astype(np.int32), np.ones(105))
    # The constant column has entries, but nothing to gain.
    assert found == pytest.approx(gain_of_transforms(X, labels, np.ones(100)) * 2 / 3)


@pytest.mark.filterwarnings("error")
def test_a_constant_column_gains_nothing_though_its_spread_is_rounded(rng):
    skewed, labels, weights = np.exp(rng.normal(size=539)), np.zeros(539, np.int32), np.ones(539)
    constant = np.full(539, 0.1)
    assert constant.std() > 0
    found = gain_of_transforms(np.column_stack([skewed, constant]), labels, weights)
    assert found == pytest.approx(gain_of_transforms(skewed[:, None], labels, weights) / 2)
