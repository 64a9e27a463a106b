"""The matrix of questions and places: complete, without a silent cell, and still true where that is cheap."""

import pytest

from docs import matrix

pytest.importorskip("dask.dataframe")
pytest.importorskip("polars")


def cells():
    """Those of the page: the word of each, and the number of its reason."""
    lines = matrix.PAGE.read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    places = rows[0][1:]
    return {(row[0], place): word for row in rows[1:] for place, word in zip(places, row[1:], strict=True)}


def test_every_cell_is_there_and_says_something():
    found = cells()
    places = [*matrix.PLACES, "command line"]
    assert list(found) == [(question, place) for question in matrix.QUESTIONS for place in places]
    assert {word.split()[0] for word in found.values()} == {"yes", "lazy", "sample", "no"}
    reasons = {int(word[4:-1]) for word in found.values() if word.startswith("no")}
    listed = [line for line in matrix.PAGE.read_text().splitlines() if line.partition(". ")[0].isdigit()]
    assert reasons == set(range(1, len(listed) + 1))


@pytest.mark.parametrize("question", ["fit", "predict"])
@pytest.mark.parametrize(
    "place", ["pandas", "CSR", "memory map", "LazyFrame", "Dask array", "Dask DataFrame"]
)
def test_a_row_of_it_is_what_the_page_says(question, place, tmp_path):
    word, _ = matrix.cell(question, place, tmp_path)
    assert word == cells()[question, place]
