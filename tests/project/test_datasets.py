from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from kpod import datasets
from kpod.missingness import mcar


def test_mixture_has_the_papers_moments():
    X, labels = datasets.make_mixture(10, n_samples=20_000, n_features=30, random_state=0)
    assert_array_equal(np.unique(labels), np.arange(10))
    means = np.array([X[labels == c].mean(axis=0) for c in range(10)])
    assert_allclose(means.std(), 10, rtol=0.15)
    assert_allclose((X - means[labels]).var(), 10, rtol=0.02)


def test_wine_is_perturbed_by_a_tenth_of_the_column_mean():
    wine = load_wine()
    noise = np.stack([datasets.make_perturbed_wine(random_state=seed)[0] - wine.data for seed in range(20)])
    assert_allclose(noise.std(axis=(0, 1)), wine.data.mean(axis=0) / 10, rtol=0.05)
    assert_array_equal(datasets.make_perturbed_wine(random_state=1)[1], wine.target)


def test_same_seed_same_table():
    for make in (datasets.make_mixture, datasets.make_perturbed_wine):
        assert_array_equal(make(random_state=3)[0], make(random_state=3)[0])


def test_the_bundled_table_is_the_one_our_own_mechanism_makes():
    bundled = datasets.load_incomplete_wine()
    assert Path(bundled.filename).read_text() == datasets.incomplete_wine_csv()
    wine = load_wine()
    gaps = np.isnan(bundled.data)
    assert_allclose(bundled.data[~gaps], wine.data[~gaps], rtol=1e-5)
    assert_array_equal(bundled.target, wine.target)
    assert len(bundled.feature_names) == 13


def test_ratings_are_by_group_and_not_missing_at_random():
    ratings, groups = datasets.make_ratings(3000, 400, n_groups=4, mean_activity=40, random_state=0)
    assert ratings.shape == (3000, 400)
    assert ratings.dtype == np.float32
    assert set(np.unique(ratings.data)) == {1, 2, 3, 4, 5}
    assert ratings.has_canonical_format
    assert 20 < np.diff(ratings.indptr).mean() < 60
    assert np.diff(ratings.indptr).max() <= 400
    # Users rate what they like: the mean rating is above the middle of the scale.
    assert ratings.data.mean() > 3.3
    # Groups differ in what they rate: their shares of an item's ratings are not all alike.
    rated = np.array([(ratings[groups == g] > 0).mean(axis=0) for g in range(4)])
    assert (rated.max(axis=0) > 1.5 * rated.min(axis=0)).mean() > 0.5
    again, _ = datasets.make_ratings(3000, 400, n_groups=4, mean_activity=40, random_state=0)
    assert (again != ratings).nnz == 0


def test_wine_as_scikit_learn_loads_tables():
    wine = datasets.load_incomplete_wine()
    X, y = datasets.load_incomplete_wine(return_X_y=True)
    assert_array_equal(X, wine.data)
    assert_array_equal(y, wine.target)
    assert wine.frame is None
    framed = datasets.load_incomplete_wine(as_frame=True)
    assert list(framed.data.columns) == wine.feature_names
    assert_array_equal(framed.data.to_numpy(), wine.data)
    assert_array_equal(framed.frame["target"], wine.target)
    X, y = datasets.load_incomplete_wine(return_X_y=True, as_frame=True)
    assert X.equals(framed.data)
    assert y.name == "target"


def test_a_seed_under_its_name_of_version_0_1():
    for make in (datasets.make_mixture, datasets.make_perturbed_wine, partial(mcar, np.ones((20, 5)), 0.3)):
        with pytest.warns(FutureWarning, match="rng is now called random_state"):
            before = make(rng=3)
        assert_array_equal(before[0], make(random_state=3)[0])
    generators = (np.random.default_rng(3), np.random.RandomState(3))
    for generator in generators:
        one, other = (mcar(np.ones((20, 5)), 0.3, random_state=generator) for _ in range(2))
        assert (np.isnan(one) != np.isnan(other)).any()  # it goes on
