"""The command line on tables in several files, or larger than memory: as if they were one in memory."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kpod import KPOD
from kpod._engine import checkpoint, executors, windows
from kpod._files import memory_limits
from kpod._files.locations.part import Part
from kpod._files.pieces import file_source, large_table, scanning
from kpod._findings.fitted_clusters import entries
from tests.helpers.command import kpod as run
from tests.helpers.tables import clustered

N = 900


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(file_source, "BATCH_ENTRIES", 1 << 10)


@pytest.fixture(autouse=True)
def several_files_do_not_fit(monkeypatch):
    """As if they took too much memory to be read whole."""
    fit = large_table.fit
    monkeypatch.setattr(large_table, "fit", lambda parts: len(parts) == 1 and fit(parts))


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


def without_files(path):
    """The lines of an output without the column that says which file they are from."""
    return re.sub(r",(?:file|[^,\n]*/parts/[^,\n]*)(,[^,\n]*)$", r"\1", path.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("suffix", "out"), [(".csv", ".csv"), (".csv", ".parquet"), (".parquet", ".feather")]
)
def test_several_files_are_as_one_in_memory(suffix, out, kpod, table, tmp_path):
    folder, one = in_parts(table, tmp_path / "parts", suffix), tmp_path / f"one{suffix}"
    write(table, one)
    options = ["-k", 3, "--missing", "age=-9", "--json", "--no-verdict"]  # a rule needs memory
    said = {}
    for name, data in (("one", [one]), ("parts", [folder]), ("forced", [one, "--scratch", tmp_path])):
        files = ["-o", tmp_path / f"{name}-o{out}", "--centers", tmp_path / f"{name}-c.csv"]
        done = kpod("fit", *data, *options, *files, "--model", tmp_path / f"{name}.kpod")
        assert done.code == 0, done.err
        said[name] = json.loads(done.out)
    for name in ("parts", "forced"):
        assert (tmp_path / f"{name}-c.csv").read_bytes() == (tmp_path / "one-c.csv").read_bytes()
        assert said[name]["in_pieces"] is not said["one"]["in_pieces"]
        for key in set(said["one"]) - {"data", "in_pieces", "written", "settings"}:
            assert said[name][key] == said["one"][key], key
        if out == ".csv":
            assert without_files(tmp_path / f"{name}-o.csv") == (tmp_path / "one-o.csv").read_text()
        else:
            read = pq.read_table if out == ".parquet" else pyarrow.feather.read_table
            found = read(tmp_path / f"{name}-o{out}")
            found = found.drop_columns("file") if name == "parts" else found
            assert found.equals(read(tmp_path / f"one-o{out}"))
        model = tmp_path / f"{name}.kpod"
        for data in (one, folder):
            predicted = tmp_path / "predicted.csv"
            assert kpod("predict", model, data, "-o", predicted).code == 0
            assert without_files(predicted) == kpod("predict", tmp_path / "one.kpod", one).out != ""
    assert said["one"]["set_aside"].keys() == {"id", "town", "same"}
    assert not list(tmp_path.glob("*.scratch"))


@pytest.mark.parametrize("whole_table", [True, False])
def test_numbers_of_four_bytes_are_kept_in_four(kpod, table, tmp_path, monkeypatch, whole_table):
    """In a scratch file as in memory, so that one file and several give the same bits."""
    names = [f"v{j}" for j in range(4)]
    single = table.select(["id", *names]).cast(
        pa.schema([("id", pa.int64()), *((name, pa.float32()) for name in names)])
    )
    single = single.select(names) if whole_table else single
    folder, one = in_parts(single, tmp_path / "parts", ".parquet"), tmp_path / "one.parquet"
    write(single, one)
    fitted, real = [], KPOD.fit
    monkeypatch.setattr(
        KPOD, "fit", lambda self, X, *rest, **more: fitted.append(X) or real(self, X, *rest, **more)
    )
    said = {}
    for name, data in (("one", one), ("parts", folder)):
        done = kpod(
            "fit", data, "-k", 3, "--shape", "round", "--json", "--no-verdict",
            "--model", tmp_path / f"{name}.kpod", "-o", tmp_path / "o.csv",
        )  # fmt: skip
        assert done.code == 0, done.err
        said[name] = json.loads(done.out)
        assert fitted.pop().dtype == np.float32
        assert kpod("predict", tmp_path / f"{name}.kpod", data, "-o", tmp_path / "p.csv").code == 0
        assert (tmp_path / "p.csv").read_text() == (tmp_path / "o.csv").read_text()
    for key in set(said["one"]) - {"data", "in_pieces", "written", "settings"}:
        assert said["parts"][key] == said["one"][key], key


def resident(name):
    """Bytes of mapped files with such a name that this process holds in memory."""
    maps = Path("/proc/self/smaps").read_text().split("\n")
    at = [i for i, line in enumerate(maps) if line.endswith(name)]
    rss = [next(line for line in maps[i:] if line.startswith("Rss:")) for i in at]
    return 1024 * sum(int(line.split()[1]) for line in rss), len(at)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc here")
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_the_scratch_file_is_not_held_in_memory(kpod, tmp_path, monkeypatch, command):
    """Mapped once, and let go of after every pass: it was mapped once for each column, and held."""
    rng, n, p = np.random.default_rng(0), 60_000, 40
    X = (rng.normal(size=(n, p)) + 3 * rng.integers(4, size=(n, 1))).astype(np.float32)
    folder = in_parts(pa.table({f"c{j}": x for j, x in enumerate(X.T)}), tmp_path / "parts", ".parquet")
    monkeypatch.setattr(file_source, "BATCH_ENTRIES", 1 << 18)
    monkeypatch.setattr(scanning, "CHUNK_ENTRIES", 1 << 17)
    monkeypatch.setattr(entries, "CHUNK_ENTRIES", 1 << 17)
    monkeypatch.setattr(windows, "STRETCH", 1 << 19)
    options = ["-k", 4, "--starts", 1, "-q", "-o", tmp_path / "x.parquet"]
    assert kpod("fit", folder / "0.parquet", *options, "--model", tmp_path / "m.kpod").code == 0
    seen = {}

    def looking(place, name):
        real = getattr(place, name)

        def call(*args, **more):
            try:
                return real(*args, **more)
            finally:
                seen.setdefault(name, []).append(resident(".scratch"))

        monkeypatch.setattr(place, name, call)

    looking(executors.Executor, "accumulate")
    looking(executors.Threads, "accumulate")
    looking(KPOD, "predict")
    looking(large_table.LargeTable, "write_labels")
    looking(large_table.LargeTable, "scanned")
    given = [folder, *options] if command == "fit" else [tmp_path / "m.kpod", folder, *options[-3:]]
    assert kpod(command, *given).code == 0
    again = {"predict"} if command == "predict" else set()  # a fit labels its rows itself
    assert seen.keys() == {"scanned", "accumulate", "write_labels", *again}
    for name, places in seen.items():
        held, n_maps = np.max(places, axis=0)
        assert held <= X.nbytes / 4, name  # what the system maps around the edges of blocks
        assert n_maps <= 1, name


def test_months_in_a_file_each(kpod, tmp_path):
    """A city is in every file once: no identifier, and the month is in the name of the file."""
    rng = np.random.default_rng(0)
    cities = [f"{letter}burg" for letter in "ABCDEFGHIJ"]
    for month in range(1, 7):
        columns = {"city": cities, "sales": rng.normal(size=10), "price": rng.normal(size=10)}
        write(pa.table(columns), tmp_path / f"2024-{month:02}.csv")
    done = kpod("fit", tmp_path / "*.csv", "-k", 2)
    assert "city (category)" in done.err
    assert "there is one row for each city and file." in done.err
    header, *lines = done.out.splitlines()
    assert header == "city,sales,price,file,cluster"
    assert lines[10].split(",")[3] == str(tmp_path / "2024-02.csv")
    named = kpod("fit", tmp_path / "*.csv", "-k", 2, "--label", "file").out
    assert named.startswith("city,sales,price,file\n")


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
    assert lines[0] == '"id",v0,v1,v2,v3,age,town,same,file,cluster'.replace('"', "")
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


def test_ranges_take_no_pass_over_a_table_without_columns_of_0_and_1(kpod, table, tmp_path, monkeypatch):
    known, asked = entries.MappedEntries.ranges.func, []
    monkeypatch.setattr(
        entries.MappedEntries, "ranges", property(lambda self: asked.append(self) or known(self))
    )
    flags = pa.array(np.arange(N) % 3 == 0).cast(pa.int64())
    for name, rows in (("without", table), ("with", table.append_column("member", flags))):
        write(rows, tmp_path / f"{name}.parquet")
        asked.clear()
        kpod("fit", tmp_path / f"{name}.parquet", "-k", 3, "--no-verdict", "--json", "--scratch", tmp_path)
        assert bool(asked) is (name == "with")


def test_a_table_that_would_not_fit_is_read_in_pieces(kpod, table, tmp_path, monkeypatch):
    one = tmp_path / "one.parquet"
    write(table, one)
    assert large_table.files_of([str(one)], None) == ([Part(str(one))], False)
    assert large_table.files_of(["-"], None) == ([Part("-")], False)
    free = 2 * 6 * 8 * N * table.num_columns
    monkeypatch.setattr(memory_limits, "free_memory", lambda: free)
    assert large_table.files_of([str(one)], None)[1]
    monkeypatch.setattr(memory_limits, "free_memory", lambda: 10 * free)
    assert not large_table.files_of([str(one)], None)[1]
    monkeypatch.undo()
    assert memory_limits.free_memory() > 1 << 20


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes have no names here")
def test_what_comes_out_of_a_pipe_is_read_once(kpod, table, tmp_path):
    """kpod fit <(cat table.csv), longer than what a look at a file's first bytes takes."""
    write(table.slice(0, 300), tmp_path / "t.csv")
    out, into = os.pipe()
    os.write(into, (tmp_path / "t.csv").read_bytes())
    os.close(into)
    piped = kpod("fit", f"/dev/fd/{out}", "-k", 3)
    os.close(out)
    assert piped.out == kpod("fit", tmp_path / "t.csv", "-k", 3).out != ""
    os.mkfifo(tmp_path / "fifo")
    assert "is not a regular file" in one_line(kpod("fit", tmp_path / "fifo", tmp_path / "t.csv", "-k", 3))


def one_line(done):
    assert done.code == 1
    assert done.err.count("\n") == 1
    return done.err


def test_what_is_said_of_an_odd_cell_can_be_pasted(kpod, tmp_path):
    """The part, the row and the column, and the option that makes a gap of it."""
    folder, rng = tmp_path / "parts", np.random.default_rng(0)
    folder.mkdir()
    for part in range(2):
        rows = [f"{a:.3f},{b:.3f}" for a, b in rng.normal(size=(40, 2)) + 5 * rng.integers(2, size=(40, 1))]
        rows[30] = "Unknown,1.5" if part else rows[30]
        (folder / f"{part}.csv").write_text("\n".join(["a,b", *rows, ""]))
    fit = ("fit", folder, "-k", 2, "-o", tmp_path / "o.csv")
    said = one_line(kpod(*fit))
    assert "1.csv: row 31, column 'a': 'Unknown' is not a plain number" in said
    given = re.search(r"with (--missing \S+), leave", said)
    done = kpod(*fit, *given[1].split())
    assert done.code == 0
    assert "Unknown 1" in done.err


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


@pytest.mark.parametrize(
    ("above", "under", "below", "said"),
    [
        ("", "", "Total,67,83,\n", "the last row ('Total', '67' and '83') holds totals, which a table"),
        ("", "", "taken from a public source,,,\n", "holds remarks"),
        ("", "", "Source: own measurements\n", "the last line ('Source: own measurements') holds remarks"),
        ("", ",cm,kg,\n", "", "the first row ('cm' and 'kg') holds units or descriptions"),
        ("A survey\n\n", "", "", "the first line ('A survey') holds a title"),
        ("", "", "", "column 'z' holds yes/no values, which a table that is read in pieces cannot; write 1"),
    ],
)
def test_a_table_in_pieces_has_nothing_around_it(kpod, tmp_path, above, under, below, said):
    """In memory it is left out: one file would give two results."""
    rows = "".join(f"p{i:02d},{i % 7}.5,{i * i % 11},{'yes' if i % 2 else 'no'}\n" for i in range(20))
    path = tmp_path / "t.csv"
    path.write_text(f"{above}name,x,y,z\n{under}{rows}{below}")
    assert kpod("fit", path, "-k", 2).code == 0
    assert said in one_line(kpod("fit", path, "-k", 2, "--scratch", tmp_path))
    path.write_text(f"name,x,y,z\n{rows}".replace(",", "  "))
    assert "set apart by blanks" in one_line(kpod("fit", path, "-k", 2, "--scratch", tmp_path))


def test_a_killed_fit_goes_on(kpod, table, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    folder, kept = in_parts(table, tmp_path / "parts", ".parquet"), tmp_path / "kept"
    fit = ["fit", folder, "-k", 3, "-q", "--checkpoint", kept]
    assert kpod(*fit[:-2], "-o", tmp_path / "whole.csv").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "remove", lambda _: 1 / 0)
        assert "ZeroDivisionError" in one_line(kpod(*fit, "-o", tmp_path / "again.csv"))
    assert (kept / "fit.npz").exists()
    assert "has n_clusters=3, not 4" in one_line(kpod("fit", folder, "-k", 4, "-q", "--checkpoint", kept))
    assert kpod(*fit, "-o", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not list(kept.iterdir())


def test_columns_in_their_own_units(kpod, table, tmp_path):
    write(table, tmp_path / "one.csv")
    model, out = tmp_path / "m.kpod", {}
    for name, pieces in (("memory", ()), ("pieces", ("--scratch", tmp_path))):
        out[name] = tmp_path / f"{name}.csv"
        done = kpod(
            "fit", tmp_path / "one.csv", "-k", 3, "--no-scale", *pieces, "--model", model, "-o", out[name]
        )
        assert done.code == 0, done.err
        assert kpod("predict", model, tmp_path / "one.csv", "-o", tmp_path / "again.csv").code == 0
        assert (tmp_path / "again.csv").read_bytes() == out[name].read_bytes()
    assert out["pieces"].read_bytes() == out["memory"].read_bytes()


def test_columns_set_aside_are_not_read(kpod, table, tmp_path):
    """What cannot be read in pieces, such as decimal commas, matters only where it is wanted."""
    odd = pa.array([f"{i % 9},5" for i in range(N)])
    write(table.append_column("odd", odd), tmp_path / "one.csv")
    pieces = [tmp_path / "one.csv", "-k", "2-3", "--scratch", tmp_path]
    for command in ("fit", "choose-k"):
        assert "odd" in kpod(command, *pieces).err
        assert kpod(command, *pieces, "--exclude", "odd").code == 0


def test_the_weight_is_read_beside_the_columns_named(kpod, table, tmp_path):
    weighted = table.append_column("w", pa.array(np.arange(N) % 3 + 1.0))
    write(weighted, tmp_path / "one.csv")
    out = {}
    for name, pieces in (("memory", ()), ("pieces", ("--scratch", tmp_path))):
        options = ["-k", 3, "--columns", "v0,v1,v2", "--weight", "w", *pieces]
        out[name] = kpod("fit", tmp_path / "one.csv", *options)
        assert out[name].code == 0, out[name].err
    assert out["memory"].out == out["pieces"].out


def test_no_option_is_offered_that_would_be_refused(kpod, table, tmp_path):
    """In memory --categories, --decimal and --confidence help; in pieces they are refused."""
    write(table, tmp_path / "one.csv")
    write(table.select(["town"]), tmp_path / "words.csv")
    prices = "".join(f"{i % 70};{i % 9 + 1}.{i % 900 + 100}\n" for i in range(N))
    (tmp_path / "price.csv").write_text(f"age;price\n{prices}")
    model, out = tmp_path / "m.kpod", tmp_path / "o.csv"
    round_model = kpod("fit", tmp_path / "one.csv", "-k", 2, "--shape", "round", "-o", out, "--model", model)
    assert round_model.code == 0
    for pieces, offered in (((), True), (("--scratch", tmp_path), False)):
        for given, option in (
            (["fit", tmp_path / "one.csv", "-k", 2], "use --categories to cluster by categories too"),
            (["fit", tmp_path / "one.csv", "-k", 2, "--columns", "town,v0"], "--categories town"),
            (["fit", tmp_path / "words.csv", "-k", 2], "add --categories"),
            (["fit", tmp_path / "price.csv", "-k", 2], "--decimal ',' (the point separates thousands)"),
            (["predict", model, tmp_path / "one.csv", "--confidence"], "kpod fit --confidence"),
        ):
            done = kpod(*given, "-o", tmp_path / "o.csv", *pieces)
            assert (option in " ".join(done.err.split())) is offered, done.err
        assert (
            kpod(
                "fit", tmp_path / "price.csv", "-k", 2, "-o", tmp_path / "o.csv", "--decimal", ".", *pieces
            ).code
            == 0
        )
        for given in (["--categories", "town"], ["--as", "age=category"], ["--categories", "all"]):
            done = kpod("fit", tmp_path / "one.csv", "-k", 2, "-o", tmp_path / "o.csv", *given, *pieces)
            assert (done.code == 0) is offered
            assert offered or "leave it out with --exclude" in one_line(done)


def test_no_remedy_is_offered_that_would_be_refused(kpod, table, tmp_path):
    income = np.random.default_rng(0).lognormal(size=N)
    income[7] = 1e9
    write(table.append_column("income", pa.array(income)), tmp_path / "one.csv")
    for pieces, offered in (((), True), (("--scratch", tmp_path), False)):
        done = kpod(
            "fit", tmp_path / "one.csv", "-k", 2, "--shape", "round", "-o", tmp_path / "o.csv", *pieces
        )
        assert done.code == 0, done.err
        assert "more than half of the variance of income" in " ".join(done.err.split())
        assert ("--log income" in " ".join(done.err.split())) is offered
