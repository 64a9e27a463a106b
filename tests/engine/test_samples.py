"""What is answered by a sample of a table on a cluster: the same sample whatever the number of workers."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kpod
from kpod import KPOD, GaussianMixture
from kpod._engine import sampling, sizes
from tests.helpers.clusters import patient  # noqa: F401  # the fixture
from tests.helpers.tables import clustered

pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::ResourceWarning")
NAMES = list("abcd")


@pytest.fixture(autouse=True)
def on_workers(monkeypatch):
    """Small tables stay on the cluster, as those stay that are not small."""
    monkeypatch.setattr(sizes, "SMALL_REMOTE_TABLE", 0)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=100
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def table(n_rows=900):
    return clustered(np.random.default_rng(1), n_rows, 4, k=3, missing=0.2, spread=0.3)[0]


def in_chunks(X, rows=200):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def in_frame(X, n=4):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=n)


def mixture():
    return GaussianMixture(3, covariance_type="diag", n_factors=None, n_init=2, random_state=0)


def answers(X):
    """Everything that rests on the sample, as numbers."""
    model = KPOD(3, random_state=0).fit(X)
    about = kpod.summary(model, X)
    again = kpod.stability(model, X, n_resamples=2, random_state=0)
    fitted = mixture().fit(X)
    return [about.sizes_, about.within_ss_, again.jaccard_samples_, fitted.means_, fitted.covariances_]


@pytest.mark.parametrize("kind", [in_chunks, in_frame])
def test_a_small_table_gives_the_answers_of_memory(kind):
    X = table()
    spread = kind(X)
    known = pd.DataFrame(X, columns=NAMES) if kind is in_frame else X
    model = KPOD(3, random_state=0).fit(known)
    assert_allclose(kpod.summary(model, spread).within_ss_, kpod.summary(model, known).within_ss_)
    assert kpod.summary(model, spread).n_rows_ is None
    here, there = (kpod.stability(model, given, n_resamples=3, random_state=0) for given in (known, spread))
    assert_array_equal(here.jaccard_samples_, there.jaccard_samples_)
    here, there = kpod.report(model, known).data, kpod.report(model, spread).data
    assert [c["sentence"] for c in here["clusters"]] == [c["sentence"] for c in there["clusters"]]
    assert_allclose(mixture().fit(spread).means_, mixture().fit(known).means_)


def test_a_sample_is_the_same_on_any_number_of_workers(client, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLED_ROWS", 300)
    X = in_chunks(table())
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        here = answers(X)
    with client.as_current(), pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        there = answers(X)
    for one, other in zip(here, there, strict=True):
        assert_array_equal(one, other)


def test_results_say_what_they_rest_on(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLED_ROWS", 300)
    X = in_frame(table())
    model = KPOD(3, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        about = kpod.summary(model, X)
    assert about.n_rows_ == 300
    assert about.sizes_.sum() == 300
    assert "Of a random sample of 300 rows" in str(about)
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        fitted = mixture().fit(X)
    assert fitted.n_rows_ == 300
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        assert "random sample of 300 of 900 rows" in kpod.report(model, X).html
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        assert kpod.stability(model, X, n_resamples=1, random_state=0).n_rows_ == 300
    with pytest.raises(ValueError, match="row_names"):
        kpod.report(model, X, row_names=range(900))


@pytest.mark.parametrize("kind", [in_chunks, in_frame])
def test_a_mixture_labels_a_collection_where_it_is(kind):
    X = table()
    spread, known = kind(X), pd.DataFrame(X, columns=NAMES) if kind is in_frame else X
    model = mixture().fit(known)
    for method in ("predict", "predict_proba", "impute"):
        found = getattr(model, method)(spread)
        assert hasattr(found, "__dask_graph__")
        assert_allclose(np.asarray(found.compute()), np.asarray(getattr(model, method)(known)))
    fitted = mixture().fit(spread)
    assert_array_equal(fitted.labels_.compute(), mixture().fit(known).labels_)
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "labels_")
    with pytest.raises(ValueError, match="n_draws"):
        model.impute(spread, n_draws=2)


def test_weights_are_those_of_the_rows_drawn(monkeypatch):
    X = table()
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(w=weights), npartitions=3)
    model = KPOD(3, random_state=0).fit(pd.DataFrame(X, columns=NAMES))
    here = kpod.summary(model, pd.DataFrame(X, columns=NAMES), sample_weight=weights)
    assert_allclose(kpod.summary(model, frame, sample_weight="w").within_ss_, here.within_ss_)
    one = mixture().fit(frame, sample_weight="w")
    other = mixture().fit(X, sample_weight=weights)
    assert_allclose(one.means_, other.means_, rtol=1e-3)  # rows of no weight are not drawn


def test_a_mixture_does_not_follow_the_order_of_the_rows():
    """Which Spark does not keep, and which the starts would follow: clusters that touch, and one start."""
    X = clustered(np.random.default_rng(2), 400, 4, k=3, missing=0.3, spread=1.5)[0]
    order = np.random.default_rng(0).permutation(len(X))
    fits = [
        GaussianMixture(3, covariance_type="diag", n_init=1, random_state=0).fit(in_chunks(rows))
        for rows in (X, X[order])
    ]
    assert_array_equal(fits[0].means_, fits[1].means_)
    assert_array_equal(fits[0].labels_.compute()[order], fits[1].labels_.compute())


def test_a_report_names_rows_by_their_places_in_the_table():
    X = table()
    X[3] = np.nan  # says nothing, and is not brought here
    known, spread = pd.DataFrame(X, columns=NAMES), in_frame(X)
    model = KPOD(3, random_state=0).fit(known.drop(index=3))
    here, there = kpod.report(model, known).data, kpod.report(model, spread).data
    for one, other in zip(here["clusters"], there["clusters"], strict=True):
        assert [f"row {name}" for name in one["typical"]] == other["typical"]
