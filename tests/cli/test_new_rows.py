"""A model on new rows: what a careful colleague would say about them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kpod._columns.preparing.column_values import whole_numbers
from kpod._columns.roles import column_facts, decide
from tests.helpers.command import kpod


def pets(answers):
    """Forty people; gaps in income are marked NA."""
    rows = np.arange(1, 41)
    income = [f"{1000 + 3 * i * i}" if i % 7 else "NA" for i in rows]
    return pd.DataFrame({"age": 20 + rows, "income": income, "pet": [answers[i % 3] for i in rows]})


@pytest.fixture
def model(tmp_path, monkeypatch):
    pets(["None", "Dog", "Cat"]).to_csv(tmp_path / "fitted.csv", index=False)
    path = tmp_path / "m.kpod"
    done = kpod(monkeypatch, "fit", tmp_path / "fitted.csv", "-k", 2, "--categories", "--model", path)
    assert "pet: 'None' is taken as a category" in done.err
    return path


def test_an_answer_that_the_model_knows_is_no_gap_in_a_file_without_others(model, tmp_path, monkeypatch):
    table = pets(["None", "Dog", "Cat"])
    table[table["income"] != "NA"].to_csv(tmp_path / "new.csv", index=False)
    assert "gaps: none" in kpod(monkeypatch, "predict", model, tmp_path / "new.csv").err
    filled = kpod(monkeypatch, "impute", model, tmp_path / "new.csv")
    assert filled.out == (tmp_path / "new.csv").read_text()


def test_notes_on_columns_that_a_model_does_not_use_are_not_repeated(tmp_path, monkeypatch):
    path, model = tmp_path / "pets.csv", tmp_path / "m.kpod"
    pets(["None", "Dog", "Cat"]).to_csv(path, index=False)
    assert "note: pet: " in kpod(monkeypatch, "fit", path, "-k", 2, "--model", model).err
    for command in ("predict", "impute"):
        done = kpod(monkeypatch, command, model, path)
        assert done.code == 0
        assert "note: pet: " not in done.err


def test_rows_of_a_single_cluster_are_counted(tmp_path, monkeypatch):
    path, model = tmp_path / "pets.csv", tmp_path / "m.kpod"
    pets(["None", "Dog", "Cat"]).to_csv(path, index=False)
    kpod(monkeypatch, "fit", path, "-k", 1, "--model", model)
    assert "\n  cluster 0: 40 rows\n" in kpod(monkeypatch, "predict", model, path).err


def test_categories_never_seen_are_told(model, tmp_path, monkeypatch):
    pets(["None", "Fish", "Cat"]).to_csv(tmp_path / "new.csv", index=False)
    done = kpod(monkeypatch, "predict", model, tmp_path / "new.csv")
    assert done.code == 0
    assert "note: pet: 'Fish' (14 rows) is not among the categories the model was fitted on" in done.err
    pets(["None", "Dog", "Cat"]).to_csv(tmp_path / "new.csv", index=False)
    assert "not among" not in kpod(monkeypatch, "predict", model, tmp_path / "new.csv").err


def test_a_level_without_a_place_in_the_order_is_refused_by_row(tmp_path, monkeypatch):
    levels = ["low", "mid", "high"]
    table = pd.DataFrame({"x": np.arange(30) % 7, "much": [levels[i % 3] for i in range(30)]})
    table.to_csv(tmp_path / "fitted.csv", index=False)
    fit = ["fit", tmp_path / "fitted.csv", "-k", 2, "--categories", "--as", "much=ordered:low,mid,high"]
    assert kpod(monkeypatch, *fit, "--model", tmp_path / "m.kpod").code == 0
    table.loc[4, "much"] = "huge"
    table.to_csv(tmp_path / "new.csv", index=False)
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "new.csv")
    assert done.code == 1
    assert "new.csv: line 6, column 'much': 'huge' has no place in the order" in done.err
    assert "--missing much=huge" in done.err
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "new.csv", "--missing", "much=huge")
    assert done.code == 0


def test_ordered_levels_that_are_numbers_have_their_place(tmp_path, monkeypatch):
    table = pd.DataFrame({"x": np.arange(30) % 7, "much": [1.0, 2.0, 3.0] * 10})
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "-k", 2, "--as", "much=ordered:1,2,3", "--model", tmp_path / "m.kpod"]
    fitted = kpod(monkeypatch, *fit)
    assert fitted.code == 0, fitted.err
    predicted = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "t.csv")
    assert predicted.code == 0, predicted.err
    assert predicted.out == fitted.out


def test_codes_in_new_rows_are_pointed_out(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(1, 6, size=(200, 3)), columns=["q1", "q2", "q3"])
    table.to_csv(tmp_path / "fitted.csv", index=False)
    kpod(monkeypatch, "fit", tmp_path / "fitted.csv", "-k", 2, "--model", tmp_path / "m.kpod")
    table.loc[::10, "q2"] = 99
    table.to_csv(tmp_path / "new.csv", index=False)
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "new.csv")
    assert "note: q2: 99 (20 times) may stand for missing; if so, use --missing q2=99." in done.err


def test_the_entry_that_is_neither_yes_nor_no_is_named(tmp_path, monkeypatch):
    (tmp_path / "fitted.csv").write_text("x,ok\n1,yes\n2,no\n3,yes\n9,no\n8,yes\n")
    (tmp_path / "new.csv").write_text("x,ok\n1,yes\n2,maybe\n")
    kpod(monkeypatch, "fit", tmp_path / "fitted.csv", "-k", 2, "--model", tmp_path / "m.kpod")
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "new.csv")
    assert "new.csv: line 3, column 'ok': 'maybe' is not a number" in done.err
    assert "--exclude" not in done.err  # which predict does not have


def test_describe_says_what_fit_would_take_as_missing_or_refuse(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("x,y\n1,5\n2,k.A.\n3,7\n9,8\n8,9\n1,2\n")
    done = kpod(monkeypatch, "describe", tmp_path / "t.csv")
    taken = "note: y: 'k.A.' (line 3) is not a number and was taken as missing; --strict refuses that."
    assert taken in done.out
    assert taken in kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2).err
    done = kpod(monkeypatch, "describe", tmp_path / "t.csv", "--strict")
    assert "note: y: 'k.A.' (line 3) is not a number; correct it, or treat it as missing" in done.out
    assert kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2, "--strict").code == 1


def test_gaps_filled_from_the_whole_table_are_told(tmp_path, monkeypatch):
    """Nobody in the second group has a value of z."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)) + 20 * (np.arange(60) % 2)[:, None], columns=list("xyz"))
    table.loc[1::2, "z"] = np.nan
    table.loc[[2, 4], "z"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2, "--model", tmp_path / "m.kpod")
    done = kpod(monkeypatch, "impute", tmp_path / "m.kpod", tmp_path / "t.csv")
    assert "filled: 32: z 32" in done.err
    assert "note: z: 30 gaps were filled from the whole table" in done.err


def test_rows_in_no_cluster_are_told_whatever_the_number_of_clusters(tmp_path, monkeypatch):
    table = pd.DataFrame({"x": [1.0, 2, 3, 4, np.nan], "y": [2.0, 1, 4, 3, np.nan]})
    table.to_csv(tmp_path / "t.csv", index=False)
    kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", 1, "--model", tmp_path / "m.kpod")
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "t.csv")
    assert "1 row with nothing observed, in no cluster" in done.err


@pytest.mark.parametrize(
    ("name", "low", "high", "kind"),
    [
        ("wt", 0.3, 1.7, "possible weights"),
        ("sample_weight", 0.5, 1.5, "possible weights"),
        ("weight", 50, 90, None),
        ("long", 165.7, 188.1, "coordinates"),
        ("lon", -20.5, 350.5, "coordinates"),
        ("long", 165.7, 400.1, None),
    ],
)
def test_weights_of_a_sample_and_longitudes_are_pointed_out(name, low, high, kind):
    numbers = np.random.default_rng(0).uniform(low, high, 200)
    role = decide.role_of(column_facts.Contents(name, 200, numbers=numbers))
    assert role.role == "number"
    assert [note.kind for note in role.notes] == ([kind] if kind else [])


def test_identifiers_in_floating_point_are_whole_numbers_to_a_reader():
    assert whole_numbers(pa.chunked_array([[1.0, 10722.0]])).to_pylist() == [1, 10722]
    assert [str(value) for value in whole_numbers(pa.chunked_array([[1.0, 2.5]]))] == ["1.0", "2.5"]
    words = pa.chunked_array([["a"]])
    assert whole_numbers(words) is words


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["2024-01-01", "2024-01-02"], "line 2, column 'x': '2024-01-01' is not a number; correct it"),
        (["yes", "no"], "column 'x' holds yes/no values, which are not numbers"),
    ],
)
def test_dates_and_answers_are_no_numbers_to_a_model_of_numbers(tmp_path, monkeypatch, values, said):
    table, new, model = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "m.kpod"
    table.write_text("x,y,z\n" + "".join(f"{i}.5,{i * i % 7},{i % 2}\n" for i in range(12)))
    assert kpod(monkeypatch, "fit", table, "-k", 2, "--model", model, "-o", tmp_path / "o.csv").code == 0
    new.write_text("x,y,z\n" + "".join(f"{value},3,1\n" for value in values))
    for command in ("predict", "impute"):
        done = kpod(monkeypatch, command, model, new)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert said in done.err
    new.write_text("x,y,z\n1.5,3,yes\n2.5,4,no\n")  # z was 0 and 1
    assert kpod(monkeypatch, "predict", model, new).code == 0


def test_a_model_of_dates_takes_dates(tmp_path, monkeypatch):
    table, model = tmp_path / "t.csv", tmp_path / "m.kpod"
    table.write_text("day,y\n" + "".join(f"2024-01-{i:02d},{i * i % 7}\n" for i in range(10, 25)))
    fit = ["fit", table, "-k", 2, "--as", "day=number", "--model", model]
    fitted = kpod(monkeypatch, *fit)
    assert kpod(monkeypatch, "predict", model, table).out == fitted.out != ""
