"""Notes and their sentences: every kind that the code makes can be worded."""

import ast
from pathlib import Path

import pytest

from kpod._common.sentences.note_sentences import WORDS
from kpod._common.sentences.table_sentences import as_line

ROOT = Path(__file__).parents[2]


def kinds_made():
    for path in (ROOT / "src/kpod").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note" and node.args:
                for constant in ast.walk(node.args[0]):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        yield constant.value, path.name


def test_every_kind_of_note_has_its_sentence():
    made = dict(kinds_made())
    assert len(made) >= 30
    assert not set(made) - set(WORDS), {kind: made[kind] for kind in set(made) - set(WORDS)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (None, "age is equal to born"),
        ((1.0, 16.0), "age is born plus 16"),
        ((-1.0, 2015.0), "age is -1 times born plus 2015"),
        ((2.5, -3.0), "age is 2.5 times born minus 3"),
    ],
)
def test_a_column_that_is_another_one_but_for_its_unit(line, expected):
    assert as_line("age", "born", line) == expected
