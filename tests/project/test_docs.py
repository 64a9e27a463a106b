"""The docs say what the program does."""

import re
import shutil
from pathlib import Path

import pytest

from benchmarks.harness import geometric_mean
from docs.generate import MEASURED, TABLES, cli_reference, paper_pages, read_results, with_tables
from kpod._columns import missing_codes, tables
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_the_reference_is_what_help_prints():
    assert (ROOT / "docs" / "cli.md").read_text() == cli_reference(), "run make docs"


def test_measured_tables_are_those_of_the_results_files():
    pages = [(ROOT / "docs" / name).read_text() for name in MEASURED]
    for page in pages:
        assert page == with_tables(page), "run make docs"
    assert sorted(re.findall(r"<!-- table: (\S+) -->", "".join(pages))) == sorted(TABLES)


def test_the_papers_tables_and_claims_are_those_of_the_results_file():
    for name, text in paper_pages().items():
        assert (ROOT / "docs" / name).read_text() == text, "run make docs"


@pytest.mark.parametrize("page", ["README.md", "docs/scale.md", "docs/speed.md"])
def test_claims_on_speed_are_those_of_the_results_file(page):
    """With gaps and without: 0.26 of KMeans' time complete, and so on."""
    times = {}
    for row in read_results("dense"):
        times.setdefault(row["method"], []).append(float(row["time / KMeans"]))
    said = re.search(
        r"([\d.]+) of the time of scikit-learn's KMeans if (?:they are|it is) complete,"
        r" ([\d.]+) with 30 % missing and ([\d.]+) with 70 % missing",
        " ".join((ROOT / page).read_text().split()),
    )
    for ratio, gaps in zip(said.groups(), ("complete", "30% missing", "70% missing"), strict=True):
        assert float(ratio) == round(geometric_mean(times[f"KPOD(lloyd), {gaps}"]), 2)


def test_every_mark_of_a_gap_is_in_the_guide():
    guide = (ROOT / "docs" / "command-line.md").read_text()
    for mark in missing_codes.GAPS:
        assert f"`{mark}`" in guide or mark == ""
    for suffix in tables.SUFFIXES:
        assert f"`{suffix}`" in guide


def test_the_example_of_the_guide_is_what_is_printed(monkeypatch, tmp_path):
    shutil.copy(load_incomplete_wine().filename, tmp_path / "data.csv")
    monkeypatch.chdir(tmp_path)
    done = kpod(monkeypatch, "fit", "data.csv", "-k", 3, "-o", "clusters.csv", "--report", "report.html")
    assert done.err in (ROOT / "docs" / "command-line.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_are_there_and_small(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            file = page.parent / target
            if target.startswith("auto_examples/"):  # the page that the site makes of an example
                file = ROOT / "examples" / f"{target.removeprefix('auto_examples/')}.py"
            assert file.exists(), target
            assert file.stat().st_size < 150_000, target


def test_every_example_has_its_place_in_the_gallery():
    from docs.pictures import ORDER

    examples = {path.stem.removeprefix("plot_") for path in (ROOT / "examples").glob("*/plot_*.py")}
    assert sorted(ORDER) == sorted(examples)
