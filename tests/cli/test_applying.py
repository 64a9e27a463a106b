"""kpod predict for ratings, and kpod impute: a model and another table."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kpod as package
from kpod._files.reading import read_table
from tests.files.test_formats import ratings
from tests.helpers.command import kpod as run_here

LONG = ["--rows", "user", "--items", "item", "--values", "rating"]


@pytest.fixture
def kpod(monkeypatch):
    return lambda *args, stdin=b"": run_here(monkeypatch, *args, stdin=stdin)


def test_predict_for_ratings_is_the_fit_again(kpod, tmp_path):
    path = ratings(tmp_path / "r.csv")
    done = kpod("fit", path, "-k", 2, *LONG, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    assert done.code == 0, done.err
    assert kpod("predict", tmp_path / "m", path, *LONG, "-q").out == (tmp_path / "o.csv").read_text()


def test_new_raters_and_items_in_another_order(kpod, tmp_path):
    path = ratings(tmp_path / "r.csv")
    kpod("fit", path, "-k", 2, *LONG, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    clusters = pd.read_csv(tmp_path / "o.csv")["cluster"]
    new = b"user,item,rating\nnew,film 15,5\nnew,film 3,1\nnew,film 99,5\nlost,film 99,1\nnew,film 12,5\n"
    done = kpod("predict", tmp_path / "m", "-", *LONG, stdin=new)
    assert done.out == f"user,cluster\nnew,{clusters.iloc[-1]}\nlost,-1\n"
    assert "1 item (film 99) is not in the model, and ignored." in done.err


def test_bad_ratings_for_a_model(kpod, tmp_path):
    path = ratings(tmp_path / "r.csv")
    kpod("fit", path, "-k", 2, *LONG, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    done = kpod("predict", tmp_path / "m", path)
    assert done.code == 1
    assert "for ratings with a line each, give --rows, --items and --values" in done.err
    done = kpod("predict", tmp_path / "m", path, *LONG[:4])
    assert "--values is missing" in done.err
    pd.DataFrame({"a": [1, 2, 3.5], "b": [1, 1, 9]}).to_csv(tmp_path / "wide.csv", index=False)
    kpod("fit", tmp_path / "wide.csv", "-k", 1, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "w")
    done = kpod("predict", tmp_path / "w", path, *LONG)
    assert "need a model that was fitted on ratings" in done.err


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(0)
    n = 120
    group = np.arange(n) % 2
    frame = pd.DataFrame({
        "name": [f"p{i}" for i in range(n)],
        "height": np.round(150 + 30 * group + rng.normal(size=n), 1),
        "children": 2 * group + rng.integers(0, 2, n),
        "smokes": np.where(group, "Yes", "No"),
        "colour": np.where(group, "red", "blue"),
        "note": "",
    })  # fmt: skip
    frame = frame.astype(object).mask(
        (rng.random(frame.shape) < 0.2) & [False, True, True, True, True, False]
    )
    frame.to_csv(tmp_path / "s.csv", index=False)
    return frame, tmp_path / "s.csv"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_gaps_are_filled_with_means_and_the_commonest(kpod, survey, tmp_path, suffix):
    frame, path = survey
    done = kpod(
        "fit", path, "-k", 2, "--categories", "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m"
    )
    assert done.code == 0, done.err
    out = tmp_path / f"filled.{suffix}"
    done = kpod("impute", tmp_path / "m", path, "-o", out, "--json")
    assert done.code == 0, done.err
    filled = pd.read_csv(out, dtype=str) if suffix == "csv" else pd.read_parquet(out)
    labels = pd.read_csv(tmp_path / "o.csv")["cluster"].to_numpy()
    gaps = frame.isna()
    heights = filled["height"].astype(float)
    for cluster in range(2):
        here = labels == cluster
        mean = frame["height"][here].astype(float).mean()
        assert_allclose(heights[here & gaps["height"]], mean, rtol=1e-5)
        for name in ("colour", "smokes"):
            assert set(filled[name][here & gaps[name]]) == {frame[name][here].mode()[0]}
    kept = ~gaps["height"]
    assert_allclose(heights[kept], frame["height"][kept].astype(float))
    assert_array_equal(filled["name"], frame["name"])
    summary = json.loads(done.out)
    assert summary["filled_by_column"] == {
        name: int(gaps[name].sum()) for name in ("height", "children", "smokes", "colour")
    }


def test_filled_is_what_python_fills(kpod, tmp_path):
    from kpod.datasets import load_incomplete_wine

    wine = load_incomplete_wine()
    kpod("fit", wine.filename, "-k", 3, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    done = kpod("impute", tmp_path / "m", wine.filename)
    frame = pd.read_csv(wine.filename)
    first, second = frame.isna().sum().iloc[:2]
    assert f"filled: 578: alcohol {first}, malic_acid {second}" in done.err
    scaler, model = package.load(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = scaler.inverse_transform(model.impute(scaler.transform(frame)))
    (tmp_path / "f.csv").write_text(done.out)
    assert_allclose(pd.read_csv(tmp_path / "f.csv"), expected, rtol=1e-5)


def test_cells_that_were_observed_come_out_as_they_went_in(kpod, tmp_path):
    text = b"id;a;b\nx;1,50;$2\ny;;$4\nz;3,00;\n"
    (tmp_path / "t.csv").write_bytes(text)
    done = kpod("fit", tmp_path / "t.csv", "-k", 1, "-q", "-o", tmp_path / "o.csv", "--model", tmp_path / "m")
    assert done.code == 0, done.err
    done = kpod("impute", tmp_path / "m", tmp_path / "t.csv", "-q")
    assert done.out == "id;a;b\nx;1,50;$2\ny;2,25;$4\nz;3,00;$3\n"


@pytest.mark.parametrize(
    ("mark", "cells", "filled"),
    [
        (",", "39,1|40,2|38,1", "39,1333"),
        (",", "3.750|3.800|4.001", "3.850,33"),
        (",", "938|1.050|1.000", "996"),
        (",", "5.922,00 €|11.606,00 €|6.500,00 €", "8.009,33 €"),
        (",", "63,7 %|27,0 %|4,1 %", "31,6 %"),
        (".", "$59,577,665|$173,678,335|$1,000", "$77,752,333"),
        (".", "22.5%|36.00%|7%", "21.8333%"),
        (".", "1'250.5|2'000|3'000.25", "2'083.58"),
        (".", "(250)|120|-20", "(50)"),
        (".", "1e-7|2e-7|3.5e-7", "2.16667e-07"),
        (".", "0.00000012|0.5|0.00000001", "0.166667"),
        (".", "192|192|193.065", "192.3550"),
        (".", "0|-1|1", "0"),
    ],
)
def test_gaps_are_filled_in_the_notation_of_their_column(kpod, tmp_path, mark, cells, filled):
    lines = [f"{cell};1{mark}5" for cell in [*cells.split("|"), ""]]
    (tmp_path / "t.csv").write_text("a;b\n" + "\n".join(lines) + "\n")
    fitted = kpod("fit", tmp_path / "t.csv", "-k", 1, "-q", "--columns", "a", "-o", tmp_path / "o.csv",
                  "--model", tmp_path / "m")  # fmt: skip
    assert fitted.code == 0, fitted.err
    done = kpod("impute", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "f.csv")
    assert done.code == 0, done.err
    assert (tmp_path / "f.csv").read_text().splitlines() == ["a;b", *lines[:3], f"{filled}{lines[3]}"]
    before, after = (read_table(str(tmp_path / name)).columns[0].values for name in ("t.csv", "f.csv"))
    assert_allclose(after, [*before[:3], before[:3].mean()], rtol=1e-5, atol=1e-12)


def test_dates_are_not_filled(kpod, tmp_path):
    lines = [f"2024-01-{i:02d},{i % 4}" for i in range(1, 20)]
    (tmp_path / "t.csv").write_text("when,x\n" + "\n".join(lines) + "\n,2\n")
    done = kpod("fit", tmp_path / "t.csv", "-k", 2, "--as", "when=number", "-q", "-o", tmp_path / "o.csv",
                "--model", tmp_path / "m")  # fmt: skip
    assert done.code == 0, done.err
    done = kpod("impute", tmp_path / "m", tmp_path / "t.csv")
    assert done.out == (tmp_path / "t.csv").read_text()
    assert "when: dates are not filled." in done.err


def test_impute_without_scales_is_what_the_library_imputes(kpod, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 5 * np.eye(3)[rng.integers(3, size=60)]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    file, model, out = (tmp_path / name for name in ("t.csv", "m.kpod", "out.csv"))
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.to_csv(file, index=False)
    assert kpod("fit", file, "-k", 3, "--no-scale", "--model", model, "-q", "-o", out).code == 0
    assert kpod("impute", model, file, "-o", out).code == 0
    expected = package.load(model)[-1].impute(X)
    assert_allclose(pd.read_csv(out)[list("abc")], expected, rtol=1e-5)  # six digits are written


def test_rows_with_nothing_are_filled_from_the_whole_table_and_that_is_said(kpod, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)) + 9 * (np.arange(60) % 2)[:, None], columns=list("abc"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    files = ["-o", tmp_path / "o.csv", "--model", tmp_path / "m"]
    assert kpod("fit", tmp_path / "t.csv", "-k", 2, "-q", *files).code == 0
    frame.iloc[7] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    done = kpod("impute", tmp_path / "m", tmp_path / "new.csv", "-o", tmp_path / "filled.csv")
    assert done.err.count("1 gap was filled from the whole table") == 3
    filled = pd.read_csv(tmp_path / "filled.csv").iloc[7]
    assert_allclose(filled, frame.mean(), atol=1.0)


def test_categories_stored_as_a_dictionary_are_filled(kpod, tmp_path):
    rng = np.random.default_rng(0)
    group = np.arange(60) % 2
    words = pa.array([["north", "south"][g] for g in group]).dictionary_encode()
    table = pa.table({"x": rng.normal(size=60) + 9 * group, "y": rng.normal(size=60), "place": words})
    pq.write_table(table, tmp_path / "t.parquet")
    files = ["-o", tmp_path / "o.csv", "--model", tmp_path / "m"]
    fit = kpod("fit", tmp_path / "t.parquet", "-k", 2, "--categories", "place", "-q", *files)
    assert fit.code == 0, fit.err
    gaps = pa.array([None if i < 4 else ["north", "south"][i % 2] for i in range(60)]).dictionary_encode()
    pq.write_table(table.set_column(2, "place", gaps), tmp_path / "new.parquet")
    done = kpod("impute", tmp_path / "m", tmp_path / "new.parquet", "-o", tmp_path / "filled.csv")
    assert done.code == 0, done.err
    assert list(pd.read_csv(tmp_path / "filled.csv")["place"][:4]) == ["north", "south"] * 2
