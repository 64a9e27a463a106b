"""The measures equal scikit-learn's on complete tables, and their formulas on incomplete ones."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics as sk
from sklearn.metrics.pairwise import nan_euclidean_distances

from kpod import metrics
from kpod.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_samples,
    silhouette_score,
)
from tests.helpers.tables import as_csr, clustered

SCORES = ["silhouette_samples", "silhouette_score", "calinski_harabasz_score", "davies_bouldin_score"]


@pytest.fixture(params=["dense", "csr"])
def form(request):
    return {"dense": lambda X: X, "csr": as_csr}[request.param]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("offset", [0, 1e6])
def test_complete_tables_give_scikit_learns_numbers(name, offset, form, rng):
    X, labels = clustered(rng, missing=0)
    expected = getattr(sk, name)(X, labels)
    assert_allclose(getattr(metrics, name)(form(X + offset), labels), expected, rtol=1e-6)


@pytest.mark.parametrize("name", SCORES)
def test_rows_without_a_cluster_are_left_out(name, form, rng):
    X, labels = clustered(rng, missing=0.3)
    labels[:20] = -1
    expected = getattr(metrics, name)(form(X[20:]), labels[20:])
    result = getattr(metrics, name)(form(X), labels)
    assert_allclose(result[20:] if name.endswith("samples") else result, expected)
    if name.endswith("samples"):
        assert np.isnan(result[:20]).all()


def slow_silhouettes(X, labels):
    distances = nan_euclidean_distances(X)
    out = []
    for i in range(len(X)):
        means = {}
        for label in np.unique(labels):
            others = distances[i, (labels == label) & (np.arange(len(X)) != i)]
            others = others[~np.isnan(others)]
            means[label] = others.mean() if len(others) else np.nan
        if (labels == labels[i]).sum() == 1:
            out.append(0.0)
            continue
        a = means.pop(labels[i])
        b = np.nanmin(list(means.values()))
        out.append((b - a) / max(a, b))
    return np.array(out)


@pytest.mark.parametrize("chunk_entries", [1, 5000, 10**9])
def test_silhouettes_follow_the_formula_in_chunks_of_any_size(chunk_entries, form, rng, monkeypatch):
    monkeypatch.setattr(metrics, "CHUNK_ENTRIES", chunk_entries)
    X, labels = clustered(rng, n_rows=120, missing=0.5)
    labels[0] = labels.max() + 1
    expected = slow_silhouettes(X, labels)
    assert_allclose(silhouette_samples(form(X), labels), expected, rtol=1e-6, atol=1e-9)
    assert_allclose(silhouette_score(form(X), labels), np.nanmean(expected), rtol=1e-6)


def test_calinski_harabasz_follows_the_formula(form, rng):
    X, labels = clustered(rng, missing=0.4)
    k = labels.max() + 1
    between = within = 0.0
    for j in range(X.shape[1]):
        for c in range(k):
            cell = X[labels == c, j]
            cell = cell[~np.isnan(cell)]
            between += len(cell) * (cell.mean() - np.nanmean(X[:, j])) ** 2
            within += ((cell - cell.mean()) ** 2).sum()
    rows = (~np.isnan(X)).sum() / X.shape[1]
    expected = between / (k - 1) / (within / (rows - k))
    assert_allclose(calinski_harabasz_score(form(X), labels), expected)


def test_davies_bouldin_follows_the_formula(form, rng):
    X, labels = clustered(rng, missing=0.4)
    centers = np.array([np.nanmean(X[labels == c], axis=0) for c in range(labels.max() + 1)])
    reach = nan_euclidean_distances(X, centers)[np.arange(len(X)), labels]
    spread = np.array([reach[labels == c].mean() for c in range(len(centers))])
    distance = nan_euclidean_distances(centers)
    ratios = (spread[:, None] + spread) / np.where(distance > 0, distance, np.inf)
    assert_allclose(davies_bouldin_score(form(X), labels), ratios.max(axis=1).mean())


def test_a_row_that_shares_no_column_with_its_cluster_has_no_silhouette():
    X = np.array([[1.0, np.nan], [np.nan, 2.0], [5.0, 6.0], [5.0, 7.0]])
    result = silhouette_samples(X, [0, 0, 1, 1])
    assert np.isnan(result[:2]).all()
    assert np.isfinite(result[2:]).all()
    assert silhouette_score(X, [0, 0, 1, 1]) == pytest.approx(result[2:].mean())


def test_dataframes_names_of_clusters_and_samples(rng):
    X, labels = clustered(rng)
    names = np.array(list("abcdefgh"))[labels]
    assert_allclose(silhouette_score(pd.DataFrame(X), names), silhouette_score(X, labels))
    sample = silhouette_score(X, labels, sample_size=100, random_state=0)
    assert sample == silhouette_score(X, labels, sample_size=100, random_state=0)
    assert 0 < abs(sample - silhouette_score(X, labels)) < 0.2


@pytest.mark.parametrize("name", SCORES)
def test_bad_input_is_refused_with_a_reason(name):
    score = getattr(metrics, name)
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=r"one label for each of the 4 rows of X, got shape \(3,\)"):
        score(X, [0, 1, 1])
    with pytest.raises(ValueError, match="1 cluster in 4 rows"):
        score(X, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="4 clusters in 4 rows"):
        score(X, [0, 1, 2, 3])
    with pytest.raises(ValueError, match="infinity"):
        score(np.where(X == 3, np.inf, X), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="labels contains NaN"):
        score(X, [0, 0, 1, np.nan])
    with pytest.raises(ValueError, match="no observed entry"):
        score(np.full((4, 2), np.nan), [0, 0, 1, 1])


@pytest.mark.parametrize("size", [0, 1, -3, 2.5, "all", True])
def test_a_sample_of_no_size_is_refused(size, rng):
    X, labels = clustered(rng)
    with pytest.raises(ValueError, match="sample_size must be a whole number from 2 up"):
        silhouette_score(X, labels, sample_size=size)


def test_where_no_rows_can_be_compared_there_is_no_silhouette():
    with pytest.raises(ValueError, match="the silhouette is undefined"):
        silhouette_score(np.where(np.eye(4) > 0, 1.0, np.nan), [0, 0, 1, 1])


@pytest.mark.parametrize("power", [-500, -400, 400, 500])
@pytest.mark.parametrize("name", SCORES)
def test_the_scale_does_not_matter(name, power, form, rng):
    X, labels = clustered(rng, missing=0.3)
    score = getattr(metrics, name)
    assert_allclose(score(form(X * 2.0**power), labels), score(form(X), labels), rtol=1e-9)


def test_several_clusterings_have_the_silhouettes_of_each(form, rng):
    X, truth = clustered(rng, 120, 6, 4, 0.3)
    X[5] = np.nan
    others = [np.where(np.arange(120) == 5, -1, labels) for labels in (truth, truth % 2, np.arange(120) % 3)]
    several = metrics.silhouette_scores(form(X), [*others, np.minimum(others[0], 0)])
    assert_allclose(several[:3], [silhouette_score(form(X), labels) for labels in others])
    assert np.isnan(several[3])  # one cluster has none
