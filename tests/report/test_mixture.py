"""A Gaussian mixture in summary, stability, pictures and report: as a KPOD, but by its own model."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpod
from kpod import GaussianMixture, ObservedScaler, TablePreparer, plot, stability, summary
from kpod._analysis.analyze import analyze_table, open_data
from kpod._common.progress import no_progress
from kpod._findings.fitted_clusters import mixture_spread
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import outlier_cells
from kpod.missingness import mcar

DISPLAYS = [getattr(plot, name) for name in plot.__all__ if name != "ChooseKDisplay"]
QUICK = {"n_init": 4, "random_state": 0}
NAMES = ["height", "weight", "age", "hue"]
ROW, COLUMN, WILD = 17, 1, 7200.0


def two_groups(seed=0, n=160, missing=0.1):
    """A wide group, in which height and weight rise together, and a narrow one; age and hue are noise."""
    rng = np.random.default_rng(seed)
    group = (np.arange(n) % 4 == 0).astype(int)
    along = rng.normal(size=n)
    X = np.column_stack([
        170 + 10 * along, 70 + 8 * along + 2 * rng.normal(size=n), rng.normal(40, 9, n), rng.normal(size=n)
    ])  # fmt: skip
    X[group == 1] = rng.normal([150, 100, 40, 0], [2, 2, 9, 1], (int(group.sum()), 4))
    X = mcar(X, missing, random_state=seed)
    return pd.DataFrame(X, columns=NAMES), group


@pytest.fixture(autouse=True)
def agg():
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def frame():
    table, _ = two_groups()
    table.iloc[ROW, COLUMN] = WILD
    return table


@pytest.fixture(scope="module")
def own(frame):
    """Each cluster with its own covariances, and a cell that none of them expects."""
    return GaussianMixture(2, covariance_type="full", n_factors=None, outlier_cells=True, **QUICK).fit(frame)


@pytest.fixture(scope="module")
def found(own, frame):
    return Clustering.of(own, frame)


@pytest.fixture(scope="module")
def report(own, frame):
    return kpod.report(own, frame)


def test_the_table_of_the_fit_is_recognised(own, found, frame):
    assert found.is_fitted_table
    assert_array_equal(found.labels, own.labels_)
    assert not Clustering.of(own, frame.iloc[::-1].reset_index(drop=True)).is_fitted_table
    assert not Clustering.of(own, frame + 1e-3).is_fitted_table
    assert_allclose(found.sureness.confidence, own.predict_proba(frame).max(axis=1))
    assert found.explained is None


def test_units_come_back_through_any_pipeline(frame):
    """Centers, spreads and correlations are the same whatever scaler comes before the mixture."""
    table = frame.copy()
    table.iloc[ROW, COLUMN] = np.nan
    alone = Clustering.of(
        GaussianMixture(2, covariance_type="full", n_factors=None, **QUICK).fit(table), table
    )
    for before in (StandardScaler(), ObservedScaler(), TablePreparer()):
        model = make_pipeline(before, GaussianMixture(2, covariance_type="full", n_factors=None, **QUICK))
        c = Clustering.of(model.fit(table), table)
        assert (c.labels == alone.labels).mean() > 0.99
        assert_allclose(c.centers, alone.centers, rtol=1e-2)
        assert_allclose(mixture_spread.spreads(c), mixture_spread.spreads(alone), rtol=2e-2)
        pair, other = (mixture_spread.correlated_pairs(of, 0)[0] for of in (c, alone))
        assert pair[:2] == other[:2] == (0, 1)
        assert pair.correlation == pytest.approx(other.correlation, abs=0.02)


def test_spreads_are_standard_deviations_of_the_clusters(own, found):
    low, high = mixture_spread.spreads(found)
    assert_allclose((high - low) / 2, np.sqrt(np.diagonal(own.covariances_, axis1=1, axis2=2)))
    assert_allclose((high + low) / 2, own.means_)


def test_logarithms_have_spreads_from_where_to_where():
    rng = np.random.default_rng(0)
    side = np.arange(200) % 2
    table = pd.DataFrame({"income": np.exp(rng.normal(3 + 4 * side, 0.5)), "age": rng.normal(40, 5, 200)})
    model = make_pipeline(TablePreparer(log=["income"]), GaussianMixture(2, covariance_type="diag", **QUICK))
    c = Clustering.of(model.fit(table), table)
    low, high = mixture_spread.spreads(c)
    logs = [np.log(table["income"][c.labels == m]) for m in range(2)]
    expected = [[np.exp(one.mean() - one.std()), np.exp(one.mean() + one.std())] for one in logs]
    assert_allclose(np.transpose([low[:, 0], high[:, 0]]), expected, rtol=0.1)
    assert " to " in mixture_spread.spread_shown(c, 0, low[0, 0], high[0, 0])
    assert mixture_spread.spread_shown(c, 1, low[0, 1], high[0, 1]).startswith("± ")


def test_a_cluster_is_said_to_vary(found):
    said = found.sentence(1)
    assert "less varied in height and weight" in said
    assert "low in height" in said
    assert "high in weight" in said


def test_a_wild_cell_is_named_everywhere(own, report, frame):
    assert [ROW, COLUMN] in own.outlier_cells_.tolist()
    text = next(c["text"] for c in report.data["cautions"] if c["title"] == "Values that no cluster expects")
    assert f"row {ROW + 1}, weight 7,200" in text
    assert "weight 7,200" in report.html
    assert not any(c["title"] == "A few values dominate" for c in report.data["cautions"])
    named = kpod.report(own, frame, row_names=[f"P{i}" for i in range(len(frame))])
    assert f"P{ROW}, weight 7,200" in str(named.data["cautions"])


def test_wild_cells_of_another_table(own, frame):
    """A model from a file has no list of them, and finds the same again."""
    assert_array_equal(outlier_cells(own, frame, is_fitted_table=False), own.outlier_cells_)


def test_a_wild_cell_bends_neither_picture_nor_separation(found):
    """Shares and points are those without it: as if the cell were missing."""
    clean = two_groups()[0]
    clean.iloc[ROW, COLUMN] = np.nan
    entries, labels = found.labelled(found.table, COLUMN)
    assert entries.max() < 200
    assert len(entries) == len(labels) == clean["weight"].notna().sum()
    assert found.separation[COLUMN] > 0.3
    assert np.abs(plot.RowsDisplay.from_clustering(found).points).max() < 6


def test_columns_that_say_nothing(frame):
    table = frame.drop(index=ROW)
    model = GaussianMixture(2, covariance_type="diag", select_columns=True, **QUICK).fit(table)
    report = kpod.report(model, table)
    uninformative = [name for name, selected in zip(NAMES, model.selected_, strict=True) if not selected]
    assert set(uninformative) == {"age", "hue"}
    assert report.data["mixture"]["uninformative"].startswith(
        "2 columns are uninformative about the clusters, and have"
    )
    assert report.data["mixture"]["uninformative"].endswith("in all of them: age and hue.")
    assert {c["name"] for c in report.data["columns"] if c["uninformative"]} == set(uninformative)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"covariance_type": "full", "n_factors": None}, "its own correlations between columns."),
        ({"covariance_type": "full", "n_factors": 1}, "carried by 1 factor"),
        ({"covariance_type": "tied", "n_factors": None}, "the same correlations"),
        ({"covariance_type": "diag", "n_factors": 1}, "1 common factor"),
        ({"covariance_type": "diag", "n_factors": None}, "not correlated"),
        ({"covariance_type": "tied_diag"}, "one for each column"),
        ({"covariance_type": "spherical"}, "round, each with a spread of its own"),
        ({"covariance_type": "tied_spherical"}, "round and have the same spread"),
    ],
)
def test_every_shape_has_its_sentence(shape, words, frame):
    """And says of correlations what its covariance matrices say."""
    table = frame.drop(index=ROW)
    model = GaussianMixture(2, max_iter=30, tol=1e-2, **shape, **QUICK).fit(table)
    c = Clustering.of(model, table)
    assert words in mixture_spread.shape_sentence(model)
    said = mixture_spread.correlation_sentences(c)
    matrices = shape["covariance_type"] in ("full", "tied") or shape.get("n_factors")
    assert len(said) == (0 if not matrices else 1 if shape["covariance_type"] == "tied" else 2)
    for cluster in range(2):
        for pair in mixture_spread.correlated_pairs(c, cluster):
            columns = np.array(pair[:2])
            expected = np.asarray(model._covariance(cluster, columns))
            assert pair.correlation == pytest.approx(
                expected[0, 1] / np.sqrt(expected[0, 0] * expected[1, 1])
            )


def test_ellipses_hold_nine_in_ten_rows():
    """Of complete rows drawn from each cluster of the model, as the picture places them."""
    table, _ = two_groups(n=400, missing=0.0)
    model = GaussianMixture(2, covariance_type="full", n_factors=1, **QUICK).fit(table)
    shown = plot.RowsDisplay.from_estimator(model, table)
    for cluster, covariance in shown.ellipses.items():
        off = shown.points[shown.labels == cluster] - shown.middles[cluster]
        inside = (off @ np.linalg.inv(covariance) * off).sum(axis=1) <= -2 * np.log(0.1)
        assert inside.mean() == pytest.approx(0.9, abs=0.06)
        assert_allclose(np.cov(off.T), covariance, rtol=0.3, atol=0.05)
    assert len(shown.ax_.patches) == 2


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_every_display_takes_a_mixture(display, own, frame):
    display.from_estimator(own, frame).figure_.canvas.draw()


def test_margins_are_those_of_probabilities(own, found, frame):
    probabilities = np.sort(own.predict_proba(frame), axis=1)
    assert_allclose(found.margins, 1 - probabilities[:, -2] / probabilities[:, -1])


def test_the_likelihood_is_drawn(own):
    shown = plot.LossDisplay.from_estimator(own)
    assert shown.of == "likelihood"
    assert_array_equal(shown.losses, own.lower_bounds_)
    assert "likelihood" in shown.ax_.get_ylabel()


def test_the_summary_is_a_likelihood(own, frame):
    result = summary(own, frame)
    assert_allclose(result.log_likelihood_, own.score_samples(frame).sum())
    assert_allclose(result.bic_, own.bic(frame))
    assert_array_equal(result.sizes_, np.bincount(own.labels_))
    assert "Gaussian mixture (full) with 2 clusters" in str(result)
    weighted = summary(own, frame, sample_weight=np.full(len(frame), 2.0))
    assert_allclose(weighted.log_likelihood_, 2 * result.log_likelihood_)


def test_stability_fits_the_same_kind_of_model(own, frame, monkeypatch):
    from kpod._estimators.mixture import gaussian_mixture

    seen, fit = [], gaussian_mixture.fit_mixture

    def spy(table, executor, options, rng, clusterings):
        seen.append(options)
        assert np.isnan(table.entries(np.arange(table.n_rows))).mean() > frame.isna().to_numpy().mean()
        return fit(table, executor, options, rng, clusterings)

    monkeypatch.setattr(gaussian_mixture, "fit_mixture", spy)
    result = stability(own, frame, n_resamples=3, random_state=0)
    assert {(o.covariance_type, o.n_factors, o.outlier_cells) for o in seen} == {("full", None, True)}
    assert result.jaccard_.min() > 0.75
    again = stability(make_pipeline(own), frame, n_resamples=3, random_state=0)
    assert_array_equal(again.jaccard_samples_, result.jaccard_samples_)


def test_stability_knows_noise(rng):
    X = rng.normal(size=(150, 4))
    model = GaussianMixture(3, covariance_type="diag", **QUICK).fit(X)
    assert stability(model, X, n_resamples=5, random_state=0).ari_ < 0.6


def test_hidden_entries_stay_hidden_beside_wild_cells(own, frame):
    """EM without wild cells must not look at what a fold hides."""
    from kpod._engine.blocks import Hidden
    from kpod._engine.executors import Executor
    from kpod._engine.table import make_table

    executor = Executor()
    table = make_table(np.ascontiguousarray(frame), executor).hiding(Hidden(0, 0.0, 0.3), executor)
    plain = make_table(table.units.back(table.entries(np.arange(len(frame)))), executor)
    assert_allclose(
        own._posterior(table, executor)[0], own._posterior(plain, executor)[0], rtol=1e-6, atol=1e-9
    )


def test_a_sparse_table_is_that_of_the_same_one_dense():
    table, _ = two_groups()
    X = table.to_numpy()
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    model = GaussianMixture(2, covariance_type="diag", **QUICK).fit(X)
    report, other = (kpod.report(model, given).data for given in (X, csr))
    assert [c["sentence"] for c in report["clusters"]] == [c["sentence"] for c in other["clusters"]]
    assert report["mixture"] == other["mixture"]


def test_a_report_of_a_model_from_a_file(own, frame, report, tmp_path):
    kpod.save(own, tmp_path / "m.kpod")
    opened = kpod.report(kpod.load(tmp_path / "m.kpod"), frame).data
    whole = report.data
    assert [c["sentence"] for c in opened["clusters"]] == [c["sentence"] for c in whole["clusters"]]
    assert opened["mixture"]["cells"] == whole["mixture"]["cells"]


def test_the_page_speaks_of_a_mixture(report):
    page = report.html
    for words in (
        "a Gaussian mixture",
        "The shape of the clusters",
        "mean probability",
    ):
        assert words in page
    for words in ("k-means", "Explaining", "round clusters", "sum of squares"):
        assert words not in page


def test_an_analysis_says_all_of_it(frame, tmp_path, monkeypatch):
    """In text, as data for JSON, on the page, in files; and what it says of the shape is said once."""
    table = frame.assign(name=[f"P{i}" for i in range(len(frame))])
    monkeypatch.setattr("kpod._analysis.analysis.QUICK_WORK", 0)  # stability has tests of its own
    preparer = TablePreparer()
    opened = open_data(table, preparer, no_progress, {})
    model = GaussianMixture(2, covariance_type="full", n_factors=1, outlier_cells=True, **QUICK)
    analysis = analyze_table(opened, preparer, model, 2, {}, no_progress, table)
    assert analysis.confidence["sure"] > 100
    text = str(analysis)
    assert text.count("carried by 1 factor") == 1
    assert text.count("P17, weight 7,200") == 1
    assert "loss" not in text
    data = json.loads(json.dumps(analysis.to_dict(), allow_nan=False))
    assert data["shape"]["unexpected_values"] == [{"row": ROW + 1, "column": "weight", "value": WILD}]
    low, high = data["clusters"][0]["spread"]["height"]
    assert low < data["clusters"][0]["center"]["height"] < high
    assert data["settings"]["shape"] == "full, 1 factor"
    assert "The shape of the clusters" in analysis.report().html
    analysis.write(tmp_path / "out.csv", confidence=True)
    assert_allclose(
        pd.read_csv(tmp_path / "out.csv")["confidence"],
        analysis.model.predict_proba(table).max(axis=1),
        atol=1e-4,
    )
    analysis.write_centers(tmp_path / "centers.csv")
    assert list(pd.read_csv(tmp_path / "centers.csv")["rows"]) == list(np.bincount(analysis.labels))
    analysis.save(tmp_path / "m.kpod")
    assert_array_equal(kpod.load(tmp_path / "m.kpod").predict(table), analysis.labels)


def test_rows_of_a_file_in_pieces(tmp_path):
    """A scanned table is reported as the same rows in memory."""
    table, _ = two_groups()
    table.to_parquet(tmp_path / "t.parquet")
    with kpod.scan(tmp_path / "t.parquet") as scanned:
        model = GaussianMixture(2, covariance_type="diag", **QUICK).fit(scanned)
        c = Clustering.of(model, scanned)
        rows = Clustering.of(model, pd.DataFrame(np.asarray(scanned.values), columns=NAMES))
        assert c.is_fitted_table
        assert [c.sentence(m) for m in range(2)] == [rows.sentence(m) for m in range(2)]
        assert_allclose(c.margins, rows.margins)
        assert kpod.report(model, scanned).data["mixture"] == kpod.report(model, rows.seen).data["mixture"]


def test_one_cluster_and_a_column_of_nothing():
    table, _ = two_groups()
    table["nothing"] = np.nan
    with pytest.warns(UserWarning, match="No observed entries"):
        model = GaussianMixture(1, covariance_type="full", n_factors=None, **QUICK).fit(table)
    assert kpod.report(model, table).html
    assert "1 cluster of size 160" in str(summary(model, table))
