"""Tables on disk: the same bits as in memory, clear errors, and nothing left behind."""

import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import kpod
from kpod import KPOD, ObservedScaler
from kpod._common.errors import InputError
from kpod._engine import blocks, windows
from kpod._engine.executors import Executor
from kpod._engine.fit import SOLVERS
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.table import make_table
from kpod._engine.windows import Window
from kpod._files import memory_limits
from kpod._files.pieces import file_source, scanning
from kpod._files.pieces.file_source import ArrowSource
from tests.engine.test_engine import same
from tests.helpers.processes import Processes, process_pool
from tests.helpers.tables import clustered

NAMES = list("abcdef")
N = 1500


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Many batches, chunks and blocks out of small tables."""
    monkeypatch.setattr(file_source, "BATCH_ENTRIES", 1 << 11)
    monkeypatch.setattr(scanning, "CHUNK_ENTRIES", 1 << 10)
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)


@pytest.fixture
def X(dtype):
    X, _ = clustered(np.random.default_rng(5), N, len(NAMES), k=4, missing=0.3, spread=0.5, dtype=dtype)
    return X * np.array([1, 100, 1e-3, 1, 7, 30], dtype) + np.array([0, 5000, 0, 1, -3, 0], dtype)


def arrow(X, names=NAMES):
    return pa.table(
        {name: pa.array(column, from_pandas=True) for name, column in zip(names, X.T, strict=True)}
    )


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=400)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=300)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, 300)
    elif path.suffix == ".ipc":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, 300)
    else:
        pyarrow.csv.write_csv(table, path)


def parts(folder, X, suffix=".parquet", n=3):
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(np.array_split(X, n)):
        write(arrow(rows), folder / f"part-{number}{suffix}")
    return folder


def fitted(table, **settings):
    return KPOD(4, random_state=0, n_init=2, **settings).fit(table)


def same_fit(one, other):
    for name in (
        "labels_",
        "cluster_centers_",
        "counts_",
        "inertia_",
        "loss_curve_",
        "losses_",
        "column_means_",
    ):
        assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".ipc", ".csv"])
def test_a_folder_is_the_table_in_memory_to_the_bit(suffix, tmp_path, X):
    if suffix == ".csv":
        X = X.astype(np.float64)
    scaled = ObservedScaler().fit_transform(X)
    with kpod.scan(parts(tmp_path / "data", X, suffix), scale=True, scratch=tmp_path) as table:
        assert table.shape == X.shape
        assert table.dtype == X.dtype
        assert table.columns == NAMES
        assert isinstance(table.values, np.memmap)
        assert_array_equal(table.values, scaled)
        same_fit(fitted(table), fitted(scaled))
        model = fitted(table)
        assert_array_equal(model.feature_names_in_, NAMES)
        assert_array_equal(model.predict(table), model.labels_)
        assert model.score(table) == fitted(scaled).score(scaled)
    with kpod.scan(tmp_path / "data", scratch=tmp_path) as table:
        assert_array_equal(table.values, X)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_files_folders_patterns_and_columns(tmp_path, X):
    folder = parts(tmp_path / "data", X)
    several = [folder / f"part-{number}.parquet" for number in range(3)]
    for files in (str(folder), str(folder / "*.parquet"), several, [str(folder / "part-[01]*"), several[2]]):
        assert_array_equal(kpod.scan(files, scratch=tmp_path).values, X)
    table = kpod.scan(folder, columns=["c", "a"], scale=True, scratch=tmp_path)
    assert_array_equal(table.values, ObservedScaler().fit_transform(X[:, [2, 0]]))
    assert table.columns == ["c", "a"]
    again = kpod.scan(several[1], columns=["c", "a"], scale=table.scaler_, scratch=tmp_path)
    assert_array_equal(again.values, np.array_split(table.values, 3)[1])
    assert "3 files" in repr(table)


def test_arrays_are_mapped_where_they_are(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    table = kpod.scan(tmp_path / "x.npy", scratch=tmp_path)
    assert Window.of(table.values).path == str(tmp_path / "x.npy")
    same_fit(fitted(table), fitted(X))
    assert not list(tmp_path.glob("*.scratch"))
    np.save(tmp_path / "y.npy", np.asfortranarray(X))
    both = kpod.scan([tmp_path / "x.npy", tmp_path / "y.npy"], scale=True, scratch=tmp_path)
    assert_array_equal(both.values, ObservedScaler().fit_transform(np.vstack([X, X])))
    np.save(tmp_path / "i.npy", np.arange(12).reshape(4, 3))
    assert kpod.scan(tmp_path / "i.npy", scratch=tmp_path).dtype == np.float64


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_sparse_tables_too(compressed, scale, tmp_path, X):
    csr = sparse.csr_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), X.shape)
    sparse.save_npz(tmp_path / "x.npz", csr, compressed=compressed)
    table = kpod.scan(tmp_path / "x.npz", scale=scale, scratch=tmp_path)
    expected = ObservedScaler().fit_transform(csr) if scale else csr
    assert_array_equal(table.values.data, expected.data)
    assert_array_equal(table.values.indices, expected.indices)
    same_fit(fitted(table), fitted(expected))
    with pytest.raises(ValueError, match="would make a sparse table dense"):
        KPOD(3, algorithm="mm").fit(table)
    again = pickle.loads(pickle.dumps(table))
    assert (again.values != table.values).nnz == 0


def test_blocks_of_a_mapped_table_travel_as_where_they_lie(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    csr = sparse.csr_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), X.shape)
    sparse.save_npz(tmp_path / "x.npz", csr)
    start = Start(np.random.default_rng(0).normal(size=(4, len(NAMES))))
    with process_pool() as pool:
        for name, values in (("x.npy", X), ("x.npz", csr)):
            scanned = kpod.scan(tmp_path / name, scratch=tmp_path)
            table = make_table(scanned.values, Executor())
            assert len(table.blocks) > 3
            if name == "x.npy":
                assert all(len(pickle.dumps(block)) < 1000 for block in table.blocks)
            executor = Processes(pool, lost=0.3)
            there = SOLVERS["lloyd"](table, executor, start, Settings())
            same(fitted_in_memory(values, start), there)
            assert executor.n_lost


def fitted_in_memory(values, start):
    from kpod._inputs.validation import as_table

    return SOLVERS["lloyd"](make_table(as_table(values, None), Executor()), Executor(), start, Settings())


def test_a_window_on_a_file_that_changed_is_refused(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    window = Window.of(mapped[10:20])
    assert_array_equal(window.open(), X[10:20])
    assert Window.of(X) is None
    assert Window.of(mapped[:, 1:3]) is None
    assert Window.of(np.load(tmp_path / "x.npy", mmap_mode="c")) is None
    os.utime(tmp_path / "x.npy", ns=(1, 1))
    with pytest.raises(ValueError, match=r"x\.npy: changed since"):
        window.open()
    (tmp_path / "x.npy").unlink()
    with pytest.raises(ValueError, match=r"x\.npy: part of a mapped table can no longer be read"):
        window.open()


# What is refused, naming the file


def altered(folder, change):
    path = folder / "part-1.parquet"
    table = pq.read_table(path)
    pq.write_table(change(table), path)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(["c"]), r"part-1.parquet: has no column 'c', unlike .*part-0.parquet"),
        (
            lambda t: t.rename_columns([*"abcde", "F"]),
            r"part-1.parquet: has no column 'f' and has an extra column 'F'",
        ),
        (
            lambda t: t.set_column(1, "b", pa.array(["x"] * len(t))),
            r"part-1.parquet: column 'b' holds string values here and (double|float) values in",
        ),
        (
            lambda t: t.set_column(
                2, "c", pa.array(np.where(np.arange(len(t)) == 7, np.inf, 1.0), t["c"].type)
            ),
            r"part-1.parquet: row 8, column 'c': infinite value",
        ),
    ],
    ids=["fewer", "name", "type", "infinity"],
)
def test_files_that_do_not_fit_together(change, said, tmp_path, X):
    folder = parts(tmp_path / "data", X)
    altered(folder, change)
    with pytest.raises(ValueError, match=said):
        kpod.scan(folder, scratch=tmp_path)
    assert not list(tmp_path.glob("*.scratch"))


def test_odd_files(tmp_path, X):
    folder = parts(tmp_path / "data", X)
    (folder / "part-1.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"part-1.parquet: is empty"):
        kpod.scan(folder, scratch=tmp_path)
    (folder / "part-1.parquet").write_bytes((folder / "part-0.parquet").read_bytes()[:-100] + b"x" * 100)
    with pytest.raises(ValueError, match=r"part-1.parquet: damaged"):
        kpod.scan(folder, scratch=tmp_path)
    with pytest.raises(ValueError, match=r"part-0.parquet: given twice"):
        kpod.scan([folder / "part-0.parquet", str(folder / "part-0*")], scratch=tmp_path)
    with pytest.raises(ValueError, match="no matching files"):
        kpod.scan(str(folder / "*.csv"), scratch=tmp_path)
    with pytest.raises(ValueError, match=r"nowhere.csv: cannot be read: No such file"):
        kpod.scan(tmp_path / "nowhere.csv", scratch=tmp_path)
    with pytest.raises(ValueError, match="the scratch directory does not exist"):
        kpod.scan(folder / "part-0.parquet", scratch=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="there is no column 'z'"):
        kpod.scan(folder / "part-0.parquet", columns=["a", "z"], scratch=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no files ending in"):
        kpod.scan(tmp_path / "empty", scratch=tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,x\n")
    with pytest.raises(ValueError, match=r"t.csv: row 2, column 'b': 'x' is not a plain number.*`columns`"):
        kpod.scan(tmp_path / "t.csv", scratch=tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"t.csv: .*Expected 2 columns, got 1"):
        kpod.scan(tmp_path / "t.csv", scratch=tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"t.csv: has column names but no rows"):
        kpod.scan(tmp_path / "t.csv", scratch=tmp_path)
    write(pa.table({"a": [1.0], "who": ["x"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t.parquet: only numbers can be clustered, .*'who' \(string\)"):
        kpod.scan(tmp_path / "t.parquet", scratch=tmp_path)
    assert not list(tmp_path.glob("*.scratch"))


@pytest.mark.parametrize("what", ["changed", "deleted"])
def test_a_file_that_changes_or_vanishes_meanwhile(what, tmp_path, X):
    folder = parts(tmp_path / "data", X)
    last = folder / "part-2.parquet"

    def meanwhile(done, total, text):
        if done and last.exists():
            last.unlink() if what == "deleted" else os.utime(last, ns=(1, 1))

    with pytest.raises(ValueError, match=rf"part-2.parquet: {what} while it was being read"):
        kpod.scan(folder, scratch=tmp_path, progress=meanwhile)
    assert not list(tmp_path.glob("*.scratch"))


def test_an_array_that_is_written_to_is_refused(tmp_path, X):
    """It is mapped: a fit would be one of other rows, or read beyond the end of the file."""
    path = tmp_path / "x.npy"
    np.save(path, X)
    table = kpod.scan(path)
    model = fitted(table)
    with path.open("r+b") as file:
        file.seek(200)
        file.write(X.tobytes()[:80])
    for use in (fitted, model.predict):
        with pytest.raises(ValueError, match=r"x.npy: changed while it was being read"):
            use(table)
    path.unlink()
    np.save(path, X)
    table = kpod.scan(path)
    path.unlink()
    same_fit(fitted(table), model)  # gone, but still there for who has it open


# Scratch files


def test_room_is_told_before_and_checked(tmp_path, X, monkeypatch):
    folder = parts(tmp_path / "data", X)
    told = []
    kpod.scan(folder, scratch=tmp_path, progress=lambda *about: told.append(about))
    done, total, text = told[0]
    assert (done, total) == (0, N)
    assert f"{X.nbytes / 1000:.1f} kB of scratch in {tmp_path}" in text
    assert told[-1][0] == N
    usage = scanning.Scratch.__init__.__globals__["shutil"].disk_usage(tmp_path)
    monkeypatch.setattr("kpod._files.pieces.scratch.shutil.disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(ValueError, match=r"the scratch file needs .* but only 1.0 kB is free"):
        kpod.scan(folder, scratch=tmp_path)
    assert not list(tmp_path.glob("*.scratch"))


def run(code, *args, **options):
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_full_disk(tmp_path, X):
    """Files of this process may not grow beyond what half the table takes: to write, a full disk."""
    folder = parts(tmp_path / "data", X)
    limit = X.nbytes // 2
    done = run(
        "import sys, kpod; kpod.scan(sys.argv[1], scratch=sys.argv[2])",
        folder,
        tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert "the scratch file does not fit: File too large; free some space" in done.stderr
    assert not list(tmp_path.glob("*.scratch"))


def test_a_scratch_file_of_a_killed_run_goes_with_the_next(tmp_path, X):
    folder = parts(tmp_path / "data", X)
    done = run(
        """
        import os, signal, sys, kpod
        table = kpod.scan(sys.argv[1], scale=True, scratch=sys.argv[2])
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        folder,
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob("*.scratch")
    with kpod.scan(folder, scratch=tmp_path), kpod.scan(folder, scratch=tmp_path):
        assert not left.exists()
        assert len(list(tmp_path.glob("*.scratch"))) == 2  # those in use stay
    assert not list(tmp_path.glob("*.scratch"))


def test_a_scratch_file_goes_with_its_table(tmp_path, X):
    folder = parts(tmp_path / "data", X)
    table = kpod.scan(folder, scratch=tmp_path)
    values = table.values
    del table
    assert not list(tmp_path.glob("*.scratch"))
    assert_array_equal(values, X)  # as long as somebody looks at it
    code = "import sys, kpod; table = kpod.scan(sys.argv[1], scratch=sys.argv[2]); sys.exit(3)"
    assert run(code, folder, tmp_path).returncode == 3
    assert not list(tmp_path.glob("*.scratch"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a disk")
def test_a_real_small_disk(tmp_path, X):
    folder, disk = parts(tmp_path / "data", X), tmp_path / "disk"
    disk.mkdir()
    size = f"size={X.nbytes // 2 // 4096 * 4096}"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], check=False).returncode:
        pytest.skip("no mounting here")
    try:
        with pytest.raises(ValueError, match="the scratch file needs"):
            kpod.scan(folder, scratch=disk)
        with pytest.MonkeyPatch.context() as patch:  # filled by others after we looked
            usage = scanning.Scratch.__init__.__globals__["shutil"].disk_usage(tmp_path)
            patch.setattr("kpod._files.pieces.scratch.shutil.disk_usage", lambda _: usage)
            with pytest.raises(ValueError, match="does not fit: No space left on device"):
                kpod.scan(folder, scratch=disk)
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", disk], check=True)


def test_sizes_in_words():
    from kpod._common.sentences.formatting import size_text

    assert [size_text(n) for n in (12, 1200, 2.5e6, 3.21e9, 4e12)] == [
        "12 bytes", "1.2 kB", "2.5 MB", "3.2 GB", "4,000.0 GB",
    ]  # fmt: skip


# The report


@pytest.mark.filterwarnings("ignore:2 of")
@pytest.mark.parametrize("scale", [True, False])
def test_the_report_says_the_same(scale, tmp_path, X, monkeypatch):
    from kpod._findings.fitted_clusters import clustering, entries

    monkeypatch.setattr(entries, "CHUNK_ENTRIES", 1 << 10)
    monkeypatch.setattr(clustering, "MOST_COMPARED", 1 << 9)
    X = np.vstack([X, X[:40], np.full((2, len(NAMES)), np.nan)]).astype(X.dtype)
    with kpod.scan(parts(tmp_path / "data", X), scale=scale, scratch=tmp_path) as table:
        model = fitted(table)
        ours = kpod.report(model, table).data
        theirs = kpod.report(table.pipeline(model), arrow(X)).data
        assert_array_equal(table.pipeline(model).predict(arrow(X)), model.labels_)
    for name in ("facts", "clusters", "cautions", "gaps"):
        assert ours[name] == theirs[name]
    assert ours["explained"] == pytest.approx(theirs["explained"])
    for one, other in zip(ours["columns"], theirs["columns"], strict=True):
        for name in ("name", "shown", "missing"):
            assert one[name] == other[name]
        assert [c["shown"] for c in one["centers"]] == [c["shown"] for c in other["centers"]]


def test_patterns_of_gaps_are_counted_in_pieces(monkeypatch):
    from kpod._findings.fitted_clusters import entries

    monkeypatch.setattr(entries, "CHUNK_ENTRIES", 64)
    rng = np.random.default_rng(0)
    for p, share in ((3, 0.5), (70, 0.02), (70, 0.5)):
        values = np.where(rng.random((500, p)) < share, np.nan, 1.0)
        ours, theirs = entries.MappedEntries(entries.MappedRows(values)), entries.DenseEntries(values)
        assert ours.patterns(6)[0] == theirs.patterns(6)[0]
        if share < 0.5 or p == 3:
            assert ours.patterns(6) == theirs.patterns(6)
        groups = rng.integers(-1, 4, size=500)
        assert_array_equal(ours.by_group(groups, 4), theirs.by_group(groups, 4))
        assert_array_equal(ours.by_row, theirs.by_row)
        np.testing.assert_allclose(ours.moments, theirs.moments)


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files_are_mapped_or_read_with_the_same_rows(tmp_path, monkeypatch, new):
    path = tmp_path / "t.arrow"
    whole = pa.table({"a": np.arange(5000.0), "b": np.arange(5000) % 7})
    with new(path, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=700)
    read = pa.Table.from_batches(ArrowSource(str(path)).batches(["b", "a"]))
    monkeypatch.setattr(memory_limits, "fits", lambda *_: False)
    assert pa.Table.from_batches(ArrowSource(str(path)).batches(["b", "a"])) == read
    assert read == whole.select(["b", "a"])


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_shortened_while_it_is_read_is_refused(tmp_path, new):
    """Mapped, it would end the process."""
    path = tmp_path / "t.arrow"
    whole = pa.table({"a": np.arange(500_000.0)})
    with new(path, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=10_000)
    batches = ArrowSource(str(path)).batches(["a"])
    next(batches)
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(InputError, match=r"t\.arrow: changed while it was being read; start again"):
        list(batches)


def test_few_rows_of_a_scratch_file_are_read_and_many_are_mapped(tmp_path, monkeypatch):
    """The same rows either way; other files are never opened again, since they may have been replaced."""
    X = np.random.default_rng(0).normal(size=(50_000, 4))
    np.save(tmp_path / "x.npy", X)
    pq.write_table(pa.table({f"c{j}": column for j, column in enumerate(X.T)}), tmp_path / "x.parquet")
    which = np.array([41_000, 3, 49_999, 3, 20_000])
    read = []
    rows = windows.Window.rows
    monkeypatch.setattr(windows.Window, "rows", lambda self, at: read.append(len(at)) or rows(self, at))
    with kpod.scan(tmp_path / "x.parquet") as scanned:
        assert_array_equal(windows.gathered(scanned.values, which), X[which])
        assert_array_equal(windows.gathered(scanned.values[2:], which - 2), X[which])
        assert read == [5, 5]
        every = np.arange(0, 50_000, 7)
        assert_array_equal(windows.gathered(scanned.values, every), X[every])
        assert_array_equal(windows.gathered(np.load(tmp_path / "x.npy", mmap_mode="r"), which), X[which])
        assert read == [5, 5]
