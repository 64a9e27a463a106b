from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from kpod import datasets


def test_mixture_has_the_papers_moments():
    X, labels = datasets.make_mixture(10, n_samples=20_000, n_features=30, rng=0)
    assert_array_equal(np.unique(labels), np.arange(10))
    means = np.array([X[labels == c].mean(axis=0) for c in range(10)])
    assert_allclose(means.std(), 10, rtol=0.15)
    assert_allclose((X - means[labels]).var(), 10, rtol=0.02)


def test_wine_is_perturbed_by_a_tenth_of_the_column_mean():
    wine = load_wine()
    noise = np.stack([datasets.make_perturbed_wine(rng=seed)[0] - wine.data for seed in range(20)])
    assert_allclose(noise.std(axis=(0, 1)), wine.data.mean(axis=0) / 10, rtol=0.05)
    assert_array_equal(datasets.make_perturbed_wine(rng=1)[1], wine.target)


def test_same_seed_same_table():
    for make in (datasets.make_mixture, datasets.make_perturbed_wine):
        assert_array_equal(make(rng=3)[0], make(rng=3)[0])


def test_the_bundled_table_is_the_one_our_own_mechanism_makes():
    bundled = datasets.load_incomplete_wine()
    assert Path(bundled.filename).read_text() == datasets.incomplete_wine_csv()
    wine = load_wine()
    gaps = np.isnan(bundled.data)
    assert_allclose(bundled.data[~gaps], wine.data[~gaps], rtol=1e-5)
    assert_array_equal(bundled.target, wine.target)
    assert len(bundled.feature_names) == 13


def test_ratings_are_by_group_and_not_missing_at_random():
    ratings, groups = datasets.make_ratings(3000, 400, n_groups=4, mean_activity=40, rng=0)
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
    again, _ = datasets.make_ratings(3000, 400, n_groups=4, mean_activity=40, rng=0)
    assert (again != ratings).nnz == 0
