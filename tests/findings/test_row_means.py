"""The values in the sentences on clusters are means of the rows with that label, recomputed here."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from kpod import KPOD, GaussianMixture, ObservedScaler, analyze
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.entries import DenseEntries, MappedEntries, MappedRows, SparseEntries
from kpod._findings.fitted_clusters.row_means import row_means
from tests.conftest import FIRST_SEED


def skewed(n=400, p=4):
    """Groups that overlap, so that many rows belong to several components."""
    rng = np.random.default_rng(FIRST_SEED)
    groups = rng.integers(3, size=n)
    table = pd.DataFrame(np.exp(rng.normal(groups[:, None], 0.8, size=(n, p))), columns=list("abcdefgh")[:p])
    return table.mask(rng.random((n, p)) < 0.1)


def expected(values, labels, cluster, weights=None):
    """The mean of the observed values of a cluster, and of all others."""
    weights = np.ones(len(values)) if weights is None else np.asarray(weights)
    known = values.notna().to_numpy()
    own, others = (known & (labels == cluster)), (known & (labels >= 0) & (labels != cluster))
    return tuple(np.average(values[rows], weights=weights[rows]) for rows in (own, others))


def check(c, table, weights=None, scale=lambda values: values, back=lambda mean: mean):
    found = 0
    for cluster in range(c.k):
        sentence = c.sentence(cluster)
        said = re.findall(
            r"(\w) \(([\d.,]+), (?:others|there) ([\d.,]+)[;)]", sentence.partition(" unlike")[0]
        )
        for name, *written in said:
            means = expected(scale(table[name]), c.labels, cluster, weights)
            for text, mean in zip(written, means, strict=True):
                assert float(text.replace(",", "")) == pytest.approx(back(mean), rel=6e-3), sentence
            found += 1
    assert found


def test_rows_that_belong_to_several_components_count_where_they_are_labelled():
    table = skewed()
    c = analyze(table, 3, shape="diag", verdict=False)._clustering
    check(c, table)
    assert np.abs(c.centers / c.row_means.means - 1).max() > 0.05  # which is why it matters


def test_centers_of_a_fit_that_stopped_early_are_not_the_means():
    table = skewed()
    c = Clustering.of(
        make_pipeline(ObservedScaler(), KPOD(3, tol=0.5, n_init=1, random_state=0)).fit(table), table
    )
    check(c, table)
    assert np.abs(c.centers / c.row_means.means - 1).max() > 0.01


def test_shrunken_centers_are_not_the_means():
    table = skewed()
    check(analyze(table, 3, shape="round", shrinkage=30, verdict=False)._clustering, table)


def test_rows_have_their_weights():
    table = skewed()
    table["w"] = np.random.default_rng(0).uniform(0.2, 5, len(table))
    check(analyze(table, 3, shape="diag", weight="w", verdict=False)._clustering, table, table["w"])


def test_means_of_logarithms_are_said_to_be_that():
    table = skewed()
    c = analyze(table, 3, shape="diag", log=list("abcd"), verdict=False)._clustering
    check(c, table, scale=np.log, back=np.exp)
    assert "; means of logarithms)" in c.sentence(0)


def test_values_that_no_cluster_expects_are_left_out_and_counted():
    rng = np.random.default_rng(FIRST_SEED)
    groups = np.repeat([0, 1, 2], 100)
    table = pd.DataFrame(rng.normal(groups[:, None] * 6 + 20, 1.0, (300, 4)), columns=list("abcd"))
    table.iloc[7, 0] = table.iloc[250, 0] = 5000.0
    model = GaussianMixture(3, covariance_type="diag", outlier_cells=True, random_state=0).fit(table)
    c = Clustering.of(model, table)
    assert {tuple(cell) for cell in c.outlier_cells} >= {(7, 0), (250, 0)}
    cells, kept = c.outlier_cells, table.copy()
    for row, j in cells:
        kept.iloc[row, j] = np.nan
    for cluster in range(3):
        for j, name in enumerate(table):
            means = c.row_means.means[cluster, j], c.row_means.others[cluster, j]
            assert means == pytest.approx(expected(kept[name], c.labels, cluster))
    n = int((cells[:, 1] == 0).sum())
    assert any(f"; without {n} outlying values" in c.sentence(cluster) for cluster in range(3))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_by_group_are_those_of_pandas_in_every_form(weighted):
    table = skewed().fillna(np.nan)
    rng = np.random.default_rng(FIRST_SEED)
    groups = rng.integers(-1, 3, len(table)).astype(np.int32)
    weights = rng.uniform(0.5, 2, len(table)) if weighted else None
    values = table.to_numpy()
    known = ~np.isnan(values)
    stored = sparse.csr_array((values[known], np.nonzero(known)), shape=values.shape)
    each = np.ones(len(table)) if weights is None else weights
    inside = groups >= 0
    sums = (table.mul(each, axis=0))[inside].groupby(groups[inside]).sum().to_numpy()
    sizes = pd.DataFrame(known * each[:, None])[inside].groupby(groups[inside]).sum().to_numpy()
    for entries in (DenseEntries(values), MappedEntries(MappedRows(values)), SparseEntries(stored)):
        found = entries.sums_by_group(groups, 3, weights)
        np.testing.assert_allclose(found[0], sums)
        np.testing.assert_allclose(found[1], sizes)


def test_high_and_low_are_judged_by_the_means_that_are_shown():
    table = skewed()
    c = analyze(table, 3, shape="diag", verdict=False)._clustering
    found = row_means(c)
    for cluster in range(3):
        for trait in c.traits(cluster):
            higher = found.means[cluster, trait.column] > found.others[cluster, trait.column]
            assert higher == (trait.kind == "high")
