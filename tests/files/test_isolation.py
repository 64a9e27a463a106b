"""Files that would crash their parser, fill the memory or never end: one line, or the table that is there."""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from datetime import date, datetime

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpod._common.errors import InputError
from kpod._files.reading import read_table
from kpod._files.sandbox import frames, parent, parsers, sheets

HEADER = [f"c{j}" for j in range(8)]
BODY = [[i * j % 7 + 0.5 for j in range(8)] for i in range(39)]


def xlsx(path, cells):
    workbook = openpyxl.Workbook()
    for place, value in cells.items():
        workbook.active.cell(*place).value = value
    workbook.save(path)
    return path


def ods(path, cells):
    """Rows and cells as LibreOffice writes them: what is empty once, with how often."""

    def run(n, what, kind):
        return f'<table:{what} table:number-{kind}-repeated="{n}"/>' if n else ""

    rows, before = [], 0
    for row in sorted({row for row, _ in cells}):
        rows.append(run(row - before - 1, "table-row", "rows"))
        line, last = [], 0
        for column in sorted(column for at, column in cells if at == row):
            value = cells[row, column]
            line.append(run(column - last - 1, "table-cell", "columns"))
            line.append(
                f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
                if isinstance(value, str)
                else f'<table:table-cell office:value-type="float" office:value="{value}"/>'
            )
            last = column
        line.append(run(max(0, 16384 - last), "table-cell", "columns"))
        rows.append(f"<table:table-row>{''.join(line)}</table:table-row>")
        before = row
    rows.append(run(max(0, 1048576 - before), "table-row", "rows"))
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{manifest}"><m:file-entry m:full-path="/" m:media-type="{kind}"/>'
            "</m:manifest>",
        )
        archive.writestr(
            "content.xml",
            f"<office:document-content{names}><office:body><office:spreadsheet>"
            f'<table:table table:name="a &amp; b">{"".join(rows)}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


WRITERS = {"xlsx": xlsx, "ods": ods}


def table_with(extra):
    rows = [HEADER, *BODY]
    cells = {(i + 1, j + 1): value for i, row in enumerate(rows) for j, value in enumerate(row)}
    return cells | extra


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(("row", "column", "name"), [(1048576, 16384, "XFD"), (100000, 702, "ZZ")])
def test_a_stray_cell_far_away_costs_nothing(tmp_path, monkeypatch, kind, row, column, name):
    monkeypatch.setattr(parent, "LEAST_MEMORY", 200 << 20)
    path = WRITERS[kind](tmp_path / "t", table_with({(row, column): 7.5}))
    table = read_table(str(path), every_row=True)
    assert table.raw.shape == (40, 9)
    assert table.raw.slice(0, 39).drop_columns([""]).to_pylist() == [
        dict(zip(HEADER, row, strict=True)) for row in BODY
    ]
    assert table.raw[""].to_pylist() == [None] * 39 + [7.5]
    assert table.place.of(table.raw, 39, "") == f"cell {name}{row}"
    assert table.place.of(table.raw, 38, "c7") == "cell H40"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_column_far_to_the_right_is_still_a_column(tmp_path, kind):
    far = {(i + 1, 9000): value for i, value in enumerate(["far", *range(39)])}
    table = read_table(str(WRITERS[kind](tmp_path / "t", table_with(far))))
    assert table.raw["far"].to_pylist() == list(range(39))
    assert table.place.of(table.raw, 0, "far") == "cell MHD2"


def cells_on_sheet(data):
    """Cells by row and column, as the child finds them."""
    file = io.BytesIO()
    sheets.write_workbook(frames.Writer(file, 1 << 30), data, None)
    about, *blocks = [value for _, value in frames.read(file)]
    return {
        (number + 1, about["columns"][j] + 1): cell
        for block in blocks
        for number, row in block
        for j, cell in enumerate(row)
        if cell != ""
    }


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(list(WRITERS)),
    places=st.sets(st.tuples(st.integers(1, 300), st.integers(1, 200)), min_size=1, max_size=12),
)
def test_squeezed_sheets_hold_the_cells_of_the_others(kind, places):
    wanted = {place: float(i) for i, place in enumerate(sorted(places))}
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        WRITERS[kind](file, wanted)
        file.seek(0)
        data = file.read()
        assert cells_on_sheet(data) == wanted
        patch.setattr(sheets, "is_sparse", lambda *_: True)
        assert cells_on_sheet(data) == wanted


def test_merged_cells_far_below_count_for_every_row(tmp_path):
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in [HEADER, *BODY]:
        sheet.append(row)
    for i in range(4):
        sheet.cell(500_000 + i, 2).value = float(i)
    sheet.cell(500_000, 1).value = 7.5
    sheet.merge_cells("A500000:A500003")
    workbook.save(tmp_path / "t.xlsx")
    table = read_table(str(tmp_path / "t.xlsx"))
    assert table.raw["c0"].to_pylist()[-4:] == [7.5] * 4
    assert [(note.kind, note.columns) for note in table.notes] == [("merged cells", ("c0",))]


def test_a_sheet_that_lies_about_its_size_is_refused(tmp_path):
    """32 MB of zeros in a part for which the directory says 1,000 bytes, checksum of these included."""
    path = xlsx(tmp_path / "t.xlsx", table_with({}))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (name for name in parts if "sheet1" in name)
    parts[name] = parts[name].replace(b"</sheetData>", b" " * (32 << 20) + b"</sheetData>")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    data = bytearray(out.getvalue())
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.rindex(
            signature, 0, data.rindex(name.encode()) if at == 24 else data.index(name.encode())
        )
        data[start + at : start + at + 4] = (1000).to_bytes(4, "little")
        crc = zipfile.crc32(parts[name][:1000])
        data[start + at - 8 : start + at - 4] = crc.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.xlsx.*damaged"):
        read_table(str(path))


def nested(depth, between=""):
    return '{"a": 1, "b": ' + ("[" + between) * depth + "]" * depth + '}\n{"a": 2, "b": null}\n'


@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("depth", [60, 10_000, 500_000])
def test_json_within_json_is_limited(tmp_path, depth, between):
    (tmp_path / "t.jsonl").write_text(nested(depth, between))
    with pytest.raises(InputError, match=r"t\.jsonl: not valid JSON: nested too deeply, more than 50 levels"):
        read_table(str(tmp_path / "t.jsonl"))


def test_brackets_in_strings_are_no_nesting(tmp_path):
    rows = [{"a": i, "b": '\\"[[[{' * 100, "c": [[i]]} for i in range(3)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_table(str(tmp_path / "t.jsonl")).raw.to_pylist() == rows


json_values = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


def depth_of(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(depth_of, inside), default=0) + isinstance(value, dict | list)


@given(json_values, st.integers(1, 8))
def test_the_depth_of_json_is_that_of_what_it_means(value, deepest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsers, "DEEPEST", deepest)
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        assert parsers.is_deep(text) == (depth_of(value) > deepest)


def test_the_depth_of_json_takes_one_pass():
    """Quotation marks that are escaped where no string is open: each is looked at once."""
    assert not parsers.is_deep(rb"\"" * 3_000_000)


def test_rows_of_different_columns_do_not_fill_the_memory(tmp_path, monkeypatch):
    """As many columns as rows: the table has the square of that."""
    monkeypatch.setattr(parent, "LEAST_MEMORY", 200 << 20)
    monkeypatch.setattr(parent, "MEMORY_PER_BYTE", 1)
    rows = ",\n".join(f'{{"a{i}": 1}}' for i in range(5000))
    (tmp_path / "t.json").write_text(f"[{rows}]")
    with pytest.raises(InputError, match=r"t\.json: needs far more memory than a table of its size"):
        read_table(str(tmp_path / "t.json"))


def test_a_repeated_cell_does_not_fill_the_memory(tmp_path):
    cell = (
        '<table:table-cell table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
    )
    path = ods(tmp_path / "t.ods", {(1, 1): "x", (2, 1): 1.5})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    row = f'<table:table-row table:number-rows-repeated="1048570">{cell}</table:table-row></table:table>'
    parts["content.xml"] = parts["content.xml"].replace(b"</table:table>", row.encode())
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    with pytest.raises(InputError, match=r"t\.ods: .*(crashed|memory|damaged)") as caught:
        read_table(str(path))
    assert "\n" not in str(caught.value)


LIMITED = """
import json, os, signal, sys
sys.path[:] = json.loads(sys.argv[1])
from kpod._files.sandbox.parsers import limit
request = json.loads(sys.argv[2])
limit(request["memory"], request["seconds"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have all limits")
@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            r"its parser crashed \(SIGSEGV\); it is damaged, or needs more",
        ),
        ("os.abort()", r"its parser crashed \(SIGABRT\)"),
        ("while True: pass", "took more than 1 seconds to parse, far too long for its size"),
        ("bytearray(1 << 30)", r"its parser crashed \(exit code 1\); .* more than 805.3 MB of memory"),
        ("sys.exit(3)", r"its parser crashed \(exit code 3\)"),
    ],
)
def test_whatever_ends_the_child_is_one_line(tmp_path, monkeypatch, ends, said):
    monkeypatch.setattr(parent, "LEAST_SECONDS", 1)
    monkeypatch.setattr(parent, "START", LIMITED + ends)
    xlsx(tmp_path / "t.xlsx", table_with({}))
    with pytest.raises(InputError, match=rf"t\.xlsx: {said}") as caught:
        read_table(str(tmp_path / "t.xlsx"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("save the table as CSV.")


ABORTS = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
import pyreadstat
pyreadstat.read_sav = lambda *_, **__: os.abort()
from kpod._files.sandbox.parsers import main
main()
"""


def test_a_crash_leaves_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(parent, "START", ABORTS)
    with pytest.raises(InputError, match=r"crashed \(SIGABRT\)"):
        parent.parsed(b"$FL2", "spss", "t.sav")
    assert list(tmp_path.iterdir()) == []


def test_what_makes_no_sense_is_not_believed(monkeypatch):
    """As a parser might send that somebody took over."""
    for sent in (b"j", b"j" + bytes([9] * 8), b"c" + (2).to_bytes(8, "little") + b"[1"):
        monkeypatch.setattr(parent, "START", f"import sys; sys.stdout.buffer.write({sent!r})")
        with pytest.raises(InputError, match=r"t\.sav: its parser sent what cannot be read"):
            parent.parsed(b"$FL2", "spss", "t.sav")


def test_a_child_that_does_nothing_is_given_up():
    command = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
    with tempfile.TemporaryFile() as empty, tempfile.TemporaryFile() as found:
        pid = 0
        while not pid:  # a busy machine may take longer to start it
            assert parent.exit_code(command, empty, found, 2) is None
            found.seek(0)
            pid = int(found.read() or 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


def test_larger_files_have_more_time_and_memory():
    small, large = parent.limits(1000), parent.limits(1 << 30)
    assert small == (parent.LEAST_MEMORY, parent.LEAST_SECONDS)
    assert large[1] > 3600
    assert large[0] > small[0] or parent.room.free_memory() < small[0]


dates = st.datetimes() | st.dates() | st.times() | st.timedeltas()
cells = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | dates


@given(st.lists(cells))
def test_cells_come_out_as_they_went_in(values):
    file = io.BytesIO()
    out = frames.Writer(file, 1 << 20)
    out.cells(values)
    out.array(np.arange(3.0))
    out.arrow(pa.table({"x": [1, None]}))
    out.plain([{"date": "2024-01-01"}])
    (_, found), (_, array), (_, table), (_, plain) = frames.read(file)
    assert found == values
    assert [type(cell) for cell in found] == [type(cell) for cell in values]
    assert array.tolist() == [0, 1, 2]
    assert table.to_pydict() == {"x": [1, None]}
    assert plain == [{"date": "2024-01-01"}]


def test_no_pickle_comes_out_or_goes_in():
    with pytest.raises(ValueError, match="allow_pickle"):
        frames.Writer(io.BytesIO(), 1 << 20).array(np.array([object()]))
    data = io.BytesIO()
    np.save(data, np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        frames.value_of(frames.ARRAY, data.getvalue())


def test_every_kind_of_cell_of_a_workbook_comes_through(tmp_path):
    row = [1, 2.5, "text", True, datetime(2024, 1, 31, 10, 30), date(2024, 2, 1)]
    frame = pd.DataFrame([row, row], columns=HEADER[:6])
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    types = [str(field.type) for field in read_table(str(tmp_path / "t.xlsx")).raw.schema]
    assert types == ["double", "double", "string", "bool", "timestamp[us]", "date32[day]"]


def test_the_child_of_a_workbook_imports_little():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, kpod._files.sandbox.sheets, python_calamine; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numpy", "pandas", "pyarrow", "sklearn", "scipy"} & set(done.stdout.split())


def test_a_script_needs_no_main_guard(tmp_path):
    """What the script does is done once: the child does not run it again."""
    xlsx(tmp_path / "t.xlsx", table_with({}))
    script = tmp_path / "script.py"
    script.write_text(
        "from kpod._files.reading import read_table\nprint(read_table('t.xlsx').raw.shape)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "(39, 8)\n"
