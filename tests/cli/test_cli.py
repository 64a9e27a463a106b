"""The command line, as its users meet it."""

import csv
import io
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import feather
from sklearn.preprocessing import StandardScaler

from kpod import KPOD, load
from kpod._inputs import validation
from kpod.cli.progress import Progress
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod as run_here
from tests.helpers.command import program

WINE = load_incomplete_wine()
FRAME = pd.DataFrame(WINE.data, columns=WINE.feature_names)
FOUND = KPOD(3, random_state=0).fit_predict(StandardScaler().fit_transform(WINE.data))
LABELS = np.argsort(np.argsort(-np.bincount(FOUND)))[FOUND]
"""The command line numbers clusters by size."""


@pytest.fixture
def kpod(monkeypatch):
    return lambda *args, stdin=b"": run_here(monkeypatch, *args, stdin=stdin)


@pytest.fixture
def table(tmp_path):
    """A small table with an identifier, text, and gaps of several kinds."""
    path = tmp_path / "people.csv"
    rng = np.random.default_rng(0)
    lines = ["id,name,height,weight,code,smokes"]
    for i in range(40):
        tall = i % 2 * 30
        height = "NA" if i % 7 == 0 else f"{160 + tall + rng.normal():.2f}"
        weight = "?" if i % 9 == 0 else "-9" if i == 4 else f"{60 + tall + rng.normal():.10f}"
        lines.append(f'{100 + i * 3},"Doe, {i}",{height},{weight},{i:04d},{"TRUE" if tall else "FALSE"}')
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(text):
    return pd.read_csv(io.StringIO(text))


# What comes out


def test_the_clusters_are_those_of_the_library(kpod):
    done = kpod("fit", WINE.filename, "-k", 3, "--shape", "round")
    assert done.code == 0
    assert_array_equal(rows_of(done.out)["cluster"], LABELS)


def test_cells_come_out_as_they_went_in(kpod, table):
    """Leading zeros, ten digits, marks of gaps, quotes: the output is the input and one column."""
    done = kpod("fit", table, "-k", 2)
    lines = done.out.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == table.read_text().splitlines()
    assert lines[0].endswith(",cluster")


def test_what_was_set_aside_and_which_gaps_were_found_is_said(kpod, table):
    done = kpod("fit", table, "-k", 2, "--missing", "-9")
    said = " ".join(done.err.split())
    assert "used: height, weight and smokes" in said
    assert "not used: id, name and code (identifier)" in said
    assert "NA 6, ? 5, -9 1" in done.err
    assert "cluster 0: 20 rows, high in" in done.err or "cluster 1: 20 rows, high in" in done.err
    without = kpod("fit", table, "-k", 2)
    assert "-9 1" not in without.err


def test_columns_exclude_and_id_choose(kpod, table):
    def used(*args):
        return json.loads(kpod("fit", table, "-k", 2, "--json", *args).out)["columns"]

    assert used() == ["height", "weight", "smokes"]
    assert used("--exclude", "smokes") == ["height", "weight"]
    assert used("--id", "smokes,weight") == ["height"]
    assert used("--columns", "weight,id") == ["weight", "id"]
    assert used("--columns", "weight", "--columns", "height") == ["weight", "height"]


def test_scaling_is_over_observed_entries_unless_no_scale(kpod):
    raw = KPOD(3, random_state=0).fit(WINE.data)
    args = ("fit", WINE.filename, "-k", 3, "--shape", "round", "--json")
    done = json.loads(kpod(*args, "--no-scale").out)
    assert_allclose(done["loss"], raw.inertia_)
    scaled = json.loads(kpod(*args).out)
    assert scaled["loss"] < done["loss"] / 10


def test_seed_algorithm_and_starts_reach_the_fit(kpod):
    args = ("--seed", 5, "--algorithm", "lloyd", "--starts", 1)
    done = json.loads(kpod("fit", WINE.filename, "-k", 4, "--json", *args).out)
    model = KPOD(4, random_state=5, algorithm="lloyd", n_init=1)
    model.fit(StandardScaler().fit_transform(WINE.data))
    assert_allclose(done["loss"], model.inertia_)
    assert done["settings"] == {"clusters": 4, "algorithm": "lloyd", "starts": 1, "seed": 5, "scaled": True}


def test_centers_are_in_the_original_units_with_their_counts(kpod, tmp_path):
    done = kpod("fit", WINE.filename, "-k", 3, "-q", "--shape", "round", "--centers", tmp_path / "c.csv")
    centers = pd.read_csv(tmp_path / "c.csv").set_index("cluster")
    labels = rows_of(done.out)["cluster"]
    groups = FRAME.groupby(labels.to_numpy())
    assert_allclose(centers[WINE.feature_names], groups.mean(), rtol=1e-9)
    assert_array_equal(centers[[f"observed {name}" for name in WINE.feature_names]], groups.count())
    assert_array_equal(centers["rows"], groups.size())


def test_names_that_are_ours_are_the_users_first(kpod, tmp_path):
    table = b"rows,observed rows,x\n1,2,3\n5,6,7\n1,2,4\n"
    assert kpod("fit", "-", "-k", 2, "--centers", tmp_path / "c.csv", stdin=table).code == 0
    centers = pd.read_csv(tmp_path / "c.csv")
    assert list(centers.columns) == ["cluster", "rows", "observed rows", "x", "rows_", "observed rows_",
                                     "observed observed rows", "observed x"]  # fmt: skip
    assert set(centers["rows_"]) == {1, 2}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "feather", "arrow"])
def test_every_format_in_and_out_gives_the_same_clusters(kpod, tmp_path, suffix):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    assert kpod("fit", WINE.filename, "-k", 3, "-q", "--shape", "round", "-o", first).code == 0
    readers = {
        "csv": pl.read_csv,
        "tsv": lambda p: pl.read_csv(p, separator="\t"),
        "parquet": pl.read_parquet,
    }
    read = readers.get(suffix, pl.read_ipc)
    out = read(first)
    assert_array_equal(out["cluster"], LABELS)
    assert out["alcohol"].dtype == pl.Float64
    assert_array_equal(out["alcohol"].cast(pl.Float64).to_numpy(), WINE.data[:, 0])
    again = ("--shape", "round", "-o", second, "--label", "again", "--exclude", "cluster")
    done = kpod("fit", first, "-k", 3, "-q", *again)
    assert done.code == 0
    assert_array_equal(read(second)["again"], LABELS)


def test_json_is_a_whole_summary_and_leaves_the_table_to_o(kpod, table, tmp_path):
    done = kpod("fit", table, "-k", 2, "--json", "-o", tmp_path / "out.csv")
    summary = json.loads(done.out)
    assert done.err == ""
    assert summary["rows"] == 40
    assert summary["set_aside"]["name"] == "identifier: different in every row"
    assert summary["written"] == [str(tmp_path / "out.csv")]
    assert sum(cluster["rows"] for cluster in summary["clusters"]) == 40
    assert "cluster" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_quiet_is_quiet(kpod):
    assert kpod("fit", WINE.filename, "-k", 3, "--quiet").err == ""


def test_rows_with_nothing_observed_are_in_no_cluster_and_noted(kpod):
    done = kpod("fit", "-", "-k", 2, stdin=b"a,b\n1,2\n1.5,\n,\n9,9\n9.5,8\n")
    assert list(rows_of(done.out)["cluster"])[2] == -1
    said = " ".join(done.err.split())
    assert "caution: 1 row (row 3) with nothing observed could not be assigned (cluster -1)." in said
    assert said.count("nothing observed") == 1


# Predict


def test_predict_takes_columns_by_name_gaps_and_marks_as_in_the_fit(kpod, table, tmp_path):
    model = tmp_path / "m.kpod"
    fitted = rows_of(kpod("fit", table, "-k", 2, "-q", "--missing", "-9", "--model", model).out)
    shuffled = pd.read_csv(table, dtype=str, keep_default_na=False)
    shuffled = shuffled[["smokes", "weight", "name", "height"]].assign(extra="x")
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    done = kpod("predict", model, tmp_path / "new.csv")
    assert done.code == 0
    out = rows_of(done.out)
    assert_array_equal(out["cluster"], fitted["cluster"])
    assert list(out.columns) == ["smokes", "weight", "name", "height", "extra", "cluster"]
    assert "extra and name (not in the model)" in done.err
    only_a_mark = kpod("predict", model, "-", stdin=b"height,weight,smokes\n,-9,\n")
    assert only_a_mark.out.splitlines()[1] == ",-9,,-1"


def test_predict_on_rows_of_nothing_but_gaps(kpod, table, tmp_path):
    kpod("fit", table, "-k", 2, "-q", "--model", tmp_path / "m.kpod")
    done = kpod("predict", tmp_path / "m.kpod", "-", stdin=b"height,weight,smokes\nNA,,?\n")
    assert done.out.splitlines()[1] == "NA,,?,-1"


# Describe and demo


def test_describe_says_what_is_there_and_what_is_not(kpod, table):
    described = json.loads(kpod("describe", table, "--missing", "-9", "--json").out)
    columns = {column["name"]: column for column in described["columns"]}
    assert columns["height"]["missing"] == 6
    assert columns["height"]["marks"] == {"NA": 6}
    assert columns["weight"]["marks"] == {"?": 5, "-9": 1}
    assert columns["weight"]["min"] > 50
    assert [columns[c]["type"] for c in columns] == [
        "integer", "text", "number", "number", "integer", "true/false",
    ]  # fmt: skip
    assert described["commonest_patterns"][0] == {"missing": [], "rows": 29}
    assert {"missing": ["height"], "rows": 5} in described["commonest_patterns"]
    assert described["complete_rows"] == 29
    text = kpod("describe", table).out
    assert "height" in text
    assert "15.0%" in text
    nothing = json.loads(kpod("describe", "-", "--json", stdin=b"a,t\n1,x\n,y\nNA,NA\n").out)
    assert nothing["rows_without_numbers"] == 2
    assert nothing["columns"][1]["marks"] == {"NA": 1}


def test_columns_that_are_equal_count_once(kpod, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=60).round(6) for name in "abw"})
    frame["a again"] = frame["a"].where(rng.random(60) > 0.3)
    frame["w2"] = frame["w"] = frame["w"].abs()
    frame["k1"], frame["k2"] = 7, 7  # constants, which are not used
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    both, weights = "a again is equal to a", "w2 is equal to w"
    once = "; it is not used, so that this counts once (use"
    described = " ".join(kpod("describe", path).out.split())
    assert f"note: {both}{once} --as 'a again=number'" in described
    assert f"note: {weights}{once}" in described
    assert "k1 and" not in described
    done = kpod("fit", path, "-k", 2, "--weight", "w", "-o", tmp_path / "o.csv")
    fitted = " ".join(done.err.split())
    assert "used: a and b not used" in fitted
    assert f"{both}{once}" in fitted
    assert f"{weights}{once}" in fitted
    done = kpod("fit", path, "-k", 2, "--weight", "w", "--as", "a again=number", "-o", tmp_path / "o.csv")
    assert "used: a, b and a again" in done.err
    assert "so they count more than once; use --exclude 'a again'" in " ".join(done.err.split())
    assert "is equal" not in kpod("fit", path, "-k", 2, "--columns", "a,b", "-o", tmp_path / "o.csv").err


def test_demo_runs_end_to_end(kpod, tmp_path):
    done = kpod("demo", "--report", tmp_path / "demo.html")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "3 separate groups" in said  # the number is chosen
    assert "The clusters are not round" in said
    assert "25% of the entries are missing" in said
    assert float(re.search(r"adjusted Rand score against them ([\d.]+)", said)[1]) >= 0.8
    headings = ("The table", "How many", "Are they round", "What is missing", "The groups", "The report")
    assert sorted(map(said.index, headings)) == list(map(said.index, headings))
    assert str(tmp_path / "demo.html") in done.out
    assert "Clusters in the bundled wine table" in (tmp_path / "demo.html").read_text()


# As a program


def test_pipes(table, tmp_path):
    """cat table | kpod fit - | kpod describe - : only the table goes down the pipe."""
    command = (
        f"cat {table} | {sys.executable} -m kpod fit - -k 2 | {sys.executable} -m kpod describe - --json"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    described = json.loads(done.stdout)
    assert described["columns"][-1]["name"] == "cluster"
    assert described["columns"][-1]["max"] == 1
    assert "standard input: 40 rows" in done.stderr


def test_a_reader_that_has_seen_enough_gets_no_complaint(tmp_path):
    big = tmp_path / "big.csv"
    np.savetxt(
        big, np.random.default_rng(0).normal(size=(50_000, 4)), delimiter=",", header="a,b,c,d", comments=""
    )
    command = f"{sys.executable} -m kpod fit {big} -k 2 -q --starts 1 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("a,b,c,d,cluster\n", "")


R_PEOPLE = (
    '"","height","group","weight"\n"1",160.5,"a",60\n"2",NA,"b, c",61.25\n"3",190,NA,90\n"4",191,"a",NA\n'
)
R_SCRIPT = """write.csv(data.frame(height = c(160.5, NA, 190, 191), group = c("a", "b, c", NA, "a"),
weight = c(60, 61.25, 90, NA)), commandArgs(TRUE)[1])"""


def written_by_r(path):
    """By R where there is one; else what R 4 writes for R_SCRIPT, to the byte."""
    if shutil.which("Rscript"):
        subprocess.run(["Rscript", "-e", R_SCRIPT, path], check=True)
        assert path.read_text() == R_PEOPLE
    path.write_text(R_PEOPLE)


WRITERS = {
    "pandas.csv": lambda frame, path: frame.to_csv(path),
    "pandas.parquet": lambda frame, path: frame.to_parquet(path),
    "pandas.feather": lambda frame, path: frame.to_feather(path),
    "polars.csv": lambda frame, path: pl.from_pandas(frame).write_csv(path),
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "polars.arrow": lambda frame, path: pl.from_pandas(frame).write_ipc(path, compression="zstd"),
    "polars.tsv": lambda frame, path: pl.from_pandas(frame).write_csv(path, separator="\t", null_value="NA"),
}


@pytest.mark.parametrize("name", [*WRITERS, "r.csv"])
def test_files_of_pandas_polars_and_r(kpod, tmp_path, name):
    path = tmp_path / name
    frame = pd.DataFrame({"height": [160.5, None, 190, 191], "group": ["a", "b, c", None, "a"],
                          "weight": [60, 61.25, 90, None]})  # fmt: skip
    if name == "r.csv":
        written_by_r(path)
    else:
        WRITERS[name](frame, path)
    done = kpod("fit", path, "-k", 2)
    assert done.code == 0, done.err
    out = rows_of(done.out) if not name.endswith(".tsv") else pd.read_csv(io.StringIO(done.out), sep="\t")
    assert list(out["cluster"]) in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert_array_equal(out["height"], frame["height"])
    assert list(out["group"].fillna("")) == ["a", "b, c", "", "a"]
    assert "2 columns used" in done.err
    assert "gaps: 2 (25.0% of the entries)" in done.err


def waiting_fit(stderr):
    """A fit that waits for its data."""
    return subprocess.Popen(
        [sys.executable, "-m", "kpod", "fit", "-", "-k", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env={**os.environ, "TERM": "xterm"},
    )


def feed(process):
    process.stdin.write(b"a\n1\n2\n")
    process.stdin.close()
    assert process.wait() == 0


def test_progress_shows_at_a_terminal_while_one_waits():
    ours, theirs = pty.openpty()
    process, shown = waiting_fit(theirs), b""
    while b"reading - ..." not in shown:  # that it shows without any data is the point
        shown += os.read(ours, 1 << 16)
    feed(process)
    os.close(theirs)
    shown += os.read(ours, 1 << 16)
    os.close(ours)
    assert shown.index(b"\x1b[?25l") < shown.rindex(b"\x1b[?25h"), "the cursor is back"


def test_progress_does_not_show_in_a_pipe(tmp_path):
    with (tmp_path / "errors").open("wb") as errors:
        process = waiting_fit(errors)
        time.sleep(4)
        feed(process)
    assert "reading" not in (tmp_path / "errors").read_text()
    assert "2 rows" in (tmp_path / "errors").read_text()


def test_completion():
    env = {**os.environ, "_KPOD_COMPLETE": "bash_complete", "COMP_WORDS": "kpod fit --al", "COMP_CWORD": "2"}
    done = subprocess.run(
        [Path(sys.executable).with_name("kpod")], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,--algorithm\n"


def test_without_the_extra_one_line_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from kpod.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "kpod: the command line needs more packages: pip install 'scikit-kpod[cli]'.\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from kpod.cli import run; run(['fit', '--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Examples:" in done.stdout
    assert not {"numpy", "sklearn", "pyarrow", "rich", "matplotlib"} & set(done.stderr.split())


def test_describing_and_reading_load_no_scikit_learn():
    """It takes seconds, before which nobody sees that anything goes on."""
    code = (
        "import sys, kpod._files.pieces.large_table, kpod._files.writing;"
        "import kpod._saved_models.model_file_format, kpod._analysis.describe;"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "kpod._saved_models.model_file_format" in done.stdout
    assert not {"sklearn", "matplotlib", "scipy.stats"} & set(done.stdout.split())


def test_help_starts_fast():
    """What takes the time is importing: hardly more modules than click is, and none of the commands."""

    def modules(code):
        code = f"import sys; {code}; print(*sys.modules, file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return set(done.stderr.split())

    more = modules("from kpod.cli import run; run(['--help'])") - modules("import click")
    foreign = {name for name in more if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in foreign} <= {"click", "kpod"}
    assert len(foreign) <= 10, sorted(foreign)


# Bad input: one line each


def one_line(done, code=1):
    assert done.code == code
    assert done.out == ""
    assert done.err.startswith("kpod: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert "unexpected" not in done.err
    return done.err


BAD = {
    "ragged": (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 fields where the header has 2 (1,2,3)"),
    "short line": (b"a,b,c\n1,2,3\n4\n", "line 3 has 1 fields where the header has 3"),
    "no numbers": (b"a,b\nx,y\nz,w\n", "only 'a' (text: 2 different values in 2 rows), 'b'"),
    "all gaps": (b"a,b\n,NA\n?,\n", "no numeric columns to cluster, only 'a' (nothing observed)"),
    "too many clusters": (b"a,b\n1,2\n", "-k 2 is more than the number of rows"),
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "nothing but a mark of its encoding": (b"\xef\xbb\xbf", "is empty"),
    "nothing but one of UTF-16": (b"\xff\xfe", "is empty"),
    "header only": (b"a,b\n", "has column names but no rows"),
    "infinity": (b"a,b\n1,2\n2,inf\n", "line 3, column 'b': inf is infinite, or too large"),
    "too large": (b"a,b\n1,2\n1e200,3\n", "line 3, column 'a': 1e+200 is infinite, or too large"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "a quotation mark opened on line 3 is never closed"),
    "not a table": (b"<!DOCTYPE html><html>", "no rows"),
    "binary": (b"\x00\x01\x02", "not a text file"),
    "workbook": (b"PK\x03\x04abc", "save the sheet as CSV"),
    "gzip": (b"\x1f\x8b\x08", "damaged compressed file"),
    "parquet in pieces": (b"PAR1 and then nothing", "damaged, or not in the format it claims to be in"),
    "arrow in pieces": (b"ARROW1\0\0 and then nothing", "damaged, or not in the format it claims to be in"),
    "cluster is there": (b"a,cluster\n1,2\n3,4\n", "already has a column 'cluster'; choose another name"),
    "two clusters too many": (b"a\n1\n\n\n", "than the number of rows with observed entries (1)"),
}  # fmt: skip


MENDED = {
    "same name": (b"a,b,a\n1,2,3\n2,3,4\n", "the column name 'a' appears 2 times (columns 1, 3)"),
    "no header": (b"1.5,2\n3,4\n", "the first line holds numbers (1.5, 2...), not column names"),
    "header twice": (b"a,b\n1,2\n3,4\na,b\n5,6\n", "line 4 is the header again"),
    "row names of R": (b'"a","b"\n"1",1,2\n"2",3,4\n', "name the first column"),
    "a short line": (b"a,b\n" + b"1,2\n" * 9 + b"3\n4,5\n", "line 11 has 1 fields where the header has 2"),
    "a typing error": (b"a,b\n1,2\n2,3\n1x,4\n4,5\n4,6\n", "line 4, column 'a': '1x' is not a number (80%"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables(kpod, name):
    data, message = BAD[name]
    assert message in one_line(kpod("fit", "-", "-k", 2, stdin=data))


@pytest.mark.parametrize("name", MENDED)
def test_what_is_mended_is_refused_when_strict(kpod, name):
    data, message = MENDED[name]
    assert message in one_line(kpod("fit", "-", "-k", 2, "--strict", stdin=data))
    done = kpod("fit", "-", "-k", 2, stdin=data)
    assert done.code == 0
    assert "note: " in done.err


def test_a_wrong_encoding_is_refused_with_its_place_and_the_right_one_is_found(kpod):
    data = "name,größe\nÄ,1\nB,2\n".encode("cp1252")
    assert "byte 0xf6 on line 1 is not utf-8" in one_line(
        kpod("fit", "-", "-k", 1, "--encoding", "utf-8", stdin=data)
    )
    done = kpod("fit", "-", "-k", 1, stdin=data)
    assert done.out.splitlines()[:2] == ["name,größe,cluster", "Ä,1,0"]
    assert "cp1252" in done.err
    assert "no such encoding" in one_line(kpod("fit", "-", "-k", 1, "--encoding", "utf-99", stdin=data))


USAGE = [
    ["fit"],
    ["fit", "x.csv", "-k", "0"],
    ["fit", "x.csv", "-k", "three"],
    ["fit", "-k", "3"],
    ["fit", "x.csv", "-k", "3", "--no-such-option"],
    ["no-such-command"],
    ["fit", "x.csv", "-k", "3", "--json", "-o", "-"],
    ["fit", "x.csv", "-k", "3", "--report", "-"],
    ["fit", "x.csv", "-k", "3", "--report", ""],
    ["fit", "x.csv", "-k", "3", "-o", ""],
    ["fit", "", "-k", "3"],
]


@pytest.mark.parametrize("args", USAGE, ids=" ".join)
def test_wrong_usage_is_one_line_and_exit_code_2(kpod, args):
    assert "--help" in one_line(kpod(*args), code=2)


def test_files_that_cannot_be_read_or_written(kpod, table, tmp_path):
    assert "No such file" in one_line(kpod("fit", tmp_path / "nowhere.csv", "-k", 2))
    (tmp_path / "empty").mkdir()
    assert "no files ending in" in one_line(kpod("fit", tmp_path / "empty", "-k", 2))
    (tmp_path / "empty").rmdir()
    for option in ("-o", "--report", "--model", "--centers"):
        assert "there is no directory" in one_line(
            kpod("fit", table, "-k", 2, option, tmp_path / "no" / "x.csv")
        )
        assert "would overwrite the data" in one_line(kpod("fit", table, "-k", 2, option, table))
    assert "cannot tell the format" in one_line(kpod("fit", table, "-k", 2, "-o", tmp_path / "x.xls"))
    same = tmp_path / "same.csv"
    assert "would overwrite -o" in one_line(kpod("fit", table, "-k", 2, "-o", same, "--centers", same))
    assert "there is no column 'hieght'; did you mean 'height'?" in one_line(
        kpod("fit", table, "-k", 2, "--columns", "hieght")
    )
    assert sorted(tmp_path.iterdir()) == [table]


def test_a_write_protected_file_is_not_replaced(kpod, table, tmp_path):
    kept = tmp_path / "kept.csv"
    kept.write_text("precious")
    kept.chmod(0o444)
    for option in ("-o", "--report", "--model", "--centers"):
        assert "is write-protected" in one_line(kpod("fit", table, "-k", 2, option, kept))
    assert kept.read_text() == "precious"


NESTED = {
    "list": pa.array([[1], [2, 3], None, []] * 10),
    "struct": pa.array([{"x": 1}, None] * 20),
    "map": pa.array([[("x", 1)], None] * 20, pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"\xff", None] * 20),
    "fixed_size_binary[2]": pa.array([b"\xff\xfe", None] * 20, pa.binary(2)),
    "month_day_nano_interval": pa.array([(1, 2, 3), None] * 20, pa.month_day_nano_interval()),
}


@pytest.mark.parametrize("name", NESTED)
def test_columns_that_the_output_cannot_hold_are_refused_before_the_work(kpod, tmp_path, name, monkeypatch):
    source = tmp_path / "in.feather"
    feather.write_feather(pa.table({"x": np.arange(40.0) % 7, "odd": NESTED[name]}), source)
    written = kpod("fit", source, "-k", 2, "-q", "-o", tmp_path / "out.feather")
    assert written.code == 0, written.err
    assert feather.read_table(tmp_path / "out.feather")["odd"].equals(pa.chunked_array([NESTED[name]]))
    monkeypatch.setattr(KPOD, "fit", lambda *_, **__: pytest.fail("the work was done"))
    message = one_line(kpod("fit", source, "-k", 2))
    assert f"column 'odd' holds {name}" in message
    assert "which a csv file cannot hold; write .feather" in message


def test_bytes_that_are_text_are_written(kpod, tmp_path):
    feather.write_feather(pa.table({"x": [1.0, 2, 9], "t": [b"a,b", b"c", None]}), tmp_path / "in.feather")
    assert kpod("fit", tmp_path / "in.feather", "-k", 2, "-q").out.splitlines()[1].startswith('1,"a,b",')


def test_names_that_are_not_utf_8(kpod, table, tmp_path):
    """Of files they are fine, with every option; of a column they are refused before the work."""
    odd = os.fsencode(tmp_path) + b"/\xff.csv"
    Path(os.fsdecode(odd)).write_bytes(table.read_bytes())
    options = ["-o", "--centers", "--model", "--report"]
    names = [os.fsdecode(odd.replace(b"\xff", b"\xfe" + option.encode())) for option in options]
    outputs = [part for pair in zip(options, names, strict=True) for part in pair]
    done = program("fit", os.fsdecode(odd), "-k", 2, "--json", *outputs)
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["written"]) == 4
    assert len(list(tmp_path.iterdir())) == 6
    for option in ("--label", "--missing"):
        message = one_line(kpod("fit", table, "-k", 2, option, os.fsdecode(b"\xff")), code=2)
        assert "is not valid UTF-8" in message


def test_long_file_names(kpod, table, tmp_path):
    longest = tmp_path / ("x" * 251 + ".csv")
    assert kpod("fit", table, "-k", 2, "-q", "-o", longest).code == 0
    assert len(longest.read_text().splitlines()) == 41
    assert "File name too long" in one_line(
        kpod("fit", table, "-k", 2, "-o", tmp_path / ("x" * 252 + ".csv"))
    )


@pytest.mark.parametrize("to", [">(cat > {file})", "/dev/stdout > {file}", "/dev/stdout | cat > {file}",
                                "/dev/fd/5 5> {file}"])  # fmt: skip
def test_a_report_goes_where_the_shell_leads_it(table, tmp_path, to):
    page = tmp_path / "page.html"
    command = f"{sys.executable} -m kpod fit {table} -k 2 -q -o {tmp_path}/o.csv --report {to}; sleep 0.2"
    done = subprocess.run(
        ["bash", "-c", command.format(file=page)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert page.read_text().rstrip().endswith("</html>")


def test_a_report_and_a_table_on_one_stream_come_one_after_the_other(table, tmp_path):
    command = f"{sys.executable} -m kpod fit {table} -k 2 -q --report /dev/stdout > {tmp_path}/both"
    subprocess.run(["bash", "-c", command], check=True)
    page, rest = (tmp_path / "both").read_text().split("</html>")
    assert page.startswith("<!")
    assert rest.strip().startswith("id,name,")


def in_shell(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


def test_closed_streams(table, tmp_path):
    fit = f"{sys.executable} -m kpod fit {table} -k 2"
    quiet = in_shell(f"{fit} 2>&-")
    assert quiet.returncode == 0
    assert len(quiet.stdout.splitlines()) == 41
    for command in (f"{fit} >&-", f"{fit} --json >&-", f"{sys.executable} -m kpod describe {table} >&-"):
        closed = in_shell(command)
        assert closed.returncode == 1
        assert "standard output is closed" in closed.stderr
    unread = in_shell(f"{sys.executable} -m kpod fit - -k 2 <&-")
    assert (unread.returncode, unread.stderr) == (
        1,
        "kpod: standard input is closed; give the name of a file.\n",
    )
    nothing = in_shell(f"{fit} -o {tmp_path}/o.csv -q --model {tmp_path}/m.kpod >&- 2>&- <&-")
    assert nothing.returncode == 0
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 41


@pytest.mark.parametrize(
    "command",
    [
        "describe {table}",
        "demo --report {folder}/r.html",
        "choose-k {table} -k 1-2 --report {folder}/r.html",
        "choose-k {table} -k 1-2 --report {folder}/r.html --json",
    ],
)
def test_a_closed_output_is_found_out_before_the_work(command, table, tmp_path):
    command = f"{sys.executable} -m kpod {command.format(table=table, folder=tmp_path)} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "standard output is closed" in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_devices_are_not_read_to_their_end(kpod):
    """/dev/zero has none."""
    assert "is a device, not a file" in one_line(kpod("describe", "/dev/zero"))


def test_the_clusters_have_a_name(kpod, table):
    assert "--label needs a name" in one_line(kpod("fit", table, "-k", 2, "--label", " "))


def test_predict_does_not_overwrite_what_it_reads(kpod, table, tmp_path):
    model = tmp_path / "m.csv"  # the name is the user's choice
    kpod("fit", table, "-k", 2, "-q", "--model", model)
    for taken, what in ((model, "the model"), (table, "the data")):
        before = taken.read_bytes()
        assert f"-o {taken} would overwrite {what}" in one_line(kpod("predict", model, table, "-o", taken))
        assert taken.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "kpod: not enough memory for this table.\n"),
        (KeyboardInterrupt(), "kpod: interrupted; no file was left half-written.\n"),
        (ModuleNotFoundError("no", name="jinja2"), "kpod: the package jinja2 is missing: pip install"),
        (OSError(28, "No space left on device", "/x"), "kpod: /x: No space left on device.\n"),
        (ZeroDivisionError("odd\nthing"), "kpod: unexpected ZeroDivisionError: odd thing\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_goes_wrong_is_one_line(kpod, table, tmp_path, monkeypatch, error, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(KPOD, "fit", fail)
    done = kpod("fit", table, "-k", 2, "-o", tmp_path / "o.csv")
    assert (done.code, done.out) == (1, "")
    table_lines, _, said = done.err.rpartition("kpod: ")  # what is clustered was said before the fit
    assert f"kpod: {said}".startswith(message)
    assert said.count("\n") == 1
    assert "kpod: " not in table_lines
    assert "used: height, weight and smokes" in table_lines
    assert not (tmp_path / "o.csv").exists()


def test_a_loop_of_links(kpod, table, tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    assert "Too many levels of symbolic links" in one_line(kpod("fit", loop, "-k", 2))
    assert "Too many levels of symbolic links" in one_line(kpod("fit", table, "-k", 2, "-o", loop))
    assert "Too many levels of symbolic links" in one_line(kpod("predict", loop, table))


def test_delimiters(kpod):
    done = kpod("fit", "-", "-k", 1, "-q", "--delimiter", r"\t", stdin=b"a\tb\n1\t2\n3\t4\n")
    assert done.out == "a\tb\tcluster\n1\t2\t0\n3\t4\t0\n"
    for wrong in ("ab", "", '"', "\n", "é"):
        assert "must be one character" in one_line(
            kpod("fit", "-", "-k", 1, "--delimiter", wrong, stdin=b"a\n1\n"), code=2
        )


@pytest.mark.parametrize("name", ["hex", "rot13", "base64", "undefined", "zip"])
def test_encodings_that_are_not_of_text(kpod, name):
    assert "no such encoding" in one_line(kpod("fit", "-", "-k", 1, "--encoding", name, stdin=b"a\n1\n"))


def test_bytes_that_are_neither_utf_8_nor_windows_come_out_as_characters_of_their_own(kpod):
    done = kpod("fit", "-", "-k", 1, stdin=b"name,x\n\x81\x8d,1\n\x81\x8f,2\n")
    assert done.out.splitlines()[1:] == ["\x81\x8d,1,0", "\x81\x8f,2,0"]
    assert "latin-1" in done.err


def test_long_fields_and_long_lines(kpod):
    long = b"x" * 200_000
    done = kpod("fit", "-", "-k", 1, "-q", stdin=b"a,t\n1," + long + b"\n2,y\n")
    assert done.out.splitlines()[1] == f"1,{long.decode()},0"
    many = b",".join(b"%d %s" % (j, b"x" * 200) for j in range(1_000))
    row = b",".join(b"%d%s" % (j % 7, b"0" * 200) for j in range(1_000))
    assert kpod("describe", "-", "--json", stdin=many + b"\n" + row + b"\n").code == 0
    assert csv.field_size_limit() == 131_072


def test_the_process_is_left_as_it_was(kpod, table, tmp_path):
    def state():
        import matplotlib as mpl

        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
        files = sorted(
            str(path.readlink())
            for path in map(Path, map("/proc/self/fd/{}".format, range(64)))
            if path.exists()
        )
        return warnings.filters[:], handlers, files, csv.field_size_limit(), dict(mpl.rcParams), sys.stdout

    outputs = [str(tmp_path / name) for name in ("o.csv", "c.csv", "m.kpod", "r.html")]
    options = [
        part
        for pair in zip(("-o", "--centers", "--model", "--report"), outputs, strict=True)
        for part in pair
    ]
    assert kpod("fit", table, "-k", 2, *options).code == 0  # what is imported may stay, and fonts
    before = state()
    assert kpod("fit", table, "-k", 2, *options).code == 0
    assert kpod("predict", outputs[2], table).code == 0
    assert kpod("fit", table, "-k", 1000, *options).code == 1
    assert kpod("fit", "-", "-k", 2, stdin=b'a,b\n1,"2\n').code == 1
    assert state() == before


@pytest.mark.parametrize("n_columns", [1, 10, 600])
@pytest.mark.parametrize("scaling", [[], ["--no-scale"]])
def test_a_number_is_too_large_for_the_command_line_where_it_is_for_the_library(kpod, n_columns, scaling):
    """Above the limit the file, line and column are named; below it the clustering is finite."""

    def fit(value):
        names = ",".join(f"c{j}" for j in range(n_columns))
        rows = [",".join(str(number + j % 7) for j in range(n_columns - 1)) for number in (1, 5, 9, 2)]
        cells = [
            ",".join(filter(None, [row, cell]))
            for row, cell in zip(rows, ("1", "0", value, "3"), strict=True)
        ]
        text = "\n".join([names, *cells]) + "\n"
        return kpod("fit", "-", "-k", 2, "--json", "--starts", 1, *scaling, stdin=text.encode())

    limit = validation.largest(np.float64, n_columns) / 4**0.5
    assert f"line 4, column 'c{n_columns - 1}'" in one_line(fit(repr(1.01 * limit)))
    below = fit(repr(0.99 * limit))
    assert below.code == 0, below.err
    assert np.isfinite(json.loads(below.out)["loss"])


@pytest.mark.parametrize("option", ["--centers", "-o"])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_the_work_grows_with_the_columns_and_not_with_their_square(tmp_path, option, name):
    """By the number of Python calls: four times the columns, less than eight times the calls."""
    from kpod import cli

    def calls(n_columns):
        wide = tmp_path / f"{n_columns}.csv"
        table = np.random.default_rng(0).normal(size=(12, n_columns))
        pd.DataFrame(table).add_prefix("c").round(3).to_csv(wide, index=False)
        n = 0

        def count(*_):
            nonlocal n
            n += 1

        arguments = [
            "fit",
            str(wide),
            "-k",
            "2",
            "-q",
            "--starts",
            "1",
            "--json",
            option,
            str(tmp_path / name),
        ]
        sys.setprofile(count)
        try:
            assert cli.run(arguments) == 0
        finally:
            sys.setprofile(None)
        return n

    calls(10)  # imports
    assert calls(1600) < 8 * calls(400)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions(kpod, table, tmp_path):
    table.chmod(0)
    assert "Permission denied" in one_line(kpod("fit", table, "-k", 2))
    tmp_path.chmod(0o500)
    assert "is not writable" in one_line(kpod("fit", WINE.filename, "-k", 2, "-o", tmp_path / "x.csv"))
    tmp_path.chmod(0o700)


def test_a_model_and_data_that_do_not_match(kpod, table, tmp_path):
    model = tmp_path / "m.kpod"
    kpod("fit", table, "-k", 2, "-q", "--model", model)
    lacking = one_line(kpod("predict", model, "-", stdin=b"height,age\n1,2\n"))
    assert "is missing columns the model needs: 'weight' and 'smokes'" in lacking
    text = one_line(kpod("predict", model, "-", stdin=b"height,weight,smokes\n1,much,TRUE\n"))
    assert "line 2, column 'weight': 'much' is not a number" in text
    assert "not a kpod model" in one_line(kpod("predict", table, table))
    assert "No such file" in one_line(kpod("predict", tmp_path / "nowhere.kpod", table))


@pytest.mark.parametrize("option", ["-o", "--centers", "--model", "--report"])
def test_a_full_disk_leaves_the_old_file(table, tmp_path, option):
    """A limit on the size of files stands for the disk: writes beyond it fail alike."""
    target = tmp_path / "out.csv"
    target.write_text("what was there before")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    import matplotlib.font_manager  # noqa: F401  (writes its cache, which the limit would forbid)

    done = program("fit", table, "-k", 2, "--json", option, target, preexec_fn=limit)
    assert "File too large" in one_line(done)
    assert target.read_text() == "what was there before"
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "people.csv"}


@pytest.mark.parametrize("buffered", [True, False])
def test_standard_output_that_takes_nothing(table, buffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "kpod", "fit", str(table), "-k", "2", "-q"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    assert done.returncode == 1
    assert "standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_a_full_disk_is_said_once_and_the_file_named(table, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    target.symlink_to("/dev/full")
    assert f"{target}: No space left on device." in one_line(
        program("fit", table, "-k", 2, "-q", "-o", target)
    )


def test_choose_k_does_not_overwrite_what_it_reads(kpod, table, tmp_path):
    before = Path(table).read_bytes()
    report = tmp_path / "report.html"
    report.symlink_to(table)
    assert "would overwrite the data" in one_line(kpod("choose-k", table, "-k", "1-2", "--report", report))
    assert Path(table).read_bytes() == before


def test_a_traceback_on_demand(kpod, table, monkeypatch):
    assert one_line(kpod("fit", table, "-k", 100_000))
    monkeypatch.setenv("KPOD_TRACEBACK", "1")
    with pytest.raises(ValueError, match="100000"):
        kpod("fit", table, "-k", 100_000)


def test_scales_asked_for_are_those_clustered_by(kpod, tmp_path):
    """Groups a hundredfold apart are three groups of their logarithms only."""
    rng = np.random.default_rng(0)
    amounts = np.exp(np.repeat([0.0, 3.0, 6.0], 40) + 0.3 * rng.normal(size=120))
    pd.DataFrame({"amount": amounts, "noise": rng.normal(size=120)}).to_csv(tmp_path / "t.csv", index=False)
    file, model = tmp_path / "t.csv", tmp_path / "m.kpod"
    for options, expected in (
        (["--log", "amount"], {"log": ["amount"], "clip": None, "scale": "standard"}),
        (["--robust"], {"log": [], "clip": None, "scale": "robust"}),
        (["--clip", 0.05], {"log": [], "clip": 0.05, "scale": "standard"}),
    ):
        out = tmp_path / "out.csv"
        fitted = kpod(
            "fit", file, "-k", 3, "--columns", "amount", *options, "--model", model, "-o", out, "-q"
        )
        assert fitted.code == 0
        encoder = load(model)[0]
        assert {name: getattr(encoder, name) or expected[name] for name in expected} == expected
        table = pd.read_csv(out)
        sizes = table.groupby(pd.qcut(table["amount"], 3, labels=False))["cluster"].nunique()
        assert (sizes == 1).all() == ("--log" in options)


@pytest.mark.parametrize("command", ["fit", "choose-k", "predict", "describe"])
def test_usage_errors_point_to_the_help_of_the_command(kpod, table, command):
    assert f"; see kpod {command} --help." in one_line(kpod(command, table, "--no-such-option"), code=2)


def test_what_is_excluded_is_not_chosen_by(kpod, table):
    """Nor read: a column that cannot be excluded is said to be missing."""
    with_all, without = (
        json.loads(kpod("choose-k", table, "-k", "1-2", "--json", *options).out)
        for options in ([], ["--exclude", "smokes"])
    )
    assert with_all["hidden_entries"] > without["hidden_entries"]
    assert "no column 'smoked'" in one_line(kpod("choose-k", table, "-k", "1-2", "--exclude", "smoked"))


def test_every_command_tells_what_it_is_doing(kpod, table, tmp_path, monkeypatch):
    """At a terminal: what is told, and that nothing is quiet which was not asked to be."""
    told, model = [], tmp_path / "m.kpod"
    doing, made = Progress.__call__, Progress.__init__
    monkeypatch.setattr(Progress, "__call__", lambda self, *said: told.append(said[-1]) or doing(self, *said))
    monkeypatch.setattr(
        Progress,
        "__init__",
        lambda self, quiet, *more, **how: told.append(quiet) or made(self, quiet, *more, **how),
    )
    commands = {
        ("fit", table, "-k", 2, "--model", model): f"reading {table}",
        ("predict", model, table): f"reading {table}",
        ("impute", model, table): f"reading {table}",
        ("describe", table): f"reading {table}",
        ("choose-k", table, "-k", "1-2"): f"reading {table}",
        ("demo", "--report", tmp_path / "r.html"): "drawing the report",
    }
    for command, expected in commands.items():
        told.clear()
        assert kpod(*command).code == 0
        assert expected in told
        assert told[0] is False
