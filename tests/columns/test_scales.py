"""Logarithms and limits by column, as scale="auto" decides."""

import json

import numpy as np
import pandas as pd
import pytest

import kpod
from kpod import TablePreparer
from kpod._columns.preparing.transforms import limits, needs_logarithm
from tests.helpers import command


def normal(seed, n=300):
    return np.random.default_rng(seed).normal(size=n)


def two_groups(seed, n=300):
    return normal(seed, n) + np.repeat([0.0, 8.0], n // 2) + 20


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_long_tails_ask_for_logarithms_in_any_unit(seed, unit):
    assert needs_logarithm(np.exp(normal(seed)) * unit)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "draw",
    [
        normal,  # negative values
        lambda seed: normal(seed) + 10,
        two_groups,
        lambda seed: np.append(two_groups(seed), normal(seed, 20) + 60),  # a small group far out, no tail
        lambda seed: np.random.default_rng(seed).uniform(0, 1, 300),
        lambda seed: np.random.default_rng(seed).integers(0, 5, 300).astype(float),
        lambda seed: np.exp(normal(seed, 10)),  # too few to say
    ],
)
def test_other_columns_do_not(seed, draw):
    assert not needs_logarithm(draw(seed))


@pytest.mark.parametrize("seed", range(5))
def test_groups_in_the_logarithm_ask_for_it(seed):
    assert needs_logarithm(np.exp((two_groups(seed) - 20) / 3))


@pytest.mark.parametrize("seed", range(5))
def test_limits_where_a_few_values_hold_most_of_the_variance(seed):
    values = normal(seed)
    assert limits(values) is None
    values[:2] = 50, -80
    low, high = limits(values)
    assert -7 < low < -3 < 3 < high < 7


def table(n=300):
    frame = pd.DataFrame({
        "income": np.exp(normal(0, n)), "height": normal(1, n), "weight": normal(2, n) + 70,
        "grade": np.random.default_rng(3).integers(0, 3, n),
    })  # fmt: skip
    frame.loc[5, "height"] = 400.0
    return frame


def test_the_preparer_says_what_it_changed():
    frame = table()
    preparer = TablePreparer(scale="auto").fit(frame)
    found = {note.kind: note for note in preparer.notes_}
    assert found["logarithms chosen"].columns == ("income",)
    assert found["values limited"].columns == ("height",)
    assert found["values limited"].values["n"] == [1]
    encoded = preparer.transform(frame)
    logs = np.log(frame["income"])
    assert np.allclose(encoded[:, 0], (logs - logs.mean()) / logs.std(ddof=0))
    assert encoded[5, 1] == encoded[:, 1].max() < 6
    assert np.allclose(preparer.inverse_transform(encoded)["income"], frame["income"])
    assert preparer.inverse_transform(encoded)["height"][5] < 7


def test_standard_leaves_columns_as_they_are():
    plain = TablePreparer(scale="standard").fit(table())
    assert np.isnan(plain.offset_).all()
    assert np.isinf(plain.high_).all()
    assert not {"logarithms chosen", "values limited"} & {note.kind for note in plain.notes_}


def test_what_the_user_decided_stays():
    asked = TablePreparer(scale="auto", log=["weight"], clip=0.1).fit(table())
    assert list(np.isfinite(asked.offset_)) == [True, False, True, False]
    assert "values limited" not in {note.kind for note in asked.notes_}
    assert asked.high_[1] == np.quantile(table()["height"], 0.9)


def test_dates_and_coordinates_are_not_judged():
    frame = pd.DataFrame({
        "longitude": 4 + np.exp(normal(0)), "latitude": 40 + normal(1), "income": np.exp(normal(2)),
    })  # fmt: skip
    preparer = TablePreparer(columns=list(frame), scale="auto").fit(frame)
    assert [note.columns for note in preparer.notes_ if note.kind == "logarithms chosen"] == [("income",)]


def test_many_values_far_out_are_no_few():
    values = np.append(normal(0) / 100, np.arange(20.0))
    assert limits(values) is None


def test_an_analysis_says_what_it_changed_and_asks_what_would_be_without():
    analysis = kpod.analyze(table(), 2, scale="auto")
    assert {"logarithms chosen", "values limited"} <= {note.kind for note in analysis.notes}
    assert {"logarithms", "limits"} <= {one.kind for one in analysis.verdict.others}
    again = kpod.analyze(table(), 2)
    assert not {"logarithms chosen", "values limited"} & {note.kind for note in again.notes}
    assert "limits" not in {one.kind for one in again.verdict.others}


def test_a_model_in_a_file_keeps_what_was_decided(tmp_path):
    analysis = kpod.analyze(table(), 2, scale="auto", verdict=False)
    analysis.save(tmp_path / "m.kpod")
    model = kpod.load(tmp_path / "m.kpod")
    assert (model.predict(table()) == analysis.labels).all()


def test_one_word_in_the_shell_turns_it_on(tmp_path, monkeypatch):
    file = tmp_path / "table.csv"
    table().to_csv(file, index=False)
    common = ["fit", str(file), "-k", "2", "--no-verdict", "--json", "-o", str(tmp_path / "out.csv")]
    kinds, settings = {}, {}
    for how in (["--scale", "auto"], [], ["--robust"], ["--no-scale"]):
        summary = json.loads(command.kpod(monkeypatch, *common, *how).out)
        kinds[" ".join(how)] = {note["kind"] for note in summary["notes"]}
        settings[" ".join(how)] = summary["settings"]
    assert settings["--scale auto"]["log"] == ["income"]
    assert [name for name, found in kinds.items() if "logarithms chosen" in found] == ["--scale auto"]
    assert settings["--robust"]["scale"] == "median and interquartile range"
    assert settings["--no-scale"]["scaled"] is False


def test_two_words_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "table.csv"
    table().to_csv(file, index=False)
    done = command.kpod(monkeypatch, "fit", file, "--scale", "auto", "--robust")
    assert done.code == 1
    assert "--robust and --scale auto exclude each other" in done.err
