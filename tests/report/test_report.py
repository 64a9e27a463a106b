"""The report: what it says, that it needs nothing else, and that a browser shows it."""

import re
import threading
import time
import tracemalloc
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kpod
from kpod import KPOD, MiniBatchKPOD, ObservedScaler, plot
from kpod._common.sentences.caution_sentences import title
from kpod._findings.cautions import cautions
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._report import page, pictures
from kpod.datasets import load_incomplete_wine, make_mixture, make_ratings
from kpod.missingness import mcar
from kpod.plot import _rows
from tests.helpers.browser import in_browser, requested
from tests.helpers.command import kpod as run_here
from tests.helpers.tables import clustered

WINE = load_incomplete_wine()
HOSTILE = [
    '<script>document.title="owned"</script>',
    '"><img src=x onerror="document.title=1">',
    "$\\alpha$",
    "{{ 7 * 7 }}",
]


@pytest.fixture(scope="module")
def wine():
    model = make_pipeline(StandardScaler(), KPOD(3, random_state=0)).fit(WINE.data)
    return kpod.report(model, WINE.data, column_names=WINE.feature_names)


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=HOSTILE).mask(rng.random((60, 4)) < 0.2)
    frame.iloc[0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KPOD(3, random_state=0).fit(frame)
    return kpod.report(model, frame, title=HOSTILE[0])


def test_a_cluster_in_a_sentence(wine):
    """High and low, and the values beside them, are recounted from the table."""
    labels = wine.clustering.labels
    label = list(np.bincount(labels)).index(58)  # the number of a cluster is an accident of the seeds
    frame = pd.DataFrame(WINE.data, columns=WINE.feature_names)
    z = ((frame.groupby(labels).mean() - frame.mean()) / frame.std(ddof=0)).loc[label]
    clearest = z.abs().sort_values(ascending=False).index[:4]
    traits = wine.clustering.traits(label)
    assert [trait.name for trait in traits] == list(clearest)
    assert [trait.kind for trait in traits] == ["high" if z[name] > 0 else "low" for name in clearest]
    own = labels == label
    means = {trait.name: (frame[trait.name][own].mean(), frame[trait.name][~own].mean()) for trait in traits}
    for trait in traits:
        value, others = (float(text.replace(",", "")) for text in (trait.value, trait.others))
        np.testing.assert_allclose((value, others), means[trait.name], rtol=0.005)
    sentence = (
        f"cluster {label}: 58 rows, low in color_intensity (2.82, others 6.08), alcohol (12.3, others 13.4), "
        "proline (500, others 871) and ash (2.22, others 2.45)"
    )
    assert wine.data["clusters"][label]["sentence"] == sentence


def test_columns_are_sorted_by_how_much_they_separate(wine):
    separation = [column["separation"] for column in wine.data["columns"]]
    assert separation == sorted(separation, reverse=True)
    assert len(separation) == 13


def test_centers_are_in_the_units_of_the_table(wine):
    proline = next(column for column in wine.data["columns"] if column["name"] == "proline")
    for m, center in enumerate(proline["centers"]):
        entries = WINE.data[wine.clustering.labels == m, 12]
        assert center["value"] == pytest.approx(np.nanmean(entries))
        assert center["count"] == (~np.isnan(entries)).sum()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_transformer_is_reported_in_the_units_of_the_table(rng, library):
    frame = pd.DataFrame({
        "mass": np.r_[rng.normal(3000, 50, 30), rng.normal(5000, 50, 30)],
        "depth": np.r_[rng.normal(18, 0.5, 30), rng.normal(15, 0.5, 30)],
        "island": ["Dream"] * 30 + ["Biscoe"] * 30,
    })  # fmt: skip
    frame.loc[4, "mass"] = np.nan
    table = frame if library == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    steps = [
        ("scale", StandardScaler(), ["mass", "depth"]),
        ("code", OneHotEncoder(sparse_output=False), ["island"]),
    ]
    model = make_pipeline(ColumnTransformer(steps), KPOD(2, random_state=0)).fit(table)
    columns = {column["name"]: column for column in kpod.report(model, table).data["columns"]}
    assert set(columns) == {"mass", "depth", "island_Biscoe", "island_Dream"}
    means = frame.groupby(model[-1].labels_)[["mass", "depth"]].mean()
    for name in ("mass", "depth"):
        np.testing.assert_allclose([c["value"] for c in columns[name]["centers"]], means[name])


def test_logarithms_are_described_on_their_own_scale():
    """In the units of the table, one huge value would leave all other clusters close to the average."""
    frame = pd.DataFrame({"x": np.repeat([1.0, 1e3, 1e6], [40, 40, 6])})
    model = make_pipeline(kpod.TablePreparer(categories="all", log=["x"]), KPOD(3, random_state=0)).fit(frame)
    seen = Clustering.of(model, frame)
    said = [seen.sentence(int(model[-1].labels_[row])).partition("rows, ")[2] for row in (0, 40, 80)]
    assert [text.partition(" (")[0] for text in said] == ["low in x", "high in x", "high in x"]
    assert said[0] == "low in x (1, others 2,460; means of logarithms)"


def test_centers_that_are_no_plain_means_say_so(rng):
    frame = pd.DataFrame(
        {"x": rng.lognormal(sigma=2, size=60), "y": rng.normal(size=60), "z": ["a", "b"] * 30}
    )
    labels = {}
    for name, settings in {"plain": {}, "log": {"log": ["x"]}, "both": {"log": ["x"], "clip": 0.1}}.items():
        model = make_pipeline(kpod.TablePreparer(categories="all", **settings), KPOD(1, random_state=0)).fit(
            frame
        )
        report = kpod.report(model, frame)
        labels[name] = {column["name"]: column["means_of"] for column in report.data["columns"]}
        centers = {column["name"]: column["centers"][0]["value"] for column in report.data["columns"]}
        if name == "log":
            np.testing.assert_allclose(centers["x"], np.exp(np.log(frame["x"]).mean()))
            assert ">x <small>(mean of logarithms)</small></td>" in report.html
            assert "like geometric means, they lie below the ordinary means" in report.html
    assert set(labels["plain"].values()) == {""}
    assert labels["log"] == {"x": "logarithms", "y": "", "z: b": ""}
    assert labels["both"] == {"x": "clipped logarithms", "y": "clipped values", "z: b": ""}


def test_gaps_are_not_said_to_go_with_high_or_low_categories(rng):
    job = rng.choice(["fixed", "freelance"], size=300)
    frame = pd.DataFrame({"job": job, "income": rng.normal(size=300), "age": rng.normal(size=300)})
    frame.loc[(job == "freelance") & (rng.random(300) < 0.6), "income"] = np.nan
    frame.loc[rng.random(300) < 0.1, "job"] = None
    model = make_pipeline(kpod.TablePreparer(categories="all"), KPOD(2, random_state=0)).fit(frame)
    said = kpod.report(model, frame).data["gaps"]["sentences"]
    assert "in 2 of 3 columns" in said[0]
    assert not re.search("(high|low)er in job", " ".join(said))
    assert "Rows that lack income more often have job freelance, by " in " ".join(said)


def test_levels_that_are_known_for_few_rows_do_not_lead(rng):
    common = np.repeat(["a", "b"], 60)
    rare = np.where(np.arange(120) < 8, "new", np.where(np.arange(120) >= 110, "old", None))
    once = np.where(np.arange(120) == 3, "odd", np.where(np.arange(120) > 100, "plain", None))
    frame = pd.DataFrame({"x": np.repeat([0.0, 5.0], 60), "rare": rare, "once": once, "common": common})
    model = make_pipeline(kpod.TablePreparer(categories="all"), KPOD(2, random_state=0)).fit(frame)
    first = Clustering.of(model, frame).sentence(int(model[-1].labels_[0]))
    assert first.endswith(
        "low in x (0, others 5), mostly common a (100%, others 0%) and "
        "rare new (100%, others 0%; known for 8 of 60)"
    )


def test_the_page_needs_nothing_else(wine):
    page = wine.html
    assert "default-src 'none'" in page
    assert "<link" not in page
    for start in ("src=", "url(", "href="):
        for piece in page.split(start)[1:]:
            assert piece.lstrip("\"'").startswith(("#", "data:")), piece[:60]


def test_the_same_fit_gives_the_same_page(wine):
    again = kpod.report(
        make_pipeline(StandardScaler(), KPOD(3, random_state=0)).fit(WINE.data),
        WINE.data,
        column_names=WINE.feature_names,
    )
    assert again.html == wine.html


def test_values_are_escaped(hostile):
    for name in HOSTILE[:2]:
        assert name not in hostile.html
    assert "&lt;script&gt;" in hostile.html
    assert "{{ 7 * 7 }}" in hostile.html


def test_save_and_notebook(wine, tmp_path):
    wine.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == wine.html
    shown = wine._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "<script>" not in shown


def cautions_of(X, k=2, row_names=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KPOD(k, random_state=0, **settings).fit(X)
    found = cautions(Clustering.of(model, X), row_names)
    return {title(caution): caution.text for caution in found}


def test_cautions_appear_when_due_and_only_then():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8)) * 0.1 + np.repeat([[0.0], [5.0]], 40, axis=0)
    assert cautions_of(X) == {}
    assert "Not converged" in cautions_of(
        rng.normal(size=(500, 8)), k=8, algorithm="lloyd", max_iter=1, tol=0
    )

    poor = X.copy()
    poor[3, 2:] = np.nan
    poor[5] = np.nan
    found = cautions_of(poor)
    assert "(row 4)" in found["Rows with little observed"]
    assert found["Rows with little observed"].endswith("observed: its cluster rests on few values.")
    assert cautions_of(poor, k=1)["Rows with little observed"].endswith("a quarter of the columns observed.")
    assert "(row 6)" in found["Rows with nothing observed"]
    assert "(r5)" in cautions_of(poor, row_names=[f"r{i}" for i in range(80)])["Rows with nothing observed"]

    few = X.copy()
    few[42:, 1] = np.nan
    found = cautions_of(few)
    assert "column 1 in cluster" in found["Few observations behind a center"]
    assert "(2)" in found["Few observations behind a center"]
    assert "column 1 (0% to 95%)" in found["Gaps differ between clusters"]

    assert (
        "column 0 (60%)"
        in cautions_of(np.where((np.arange(80) % 5 < 3)[:, None] & (np.arange(8) == 0), np.nan, X))[
            "Columns mostly missing"
        ]
    )
    assert (
        "column 2 accounts for"
        in cautions_of(X * np.where(np.arange(8) == 2, 100, 1))["One column outweighs the others"]
    )
    assert "Small clusters" in cautions_of(np.vstack([X, np.full(8, 99.0)]), k=3)
    assert "Rows between two clusters" in cautions_of(np.vstack([X, np.full(8, 2.5)]))


def as_csr(X, stored_nan=()):
    rows, columns = np.nonzero(~np.isnan(X))
    values = X[rows, columns]
    more_rows, more_columns = np.nonzero(np.isnan(X))
    keep = list(stored_nan)
    return sparse.csr_array(
        (
            np.concatenate([values, np.full(len(keep), np.nan)]),
            (np.concatenate([rows, more_rows[keep]]), np.concatenate([columns, more_columns[keep]])),
        ),
        shape=X.shape,
    )


@pytest.mark.parametrize("scaled", [False, True])
def test_the_report_of_a_sparse_table_is_that_of_the_same_one_dense(rng, scaled):
    """Entries that are not stored are missing, and so is a stored NaN; none of them is 0."""
    X, _ = clustered(rng, 200, 7, k=3, missing=0.5)
    X[5] = np.nan
    csr = as_csr(X, stored_nan=[0, 3])
    model = KPOD(3, random_state=0)
    if scaled:
        model = make_pipeline(ObservedScaler(), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
        dense, same = kpod.report(model, X), kpod.report(model, csr)
        assert same.data == dense.data
        assert same.html == dense.html


def test_a_sparse_table_is_not_made_dense(monkeypatch):
    monkeypatch.setattr(_rows, "MOST_PLANE_ENTRIES", 200_000)
    monkeypatch.setattr(_rows, "FEWEST_PLANE_ROWS", 100)
    ratings, _ = make_ratings(6_000, 2_000, n_groups=3, mean_activity=25, random_state=0)
    ratings = ratings[np.diff(ratings.indptr) > 0]
    ratings = ratings[:, ratings.count_nonzero(axis=0) > 0]
    model = KPOD(3, n_init=1, random_state=0).fit(ratings)
    tracemalloc.start()
    report = kpod.report(model, ratings)
    assert report.data["columns"]
    for name in set(plot.__all__) - {"ChooseKDisplay"}:  # which is not of a clustering
        getattr(plot, name).from_clustering(report.clustering)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * ratings.shape[0] * ratings.shape[1] / 2, "half of what it would be, dense"


def test_a_table_of_nothing_but_gaps_can_be_reported():
    model = KPOD(2, random_state=0).fit(np.arange(12.0).reshape(6, 2))
    report = kpod.report(model, np.full((3, 2), np.nan))
    assert report.data["cautions"][1]["title"] == "Rows with nothing observed"
    assert report.html


def test_one_cluster_can_be_reported():
    page = kpod.report(KPOD(1).fit(WINE.data), WINE.data).html
    assert "cluster 0" in page
    assert 'id="margins-' not in page


@pytest.fixture(scope="module")
def large():
    X, _ = make_mixture(8, n_samples=100_000, n_features=50, random_state=0)
    X = mcar(X, 0.3, random_state=0)
    return kpod.report(KPOD(8, random_state=0).fit(X), X)


def test_the_report_of_a_large_table_is_small(large):
    assert len(large.html.encode()) < 3_000_000


def test_the_command_writes_what_python_writes(monkeypatch, tmp_path):
    table = tmp_path / "w.csv"
    frame = pd.DataFrame(WINE.data, columns=WINE.feature_names)
    frame.insert(0, "bottle_id", [f"b{i}" for i in range(len(frame))])
    frame.to_csv(table, index=False)
    options = ("-k", 3, "--shape", "round", "-q", "--report", tmp_path / "r.html")
    done = run_here(monkeypatch, "fit", table, *options)
    assert done.code == 0
    page = (tmp_path / "r.html").read_text()
    assert re.search(r"Cluster \d: 58 rows, low in color_intensity \(2\.82, others 6\.08\), alcohol", page)
    assert "bottle_id (identifier: different in every row)" in page
    assert "empty 578" in page


def test_the_command_speaks_of_its_own_option(monkeypatch, tmp_path, rng):
    X = rng.normal(size=(200, 3)) + 8 * (np.arange(200) % 2)[:, None]
    X[::4, 1] = np.nan
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    run_here(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2, "-q", "--report", tmp_path / "r.html")
    said = page.gaps(Clustering.of(KPOD(2, random_state=0).fit(X), X))["suggestion"]
    assert "missing. missingness='auto' checks" in said
    shown = (tmp_path / "r.html").read_text()
    assert re.sub("<.*?>", "", shown).count(said.replace("missingness='auto'", "--missingness auto")) == 1


# In a browser


def opened(browser, page, path):
    path.write_text(page)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())


def column(browser, number):
    cells = browser.find_elements("css selector", f"#column-table tbody td:nth-child({number})")
    return [cell.get_attribute("data-value") for cell in cells]


@in_browser
def test_it_renders_without_an_error_and_asks_for_nothing(browser, wine, tmp_path):
    opened(browser, wine.html, tmp_path / "r.html")
    assert browser.title == "Clusters"
    pictures = browser.find_elements("css selector", "figure svg")
    assert len(pictures) == 6
    assert all(picture.size["height"] > 100 for picture in pictures)
    assert "58 rows, low in color_intensity" in browser.find_element("id", "clusters").text
    assert browser.get_log("browser") == []
    assert requested(browser) == []


@in_browser
def test_that_test_would_see_a_request_and_an_error(browser, tmp_path):
    page = "<img src='http://127.0.0.1:9/x.png'><script>console.error('seen'); null.x</script>"
    opened(browser, page, tmp_path / "bad.html")
    assert requested(browser) == ["http://127.0.0.1:9/x.png"]
    assert len(browser.get_log("browser")) >= 2


@in_browser
def test_the_table_of_columns_sorts(browser, wine, tmp_path):
    opened(browser, wine.html, tmp_path / "r.html")
    heads = browser.find_elements("css selector", "#column-table th button")
    names = column(browser, 1)
    heads[0].click()
    assert column(browser, 1) == sorted(names)
    heads[0].click()
    assert column(browser, 1) == sorted(names, reverse=True)
    heads[3].click()
    means = [float(value) for value in column(browser, 4)]
    assert means == sorted(means, reverse=True)
    heads[3].click()
    assert [float(value) for value in column(browser, 4)] == sorted(means)
    heads[1].click()
    assert column(browser, 1) == names


@in_browser
@pytest.mark.parametrize("width", [320, 375])
def test_it_fits_a_phone(browser, wine, hostile, tmp_path, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": True},
    )
    for report in (wine, hostile):
        opened(browser, report.html, tmp_path / "r.html")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_and_paper_follow_the_reader(browser, wine, tmp_path, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened(browser, wine.html, tmp_path / "r.html")

    def brightness(selector, what):
        element = browser.find_element("css selector", selector)
        colour = browser.execute_script(f"return getComputedStyle(arguments[0]).{what}", element)
        return np.mean([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]])

    paper, ink = brightness("body", "backgroundColor"), brightness("figure svg text", "fill")
    assert (paper > 200 and ink < 80) if scheme == "light" else (paper < 60 and ink > 180)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@in_browser
def test_a_column_named_script_is_a_column_name(browser, hostile, tmp_path):
    opened(browser, hostile.html, tmp_path / "r.html")
    assert browser.title == HOSTILE[0]
    assert set(HOSTILE) == set(column(browser, 1))
    assert browser.get_log("browser") == []
    assert requested(browser) == []
    frame = f"<title>notebook</title>{hostile._repr_html_()}"
    opened(browser, frame, tmp_path / "notebook.html")
    browser.switch_to.frame(0)
    assert len(browser.find_elements("css selector", "figure svg")) == 6
    browser.switch_to.default_content()
    assert browser.title == "notebook"


@in_browser
def test_a_large_report_opens_as_a_small_one_does(browser, large, wine, tmp_path):
    """Whatever else the machine is doing: both are opened in turn, and the shortest times compared."""

    def milliseconds(html):
        opened(browser, html, tmp_path / "r.html")
        return browser.execute_script(
            "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime"
        )

    times = np.array([[milliseconds(report.html) for report in (wine, large)] for _ in range(3)])
    small, of_large = times.min(axis=0)
    assert 0 < of_large < 10 * small


@in_browser
def test_it_prints(browser, wine, tmp_path):
    opened(browser, wine.html, tmp_path / "r.html")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 20_000


def test_a_very_large_table_is_drawn_from_a_sample_that_is_said(monkeypatch, rng):
    """Exact: sizes, centers, means, ranges, patterns, separation, variance explained. Sampled: margins."""
    X, _ = clustered(rng, 6000, 5, k=3, missing=0.3)
    X[:7] += 300  # a cluster that a small sample would miss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KPOD(4, random_state=0).fit(X)
    full = kpod.report(model, X)
    assert full.data["sampled"] == 0
    monkeypatch.setattr("kpod._findings.fitted_clusters.clustering.MOST_ROWS", 1000)
    monkeypatch.setattr("kpod.plot._columns.MOST_ROWS", 1000)
    monkeypatch.setattr("kpod._findings.fitted_clusters.entries.MANY_ENTRIES", 5000)
    monkeypatch.setattr("kpod._findings.fitted_clusters.entries.CHUNK_ENTRIES", 2000)
    part = kpod.report(model, X)
    assert part.data["sampled"] == 1000
    assert "a random sample of 1,000 rows" in part.html
    assert "random sample" not in full.html
    for key in ("facts", "gaps"):
        assert [fact for fact in part.data[key] if "explained" not in str(fact)] == [
            fact for fact in full.data[key] if "explained" not in str(fact)
        ]
    for one, other in zip(part.data["clusters"], full.data["clusters"], strict=True):
        assert one["sentence"] == other["sentence"]
    columns = {column["name"]: column for column in full.data["columns"]}
    for column in part.data["columns"]:
        same = columns[column["name"]]
        assert {key: column[key] for key in ("min", "max", "centers")} == {
            key: same[key] for key in ("min", "max", "centers")
        }
        np.testing.assert_allclose([column["mean"], column["std"]], [same["mean"], same["std"]], rtol=1e-10)
        assert abs(column["separation"] - same["separation"]) < 1e-3
    assert abs(part.data["explained"] - full.data["explained"]) < 1e-6
    drawn = plot.ColumnsDisplay.from_clustering(part.clustering)
    smallest = int(np.argmin(part.clustering.sizes))
    assert len(drawn.entries[0][smallest]) > 0
    assert smallest in plot.GapsDisplay.from_clustering(part.clustering).groups


def test_reports_drawn_at_the_same_time_leave_settings_as_they_were(monkeypatch, rng):
    """One picture begins while another is drawn: neither may take the other's settings for the user's."""
    X, _ = clustered(rng, 60, 3)
    display = plot.LossDisplay.from_estimator(KPOD(2, random_state=0).fit(X), X)
    begun, overlapping, savefig = threading.Event(), threading.Event(), Figure.savefig

    def slow(*args, **options):
        (overlapping if begun.is_set() else begun).set()
        overlapping.wait(0.5)
        time.sleep(0.1 if threading.current_thread() is second else 0)
        return savefig(*args, **options)

    monkeypatch.setattr(Figure, "savefig", slow)
    settings, filters = dict(mpl.rcParams), list(warnings.filters)
    first, second = (threading.Thread(target=pictures.svg, args=(display, "loss")) for _ in range(2))
    first.start()
    begun.wait(20)
    second.start()
    first.join()
    second.join()
    assert dict(mpl.rcParams) == settings
    assert list(warnings.filters) == filters


def test_mini_batches_have_a_report(rng):
    X, _ = clustered(rng, 200, 4)
    model = MiniBatchKPOD(3, random_state=0).fit(X)
    html = kpod.report(model, X).html
    assert "Loss by iteration" not in html
    assert "Margin of each row" in html
    with pytest.raises(TypeError, match="MiniBatchKPOD keeps no losses"):
        plot.LossDisplay.from_estimator(model)
    with pytest.raises(TypeError, match="Choose with a KPOD"):
        kpod.choose_k(X, estimator=model)


def test_a_few_gaps_are_not_none(rng):
    X = rng.normal(size=(3000, 5))
    X[7, 2] = np.nan
    facts = dict(kpod.report(KPOD(2, n_init=1, random_state=0).fit(X), X).data["facts"])
    assert "<0.1%" in facts


def test_another_table_of_the_same_size_gets_labels_of_its_own():
    """Without gaps, the counts behind the centers do not tell one table from another."""
    from kpod._findings.fitted_clusters.clustering import Clustering

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 6 * (np.arange(60) % 3)[:, None]
    model = KPOD(3, random_state=0).fit(X)
    shuffled = X[rng.permutation(60)]
    assert Clustering.of(model, X).is_fitted_table
    other = Clustering.of(model, shuffled)
    assert not other.is_fitted_table
    np.testing.assert_array_equal(other.labels, model.predict(shuffled))
