"""The command line on tables in several files, or larger than memory: as if they were one in memory."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kpod._engine import checkpoint
from kpod._io import large, room, sources
from tests.command import kpod as run

from .conftest import clustered

N = 900


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(sources, "BATCH_ENTRIES", 1 << 10)


@pytest.fixture
def kpod(monkeypatch):
    return lambda *args: run(monkeypatch, *args)


@pytest.fixture
def table():
    """Numbers with gaps and codes for gaps, an identifier, text, a constant, whole numbers."""
    X, _ = clustered(np.random.default_rng(3), N, 4, k=3, missing=0.2)
    columns = {f"v{j}": pa.array(column, from_pandas=True) for j, column in enumerate((X * 10).T)}
    age = np.random.default_rng(0).integers(18, 80, N).astype(float)
    age[::13] = -9
    return pa.table({
        "id": np.arange(1, N + 1),
        **columns,
        "age": age.astype(np.int64),
        "town": [f"town {i % 7}" for i in range(N)],
        "same": np.ones(N),
    })  # fmt: skip


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=200)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pyarrow.feather.write_feather(table, path)


def in_parts(table, folder, suffix, n=3):
    folder.mkdir()
    edges = np.linspace(0, len(table), n + 1).astype(int)
    for number in range(n):
        write(table.slice(edges[number], edges[number + 1] - edges[number]), folder / f"{number}{suffix}")
    return folder


@pytest.mark.parametrize(
    ("suffix", "out"), [(".csv", ".csv"), (".csv", ".parquet"), (".parquet", ".feather")]
)
def test_several_files_are_as_one_in_memory(suffix, out, kpod, table, tmp_path):
    folder, one = in_parts(table, tmp_path / "parts", suffix), tmp_path / f"one{suffix}"
    write(table, one)
    options = ["-k", 3, "--missing", "age=-9", "--json"]
    said = {}
    for name, data in (("one", [one]), ("parts", [folder]), ("forced", [one, "--scratch", tmp_path])):
        files = ["-o", tmp_path / f"{name}-o{out}", "--centers", tmp_path / f"{name}-c.csv"]
        done = kpod("fit", *data, *options, *files, "--model", tmp_path / f"{name}.kpod")
        assert done.code == 0, done.err
        said[name] = json.loads(done.out)
    for name in ("parts", "forced"):
        assert (tmp_path / f"{name}-c.csv").read_bytes() == (tmp_path / "one-c.csv").read_bytes()
        for key in set(said["one"]) - {"data", "written", "settings"}:
            assert said[name][key] == said["one"][key], key
        if out == ".csv":
            assert (tmp_path / f"{name}-o.csv").read_bytes() == (tmp_path / "one-o.csv").read_bytes()
        else:
            read = pq.read_table if out == ".parquet" else pyarrow.feather.read_table
            assert read(tmp_path / f"{name}-o{out}").equals(read(tmp_path / f"one-o{out}"))
        model = tmp_path / f"{name}.kpod"
        for data in (one, folder):
            done = kpod("predict", model, data)
            assert done.out == kpod("predict", tmp_path / "one.kpod", one).out != "", done.err
    assert said["one"]["set_aside"].keys() == {"id", "town", "same"}
    assert not list(tmp_path.glob("*.scratch"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_columns_of_several_files_are_matched_by_name(suffix, kpod, table, tmp_path):
    folder = in_parts(table, tmp_path / "parts", suffix)
    expected = kpod("fit", folder, "-k", 3)
    assert expected.code == 0, expected.err
    second = table.slice(N // 3, N // 3)
    write(second.select(second.column_names[::-1]), folder / f"1{suffix}")
    done = kpod("fit", folder, "-k", 3)
    assert done.code == 0, done.err
    assert done.out == expected.out


@pytest.mark.parametrize("names", [["id", "v0", "town", "age"], ["town"]])
def test_describe_takes_several_files(kpod, table, tmp_path, names):
    town = pa.array([f"town {i % 7}" if i != N - 1 else "NA" for i in range(N)])
    table = table.set_column(table.column_names.index("town"), "town", town).select(names)
    folder, one = in_parts(table, tmp_path / "parts", ".csv"), tmp_path / "one.csv"
    write(table, one)
    described = []
    for data in ([folder], sorted(folder.iterdir()), [one]):
        done = kpod("describe", *data, "--missing", "-9", "--json")
        assert done.code == 0, done.err
        described.append({**json.loads(done.out), "data": ""})
    assert described[0] == described[1] == described[2]


def test_to_standard_output_and_a_report(kpod, table, tmp_path):
    folder = in_parts(table, tmp_path / "parts", ".parquet")
    done = kpod(
        "fit", folder / "*.parquet", "-k", 3, "--report", tmp_path / "r.html", "--weight", "id", "--id", "age"
    )
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == N + 1
    assert lines[0] == '"id",v0,v1,v2,v3,age,town,same,cluster'.replace('"', "")
    page = (tmp_path / "r.html").read_text()
    assert f"{N} rows" in page or f"{N:,} rows" in page


def test_a_number_is_chosen(kpod, table, tmp_path):
    folder = in_parts(table, tmp_path / "parts", ".parquet")
    write(table, tmp_path / "one.parquet")
    choose = ["choose-k", "-k", "1-4", "--json"]
    assert json.loads(kpod(*choose, folder).out) == json.loads(kpod(*choose, tmp_path / "one.parquet").out)
    kept = tmp_path / "kept"
    assert kpod("fit", folder, "-k", "2-4", "-q", "-o", tmp_path / "x.csv", "--checkpoint", kept).code == 0
    assert not list(kept.iterdir())


def test_a_table_that_would_not_fit_is_read_in_pieces(kpod, table, tmp_path, monkeypatch):
    one = tmp_path / "one.parquet"
    write(table, one)
    assert large.files_of([str(one)], None) == ([str(one)], False)
    assert large.files_of(["-"], None) == (["-"], False)
    free = 2 * 6 * 8 * N * table.num_columns
    monkeypatch.setattr(room, "free_memory", lambda: free)
    assert large.files_of([str(one)], None)[1]
    monkeypatch.setattr(room, "free_memory", lambda: 10 * free)
    assert not large.files_of([str(one)], None)[1]
    monkeypatch.undo()
    assert room.free_memory() > 1 << 20


def one_line(done):
    assert done.code == 1
    assert done.err.count("\n") == 1
    return done.err


def test_what_cannot_be_done_in_pieces_is_said(kpod, table, tmp_path):
    folder = in_parts(table, tmp_path / "parts", ".csv")
    fit = ["fit", folder, "-k", 3, "-o", tmp_path / "x.csv"]
    assert "need the whole table in memory" in one_line(kpod(*fit, "--robust"))
    assert "read in pieces needs" in one_line(kpod(*fit, "--categories", "town"))
    assert "ratings need the whole table" in one_line(
        kpod(*fit, "--rows", "id", "--items", "town", "--values", "v0")
    )
    assert "standard input cannot be read in pieces" in one_line(
        kpod("fit", "-", "-k", 3, "--scratch", tmp_path)
    )
    assert "cannot be written in pieces" in one_line(kpod("fit", folder, "-k", 3, "-o", tmp_path / "x.xlsx"))
    text = (folder / "2.csv").read_text().splitlines()
    (folder / "2.csv").write_text("\n".join([*text[:-1], text[-1] + ",7"]) + "\n")
    assert "2.csv: damaged, or not in the format it claims to be in: CSV parse error" in one_line(kpod(*fit))
    write(table.drop(["v1"]), folder / "2.csv")
    assert "2.csv: has no column 'v1', unlike" in one_line(kpod(*fit))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts"]


def test_a_killed_fit_goes_on(kpod, table, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    folder, kept = in_parts(table, tmp_path / "parts", ".parquet"), tmp_path / "kept"
    fit = ["fit", folder, "-k", 3, "-q", "--checkpoint", kept]
    assert kpod(*fit[:-2], "-o", tmp_path / "whole.csv").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "remove", lambda _: 1 / 0)
        assert "ZeroDivisionError" in one_line(kpod(*fit, "-o", tmp_path / "again.csv"))
    assert (kept / "fit.npz").exists()
    assert "has n_clusters=3, not 4" in one_line(kpod("fit", folder, "-k", 4, "--checkpoint", kept))
    assert kpod(*fit, "-o", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not list(kept.iterdir())
