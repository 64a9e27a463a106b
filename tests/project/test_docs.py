"""The docs say what the program does."""

import re
import shutil
from pathlib import Path

import pytest

from docs import tables as result_tables
from docs.figures import FIGURES
from docs.generate import cli_reference, pages, paper_pages
from docs.measured import BLOCKS, names_in, with_figures, without_figures
from docs.tables import TABLES
from kpod._columns import missing_codes, tables
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod

ROOT = Path(__file__).parents[2]
PAGES = list(pages())
GENERATED = {"docs/cli.md", "docs/paper-claims.md", "docs/paper-tables.md", "docs/matrix.md"}


def test_the_reference_is_what_help_prints():
    assert (ROOT / "docs" / "cli.md").read_text() == cli_reference(), "run make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_measured_figures_are_those_of_the_results_files(page):
    assert page.read_text() == with_figures(page.read_text()), "run make docs"


def test_every_block_is_used_and_known():
    assert set().union(*map(names_in, pages().values())) == set(BLOCKS)
    assert not TABLES.keys() & FIGURES.keys()


def test_a_figure_that_its_table_no_longer_has_is_found(monkeypatch):
    """A change of one cell in a results file is a change of the page; so is one of the page itself."""
    page = (ROOT / "docs" / "sparse.md").read_text()
    assert with_figures(page.replace("98,408,958", "98,408,959")) == page
    read = result_tables.read_results

    def renewed(name):
        return [line | {"ARI": "0.5"} if name == "netflix" else line for line in read(name)]

    monkeypatch.setattr(result_tables, "read_results", renewed)
    assert with_figures(page) != page


SETTINGS = {
    "README.md": "3.11",
    "docs/choosing.md": ".6, .9, 0.1, 2.5, 3 of 10",
    "docs/coming-from/kpodclustr.md": "1.1",
    "docs/command-line.md": "0.2",
    "docs/comparison.md": "0.18",
    "docs/gaps.md": "0.01, 0.05, 0.1, 0.2",
    "docs/growing.md": "0.06, 1.25, 10, 3.5, 4.3, 6",
    "docs/guide.md": "0.8, 2.5",
    "docs/index.md": "3.11",
    "docs/installing.md": "3.11",
    "docs/large.md": "12.5",
    "docs/mixture.md": "0.02, 0.05, 0.07, 0.3, 0.9, 2.5",
    "docs/paper.md": "0.1, 0.3, 0.9, 120, 1980, 30, 75",
    "docs/pictures-and-report.md": "0.6, 19 of 396",
    "docs/places.md": "3.2",
    "docs/scale.md": "0.8",
    "docs/speed-engineering.md": "2.0",
    "docs/testing.md": "20",
    "docs/upgrading.md": "1.7, 1.9",
}
"""Numbers that pages may hold outside the blocks: versions, thresholds, designs; nothing measured."""
LOOKS_MEASURED = re.compile(
    r"\b\d[\d,]* of \d[\d,]*|(?<![\w.:/])\d*\.\d+(?![\d/]|\.\d)"
    r"|\d[\d,]*(?= (?:times\b|seconds\b|s\b|ms\b|ns\b|microseconds\b))"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_looks_measured_comes_from_a_results_file(page):
    """Somebody who types a figure into a page finds out here: put it between markers (docs/measured.py)."""
    name = str(page.relative_to(ROOT))
    if name in GENERATED:
        return
    found = set(LOOKS_MEASURED.findall(without_figures(page.read_text())))
    assert sorted(found) == sorted(filter(None, SETTINGS.get(name, "").split(", ")))


def test_a_figure_that_is_typed_in_is_found():
    assert LOOKS_MEASURED.findall(without_figures("takes 0.31 of the time, 12 seconds, .5 (`0.7`)")) == [
        "0.31", "12", ".5",
    ]  # fmt: skip
    assert not LOOKS_MEASURED.findall(
        without_figures("takes <!-- figure: dense-time 30% -->0.31<!-- end --> of it")
    )


def test_figures_do_not_begin_a_line():
    """A line that begins with a comment is a block of its own in Markdown, and would end the paragraph."""
    for path, page in pages().items():
        assert not re.search(r"^ *<!-- figure", page, re.M), path


def test_the_papers_tables_and_claims_are_those_of_the_results_file():
    for name, text in paper_pages().items():
        assert (ROOT / "docs" / name).read_text() == text, "run make docs"


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
