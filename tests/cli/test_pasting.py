"""Options that messages suggest can be pasted into a shell, whatever columns are called."""

import json
import re
import shlex

import numpy as np
import pytest

from kpod._common.options import option
from tests.helpers.command import kpod

pytestmark = pytest.mark.usefixtures("shell")

NAMES = [
    "plain", "two words", "Population (historical)", "it's", 'a "b"', "-dash", "--long", "a;b&c|d", "$HOME",
    "*", "a?[b]", "`x`", "#1", "~", "ends.", "a,b", "back\\slash", "größe", "50%", "a=b", "!x", "-9",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_option_survives_the_shell(name):
    words = shlex.split(option("--log", name))
    assert words in (["--log", name], [f"--log={name}"])
    # And no sign after it, at the end of a sentence, belongs to it.
    assert shlex.split(option("--log", name) + ".")[-1].removesuffix(".") == words[-1]


def suggested(text, name):
    """The option of that name in a message, as a shell takes it."""
    start = re.search(rf"--{name}[ =]", text).start()
    for end in range(start + len(name) + 4, len(text) + 1):
        try:
            words = shlex.split(text[start:end])
        except ValueError:  # inside quotation marks
            continue
        if end == len(text) or text[end] in ") ;" or text[end:] == ".\n":
            return words
    raise AssertionError(text)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("*", "-9")])
def test_suggested_logarithms_can_be_taken(monkeypatch, tmp_path, name):
    rng = np.random.default_rng(0)
    values = rng.lognormal(size=(60, 2))
    values[:3, 0] *= 1000
    heading = ",".join('"' + one.replace('"', '""') + '"' for one in (name, "other"))
    (tmp_path / "t.csv").write_text("\n".join([heading, *(f"{a},{b}" for a, b in values)]))
    result = kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", "2")
    assert result.code == 0, result.err
    text = " ".join(result.err.split())
    again = kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", "2", *suggested(text, "log"), "--json",
                 "-o", tmp_path / "out.csv")  # fmt: skip
    assert again.code == 0, again.err
    remedies = [one["values"].get("log", []) for one in json.loads(again.out)["cautions"]]
    assert name not in [column for log in remedies for column in log]


@pytest.mark.parametrize("name", NAMES)
def test_suggested_missing_codes_and_twins_can_be_given(monkeypatch, tmp_path, name):
    rng = np.random.default_rng(0)
    values = rng.integers(1, 6, size=(60, 3)).astype(str)
    values[5:12, 0] = "-99"
    values[:, 2] = values[:, 0]
    heading = ",".join('"' + one.replace('"', '""') + '"' for one in (name, "other", f"{name} again"))
    (tmp_path / "t.csv").write_text("\n".join([heading, *map(",".join, values)]))
    result = kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", "2")
    assert result.code == 0, result.err
    notes = [note for note in result.err.replace("\n", " ").split("note: ") if "-99" in note]
    given = suggested(" ".join(notes[0].split()), "missing")
    twin = suggested(" ".join(result.err.split()), "as")
    again = kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", "2", *given)
    assert again.code == 0, again.err
    assert "may stand for missing" not in again.err
    again = kpod(monkeypatch, "fit", tmp_path / "t.csv", "-k", "2", *twin)
    assert "so they count more than once" in " ".join(again.err.split())
