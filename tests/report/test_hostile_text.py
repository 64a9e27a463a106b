"""Text that would steer a terminal or turn a sentence around: made visible wherever kpod writes of it."""

import json

import numpy as np
import pyarrow as pa
import pytest

import kpod
from kpod._report.rendering import HIDDEN
from tests.helpers.command import kpod as run_here

ESCAPE, OVERRIDE, ISOLATE = "\x1b[31m", "\u202e", "\u2066"
EVIL = f"{ESCAPE}na{OVERRIDE}me{ISOLATE}\x07"
RAW = {"\x1b", "\x07", "\u202e", "\u2066", "\x9b"}


@pytest.fixture
def table(tmp_path):
    """Names of columns, categories and identifiers, a unit and a title: all of them evil."""
    rng = np.random.default_rng(0)
    path = tmp_path / f"t{ESCAPE}{OVERRIDE}.csv"
    rows = [f"id{EVIL},{EVIL},x\x9b,group{EVIL}"]
    for i in range(60):
        cells = [f"{v:.3f}" if rng.random() > 0.1 else "" for v in rng.normal(size=2) + 5 * (i % 2)]
        rows.append(f"r{i}{EVIL},{cells[0]},{cells[1]},{'one' if i % 3 else EVIL}")
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_reports_make_control_characters_visible(monkeypatch, tmp_path, table):
    outputs = ["--report", tmp_path / "r.html", "-o", tmp_path / "o.csv"]
    done = run_here(monkeypatch, "fit", table, "-k", 2, "--confidence", *outputs)
    assert done.code == 0, done.err
    page = (tmp_path / "r.html").read_text("utf-8")
    assert not RAW & set(page)
    assert r"\x1b[31mna\u202eme\u2066\x07" in page


def test_reports_from_python_do_so_too():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = kpod.KPOD(2, random_state=0).fit(X)
    report = kpod.report(model, X, column_names=[EVIL, "b"], title=EVIL, row_names=[EVIL] * 40)
    assert not RAW & set(report.html)
    assert not RAW & set(report._repr_html_())


def test_what_languages_need_is_left_in_reports():
    """Joiners, marks of direction, emoji and spaces that do not break."""
    for text in ("\u0645\u06cc\u200c\u062e", "\u05d0\u200f", "👩\u200d🔬", "a\u00a0b", "a\u202fb"):
        assert not HIDDEN.search(text)


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "-k", 2, "-o", "out.csv"),
        ("fit", "--max-k", 3, "-o", "out.csv"),
        ("fit", "-k", 2, "--categories", f"group{EVIL}", "--stability", "-o", "out.csv"),
        ("choose-k", "--max-k", 3),
        ("describe",),
        ("describe", "--sheet", EVIL),
        ("fit", "-k", 2, "--columns", EVIL[::-1]),
        ("fit", "-k", 2, "--missing", EVIL, "-o", "out.csv"),
    ],
    ids=str,
)
def test_terminals_get_no_control_characters(monkeypatch, tmp_path, table, command):
    monkeypatch.chdir(tmp_path)
    done = run_here(monkeypatch, command[0], table, *command[1:])
    assert not RAW & set(done.err + done.out)


def test_json_lines_and_workbooks_neither(monkeypatch, tmp_path):
    rows = [{EVIL: i % 7, "b": EVIL, "c": {EVIL: 1}} for i in range(20)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pa.csv.write_csv(pa.table({EVIL: [1, 2]}), tmp_path / "t.csv")
    for name in ("t.jsonl", "t.csv"):
        done = run_here(monkeypatch, "describe", tmp_path / name)
        assert not RAW & set(done.err + done.out)


def test_formulas_come_out_as_they_went_in(monkeypatch, tmp_path):
    """SECURITY.md: the user's own cells are copied, also those that a spreadsheet would run."""
    cells = ["=1+1", "@SUM(A1)", "-2+3", "+cmd|' /C calc'!A0"]
    lines = [f"{cell},{i % 3},{i * i % 5}" for i, cell in enumerate(cells * 5)]
    (tmp_path / "t.csv").write_text("\n".join(["note,a,b", *lines]))
    done = run_here(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2, "-q")
    assert [line.rsplit(",", 1)[0] for line in done.out.splitlines()[1:]] == lines
