"""Several files that fit in memory are one table, with everything that is mended in a single file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import kpod
from kpod._common.errors import InputError
from kpod._files import memory_limits
from kpod._files.opening import open_table
from kpod._files.pieces import large_table
from tests.helpers.command import kpod as run
from tests.helpers.places import arrow, cut, hive_folder, parquet_folder
from tests.helpers.tables import clustered

NAMES = list("abcd")
N = 240


@pytest.fixture
def X(rng):
    X, _ = clustered(rng, N, len(NAMES), k=3, missing=0.2, spread=0.5)
    return X


def untidy(X, kinds, month):
    """A file as people keep them: a title, units, decimal commas, currency, words for gaps, a total."""
    lines = [f"Sales in month {month}", "", "town;size;price;kind", "-;m;EUR;-"]
    for i, (row, kind) in enumerate(zip(X, kinds, strict=True)):
        size, price = (f"{value:.2f}".replace(".", ",") for value in row[:2])
        cells = [
            f"t{month}-{i}",
            "" if "nan" in size else size,
            "n/a" if "nan" in price else f"€ {price}",
            kind,
        ]
        lines.append(";".join(cells))
    sums = [f"{total:.2f}".replace(".", ",") for total in np.nansum(X[:, :2], axis=0)]
    return "\n".join([*lines, f"Total;{sums[0]};€ {sums[1]};", ""])


@pytest.fixture
def sales(X, tmp_path):
    """Twelve months, and what is in them."""
    folder = tmp_path / "sales"
    folder.mkdir()
    X = np.round(np.abs(X) + 1, 2)
    kinds = np.array(["red", "green", "blue"])[np.arange(N) % 3]
    for month, rows in enumerate(np.array_split(np.arange(N), 12), 10):
        (folder / f"{month}.csv").write_text(untidy(X[rows], kinds[rows], month))
    return folder, X, kinds


def test_untidy_files_are_mended_each_for_itself(sales):
    folder, X, kinds = sales
    with pytest.warns(UserWarning, match="left out"):
        frame = kpod.read(folder)
    assert list(frame) == ["town", "size", "price", "kind"]
    assert_array_equal(frame[["size", "price"]], X[:, :2])
    assert_array_equal(frame["kind"], kinds)
    with pytest.warns(UserWarning, match="left out"):
        singly = [kpod.read(path) for path in sorted(folder.iterdir())]
    pd.testing.assert_frame_equal(frame, pd.concat(singly, ignore_index=True), check_like=True)
    texts = [note.text for note in frame.attrs["notes"]]
    assert any("10.csv: the first line ('Sales in month 10')" in text for text in texts)
    assert any("more were read in the same way" in text for text in texts)
    assert sum("title" in text for text in texts) == 2
    units = [text for text in texts if "units" in text]
    assert len(units) == 1
    assert "10.csv" in units[0]
    assert "and 9 more: the first row" in units[0]


def test_the_command_line_takes_what_it_takes_in_one_file(sales, tmp_path, monkeypatch):
    """Categories, robust scaling, confidence: the same clusters as those of the rows in one file."""
    folder, X, kinds = sales
    frame = pd.DataFrame({"size": X[:, 0], "price": X[:, 1], "kind": kinds})
    frame.to_csv(tmp_path / "one.csv", index=False)
    options = ["-k", 3, "--categories", "kind", "--robust", "--no-verdict", "-o"]
    several = run(monkeypatch, "fit", folder, *options, tmp_path / "several.csv")
    one = run(monkeypatch, "fit", tmp_path / "one.csv", *options, tmp_path / "labelled.csv")
    assert (several.code, one.code) == (0, 0), several.err + one.err
    found, expected = (pd.read_csv(tmp_path / name, sep=None, engine="python")
                       for name in ("several.csv", "labelled.csv"))  # fmt: skip
    assert_array_equal(found["cluster"], expected["cluster"])
    assert list(found.columns[-2:]) == ["file", "cluster"]
    assert found["file"].nunique() == 12


def test_whole_and_in_pieces_are_the_same_bits(X, tmp_path):
    folder = parquet_folder(arrow(X, NAMES), tmp_path / "in")
    settings = {"shape": "round", "verdict": False}
    whole = kpod.analyze(folder, 3, **settings)
    pieces = kpod.analyze(folder, 3, scratch=tmp_path, **settings)
    one = kpod.analyze(pd.DataFrame(X, columns=NAMES), 3, **settings)
    assert not whole.to_dict()["in_pieces"]
    assert pieces.to_dict()["in_pieces"]
    for other in (pieces, one):
        assert_array_equal(other.labels, whole.labels)
        assert other.model[-1].cluster_centers_.tobytes() == whole.model[-1].cluster_centers_.tobytes()


def test_parts_to_parts(X, tmp_path, monkeypatch):
    """A file for each file, also where rows are left out; partition columns stay in the names of folders."""
    table = arrow(np.vstack([X, X[-5:]]), NAMES)
    hive = hive_folder(table, tmp_path / "in")
    options = ["-k", 3, "--no-verdict", "--drop-rows", "duplicates", "--confidence"]
    done = run(monkeypatch, "fit", hive, *options, "-o", f"{tmp_path}/out/")
    assert done.code == 0, done.err
    lengths = [len(part) for part in cut(table)]
    for number, year in enumerate((2020, 2021, 2022)):
        part = pq.ParquetFile(tmp_path / "out" / f"year={year}" / "part-0.parquet").read()
        assert part.column_names == [*NAMES, "cluster", "confidence", "second"]
        assert len(part) == lengths[number] - (5 if number == 2 else 0)


def test_csv_partitions_and_empty_parts(X, tmp_path):
    for year, part in enumerate(cut(arrow(X, NAMES)), 2020):
        place = tmp_path / "in" / f"year={year}"
        place.mkdir(parents=True)
        pa.csv.write_csv(part, place / "part.csv")
        (place / "empty.csv").write_text(",".join(NAMES) + "\n")
    frame = kpod.read(tmp_path / "in")
    assert_array_equal(frame[NAMES], X)
    assert_array_equal(frame["year"], np.repeat([2020, 2021, 2022], [len(p) for p in cut(arrow(X, NAMES))]))
    assert "have no rows, and were skipped" in str(frame.attrs["notes"])
    for empty in (tmp_path / "in").rglob("part.csv"):
        empty.write_text("")
    with pytest.raises(InputError, match="no part has any rows"):
        kpod.read(tmp_path / "in")


def test_what_is_wrong_is_named_by_file_line_and_column(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *(f"{i},{i % 7}" for i in range(30))]))
    (tmp_path / "b.csv").write_text("\n".join(["x,y", *(f"{i},{i % 7}" for i in range(20)), "4,1e999"]))
    with pytest.raises(InputError, match=r"b\.csv, line 22, column 'y': inf is infinite"):
        kpod.analyze(tmp_path, 2, columns=["x", "y"])
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(InputError, match=r"b\.csv: has no column 'y' and has an extra column 'z', unlike"):
        kpod.read(tmp_path)
    (tmp_path / "b.csv").unlink()
    pq.write_table(pa.table({"x": [1.0], "y": [2.0]}), tmp_path / "b.parquet")
    files = [tmp_path / "a.csv", tmp_path / "b.parquet"]
    with pytest.raises(InputError, match=r"b\.parquet: column 'x' holds double values here and string"):
        kpod.read(files)


def test_files_that_are_only_read_whole(X, tmp_path):
    """Workbooks and compressed files, by name: in pieces they are refused."""
    for number, part in enumerate(cut(arrow(X, NAMES))):
        part.to_pandas().to_excel(tmp_path / f"{number}.xlsx", index=False)
        part.to_pandas().to_csv(tmp_path / f"{number}.csv.gz", index=False)
    for end in ("xlsx", "csv.gz"):
        files = sorted(tmp_path.glob(f"*.{end}"))
        np.testing.assert_allclose(kpod.read(files)[NAMES], X)
        with pytest.raises(InputError, match="cannot be read in pieces"):
            kpod.analyze(files, 3, scratch=tmp_path)


def test_a_folder_that_does_not_fit(sales, X, tmp_path, monkeypatch):
    folder, _, _ = sales
    parquet_folder(arrow(X, NAMES), tmp_path / "in")
    monkeypatch.setattr(memory_limits, "free_memory", lambda: 12_000)
    with pytest.raises(InputError, match=r"11 more: too large to be read whole \(up to about .* of files"):
        kpod.read(folder)
    with pytest.raises(InputError, match=r"read in pieces cannot have; remove it, or .* \(up to about 1"):
        kpod.analyze(folder, 3)
    assert kpod.analyze(tmp_path / "in", 3, verdict=False).to_dict()["in_pieces"]
    monkeypatch.setattr(memory_limits, "free_memory", lambda: None)
    assert large_table.files_of([str(folder)], None)[1] is False


def test_new_rows_in_a_folder(X, tmp_path, monkeypatch):
    table = arrow(X, NAMES)
    folder = parquet_folder(table, tmp_path / "in")
    pq.write_table(table, tmp_path / "one.parquet")
    model = tmp_path / "m.kpod"
    assert run(monkeypatch, "fit", folder, "-k", 3, "--no-verdict", "--model", model, "-q").code == 0
    for command in ("predict", "impute"):
        for given, out in ((folder, "several.parquet"), (tmp_path / "one.parquet", "one-out.parquet")):
            done = run(monkeypatch, command, model, given, "-o", tmp_path / out)
            assert done.code == 0, done.err
        several, one = (pq.read_table(tmp_path / name) for name in ("several.parquet", "one-out.parquet"))
        assert several.select(one.column_names).equals(one)
    assert run(monkeypatch, "impute", model, folder, "-o", f"{tmp_path}/filled/").code == 0
    filled = pa.concat_tables([pq.read_table(path) for path in sorted((tmp_path / "filled").iterdir())])
    assert filled.equals(one)


def test_a_file_that_changes_while_others_are_read(X, tmp_path, monkeypatch):
    parquet_folder(arrow(X, NAMES), tmp_path / "in")
    last = tmp_path / "in" / "part-2.parquet"
    from kpod._files.pieces.file_source import ParquetSource

    read = ParquetSource.read

    def changing(self, names):
        yield from read(self, names)
        pq.write_table(arrow(X[:9], NAMES), last)

    monkeypatch.setattr(ParquetSource, "read", changing)
    with pytest.raises(InputError, match=r"part-\d.parquet: changed while it was being read; start again"):
        kpod.read(tmp_path / "in")


def test_json_of_notes_names_the_parts(sales, monkeypatch):
    folder, _, _ = sales
    done = run(monkeypatch, "fit", folder, "-k", 3, "--no-verdict", "--json")
    notes = json.loads(done.out)["notes"]
    parts = [note["parts"] for note in notes if "parts" in note]
    assert [str(Path(folder) / "10.csv")] in parts


def test_the_decimal_mark_is_that_of_all_files(tmp_path):
    """A file of whole numbers shows none; files that show different ones are not read as if they agreed."""
    commas = "a;b\n" + "".join(f"{i},5;{i}\n" for i in range(9))
    points, whole = commas.replace(",", "."), "a;b\n" + "".join(f"{i};{i}\n" for i in range(9))
    half, full = np.arange(9) + 0.5, np.arange(9.0)
    for first, second, expected in (
        (points, points, [*half, *half]), (whole, commas, [*full, *half]), (commas, whole, [*half, *full])
    ):  # fmt: skip
        (tmp_path / "1.csv").write_text(first)
        (tmp_path / "2.csv").write_text(second)
        assert_array_equal(kpod.read(tmp_path)["a"], expected)
        assert open_table(tmp_path).dialect.decimal == ("." if first == second else ",")
    (tmp_path / "2.csv").write_text(points)
    found = kpod.read(tmp_path)["a"]  # left as text
    assert set(found) == {f"{i}{mark}5" for i in range(9) for mark in ",."}
