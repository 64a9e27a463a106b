"""Files people send: workbooks, statistics files, JSON, compressed and blank-separated text, ratings."""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from datetime import datetime, timedelta

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import feather

from kpod import KPOD, ObservedScaler
from kpod._columns.preparing.columns_in_use import choose_columns
from kpod._columns.table_notes import notes_on
from kpod._common.errors import InputError
from kpod._files import memory_limits
from kpod._files.reading import read_table
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod as run_here
from tests.helpers.tables import values_in

WINE = load_incomplete_wine()
FRAME = pd.DataFrame(WINE.data, columns=WINE.feature_names)


@pytest.fixture
def kpod(monkeypatch):
    return lambda *args, stdin=b"": run_here(monkeypatch, *args, stdin=stdin)


def numbers(path, **options):
    table = read_table(str(path), **options)
    return values_in(table, choose_columns(table))


@pytest.mark.parametrize("suffix", ["xlsx", "csv.gz", "csv.zst", "jsonl", "json", "txt", "dta", "sav"])
def test_the_same_table_in_every_format(tmp_path, suffix):
    path = tmp_path / f"wine.{suffix}"
    text = FRAME.to_csv(index=False).encode()
    if suffix == "xlsx":
        FRAME.to_excel(path, index=False)
    elif suffix == "csv.gz":
        path.write_bytes(gzip.compress(text))
    elif suffix == "csv.zst":
        path.write_bytes(pa.compress(text, "zstd", asbytes=True))
    elif suffix == "jsonl":
        FRAME.to_json(path, orient="records", lines=True, double_precision=15)
    elif suffix == "json":
        FRAME.to_json(path, orient="records", double_precision=15)
    elif suffix == "txt":
        path.write_text(
            FRAME.astype(object).fillna("NA").to_string(index=False, float_format=lambda v: f"{v:.15g}")
        )
    elif suffix == "dta":
        pyreadstat.write_dta(FRAME.rename(columns=lambda n: n[:30]), str(path))
    else:
        pyreadstat.write_sav(FRAME, str(path))
    assert_allclose(numbers(path), WINE.data, rtol=1e-12)


def book(path, sheets):
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


ROWS = [
    ["id", "height", "when", "mixed"],
    [1, 1.5, pd.Timestamp("2024-01-31"), 5],
    [2, None, None, "x"],
    [3, 2.5, pd.Timestamp("2024-02-01"), None],
]


def test_workbooks_with_titles_and_several_sheets(tmp_path):
    path = book(
        tmp_path / "b.xlsx", {"notes": [], "data": [["Results of the survey"], [], *ROWS], "more": ROWS}
    )
    table = read_table(str(path))
    assert [column.name for column in table.columns] == ["id", "height", "when", "mixed"]
    assert [column.role.role for column in table.columns][:3] == ["identifier", "number", "date"]
    assert_array_equal(table.column("height").values, [1.5, np.nan, 2.5])
    assert table.raw["mixed"].to_pylist() == ["5", "x", None]
    assert any("only sheet 'data' was read, not notes and more" in note.text for note in table.notes)
    assert any("the first row ('Results of the survey') holds a title" in note.text for note in table.notes)
    assert read_table(str(path), sheet="more").notes == []
    with pytest.raises(InputError, match="no sheet 'nope'; there are notes, data, more"):
        read_table(str(path), sheet="nope")


def test_sheet_is_for_workbooks(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a workbook; `sheet` only applies to workbooks"):
        read_table(str(tmp_path / "t.csv"), sheet="x")


def test_a_zip_that_is_no_workbook_is_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    with pytest.raises(InputError, match="is a zip archive or a damaged workbook"):
        read_table(str(tmp_path / "t.zip"))


def test_a_damaged_file_of_a_program_is_called_by_its_name(tmp_path):
    (tmp_path / "t").write_bytes(b"$FL2 rubbish")
    with pytest.raises(InputError, match="damaged, or not an SPSS file"):
        read_table(str(tmp_path / "t"))


@pytest.mark.parametrize(
    "data", [b"\x1f\x8b rubbish", b"\x28\xb5\x2f\xfd rubbish", b"$FL2 rubbish", b"<stata_dta> no"]
)
def test_damaged_files_are_one_line(tmp_path, data):
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        read_table(str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("package", "suffix", "extra"), [("python_calamine", "xlsx", "excel"), ("pyreadstat", "sav", "stats")]
)
def test_an_absent_package_is_named(tmp_path, monkeypatch, package, suffix, extra):
    path = tmp_path / f"t.{suffix}"
    if suffix == "xlsx":
        FRAME.to_excel(path, index=False)
    else:
        pyreadstat.write_sav(FRAME, str(path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"needs the package .*scikit-kpod\[{extra}\]"):
        read_table(str(path))


def test_a_stata_file_cut_short_is_refused(tmp_path):
    """The labels of values stand at the end, and a reader does without them."""
    path = tmp_path / "t.dta"
    frame = pd.DataFrame({"region": [1, 2, 3] * 5, "height": np.arange(15.0)})
    pyreadstat.write_dta(frame, str(path), variable_value_labels={"region": {1: "N", 2: "S", 3: "W"}})
    assert read_table(str(path)).column("region").role.role == "category"
    path.write_bytes(path.read_bytes()[:-120])
    with pytest.raises(InputError, match="truncated"):
        read_table(str(path))


@pytest.mark.parametrize("version", [5, 8])
def test_both_versions_of_sas_transport_files(tmp_path, version):
    frame = FRAME.rename(columns=dict(zip(FRAME, [f"c{j}" for j in range(13)], strict=True)))
    pyreadstat.write_xport(frame, str(tmp_path / "t.xpt"), file_format_version=version)
    assert_allclose(numbers(tmp_path / "t.xpt"), WINE.data, rtol=1e-12)


def survey(path):
    frame = pd.DataFrame({
        "region": [1, 2, 3, 1, 2], "agree": [1, 2, 3, 2, 1], "owns": [0, 1, 1, 0, 1],
        "income": [1000.0, 98, 2500, 99, 1800], "age": [20, 31, 45, 99, 27],
    })  # fmt: skip
    labels = {
        "region": {1: "North", 2: "South", 3: "West"}, "agree": {1: "disagree", 2: "neutral", 3: "agree"},
        "owns": {0: "no", 1: "yes"}, "income": {98: "refused", 99: "don't know"},
    }  # fmt: skip
    pyreadstat.write_sav(
        frame, str(path), variable_value_labels=labels, missing_ranges={"age": [99]},
        variable_measure={"region": "nominal", "agree": "ordinal", "income": "scale"},
    )  # fmt: skip
    return path


def test_labels_and_missing_codes_of_spss_are_honoured(tmp_path):
    table = read_table(str(survey(tmp_path / "s.sav")))
    roles = {column.name: column.role.role for column in table.columns}
    assert roles["region"] == "category"
    assert table.raw["region"].to_pylist()[:3] == ["North", "South", "West"]
    assert roles["owns"] == "boolean"
    assert_array_equal(table.column("agree").values, [1, 2, 3, 2, 1])
    assert_array_equal(table.column("age").values, [20, 31, 45, np.nan, 27])
    assert any(
        "income: 98 'refused', 99 'don't know' may stand for missing" in note.text for note in table.notes
    )
    treated = read_table(str(tmp_path / "s.sav"), missing={"income": [98, 99]})
    assert treated.column("income").missing == 2
    assert treated.notes == []


def test_blank_separated_text_with_row_names_as_r_writes_it(tmp_path):
    (tmp_path / "t.txt").write_text('"height"  "sex"\n"1"  1.5 "f m"\n"2"  NA  "m"\n"3"  2.5  "m"\n')
    table = read_table(str(tmp_path / "t.txt"))
    assert [column.name for column in table.columns] == ["", "height", "sex"]
    assert_array_equal(table.column("height").values, [1.5, np.nan, 2.5])
    assert table.raw["sex"].to_pylist() == ["f m", "m", "m"]


def test_one_column_of_words_is_not_split_at_blanks(tmp_path):
    (tmp_path / "t.txt").write_text("full name\nJane Doe\nJohn Roe\n")
    assert len(read_table(str(tmp_path / "t.txt")).columns) == 1


def test_a_workbook_out_is_read_back(kpod, tmp_path):
    done = kpod("fit", WINE.filename, "-k", 3, "-q", "-o", tmp_path / "out.xlsx")
    assert done.code == 0, done.err
    back = pd.read_excel(tmp_path / "out.xlsx", engine="openpyxl")
    assert_allclose(back[WINE.feature_names].to_numpy(), WINE.data)
    assert sorted(np.bincount(back["cluster"]), reverse=True) == list(np.bincount(back["cluster"]))


def ratings(path):
    rng = np.random.default_rng(0)
    lines = ["user,item,rating,when"]
    for user in range(60):
        for item in np.sort(rng.choice(20, 8, replace=False)):
            liked = (user < 25) == (item < 10)
            lines.append(f"u{user:02d},film {item},{(4 if liked else 2) + rng.integers(0, 2)},2024-01-01")
    path.write_text("\n".join(lines))
    return path


def test_ratings_in_long_form_are_the_sparse_table_they_are(kpod, tmp_path):
    path = ratings(tmp_path / "r.csv")
    outputs = ["-o", tmp_path / "out.csv", "--report", tmp_path / "r.html", "--model", tmp_path / "m"]
    done = kpod("fit", path, "-k", 2, "--rows", "user", "--items", "item", "--values", "rating", "--json",
                *outputs)  # fmt: skip
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary["rows"] == 60
    assert len(summary["columns"]) == 20
    assert summary["missing"] == 60 * 20 - 60 * 8
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out.columns) == ["user", "cluster"]
    assert_array_equal(out["cluster"], [1] * 25 + [0] * 35)
    long = pd.read_csv(path)
    wide = long.pivot(index="user", columns="item", values="rating")
    model = KPOD(2, random_state=0).fit(ObservedScaler().fit_transform(wide.to_numpy(float)))
    assert_allclose(summary["loss"], model.inertia_, rtol=1e-6)


def test_bad_ratings(kpod, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("u,i,v\na,x,1\na,x,2\nb,y,3\n")
    done = kpod("fit", path, "-k", 1, "--rows", "u", "--items", "i", "--values", "v")
    assert done.code == 1
    assert "u 'a' has 2 values for i 'x'; keep one of them" in done.err
    done = kpod("fit", path, "-k", 1, "--rows", "u", "--items", "i")
    assert "--values is missing" in done.err
    for line, name in ((",x,1", "u"), ("a,,1", "i")):
        path.write_text(f"u,i,v\n{line}\na,y,2\nb,y,3\n")
        done = kpod("fit", path, "-k", 1, "--rows", "u", "--items", "i", "--values", "v")
        assert done.code == 1
        assert f"column '{name}' has gaps; every line needs a value there" in done.err


def test_json_keeps_whole_and_other_numbers_as_numbers(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": 1, "b": 7}, {"a": 2.5, "b": 8}, {"a": null, "b": 9}]')
    raw = read_table(str(tmp_path / "t.json")).raw
    assert [str(field.type) for field in raw.schema] == ["double", "int64"]


@pytest.mark.parametrize("text", ['[{"a": 1, "a": 2}]', '[{"a": 1}, {"b": ' + 100_000 * "[" + "]"])
def test_json_that_would_lose_something_is_refused(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError, match=r"not valid JSON: .*(twice|nested)"):
        read_table(str(tmp_path / "t.json"))


def test_notes_about_what_was_read_reach_the_user(tmp_path):
    table = read_table(str(survey(tmp_path / "s.sav")))
    assert any("may stand for missing" in note.text for note in notes_on(table, choose_columns(table)))


def bombs():
    """Small files that unpack to 17 MB or more."""
    n, zeros = 1 << 24, io.BytesIO()
    text = b"a,b\n" + b"0,0\n" * (n // 4)
    constant = pa.table({"a": np.zeros(n // 8), "b": np.zeros(n // 8)})
    with pa.ipc.new_file(
        zeros, constant.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(constant)
    parquet, workbook = io.BytesIO(), io.BytesIO()
    pq.write_table(constant, parquet)
    with zipfile.ZipFile(workbook, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", text)
    return {
        "csv.gz": gzip.compress(text, 1),
        "csv.zst": pa.compress(text, "zstd", asbytes=True),
        "arrow.gz": gzip.compress(zeros.getvalue()),
        "parquet.gz": gzip.compress(parquet.getvalue()),
        "xlsx": workbook.getvalue(),
    }


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_limits, "LEAST", 1 << 20)
    monkeypatch.setattr(memory_limits, "free_memory", lambda: 1 << 26)
    for name, data in bombs().items():
        path = tmp_path / f"table.{name}"
        path.write_bytes(data)
        assert len(data) < 1 << 18, name
        done = run_here(monkeypatch, "fit", path, "-k", 2)
        assert (done.code, done.err.count("\n")) == (1, 1), (name, done.err)
        assert "too much for the memory that is free; unpack it to a .csv or .parquet file" in done.err, name
        if name.startswith("csv"):  # not unpacked to the end
            assert "unpacks to 8.4 MB or more" in done.err


def test_what_fits_is_unpacked(tmp_path, monkeypatch):
    """However little memory is free, a small table is read; a large one where there is room for it."""
    monkeypatch.setattr(memory_limits, "LEAST", 1 << 20)
    small, large = tmp_path / "small.csv.gz", tmp_path / "large.csv.gz"
    text = "a,b\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(1000))
    small.write_bytes(gzip.compress(text.encode()))
    large.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * (memory_limits.LEAST // 4), 1))
    monkeypatch.setattr(memory_limits, "free_memory", lambda: 0)
    assert read_table(str(small)).raw.num_rows == 1000
    with pytest.raises(InputError, match=r"unpacks to 1\.0 MB or more"):
        read_table(str(large))
    monkeypatch.setattr(memory_limits, "free_memory", lambda: None)
    assert read_table(str(large)).raw.num_rows == memory_limits.LEAST // 4


def test_what_is_written_to_a_file_later_is_not_in_its_table(tmp_path):
    path = tmp_path / "t.arrow"
    feather.write_feather(pa.table({"x": np.arange(5000.0)}), path, compression="uncompressed")
    table = read_table(str(path))
    with path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
    assert table.raw["x"].to_pylist() == list(range(5000))


LONG = [2**53 + 1, 2**53 + 3, 2**62 + 1, 10**22 + 1, 10**22 + 3] * 8


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
@pytest.mark.parametrize("out", [".csv", ".parquet", ".xlsx"])
def test_long_whole_numbers_keep_their_digits(kpod, tmp_path, suffix, out):
    rows = [{"code": n, "x": i % 7, "y": i * i % 5} for i, n in enumerate(LONG)]
    text = {
        ".csv": "code,x,y\n" + "".join(f"{row['code']},{row['x']},{row['y']}\n" for row in rows),
        ".jsonl": "\n".join(map(json.dumps, rows)),
        ".json": json.dumps(rows),
    }[suffix]
    (tmp_path / f"t{suffix}").write_text(text)
    assert kpod("fit", tmp_path / f"t{suffix}", "-k", 2, "-o", tmp_path / f"o{out}").code == 0
    again = read_table(str(tmp_path / f"o{out}")).raw["code"]
    assert [int(code) for code in again.to_pylist()] == LONG


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.string()])
def test_numbers_that_differ_in_late_digits_are_not_constant(kpod, tmp_path, kind):
    codes = [str(2**62 + i) for i in range(40)]
    table = pa.table({"code": pa.array(codes).cast(kind), "x": np.arange(40.0) % 7})
    pq.write_table(table, tmp_path / "t.parquet")
    read = read_table(str(tmp_path / "t.parquet"))
    assert read.column("code").role.role == "identifier"
    assert kpod("fit", tmp_path / "t.parquet", "-k", 2, "-o", tmp_path / "o.xlsx").code == 0
    assert list(map(str, read_table(str(tmp_path / "o.xlsx")).raw["code"].to_pylist())) == codes


def test_whole_numbers_out_of_workbooks_have_no_power_of_ten(kpod, tmp_path):
    book(tmp_path / "t.xlsx", {"s": [["code", "x"], *([12345678901 + 7**i, i % 4 + 0.5] for i in range(18))]})
    done = kpod("fit", tmp_path / "t.xlsx", "-k", 2)
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == [
        str(12345678901 + 7**i) for i in range(18)
    ]


def test_json_lines_keep_offsets_and_may_be_long(tmp_path):
    rows = [{"when": f"2024-01-0{i}T10:00:00+02:00", "note": "x" * 2_000_000, "x": i} for i in range(1, 4)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    table = read_table(str(tmp_path / "t.jsonl"))
    assert table.raw["when"].to_pylist() == [row["when"] for row in rows]
    assert table.column("when").role.role == "date"


def test_workbooks_show_what_they_are_given(kpod, tmp_path):
    """Times of day, dates before sheets begin to count, infinity; text that does not fit is refused."""
    when = [datetime(2024, 1, 31, 10, 30), datetime(1899, 12, 31), datetime(1900, 1, 5), datetime(2024, 2, 1)]
    table = pa.table({"when": when * 3, "x": [1.0, 2, 8, 9] * 3, "far": [np.inf, 1, 2, -np.inf] * 3})
    pq.write_table(table, tmp_path / "t.parquet")
    fit = ["fit", tmp_path / "t.parquet", "-k", 2, "--columns", "x", "-o", tmp_path / "o.xlsx"]
    assert kpod(*fit).code == 0
    sheet = openpyxl.load_workbook(tmp_path / "o.xlsx").active
    cells = [sheet.cell(row, 1) for row in range(2, 6)]
    assert [cell.value for cell in cells] == [when[0], "1899-12-31 00:00:00", "1900-01-05 00:00:00", when[3]]
    assert ["hh:mm" in cell.number_format for cell in cells] == [True, False, False, False]
    assert [sheet.cell(row, 3).value for row in range(2, 6)] == ["inf", 1, 2, "-inf"]
    pq.write_table(table.append_column("note", [["y" * 40_000] * 12]), tmp_path / "t.parquet")
    done = kpod(*fit)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "column 'note' holds text of more than 32,767 characters" in done.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lzma.compress(b"a,b\n1,2\n" * 50), "is compressed with xz; decompress it first"),
        (bz2.compress(b"a,b\n1,2\n" * 50), "is compressed with bzip2; decompress it first"),
        (gzip.compress(gzip.compress(b"a,b\n1,2\n")), "is compressed twice"),
        (b"[1, 2, 3]", "expected a list of objects"),
        (b'[{"a": 1, "b": "\\ud800"}]', r"holds \\ud800, half of a character"),
    ],
    ids=["xz", "bzip2", "twice", "list", "surrogate"],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, data, said):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=rf"t\.csv: {said}"):
        read_table(str(tmp_path / "t.csv"))


def test_text_of_four_bytes_a_character(tmp_path):
    for encoding in ("utf-32", "utf-16"):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding)
        assert_array_equal(numbers(tmp_path / "t.csv"), [[1, 2], [3, 4]])


def test_lengths_of_time_are_written_as_such(kpod, tmp_path):
    spans = [timedelta(days=1, hours=3), timedelta(minutes=-1), timedelta(seconds=1.5), None]
    pq.write_table(pa.table({"took": spans * 2, "x": [1.0, 2, 8, 9] * 2}), tmp_path / "t.parquet")
    done = kpod("fit", tmp_path / "t.parquet", "-k", 2)
    assert [line.split(",")[0] for line in done.out.splitlines()[1:5]] == [
        "27:00:00",
        "-0:01:00",
        "0:00:01.5",
        "",
    ]


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({1: "male", 2: "female"}, "category"),
        ({1: "No", 2: "Yes"}, "boolean"),
        ({1: "low", 2: "high"}, "boolean"),
    ],
)
def test_two_labelled_codes_are_what_their_labels_are(tmp_path, labels, role):
    frame = pd.DataFrame({"x": [1.0, 2, 2, 1, 2, 1], "y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(
        frame, str(path), variable_value_labels={"x": labels}, variable_measure={"x": "scale"}
    )
    assert read_table(str(path)).column("x").role.role == role
