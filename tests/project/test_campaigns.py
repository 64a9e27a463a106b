"""Long runs that are started by hand: what they rest on is still there."""

from pathlib import Path

import pytest

from tests.campaigns.mutants import KERNELS

FOLDER = Path(__file__).parents[2] / "src/kpod/_kernels"


@pytest.mark.parametrize(("name", "before", "after"), KERNELS, ids=lambda text: text[:30])
def test_what_mutants_of_the_kernels_replace_is_there(name, before, after):
    file = FOLDER / ("loops" if name.endswith((".h", ".inc")) else "") / name
    assert before in file.read_text("utf-8")
    assert before != after
