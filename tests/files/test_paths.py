"""From names to files: no row gets lost, and none counts twice."""

import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import kpod
from tests.helpers.command import kpod as run


def write(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"a": np.asarray(values, float), "b": 1.0 + np.arange(len(values))})
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path)
    else:
        pq.write_table(table, path)


@pytest.fixture
def folder(tmp_path):
    """Rows 0 to 5 in two files, beside what Spark leaves there."""
    write(tmp_path / "data" / "part-0.parquet", [0, 1, 2])
    write(tmp_path / "data" / "part-1.parquet", [3, 4, 5])
    for name in (
        "_SUCCESS",
        "_committed_7",
        "_started_7",
        ".part-0.parquet.crc",
        ".hidden.parquet",
        "README.md",
    ):
        (tmp_path / "data" / name).write_bytes(b"")
    (tmp_path / "data" / "images").mkdir()
    (tmp_path / "data" / "images" / "one.png").write_bytes(b"\x89PNG")
    (tmp_path / "data" / "_temporary").mkdir()
    write(tmp_path / "data" / "_temporary" / "part-2.parquet", [7])
    return tmp_path / "data"


def column(files):
    with kpod.scan(files) as table:
        return sorted(table.values[:, 0].tolist())


ROWS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def refused(monkeypatch, files, *said):
    """By kpod.scan and by the command line, in the same words, on one line."""
    with pytest.raises(ValueError) as error:  # noqa: PT011
        kpod.scan(files)
    done = run(monkeypatch, "fit", *(files if isinstance(files, list) else [files]), "-k", 2)
    assert done.code == 1
    assert done.err.count("\n") == 1
    for text in said:
        assert text in str(error.value)
        assert text in done.err


def test_markers_and_hidden_files_are_no_data(folder):
    assert column(folder) == ROWS
    assert column(str(folder / "*.parquet")) == ROWS
    assert column(str(folder / "**" / "*.parquet")) == ROWS
    assert column(str(folder / "_temporary" / "*")) == [7.0]


@pytest.mark.parametrize(
    ("marker", "what", "reader"),
    [
        ("metadata/v1.metadata.json", "an Iceberg table", "load it from its catalog with pyiceberg"),
        (".hoodie/hoodie.properties", "a Hudi table", "read it with Spark"),
        ("_spark_metadata/0", "the output of a Spark stream", "read it with Spark"),
    ],
)
def test_a_lake_is_refused(folder, marker, what, reader, monkeypatch):
    """Its files hold rows that were deleted since, and only its log says which."""
    (folder / marker).parent.mkdir(exist_ok=True)
    (folder / marker).write_text("{}")
    refused(
        monkeypatch, str(folder), f"data: is {what}, whose files also hold rows that were deleted", reader
    )
    refused(monkeypatch, str(folder / "*.parquet"), f"is part of {what}", reader)
    refused(monkeypatch, str(folder / "**" / "*.parquet"), f"is part of {what}", reader)
    write(folder / "day=1" / "part-0.parquet", [8, 9])
    refused(monkeypatch, str(folder / "day=1"), f"is part of {what}", reader)
    # Files named one by one, as the lake's own reader lists them, are what was asked for.
    assert column([str(folder / f"part-{i}.parquet") for i in (0, 1)]) == ROWS


def test_a_delta_table_after_an_overwrite(tmp_path, monkeypatch):
    """Its folder is read as its log says; its files, given otherwise, are refused."""
    deltalake = pytest.importorskip("deltalake")
    for values in ([1.0, 2.0, 3.0], [10.0, 20.0]):
        deltalake.write_deltalake(
            str(tmp_path / "lake"), pa.table({"a": values, "b": values}), mode="overwrite"
        )
    assert column(tmp_path / "lake") == [10.0, 20.0]
    refused(monkeypatch, str(tmp_path / "lake" / "*.parquet"), "is part of a Delta table")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.setattr("kpod._files.locations.lakes.find_spec", lambda name: None)
    refused(monkeypatch, str(tmp_path / "lake"), "is a Delta table", "pip install 'scikit-kpod[delta]'")
    monkeypatch.undo()
    (log,) = (tmp_path / "lake" / "_delta_log").glob("*0.json")
    kept = log.read_text()
    log.write_text("{}")
    refused(monkeypatch, str(tmp_path / "lake"), "cannot be opened as a Delta table")
    log.write_text(kept)
    current = deltalake.DeltaTable(str(tmp_path / "lake")).file_uris()
    assert column([uri.removeprefix("file://") for uri in current]) == [10.0, 20.0]


@pytest.mark.parametrize("name", ["year=2024/part-0.parquet", "more/deep/x.parquet", "more/x.csv.gz"])
def test_tables_in_subfolders_are_refused_not_left_out(folder, name, monkeypatch):
    (folder / name).parent.mkdir(parents=True)
    shutil.copy(folder / "part-0.parquet", folder / name)
    refused(monkeypatch, str(folder), "has tables in subfolders", "give the folders one by one", "/**/*.")


def test_what_is_advised_on_subfolders_works(folder, monkeypatch):
    for name in ("part-0", "part-1"):
        write(folder / "sub" / name / "x.parquet", [1, 2])
    refused(monkeypatch, str(folder / "sub"), f"'{folder / 'sub' / '**' / '*.parquet'}'")
    assert column(str(folder / "sub" / "**" / "*.parquet")) == [1, 1, 2, 2]
    assert column([folder / "sub" / "part-0", folder / "sub" / "part-1"]) == [1, 1, 2, 2]
    assert column(str(folder / "sub" / "part-*")) == [1, 1, 2, 2]


def test_a_folder_that_a_pattern_matches_is_read(folder):
    write(folder / "part-9" / "x.parquet", [9])
    assert column(str(folder / "part-*")) == [*ROWS, 9.0]
    assert column(str(folder / "*.parquet")) == ROWS


def test_any_depth_is_matched_by_two_stars(folder):
    write(folder / "a" / "x.parquet", [6])
    write(folder / "a" / "b" / "c" / "x.parquet", [7])
    assert column(str(folder / "**" / "*.parquet")) == [*ROWS, 6.0, 7.0]


@pytest.mark.parametrize("name", ["part-2.csv.gz", "part-2.xlsx", "part-2.jsonl", "000000_0"])
def test_tables_that_a_folder_is_not_read_with(folder, name, monkeypatch):
    shutil.copy(folder / "part-0.parquet", folder / name)
    refused(monkeypatch, str(folder), f"'{name}' would be left out", "give a pattern such as", "/*.parquet'")
    assert column(str(folder / "*.parquet")) == ROWS


def test_one_table_in_two_formats(folder, monkeypatch):
    write(folder / "part-0.feather", [0, 1, 2])
    refused(monkeypatch, str(folder), "files in different formats (.feather, .parquet)")
    refused(monkeypatch, str(folder / "part*"), "files in different formats")
    assert column(str(folder / "*.parquet")) == ROWS


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_one_file_under_two_names(folder, link, monkeypatch):
    link(folder / "part-0.parquet", folder / "part-3.parquet")
    refused(monkeypatch, str(folder), "part-3.parquet: given twice, here and as", "part-0.parquet")
    refused(monkeypatch, [str(folder / "part-0.parquet"), str(folder / "part-3.parquet")], "given twice")


def test_links(folder, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.parquet").symlink_to(folder / "part-0.parquet")
    (tmp_path / "link").symlink_to(folder)
    assert column(tmp_path / "other") == [0, 1, 2]
    assert column(tmp_path / "link") == ROWS
    refused(monkeypatch, [str(folder), str(tmp_path / "link")], "given twice")
    (tmp_path / "other" / "back").symlink_to(tmp_path / "other")  # a circle
    refused(monkeypatch, str(tmp_path / "other"), "has tables in subfolders ('back')")
    (tmp_path / "other" / "back").unlink()
    (tmp_path / "other" / "b.parquet").symlink_to(tmp_path / "nowhere")
    refused(monkeypatch, str(tmp_path / "other"), "b.parquet: cannot be read")
    refused(monkeypatch, str(tmp_path / "other" / "*"), "b.parquet: cannot be read")
