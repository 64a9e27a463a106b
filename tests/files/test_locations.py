"""Wherever a table is, it is the same table: to the bit, in little memory, or one line on why not."""

import gc
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import kpod
from kpod._common.errors import InputError
from kpod._files.locations.part import Part, said_by_place
from kpod._files.locations.remote import with_patience
from kpod._files.pieces import file_source
from tests.helpers import places
from tests.helpers.command import kpod as run
from tests.helpers.places import arrow, cut, hive_folder, parquet_folder
from tests.helpers.tables import clustered

NAMES = list("abcde")
N = 900


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(file_source, "BATCH_ENTRIES", 1 << 10)


@pytest.fixture
def X():
    X, _ = clustered(np.random.default_rng(5), N, len(NAMES), k=3, missing=0.3, spread=0.5)
    return X


@pytest.fixture
def table(X):
    return arrow(X, NAMES)


@pytest.fixture(scope="session")
def bucket():
    """An S3 server on loopback, and where it listens."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(bucket, monkeypatch):
    """A file system with the bucket; credentials as pyarrow and others find them, in the environment."""
    from pyarrow import fs

    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": bucket,
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    files = fs.S3FileSystem(endpoint_override=bucket, region="us-east-1", allow_bucket_creation=True,
                            connect_timeout=600, request_timeout=600)  # fmt: skip
    files.create_dir(places.BUCKET)
    yield files
    files.delete_dir_contents(places.BUCKET)


def upload(folder, files, to):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with files.open_output_stream(f"{places.BUCKET}/{to}/{path.relative_to(folder)}") as out:
                out.write(path.read_bytes())


def columns_of(files, **options):
    with kpod.scan(files, **options) as scanned:
        return {name: scanned.values[:, j].copy() for j, name in enumerate(scanned.columns)}


def same_table(files, X, **options):
    found = columns_of(files, **options)
    assert list(found) == NAMES
    assert_array_equal(np.column_stack(list(found.values())), X)


# The same rows from every place


def test_folders_patterns_and_urls(table, X, tmp_path):
    folder = parquet_folder(table, tmp_path / "flat")
    hive = hive_folder(table, tmp_path / "hive")
    same_table(folder.as_uri(), X)
    same_table(f"{folder.as_uri()}/*.parquet", X)
    same_table(str(hive), X, columns=NAMES)
    same_table(str(hive / "**" / "*.parquet"), X, columns=NAMES)
    same_table(str(hive / "year=*" / "*.parquet"), X, columns=NAMES)


def test_partitions_are_columns(table, tmp_path):
    hive = hive_folder(table, tmp_path / "hive")
    found = columns_of(hive)
    assert list(found) == [*NAMES, "year"]
    expected = np.repeat([2020.0, 2021.0, 2022.0], [len(part) for part in cut(table)])
    assert_array_equal(found["year"], expected)
    assert_array_equal(columns_of(hive, columns=["year"])["year"], expected)
    # as pyarrow has them
    read = ds.dataset(hive, partitioning="hive").to_table()
    assert_array_equal(read["year"].to_numpy(), expected)
    (hive / "year=2022").rename(hive / "year=__HIVE_DEFAULT_PARTITION__")
    last = columns_of(hive)["year"]
    assert_array_equal(np.sort(last[~np.isnan(last)]), expected[expected < 2022])


def test_text_partitions_are_text(table, tmp_path):
    for number, name in enumerate(["a%20b", "10", "c"]):
        (tmp_path / "hive" / f"town={name}").mkdir(parents=True)
        pq.write_table(cut(table)[number], tmp_path / "hive" / f"town={name}" / "0.parquet")
    with pytest.raises(InputError, match=r"'town' \(string\)"):
        kpod.scan(tmp_path / "hive")
    assert list(columns_of(tmp_path / "hive", columns=["b", "a"])) == ["b", "a"]
    chosen = columns_of(tmp_path / "hive", columns=["a"], filters=[("town", "==", "a b")])
    assert_array_equal(chosen["a"], cut(table)[0]["a"].to_numpy(), strict=False)


@pytest.mark.parametrize("layout", ["beside", "deeper", "other key"])
def test_a_folder_that_is_partitioned_in_part_is_refused(table, tmp_path, layout):
    hive = hive_folder(table, tmp_path / "hive")
    place = {"beside": hive, "deeper": hive / "year=2020" / "more", "other key": hive / "month=1"}[layout]
    place.mkdir(exist_ok=True)
    pq.write_table(table, place / "x.parquet")
    with pytest.raises(InputError, match=r"subfolders|partitioned otherwise"):
        kpod.scan(hive)


def test_memory_urls_and_file_systems(table, X, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for number, part in enumerate(cut(table)):
        with memory.open(f"/places/year={number}/part.parquet", "wb") as file:
            pq.write_table(part, file)
    same_table("memory://places", X, columns=NAMES)
    same_table("memory://places/**/*.parquet", X, columns=NAMES)
    same_table("/places", X, columns=NAMES, filesystem=memory)
    assert set(columns_of("memory://places")["year"]) == {0.0, 1.0, 2.0}
    with memory.open("/texts/t.csv", "wb") as file:
        pa.csv.write_csv(table, file)
    same_table("memory://texts/t.csv", X)
    with memory.open("/texts/u.feather", "wb") as file:
        pyarrow.feather.write_feather(table, file)
    same_table("memory://texts/u.feather", X)
    memory.rm("/places", recursive=True)
    with pytest.raises(InputError, match="memory://places: does not exist"):
        kpod.scan("memory://places")


def test_a_bucket(table, X, s3, tmp_path, monkeypatch):
    hive = hive_folder(table, tmp_path / "hive")
    upload(hive, s3, "hive")
    upload(parquet_folder(table, tmp_path / "flat"), s3, "flat")
    same_table("s3://tables/flat", X)
    same_table("s3://tables/hive", X, columns=NAMES)
    same_table("s3://tables/hive/**/*.parquet", X, columns=NAMES)
    same_table("tables/flat", X, filesystem=s3)
    places.delta_folder(table, tmp_path / "lake")
    upload(tmp_path / "lake", s3, "lake")
    same_table("s3://tables/lake", X)
    with pytest.raises(InputError, match="s3://tables/nowhere: does not exist; check the name"):
        kpod.scan("s3://tables/nowhere")
    done = run(monkeypatch, "fit", "s3://tables/flat", "-k", 3)
    local = run(monkeypatch, "fit", tmp_path / "flat", "-k", 3)
    assert done.code == 0, done.err
    assert done.out.replace("s3://tables/", f"{tmp_path}/") == local.out


def test_credentials_that_are_missing(table, s3, tmp_path, monkeypatch):
    upload(parquet_folder(table, tmp_path / "flat"), s3, "flat")
    with monkeypatch.context() as patch:
        patch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)  # from now on the server looks at keys
        with pytest.raises(InputError, match=r"s3://tables/flat: access denied; give credentials"):
            kpod.scan("s3://tables/flat")


# Parts that do not go together


def test_empty_parts_are_passed_over_with_a_note(table, X, tmp_path):
    folder = parquet_folder(table, tmp_path / "flat")
    pq.write_table(table.slice(0, 0), folder / "part-00.parquet")
    pq.write_table(table.slice(0, 0), folder / "part-9.parquet")
    with kpod.scan(folder) as scanned:
        assert_array_equal(scanned.values, X)
        assert scanned.notes[0].kind == "empty parts"
        assert "part-00.parquet and" in str(scanned.notes)
        assert "have no rows, and were skipped" in str(scanned.notes)
    texts = tmp_path / "texts"
    texts.mkdir()
    pa.csv.write_csv(table, texts / "a.csv")
    (texts / "b.csv").write_text("")
    (texts / "c.csv").write_text(",".join(NAMES) + "\n")
    with kpod.scan(texts) as scanned:
        assert_array_equal(scanned.values, X)
    for path in (folder / "part-00.parquet", texts / "b.csv", texts / "c.csv"):
        with pytest.raises(InputError, match=r"no rows|is empty"):
            kpod.scan(path)


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        ((pa.float32(), pa.float64()), np.float64),
        ((pa.int32(), pa.float32()), np.float64),
        ((pa.int8(), pa.int64()), np.float64),
        ((pa.float16(), pa.float32()), np.float32),
        ((pa.null(), pa.float64()), np.float64),
        ((pa.decimal128(9, 1), pa.float32()), np.float64),
    ],
)
def test_numbers_are_promoted(types, dtype, tmp_path):
    whole = pa.array([1.0, 2.0, None, 40.0])
    for order in (types, types[::-1]):
        expected = []
        for number, kind in enumerate(order):
            values = pa.nulls(4) if kind == pa.null() else whole.cast(kind)
            pq.write_table(pa.table({"a": values}), tmp_path / f"{number}.parquet")
            expected += values.cast(pa.float64()).to_pylist()
        with kpod.scan(tmp_path / "*.parquet") as scanned:
            assert scanned.dtype == dtype
            assert_array_equal(scanned.values[:, 0], np.array(expected, float))


def test_extra_columns_are_left_out_unless_asked_for(table, X, tmp_path, monkeypatch):
    folder = parquet_folder(table, tmp_path / "flat")
    part = pq.read_table(folder / "part-1.parquet")
    pq.write_table(part.append_column("z", [["x"] * len(part)]), folder / "part-1.parquet")
    with kpod.scan(folder) as scanned:
        assert_array_equal(scanned.values, X)
        assert scanned.notes[0].columns == ("z",)
        assert "part-1.parquet has columns that" in str(scanned.notes)
    with pytest.raises(InputError, match=r"part-0.parquet: there is no column 'z'"):
        kpod.scan(folder, columns=["a", "z"])
    done = run(monkeypatch, "fit", folder, "-k", 3)
    assert done.code == 0
    assert "which were left out: z" in done.err
    # A column that a part lacks is in the way only if it is used.
    pq.write_table(part.drop_columns(["e"]), folder / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1.parquet: has no column 'e', unlike"):
        kpod.scan(folder)
    assert_array_equal(columns_of(folder, columns=["b"])["b"], X[:, 1])


def test_types_that_do_not_go_together_name_part_and_column(table, X, tmp_path):
    folder = parquet_folder(table, tmp_path / "flat")
    part = pq.read_table(folder / "part-1.parquet")
    pq.write_table(part.set_column(4, "e", [["x"] * len(part)]), folder / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1.parquet: column 'e' holds string values here and double"):
        kpod.scan(folder)
    assert_array_equal(columns_of(folder, columns=["b"])["b"], X[:, 1])


def test_filters_are_pushed_down(table, tmp_path, monkeypatch):
    hive = hive_folder(table, tmp_path / "hive")
    year = pc.field("year")
    only = columns_of(hive, columns=["a"], filters=year == 2021)["a"]
    assert_array_equal(only, cut(table)[1]["a"].to_numpy())
    both = columns_of(hive, columns=["a", "b"], filters=[("year", "in", [2020, 2021]), ("b", ">", 0.0)])
    expected = pa.concat_tables(cut(table)[:2]).filter(pc.field("b") > 0)
    assert_array_equal(both["a"], expected["a"].to_numpy())
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    found = columns_of(tmp_path / "t.feather", columns=["a"], filters=pc.field("b") > 0)["a"]
    assert_array_equal(found, table.filter(pc.field("b") > 0)["a"].to_numpy())
    # Row groups that hold none of the rows are not even counted.
    sorted_by_a = table.sort_by("a")
    pq.write_table(sorted_by_a, tmp_path / "sorted.parquet", row_group_size=100)
    least = float(np.nanquantile(table["a"].to_numpy(), 0.9))
    told = []
    kpod.scan(
        tmp_path / "sorted.parquet", filters=pc.field("a") > least, progress=lambda *about: told.append(about)
    )
    assert told[0][1] < N / 2
    with pytest.raises(InputError, match="no rows are left by the filters"):
        kpod.scan(hive, filters=pc.field("a") > 1e9)
    with pytest.raises(TypeError, match="filters must be an expression"):
        kpod.scan(hive, filters="a > 1")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"t.csv: filters need columns with types"):
        kpod.scan(tmp_path / "t.csv", filters=pc.field("a") > 0)


# Objects that stand for a table

FIT = ("labels_", "cluster_centers_", "counts_", "inertia_", "loss_curve_", "column_means_")
PLACES = [
    "parquet folder", "hive folder", "delta folder", "bucket", "Dataset", "filtered Dataset",
    "Dataset of CSV", "RecordBatchReader", "LazyFrame", "DuckDB relation", "DeltaTable", "Iceberg table",
    "Iceberg scan",
]  # fmt: skip


@pytest.fixture
def place(request, table, tmp_path):
    """The table in one of the places; a function, since some are good for one reading only."""
    name = request.param
    if name == "bucket":
        upload(parquet_folder(table, tmp_path / "flat"), request.getfixturevalue("s3"), "flat")
        return lambda: "s3://tables/flat"
    if name == "Dataset of CSV":
        pa.csv.write_csv(table, tmp_path / "t.csv")
        return lambda: ds.dataset(tmp_path / "t.csv", format="csv")
    if name == "LazyFrame":
        pq.write_table(table, tmp_path / "t.parquet")
        return lambda: pl.scan_parquet(tmp_path / "t.parquet")
    folder = tmp_path / "place"
    made = {
        "parquet folder": lambda: str(parquet_folder(table, folder)),
        "hive folder": lambda: str(hive_folder(table, folder)),
        "delta folder": lambda: str(places.delta_folder(table, folder)),
        "Dataset": lambda: places.dataset(table, folder),
        "filtered Dataset": lambda: places.dataset(table, folder).filter(pc.scalar(True)),
        "DuckDB relation": lambda: places.relation(table),
        "DeltaTable": lambda: pytest.importorskip("deltalake").DeltaTable(places.delta_folder(table, folder)),
        "Iceberg table": lambda: places.iceberg_table(table, folder),
        "Iceberg scan": lambda: places.iceberg_table(table, folder).scan(),
        "RecordBatchReader": lambda: None,
    }[name]()
    if name == "RecordBatchReader":
        return lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))
    return lambda: made


@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_the_same_bits_from_every_place(place, X, table):
    """As in memory: scanned, and given to fit and predict as it is."""
    with kpod.scan(place(), columns=NAMES, scale=True) as scanned:
        assert scanned.columns == NAMES
        assert_array_equal(scanned.values, kpod.ObservedScaler().fit_transform(X))
        model = kpod.KPOD(3, random_state=0, n_init=2).fit(scanned)
    plain = kpod.KPOD(3, random_state=0, n_init=2)
    expected = plain.fit(kpod.ObservedScaler().fit_transform(X))
    for name in FIT:
        assert_array_equal(getattr(model, name), getattr(expected, name))
    if isinstance(place(), str):
        return
    expected = kpod.KPOD(3, random_state=0, n_init=2).fit(table)
    model = kpod.KPOD(3, random_state=0, n_init=2).fit(place())
    for name in FIT:
        assert_array_equal(getattr(model, name), getattr(expected, name))
    assert_array_equal(model.feature_names_in_, NAMES)
    assert_array_equal(model.predict(place()), expected.labels_)


def test_nothing_is_left_on_the_disk(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    frame = pl.from_arrow(table).lazy()
    model = kpod.KPOD(3, random_state=0, n_init=1).fit(frame)
    model.predict(frame)
    kpod.analyze(frame, 3, scratch=tmp_path / "scratch")
    gc.collect()
    assert not list((tmp_path / "scratch").iterdir())


def test_fragments_of_some_row_groups(table, X, tmp_path):
    """A dataset may hold some row groups of a file only."""
    from pyarrow import fs

    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    whole = next(ds.dataset(tmp_path / "t.parquet").get_fragments())
    some = ds.FileSystemDataset(
        [whole.subset(row_group_ids=[1, 3])], table.schema, ds.ParquetFileFormat(), fs.LocalFileSystem()
    )
    same_table(some, np.concatenate([X[100:200], X[300:400]]))


def test_columns_are_pushed_down(table):
    """A model by name of column takes those columns of what has more; they alone are read."""
    wide = pl.from_arrow(table).with_columns(town=pl.lit("x"), boom=1 / pl.col("a"))
    model = kpod.KPOD(3, random_state=0, n_init=1).fit(wide.select(NAMES[::-1]))
    assert_array_equal(model.predict(wide.lazy()), model.labels_)
    relation = places.relation(wide.to_arrow())
    assert_array_equal(model.predict(relation), model.labels_)
    with pytest.raises(InputError, match=r"the polars LazyFrame: there is no column 'a'"):
        model.predict(wide.lazy().drop("a"))
    with pytest.raises(InputError, match=r"only numbers can be clustered.*'town'"):
        model.fit(wide.lazy())


@pytest.mark.parametrize("place", ["Dataset", "LazyFrame", "DuckDB relation", "DeltaTable"], indirect=True)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_analyze_takes_them(place, table, tmp_path, in_pieces):
    scratch = {"scratch": tmp_path} if in_pieces else {}
    found = kpod.analyze(place(), 3, **scratch)
    expected = kpod.analyze(table, 3)
    assert_array_equal(found.labels, expected.labels)
    assert found.model[-1].inertia_ == expected.model[-1].inertia_
    assert found._table.in_pieces == in_pieces
    found.write(str(tmp_path / "o.csv"))
    expected.write(str(tmp_path / "e.csv"))
    ours, theirs = (pa.csv.read_csv(tmp_path / name) for name in ("o.csv", "e.csv"))
    assert ours.select(theirs.column_names).equals(theirs)
    found._table.close()
    assert not list(tmp_path.glob("*.scratch"))


def test_a_reader_is_read_once(table, tmp_path):
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))
    assert kpod.analyze(reader, 3).labels.shape == (N,)
    for again in (kpod.scan, kpod.analyze):
        with pytest.raises(InputError, match=r"^the RecordBatchReader: no rows, or .* read already"):
            again(reader)


def test_what_needs_memory_says_so(table):
    frame = pl.from_arrow(table).lazy()
    model = kpod.KPOD(3, random_state=0, n_init=1).fit(table)
    for refused in (model.impute, lambda X: kpod.report(model, X), kpod.missingness.diagnose):
        with pytest.raises((TypeError, ValueError), match=r"kpod\.scan\(X\).*X\.collect\(\)"):
            refused(frame)


def test_errors_of_other_packages_are_one_line(table, tmp_path):
    frame = pl.from_arrow(table).lazy().with_columns(z=pl.col("nowhere") + 1)
    with pytest.raises(InputError, match=r"^the polars LazyFrame: cannot be read: .*nowhere[^\n]*$"):
        kpod.KPOD(3).fit(frame)
    lake = places.dataset(table, tmp_path / "lake")
    (tmp_path / "lake" / "part-1.parquet").unlink()
    with pytest.raises(InputError, match=r"part-1.parquet"):
        kpod.scan(lake)


# The command line


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_folder_of_results_has_a_part_for_each_part(suffix, table, tmp_path, monkeypatch):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, part in enumerate(cut(table)):
        path = folder / f"part-{number}{suffix}"
        pq.write_table(part, path) if suffix == ".parquet" else pa.csv.write_csv(part, path)
    out, one = tmp_path / "out", tmp_path / "one.parquet"
    done = run(monkeypatch, "fit", folder, "-k", 3, "-o", f"{out}/")
    assert done.code == 0, done.err
    assert run(monkeypatch, "fit", folder, "-k", 3, "-o", one).code == 0
    assert [path.name for path in sorted(out.iterdir())] == [path.name for path in sorted(folder.iterdir())]
    read = pq.read_table if suffix == ".parquet" else pa.csv.read_csv
    found = pa.concat_tables([read(path) for path in sorted(out.iterdir())])
    assert found.column_names == [*NAMES, "cluster"]
    assert found["cluster"].to_pylist() == pq.read_table(one)["cluster"].to_pylist()
    again = run(monkeypatch, "fit", folder, "-k", 3, "-o", out)
    assert "out: is not empty; give the name of a new folder" in again.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "one.parquet", "out"]


def test_partitions_of_results_are_those_of_the_table(table, tmp_path, monkeypatch):
    hive, out = hive_folder(table, tmp_path / "hive"), tmp_path / "out"
    done = run(monkeypatch, "fit", hive, "-k", 3, "--columns", "a,b,c,d,e", "-o", f"{out}/")
    assert done.code == 0, done.err
    read = ds.dataset(out, partitioning="hive").to_table()
    assert read.column_names == [*NAMES, "cluster", "year"]
    assert read.num_rows == N
    assert pq.read_schema(out / "year=2020" / "part-0.parquet").names == [*NAMES, "cluster"]


def test_one_file_makes_one_part(table, tmp_path, monkeypatch):
    pa.csv.write_csv(table, tmp_path / "t.csv")
    assert run(monkeypatch, "fit", tmp_path / "t.csv", "-k", 3, "-o", f"{tmp_path}/out/").code == 0
    (part,) = (tmp_path / "out").iterdir()
    assert part.name == "t.csv"
    assert part.read_text() == run(monkeypatch, "fit", tmp_path / "t.csv", "-k", 3).out


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("s3://bucket/out/", "results are written to this machine"),
        ("nowhere/out/", "there is no directory"),
        ("in/part-0.parquet/", "is a file"),
    ],
)
def test_folders_that_cannot_be_written(output, said, table, tmp_path, monkeypatch):
    folder = parquet_folder(table, tmp_path / "in")
    path = output if "://" in output else f"{tmp_path}/{output}"
    done = run(monkeypatch, "fit", folder, "-k", 3, "-o", path)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert said in done.err


def test_progress_in_a_log(table, tmp_path, monkeypatch):
    folder = parquet_folder(table, tmp_path / "in")
    options = ["fit", folder, "-k", 3, "-o", tmp_path / "o.csv"]
    for more in ([], ["--scratch", tmp_path]):
        done = run(monkeypatch, *options, *more, "--log-json", "-q")
        steps = [json.loads(line) for line in done.err.splitlines()]
        assert any(step.get("total") == N for step in steps)
    stages = [step["stage"] for step in steps]
    assert f"reading {folder}/part-0.parquet and 2 more" in stages
    assert {"clustering", "writing"} <= set(stages)
    assert all(step["seconds"] >= 0 and step["text"].startswith(step["stage"]) for step in steps)
    assert any(step.get("total") == N for step in steps)
    assert "kpod: " not in run(monkeypatch, *options).err
    monkeypatch.setattr("kpod.cli.progress.BETWEEN_LINES", 0.0)
    lines = run(monkeypatch, *options).err
    assert "s: reading" in lines
    assert "s: clustering" in lines
    assert "s: " not in run(monkeypatch, *options, "-q").err


def test_what_needs_memory_says_how_much(table, tmp_path, monkeypatch):
    folder = parquet_folder(table, tmp_path / "in")
    for option in ("--robust", "--confidence"):
        options = [option, "--scratch", tmp_path]
        done = run(monkeypatch, "fit", folder, "-k", 3, "-o", tmp_path / "o.csv", *options)
        assert done.code == 1
        assert f"memory (about {6 * 8 * N * 5 / 1000:.1f} kB, with" in done.err


def test_the_lines_of_the_readme_run(table, X, s3, tmp_path, monkeypatch):
    """A bucket, a Delta table and a lazy frame, as the README has them."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    lines = re.findall(r"^(?:table = kpod|labels = KPOD).*$", readme, re.MULTILINE)
    assert len(lines) == 3
    parquet_folder(table, tmp_path / "wines")
    s3.create_dir("bucket")
    for path in (tmp_path / "wines").iterdir():
        with s3.open_output_stream(f"bucket/wines/{path.name}") as out:
            out.write(path.read_bytes())
    places.delta_folder(table, tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    scaled = kpod.ObservedScaler().fit_transform(X)
    names = {"kpod": kpod, "KPOD": lambda k: kpod.KPOD(k, random_state=0), "polars": pl}
    for line, name, expected in zip(
        lines, ("table", "table", "labels"), (scaled, scaled, kpod.KPOD(3, random_state=0).fit(X).labels_),
        strict=True,
    ):  # fmt: skip
        exec(line, names)
        found = names[name]
        assert_array_equal(found.values if name == "table" else found, expected)
        getattr(found, "close", lambda: None)()


@pytest.mark.parametrize("what", ["changed", "deleted"])
def test_a_part_in_a_bucket_that_changes_meanwhile(what, table, s3, tmp_path):
    upload(parquet_folder(table, tmp_path / "flat"), s3, "flat")
    last = "tables/flat/part-2.parquet"

    def meanwhile(done, total, text):
        if done and what == "changed":
            with s3.open_output_stream(last) as out:
                out.write(b"PAR1 and something else")
        elif done and s3.get_file_info(last).is_file:
            s3.delete_file(last)

    with pytest.raises(InputError, match=rf"^s3://tables/flat/part-2.parquet: {what} while it was"):
        kpod.scan("s3://tables/flat", scratch=tmp_path, progress=meanwhile)
    assert not list(tmp_path.glob("*.scratch"))


def test_secrets_of_a_url_are_not_shown():
    part = Part("b/x.parquet", url="s3://key:secret@b/x.parquet?endpoint_override=localhost")
    assert part.name == "s3://b/x.parquet"


def test_filters_that_leave_nothing_or_do_not_go_with_the_columns(table, tmp_path):
    hive = hive_folder(table, tmp_path / "hive")
    with pytest.raises(InputError, match=r"part-0.parquet and 2 more: no rows are left by the filters"):
        kpod.scan(hive, columns=NAMES, filters=[("year", "==", 1900)])
    with pytest.raises(InputError, match=r"2020.*the filters do not go with the types of the columns"):
        kpod.scan(hive, columns=NAMES, filters=[("year", "==", "x")])


def test_a_place_whose_program_is_absent_is_not_said_to_be_empty():
    """Hadoop's library is not here; the cause was taken for a path that does not exist."""
    error = OSError("Unable to load libjvm: cannot open shared object file: No such file or directory")
    assert said_by_place(error).startswith("cannot be read: Unable to load libjvm")
    assert said_by_place(OSError("Path does not exist")) == "does not exist; check the name."
    assert "access denied" in said_by_place(OSError("Could not create a OAuth2 access token"))


def test_google_storage_gives_up_after_a_minute():
    assert with_patience("gs://b/x") == "gs://b/x?retry_limit_seconds=60"
    assert with_patience("gcs://b/x?anonymous=true") == "gcs://b/x?anonymous=true&retry_limit_seconds=60"
    for url in ("s3://b/x", "gs://b/x?retry_limit_seconds=5"):
        assert with_patience(url) == url
