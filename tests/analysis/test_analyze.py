"""kpod.analyze and kpod.read: one analysis, which Python and the command line show."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import kpod
from kpod._columns.preparing.encoding import Encoding
from kpod._columns.preparing.preparer import TablePreparer
from kpod._engine.fit import Fit
from kpod._estimators.nearest_center import NearestCenter
from kpod._files import reading
from kpod._findings import cautions
from tests.conftest import FIRST_SEED
from tests.helpers.command import kpod as run

N = 120


@pytest.fixture(scope="module")
def frame():
    """A survey as people have them: an identifier, a date, codes, words, yes and no, gaps."""
    rng = np.random.default_rng(FIRST_SEED)
    group = np.repeat([0, 1], [70, 50])
    out = pd.DataFrame({
        "person": [f"P{i:04d}" for i in range(N)],
        "seen": pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y"),
        "income": [f"{value:,.0f}" for value in rng.normal(20_000 + 9_000 * group, 1_500)],
        "score": np.where(rng.random(N) < 0.1, 99, rng.integers(0, 8, N) + 3 * group),
        "height": rng.normal(165 + 12 * group, 4).round(1),
        "smoker": np.where(rng.random(N) < 0.2 + 0.6 * group, "yes", "no"),
        "town": rng.choice(["Ulm", "Bonn", "Kiel"], N),
    })  # fmt: skip
    return out.mask((rng.random(out.shape) < 0.15) & (np.arange(7) >= 2))


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    frame.to_csv(path, index=False)
    return path


OPTIONS = {"missing_values": {"score": [99]}, "categories": ["town"], "decimal": "."}
SHELL = ["--missing", "score=99", "--categories", "town", "--decimal", "."]


def test_python_is_the_command_line(file, monkeypatch, tmp_path):
    analysis = kpod.analyze(file, 2, **OPTIONS)
    out = ["-o", tmp_path / "o.csv", "--json"]
    done = run(monkeypatch, "fit", file, "-k", 2, *SHELL, *out)
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary.pop("written") == [str(tmp_path / "o.csv")]
    plain = json.loads(json.dumps(analysis.to_dict()))
    for kind in ("notes", "cautions"):  # which are worded for their readers
        said = summary.pop(kind), plain.pop(kind)
        assert [{**one, "text": ""} for one in said[0]] == [{**one, "text": ""} for one in said[1]]
    assert summary == plain
    assert_array_equal(pd.read_csv(tmp_path / "o.csv")["cluster"], analysis.labels)


def test_print_is_what_the_command_prints(file, monkeypatch, tmp_path):
    done = run(monkeypatch, "fit", file, "-k", 2, *SHELL, "-o", tmp_path / "o.csv")
    expected = " ".join(done.err.split())
    said = [line for line in str(kpod.analyze(file, 2, **OPTIONS)).splitlines() if "`" not in line]
    assert len(said) > 6
    for line in said:
        assert " ".join(line.split()) in expected


def test_three_lines_from_a_file_to_a_description(file):
    analysis = kpod.analyze(file, 2, missing_values={"score": [99]})
    described = analysis.describe()
    assert list(described["rows"]) == sorted(described["rows"], reverse=True)
    assert {"cluster", "rows", "description", "income", "score", "height", "smoker"} == set(described)
    assert described["income"].between(15_000, 35_000).all()
    assert described["score"].max() < 12


@pytest.mark.parametrize("as_given", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_a_frame_is_analyzed_as_its_file_is(frame, file, as_given):
    expected = kpod.analyze(file, 2, **OPTIONS)
    given = as_given(frame)
    analysis = kpod.analyze(given, 2, **OPTIONS)
    assert_array_equal(analysis.labels, expected.labels)
    assert type(analysis.frame) is type(given)
    column = analysis.frame["cluster"]
    assert_array_equal(column.to_numpy(), analysis.labels)
    assert type(analysis.describe()) is type(given)


def test_what_was_read_is_analyzed_as_the_file_is(file):
    read = kpod.read(file, missing_values={"score": [99]})
    assert read["income"].dtype == float
    assert not (read["score"] == 99).any()
    assert_array_equal(
        kpod.analyze(read, 2, categories=["town"]).labels, kpod.analyze(file, 2, **OPTIONS).labels
    )


def test_the_model_takes_raw_tables(file, frame, tmp_path, monkeypatch):
    analysis = kpod.analyze(file, 2, **OPTIONS)
    analysis.save(tmp_path / "m.kpod")
    loaded = kpod.load(tmp_path / "m.kpod")
    new = frame.sample(frac=0.5, random_state=0)[["town", "score", "height", "smoker", "income"]]
    new.to_csv(tmp_path / "new.csv", index=False)
    done = run(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    expected = pd.read_csv(tmp_path / "p.csv")["cluster"]
    for table in (new, pl.from_pandas(new), pa.Table.from_pandas(new), pd.read_csv(tmp_path / "new.csv")):
        assert_array_equal(loaded.predict(table), expected)
    assert str(loaded[0].roles_) == str(analysis.model[0].roles_)


def counting(monkeypatch, owner, name, calls):
    real = getattr(owner, name)

    def counted(*args, **options):
        calls.append(name)
        return real(*args, **options)

    monkeypatch.setattr(owner, name, counted)


def test_everything_is_done_once(file, monkeypatch, tmp_path):
    calls, fits = [], []
    counting(monkeypatch, reading, "read_bytes", calls)
    counting(monkeypatch, TablePreparer, "_fit", calls)
    counting(monkeypatch, Encoding, "encode", calls)
    counting(monkeypatch, NearestCenter, "predict", calls)
    counting(monkeypatch, cautions, "probability_cautions", calls)
    solve = Fit.solve

    def counted(self):
        if self.plan.by_size:  # as the fit is that is handed out
            fits.append(self.table.n_rows)
        return solve(self)

    monkeypatch.setattr(Fit, "solve", counted)
    report = ["--report", tmp_path / "r.html", "--model", tmp_path / "m.kpod", "-o", tmp_path / "o.csv"]
    done = run(monkeypatch, "fit", file, "-k", 2, *SHELL, *report, "--no-verdict")  # which is other fits
    assert done.code == 0, done.err
    # The one prediction is that of the stability, which asks where the rows are.
    assert sorted(calls) == ["_fit", "encode", "predict", "probability_cautions", "read_bytes"]
    assert fits == [N]


def test_what_takes_long_is_computed_when_asked_for_and_shown_then(file):
    analysis = kpod.analyze(file, 2)
    assert "stability" not in analysis.to_dict()
    assert "confidence" not in analysis.to_dict()
    assert analysis.stability is analysis.stability
    assert analysis.confidence["mean"] > 0.5
    assert analysis.to_dict()["stability"]["sentence"] == analysis.stability.sentence_
    assert analysis.confidence["sentences"][0] in str(analysis)


def test_functions_take_an_analysis(frame):
    weighted = frame.assign(w=np.where(np.arange(N) % 2, 1.0, 2.0))
    analysis = kpod.analyze(weighted, 2, weight="w", exclude=["income"])
    weights, model = weighted["w"].to_numpy(), analysis.model
    expected = kpod.summary(model, weighted, sample_weight=weights)
    assert str(kpod.summary(analysis)) == str(expected)
    again = kpod.stability(analysis, random_state=0)
    assert_array_equal(again.jaccard_, analysis.stability.jaccard_)
    assert_array_equal(
        again.jaccard_, kpod.stability(model, weighted, sample_weight=weights, random_state=0).jaccard_
    )
    assert kpod.report(analysis).data == analysis.report().data
    for function in (kpod.report, kpod.summary, kpod.stability):
        with pytest.raises(TypeError, match="X is missing"):
            function(model)


def test_probabilities_are_those_of_the_fit(file):
    later, before = kpod.analyze(file, 2), kpod.analyze(file, 2, probability=True)
    assert later.confidence == before.confidence


def test_a_notebook_shows_the_report_in_a_frame_of_its_own(file):
    page = kpod.analyze(file, 2)._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert "Clusters in" in page


def test_the_number_is_chosen_as_by_choose_k(file):
    analysis = kpod.analyze(file, [1, 2, 3], missing_values={"score": [99]})
    prepared = TablePreparer(missing_values={"score": [99]}, decimal=".").fit_transform(pd.read_csv(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choice = kpod.choose_k(prepared, [1, 2, 3], shape="auto", random_state=0)
    assert analysis.choice.best_k_ == choice.best_k_ == analysis.n_clusters
    assert_array_equal(analysis.labels, choice.model_.labels_)


def test_notes_are_data(file):
    analysis = kpod.analyze(file, 2)
    kinds = {note.kind: note for note in analysis.notes}
    assert kinds["possible code"].columns == ("score",)
    assert kinds["possible code"].values["codes"] == ["99"]
    assert kinds["number format"].columns == ("income",)
    assert all(note.severity == "note" for note in analysis.notes)
    assert all(caution.severity == "caution" for caution in analysis.cautions)
    assert json.dumps(analysis.to_dict()["notes"])


def test_weights_and_long_form(frame, tmp_path):
    weighted = frame.assign(w=np.where(np.arange(N) % 2, 1.0, 2.0))
    repeated = pd.concat([frame, frame[::2]], ignore_index=True)
    one = kpod.analyze(weighted, 2, weight="w", scale="none", exclude=["income"])
    other = kpod.analyze(repeated, 2, scale="none", exclude=["income"])
    assert_array_equal(one.labels, other.labels[:N])
    ratings = pd.DataFrame(
        [(f"u{i}", f"f{j}", 1.0 + 4 * (i % 2) + j % 2) for i in range(20) for j in range(6) if (i + j) % 5]
    )
    ratings.columns = ["who", "what", "stars"]
    analysis = kpod.analyze(ratings, 2, rows="who", items="what", values="stars")
    assert sorted(np.bincount(analysis.labels)) == [10, 10]
    analysis.save(tmp_path / "m.kpod")
    assert kpod.load(tmp_path / "m.kpod").n_features_in_ == 6


def test_several_files_in_pieces(frame, tmp_path):
    numbers = frame[["score", "height"]].fillna({"score": 5})
    for part, rows in enumerate(np.array_split(np.arange(N), 3)):
        numbers.iloc[rows].to_csv(tmp_path / f"{part}.csv", index=False)
    with kpod.analyze(str(tmp_path / "*.csv"), 2, scratch=tmp_path) as analysis:
        assert_array_equal(analysis.labels, kpod.analyze(numbers, 2).labels)
        with pytest.raises(ValueError, match="needs the whole table in memory"):
            _ = analysis.frame
        analysis.write(tmp_path / "out.parquet")
        assert_array_equal(analysis.model.predict(numbers), analysis.labels)
    assert pd.read_parquet(tmp_path / "out.parquet")["cluster"].tolist() == analysis.labels.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exclude": ["hight"]}, "there is no column 'hight'; did you mean 'height'"),
        ({"n_clusters": 500}, "n_clusters=500 is more than the number of rows with observed entries"),
        ({"columns": ["town"]}, r"holds categories, not numbers; use it with categories=\['town'\]"),
        ({"roles": {"town": "ordered"}}, r"specify it, as in roles=\{'town': \["),
        ({"scale": "big"}, "scale must be one of"),
    ],
)
def test_bad_options_are_named_as_python_has_them(file, options, message):
    with pytest.raises(ValueError, match=message):
        kpod.analyze(file, **{"n_clusters": 2, **options})


def test_options_for_files_are_refused_for_frames(frame):
    with pytest.raises(TypeError, match="sheet is for files"):
        kpod.analyze(frame, 2, sheet="one")


def test_a_number_of_numpy_is_a_number(frame):
    analysis = kpod.analyze(frame, np.int64(2), exclude=["income"])
    assert analysis.n_clusters == 2
    assert analysis.choice is None


# kpod.read


def test_read_gives_what_a_file_means(tmp_path):
    text = "Results 2024;;\nname;score;late\nann;1,5;no\nbob;n/a;yes\ncai;2,5;no\nTotal;4;\n"
    (tmp_path / "t.csv").write_text(text)
    with (
        pytest.warns(UserWarning, match="first line .*'Results 2024'.* holds a title, and was left out"),
        pytest.warns(UserWarning, match="last row .* holds totals, and was left out"),
    ):
        frame = kpod.read(tmp_path / "t.csv")
    assert frame["score"].tolist()[::2] == [1.5, 2.5]
    assert np.isnan(frame["score"][1])
    assert [note.kind for note in frame.attrs["notes"]] == ["rows left out", "rows left out"]


@pytest.mark.parametrize(("backend", "kind"), [("polars", pl.DataFrame), ("pyarrow", pa.Table)])
def test_read_for_other_libraries(file, backend, kind):
    found = kpod.read(file, backend=backend, missing_values=[99])
    assert isinstance(found, kind)
    assert found["score"].null_count > 0 if backend == "pyarrow" else found["score"].null_count() > 0
    with pytest.raises(ValueError, match="backend must be"):
        kpod.read(file, backend="excel")
