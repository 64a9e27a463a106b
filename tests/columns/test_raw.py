"""From a raw file to clusters: choosing columns, categories, outliers, models, and what is said."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kpod as package
from kpod import KPOD, ObservedScaler, TablePreparer
from kpod._columns.preparing.columns_in_use import choose_columns
from kpod._columns.rows.row_names import row_names
from kpod._columns.table_notes import notes_on
from kpod._common.errors import InputError
from kpod._files.reading import read_table
from kpod._findings.cautions import cautions
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.unused_column_profiles import UnusedColumn, cramers_v, profile
from tests.helpers.command import kpod as run_here

pytestmark = pytest.mark.usefixtures("shell")


@pytest.fixture
def kpod(monkeypatch):
    return lambda *args, stdin=b"": run_here(monkeypatch, *args, stdin=stdin)


@pytest.fixture
def people(tmp_path):
    """Two groups in numbers and in words, with an identifier, codes, a year and gaps."""
    rng = np.random.default_rng(0)
    n = 200
    group = np.arange(n) % 2
    frame = pd.DataFrame({
        "Patient Id": rng.permutation(9000)[:n] + 1000,
        "height": 160 + 15 * group + rng.normal(size=n),
        "weight": 60 + 20 * group + rng.normal(size=n),
        "educ": rng.integers(1, 6, n),
        "region": np.where(rng.random(n) < 0.9, np.where(group, "north", "south"), "east"),
        "size": np.where(group, "large", "small"),
        "year": 2000 + rng.integers(0, 5, n),
        "w": rng.uniform(0.5, 2, n),
    })  # fmt: skip
    frame.loc[rng.random(n) < 0.1, "educ"] = 99
    frame.loc[rng.random(n) < 0.2, "height"] = np.nan
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def used(table, **options):
    return choose_columns(read_table(str(table)), **options)


def test_what_is_used_by_default_and_what_is_not(people):
    choice = used(people)
    assert choice.used == ["height", "weight", "educ", "w"]
    assert {name: why.partition(":")[0] for name, why in choice.unused.items()} == {
        "Patient Id": "identifier", "region": "category", "size": "ordered category", "year": "date",
    }  # fmt: skip


ANSWERS = "hours,exercise,age\n1,Some,20\nNA,None,21\n3,none,NA\n2,Freq,24\n"


def test_none_is_an_answer_where_gaps_are_marked_otherwise(kpod, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(ANSWERS)
    exercise = read_table(path).columns[1]
    assert (exercise.missing, exercise.values) == (0, None)
    done = kpod("describe", path)
    said = " ".join((done.out + done.err).split())
    assert "exercise: 'None' is taken as a category" in said
    assert "--missing exercise=None" in said
    decided = read_table(path, missing={"exercise": ["None", "none"]}).columns[1]
    assert (decided.missing, decided.missing_codes) == (2, {"None": 1, "none": 1})


@pytest.mark.parametrize(
    "text",
    [
        ANSWERS.replace("NA", "None"),  # the mark of this file
        ANSWERS.replace("NA", "0"),  # nothing else is missing
        ANSWERS.replace("1,Some", "None,Some"),  # numbers lack it, too
    ],
)
def test_none_is_a_gap_where_it_may_be_one(text, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    assert read_table(path).columns[1].missing == 2


def test_an_answer_is_quoted_as_the_file_writes_it(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(ANSWERS.replace("None", "none"))
    (note,) = read_table(path).notes
    assert note.text.startswith("exercise: 'none' is taken as a category")
    assert note.text.endswith("--missing exercise=none.")
    path.write_text(ANSWERS)
    assert read_table(path).notes[0].text.endswith("--missing exercise=None,none.")


SIGNS = "gene,sign,fold\ng1,-,2.1\ng2,+,0.9\ng3,,2.9\ng4,-,-\n" + "g5,+,1.5\n" * 9


def test_minus_is_a_value_beside_plus(kpod, tmp_path):
    path = tmp_path / "signs.csv"
    path.write_text(SIGNS)
    table = read_table(path)
    assert [(column.missing, dict(column.missing_codes)) for column in table.columns[1:]] == [
        (1, {"empty": 1}), (1, {"-": 1}),
    ]  # fmt: skip
    assert table.columns[1].role.role == "category"
    (note,) = table.notes
    assert note.text.startswith("sign: '-' is taken as a category, because the other values are '+'")
    assert "--missing sign=-" in note.text
    assert read_table(path, missing={"sign": "-"}).columns[1].missing == 3
    assert read_table(path, missing=["-"]).columns[1].missing == 3
    path.write_text(SIGNS.replace("+", "up"))
    assert read_table(path).columns[1].missing == 3


def test_minus_is_a_value_to_a_model_that_knows_it(kpod, tmp_path):
    lines = [f"{'+-'[i % 2]},{i % 2 + i / 100}" for i in range(40)]
    (tmp_path / "t.csv").write_text("sign,x\n" + "\n".join(lines) + "\n")
    (tmp_path / "new.csv").write_text("sign,x\n-,1.2\n-,1.3\n")
    fitted = kpod("fit", tmp_path / "t.csv", "-k", 2, "--categories", "-q", "-o", tmp_path / "o.csv",
                  "--model", tmp_path / "m")  # fmt: skip
    assert fitted.code == 0, fitted.err
    said = kpod("predict", tmp_path / "m", tmp_path / "new.csv").err
    assert "used: sign and x" in said
    assert "gaps: none" in said


def test_few_gaps_in_many_entries_are_not_no_gaps(kpod, tmp_path):
    lines = [f"{i},{i % 7}" for i in range(3000)]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join([*lines, ",1"]))
    said = kpod("describe", tmp_path / "t.csv").out
    assert "<0.1% of the entries missing" in said
    assert said.count("<0.1%") == 2
    assert "gaps: 1 (<0.1% of the entries)" in kpod("fit", tmp_path / "t.csv", "-k", 2).err


def test_one_value_and_gaps_is_not_the_same_value_in_every_row(tmp_path):
    (tmp_path / "t.csv").write_text("x,fixed,n,said\n1,7,3,yes\n2,7,,\n3,7,3,yes\n4,7,3,yes\n")
    whys = [column.role.why for column in read_table(tmp_path / "t.csv").columns]
    once = "one value, otherwise missing"
    assert whys[1:] == ["the same value in every row", once, "a value or nothing: yes or no"]


def test_the_example_of_a_number_in_text_is_one_that_tells_something(tmp_path):
    (tmp_path / "t.csv").write_text('x,worth\n1,0\n2,250\n3,"$ 1,658.00"\n')
    assert read_table(tmp_path / "t.csv").columns[1].how_written == "'$ 1,658.00' is read as 1658"


def test_patterns_and_decisions(people):
    assert used(people, columns=["*eight"]).used == ["height", "weight"]
    assert used(people, exclude=["h*", "w"]).used == ["weight", "educ"]
    choice = used(people, roles={"year": "number", "educ": "identifier"})
    assert choice.used == ["height", "weight", "year", "w"]
    assert used(people, roles={"region": "category"}).categories == {"region": ()}
    assert used(people, categories=["all"]).categories == {"region": (), "size": ("small", "large")}
    given = used(people, roles={"size": ["large", "small"]})
    assert given.categories == {"size": ("large", "small")}


def test_categories_with_very_many_values_are_left_out_unless_named(tmp_path):
    lines = [f"g{i % 300},{i % 7}" for i in range(1200)]
    (tmp_path / "t.csv").write_text("gene,x\n" + "\n".join(lines))
    assert "300 different values, too many" in used(tmp_path / "t.csv", categories=["all"]).unused["gene"]
    with pytest.raises(InputError, match="has 300 different values, too many for categories"):
        used(tmp_path / "t.csv", categories=["gene"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": {"height": "metric"}}, "expected --as COLUMN=ROLE"),
        ({"roles": {"height": []}}, "expected --as COLUMN=ROLE"),
        ({"roles": {"hight": "number"}}, "did you mean 'height'"),
        ({"columns": ["region"]}, "holds categories, not numbers; use it with --categories region"),
        ({"roles": {"region": "ordered"}}, "the order of its values is unknown; specify it"),
        (
            {"roles": {"size": ["small", "big"]}},
            "the value 'large' is not in the order given .*; add it, or treat",
        ),
        ({"roles": {"region": "number"}}, "holds categories"),
    ],
)
def test_bad_decisions(people, options, message):
    with pytest.raises(InputError, match=message):
        used(people, **options)


def test_codes_are_pointed_out_until_they_are_treated(people):
    table = read_table(str(people))
    (note,) = notes_on(table, choose_columns(table))
    assert note.kind == "possible code"
    assert "--missing educ=99" in note.text
    treated = read_table(str(people), missing={"educ": 99})
    assert notes_on(treated, choose_columns(treated)) == []
    assert treated.column("educ").missing > 5


def test_marks_as_lists_and_marks_found_nowhere(people):
    table = read_table(str(people), missing={"*": [98, 99], "height": [-7]})
    assert table.unused_codes == ["98", "height=-7"]
    assert any(
        "--missing 98: this value does not occur in the table" in note.text
        for note in notes_on(table, choose_columns(table))
    )
    with pytest.raises(InputError, match="has no column 'hight'; did you mean 'height'"):
        read_table(str(people), missing={"hight": 9})


def test_clusters_are_numbered_by_size_and_predict_agrees(kpod, people, tmp_path):
    done = kpod("fit", people, "-k", 3, "--json", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    sizes = [cluster["rows"] for cluster in json.loads(done.out)["clusters"]]
    assert sizes == sorted(sizes, reverse=True)
    again = kpod("predict", tmp_path / "m", people, "-q")
    assert again.out == (tmp_path / "o.csv").read_text()


@pytest.mark.parametrize(
    "options",
    [["--categories"], ["--categories", "region"], ["--robust"], ["--clip", 0.05], ["--log", "weight"]],
)
def test_models_with_an_encoder_are_kept_and_predict(kpod, people, tmp_path, options):
    done = kpod("fit", people, "-k", 2, *options, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m",
                "--report", tmp_path / "r.html", "--centers", tmp_path / "c.csv")  # fmt: skip
    assert done.code == 0, done.err
    again = kpod("predict", tmp_path / "m", people, "-q")
    assert again.out == (tmp_path / "o.csv").read_text()


def test_categories_are_shares_in_sentences_report_and_json(kpod, people, tmp_path):
    done = kpod("fit", people, "-k", 2, "--categories", "region", "--json", "--report", tmp_path / "r.html")
    summary = json.loads(done.out)
    sentences = " ".join(cluster["sentence"] for cluster in summary["clusters"])
    assert "mostly region north (" in sentences
    assert "mostly region south (" in sentences
    for cluster in summary["clusters"]:
        shares = [cluster["center"][f"region={level}"] for level in ("north", "south", "east")]
        assert_allclose(sum(shares), 1)
    assert summary["settings"]["categories"] == ["region"]
    page = (tmp_path / "r.html").read_text()
    assert "region: north" in page
    assert page.index("not used") < page.index("The clusters")


def test_profiles_of_what_was_not_used(kpod, people, tmp_path):
    done = kpod("fit", people, "-k", 2, "--columns", "height,weight", "-q", "-o", tmp_path / "o.csv",
                "--report", tmp_path / "r.html")  # fmt: skip
    assert done.code == 0, done.err
    page = (tmp_path / "r.html").read_text()
    assert "columns not used for clustering" in page
    assert "large (50% overall)" in page or "small (50% overall)" in page


def test_weights_are_those_of_the_library(kpod, people):
    done = kpod("fit", people, "-k", 2, "--weight", "w", "--columns", "height,weight", "--json")
    frame = pd.read_csv(people)
    X = StandardScaler().fit_transform(frame[["height", "weight"]].to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KPOD(2, random_state=0).fit(X, sample_weight=frame["w"])
    summary = json.loads(done.out)
    assert_allclose(summary["loss"], model.inertia_)
    assert not any(
        caution["title"] == "Not the table the model was fitted on" for caution in summary["cautions"]
    )
    bad = kpod("fit", people, "-k", 2, "--weight", "height")
    assert "every row needs a weight, 0 or more" in bad.err


def test_outliers_are_noticed_with_the_remedy(kpod, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.lognormal(10, 0.5, 300), "age": rng.normal(40, 10, 300)})
    frame.loc[7, "income"] = 1e9
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = kpod("fit", tmp_path / "t.csv", "-k", 2, "--shape", "round", "-o", tmp_path / "o.csv")
    said = " ".join(done.err.split())
    assert "caution: Fewer than 5 rows in cluster 1" in said
    assert "--log income" in said
    calm = kpod(
        "fit",
        tmp_path / "t.csv",
        "-k",
        2,
        "--log",
        "income",
        "--clip",
        0.01,
        "-o",
        tmp_path / "o.csv",
        "--json",
    )
    assert min(cluster["rows"] for cluster in json.loads(calm.out)["clusters"]) > 50


def test_a_cluster_is_described_by_what_its_rows_have():
    """Children without an income are not rich because 19 adults among them have one."""
    rng = np.random.default_rng(0)
    age = np.concatenate([rng.normal(10, 2, 400), rng.normal(50, 5, 300)])
    income = np.concatenate([np.full(400, np.nan), rng.normal(40, 5, 300)])
    income[:19] = 90
    X = np.column_stack([age, income, age + rng.normal(size=700)])
    model = KPOD(2, random_state=0).fit(X)
    c = Clustering.of(model, X, ["age", "income", "height"])
    children = int(np.argmin(c.centers[:, 0]))
    said = c.sentence(children)
    assert re.search(r"income \(90, others \d\d[.\d]*; known for 19 of", said)
    assert said.index("low in age") < said.index("income")  # which few of them have


def test_columns_with_few_entries_do_not_lead():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 0] += 6 * (np.arange(300) % 2)
    X[:, 2] = np.nan
    X[[0, 1, 2], 2] = [-50, 50, -50]
    model = KPOD(2, random_state=0).fit(X)
    c = Clustering.of(model, X)
    assert c.by_separation[0] == 0
    assert c.separation[2] < 0.05


def test_centers_with_nothing_behind_them_are_not_numbers():
    X = np.array([[0.0, np.nan], [0.1, np.nan], [9, 1], [9.1, 2], [9.2, 1]])
    c = Clustering.of(KPOD(2, random_state=0).fit(X), X)
    empty = int(np.argmin(c.centers[:, 0]))
    assert np.isnan(c.centers[empty, 1])
    assert c.shown(1, c.centers[empty, 1]) == "\N{EN DASH}"


def test_years_are_written_as_years():
    X = np.column_stack([np.tile([1999.0, 2007.0], 20), np.linspace(1000, 3000, 40)])
    c = Clustering.of(KPOD(2, random_state=0).fit(X), X, ["year", "price"])
    assert c.shown(0, 2007) == "2007"
    assert c.shown(1, 2007) == "2,007"


def test_pipelines_with_a_column_transformer_have_reports_and_pictures(people):
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    frame = pd.read_csv(people)
    before = make_column_transformer(
        (StandardScaler(), ["height", "weight"]), (OneHotEncoder(sparse_output=False), ["region"])
    )
    model = make_pipeline(before, KPOD(2, random_state=0)).fit(frame)
    report = package.report(model, frame, profile=frame[["size", "year"]], row_names=frame["Patient Id"])
    assert "height" in [column["name"] for column in report.data["columns"]]
    assert report.data["profiles"][0]["name"] == "size"
    assert report.data["clusters"][0]["typical"][0] in set(frame["Patient Id"].astype(str))
    for name in package.plot.__all__:
        getattr(package.plot, name).from_estimator(model, frame)
    plt.close("all")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-k", "many"], 2, "'many' is neither a number from 1 up, nor a range such as 2-8, nor auto"),
        (["-k", "0"], 2, "'0' is neither a number from 1 up, nor a range such as 2-8, nor auto"),
        (["-k", 2, "--report", "r.pdf"], 1, "a report is an HTML file; end its name in .html"),
        (["-k", 2, "--log", "region"], 1, "--log region: not among the columns clustered as numbers"),
        (["-k", 2, "--clip", 0.7], 2, "0.7 is not in the range"),
        (["-k", 2, "--weight", "wight"], 1, "did you mean 'weight'"),
    ],
)
def test_bad_options_are_one_line(kpod, people, options, code, message):
    done = kpod("fit", people, *options)
    assert done.code == code
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_bergsmas_correction():
    """Independent tables have no association; one that decides the other has all of it."""
    rng = np.random.default_rng(0)
    chance = [
        cramers_v(np.histogram2d(rng.integers(0, 3, 60), rng.integers(0, 9, 60), (3, 9))[0])
        for _ in range(50)
    ]
    assert np.mean(chance) < 0.08
    assert cramers_v(np.diag([20.0, 20, 20])) > 0.98


def test_profiles_say_what_stands_out():
    labels = np.repeat([0, 1], 50)
    codes = np.where(labels == 1, 0, np.arange(100) % 3)
    found = profile(
        [UnusedColumn("species", codes=codes, levels=["Gentoo", "Adelie", "Chinstrap"])], labels, 2
    )
    assert found[0]["sentence"] == "cluster 1 is 100% Gentoo (67% overall)"
    assert profile([UnusedColumn("noise", values=np.tile([1.0, 2.0], 50))], labels, 2) == []


@pytest.mark.parametrize(
    "before",
    [
        None,
        StandardScaler(),
        ObservedScaler(),
        TablePreparer(categories="all"),
        TablePreparer(categories="all", scale="robust", clip=0.1),
    ],
)
def test_save_and_load(tmp_path, people, before):
    frame = pd.read_csv(people)[["height", "weight", "educ"]]
    kpod = KPOD(2, random_state=0)
    model = (kpod if before is None else make_pipeline(before, kpod)).fit(frame)
    package.save(model, tmp_path / "m.kpod")
    loaded = package.load(tmp_path / "m.kpod")
    assert_array_equal(loaded.predict(frame), model.predict(frame))
    other = frame[["weight", "height", "educ"]]
    if isinstance(before, TablePreparer):  # which takes columns by name
        assert_array_equal(loaded.predict(other), model.predict(frame))
        return
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(other)


def test_what_cannot_be_saved_is_refused(tmp_path, people):
    frame = pd.read_csv(people)[["height", "weight"]]
    model = make_pipeline(StandardScaler(), StandardScaler(), KPOD(2, random_state=0)).fit(frame)
    with pytest.raises(TypeError, match="Only a KPOD, GaussianMixture or MiniBatchKPOD can be saved"):
        package.save(model, tmp_path / "m")


def test_profiles_of_little_known_columns_say_so():
    labels = np.repeat([0, 1], 100)
    codes = np.where(labels == 1, 0, np.arange(200) % 3)
    codes[130:] = -1
    (found,) = profile([UnusedColumn("stage", codes=codes, levels=["G1", "G2", "G3"])], labels, 2)
    assert found["sentence"] == "cluster 1 is 100% G1 (49% overall; known for 30 of 100)"
    assert found["cells"][1] == ["100% G1"]


def test_profiles_leave_out_what_does_not_differ_or_rests_on_a_few_rows():
    """Of a cluster of six rows, one has a level that no other row has; all others are alike."""
    labels = np.repeat([0, 1], [194, 6])
    codes = np.where(np.arange(200) == 199, 2, np.arange(200) % 2)
    codes[194:199] = -1
    assert cramers_v(np.array([[97.0, 97, 0], [0, 0, 1]])) > 0.5
    assert profile([UnusedColumn("vehicle", codes=codes, levels=["a", "b", "c"])], labels, 2) == []
    alike = np.where(np.arange(200) % 6 == 0, 1, 0)  # 17 % of both
    alike[194:] = [0, 0, 0, 2, 3, 4]
    assert profile([UnusedColumn("factor", codes=alike, levels=list("abcde"))], labels, 2) == []
    values = np.where(np.arange(200) < 194, np.arange(200) % 7, np.nan)
    values[199] = 99.0
    assert profile([UnusedColumn("age", values=values)], labels, 2) == []


def test_the_report_names_the_columns_it_does_not_profile(rng):
    X = rng.normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    aside = pd.DataFrame({"group": np.where(X[:, 0] > 4, "a", "b"), "noise": ["x", "x", "y", "y"] * 15})
    page = package.report(KPOD(2, random_state=0).fit(X), X, profile=aside).html
    assert "Not shown, because clusters differ less or not at all: noise." in page


def test_profiles_of_years_and_days():
    labels = np.repeat([0, 1], 50)
    years, days = 2000.0 + 9 * labels, 19000.0 + 1000 * labels
    (first, second) = profile(
        [UnusedColumn("year", years), UnusedColumn("when", days, unit="date")], labels, 2
    )
    assert {first["sentence"], second["sentence"]} == {
        "earliest in cluster 0, 2000 on average (2004 overall)",
        "earliest in cluster 0, 2022-01-08 on average (2023-05-23 overall)",
    }


def test_a_complete_table_has_no_picture_of_gaps():
    X = np.random.default_rng(0).normal(size=(60, 3))
    page = package.report(KPOD(2, random_state=0).fit(X), X).html
    assert "every row has a value in every column" in page
    assert 'id="gaps-' not in page


def test_what_dominates_is_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(83, 2))
    X[5, 0] = 1e4
    found = cautions(Clustering.of(KPOD(2, random_state=0).fit(X), X, ["mass", "x"]))
    (text,) = [caution.text for caution in found if caution.kind == "a few values dominate"]
    assert "One extreme value makes up more than half of the variance of mass (1 of 83)." in text


def test_remedies_for_extreme_values_are_those_that_help():
    """Deaths are 0 but for six ones, and debts are negative: no tail to take the logarithm of.

    Another scale, by quartiles for example, is no remedy: it leaves a value its share of the variance.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "deaths": (np.arange(2000) < 6).astype(float),
        "debt": np.where(np.arange(2000) == 7, -1e6, rng.normal(size=2000)),
        "assets": np.where(np.arange(2000) == 8, 1e6, rng.random(2000)),
    })  # fmt: skip

    def said(*columns):
        seen = frame[list(columns)]
        found = cautions(Clustering.of(KPOD(1, random_state=0).fit(seen), seen))
        (text,) = [caution.text for caution in found if caution.kind == "a few values dominate"]
        return text

    assert said("deaths").endswith(
        "of deaths (6 of 2,000). Clip (--clip 0.01) if these values should not drive the clustering."
    )
    assert "of debt (1 of 2,000). Clip (--clip 0.01) if this value should not drive" in said("debt")
    assert "Take logarithms (--log assets) or clip (--clip 0.01) if" in said("deaths", "debt", "assets")


def test_what_is_as_good_as_zero_is_written_so():
    X = np.column_stack([np.linspace(-1, 1, 40) + 1e-9, np.linspace(0, 1e-9, 40)])
    c = Clustering.of(KPOD(2, random_state=0).fit(X), X, ["a", "b"])
    assert c.shown(0, float(X[:, 0].mean())) == "0"
    assert c.shown(1, float(X[:, 1].mean())) == "5e-10"


def test_rows_are_named_by_an_identifier_that_tells_them_apart(tmp_path):
    (tmp_path / "t.csv").write_text(
        "hospitalID,code,x\n" + "\n".join(f"{i % 7},k{i:03d},{i * i % 31}.5" for i in range(40))
    )
    table = read_table(str(tmp_path / "t.csv"))
    assert row_names(table, choose_columns(table))[:2] == ["k000", "k001"]
    assert row_names(table, choose_columns(table, exclude=["code"], roles={"code": "text"})) is None


def test_numbers_beside_an_axis():
    from kpod.plot._columns import is_zero_or_one, plain_year, short_number

    assert [short_number(v) for v in (0.25, 1500, 250_000, 1.2e9)] == ["0.25", "1,500", "250k", "1.2B"]
    assert plain_year(2007.0) == "2007"
    assert is_zero_or_one(np.array([0.0, 1, 1]))
    assert not is_zero_or_one(np.array([0.0, 0.5, 1]))


def test_no_box_is_cut_off():
    from matplotlib.figure import Figure

    from kpod.plot import ColumnsDisplay

    rng = np.random.default_rng(0)
    far = 400 + rng.normal(size=3)
    display = ColumnsDisplay(entries=[[rng.normal(size=900), far]], names=["x"], separation=[0.5])
    display.plot(ax=Figure().subplots())
    low, high = display.axes_[0].get_xlim()
    assert low < -2
    assert high > np.percentile(far, 95)
