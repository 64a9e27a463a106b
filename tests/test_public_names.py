"""Every public name explains itself: a docstring with an example, and a place in the reference."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

MODULES = ["kpod", "kpod.datasets", "kpod.metrics", "kpod.missingness", "kpod.plot"]
NAMES = [
    (module, name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if name != "__version__"
]
REFERENCE = Path(__file__).parent.parent / "docs" / "api" / "index.md"


def documented():
    """What the reference has a page of, with the module each stands under."""
    module, found = None, set()
    for line in REFERENCE.read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.removeprefix(".. currentmodule:: ")
        elif re.fullmatch(r"   \w+", line):
            found.add((module, line.strip()))
    return found


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_name_has_an_example(module, name):
    text = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    assert re.search(r"^\s*(?:>>>|\.\.\.) .*" + name + r"\b", text, flags=re.M), (
        f"no example uses {module}.{name}"
    )


def test_every_public_name_is_in_the_reference():
    names = {(module, name) for module, name in NAMES if f"{module}.{name}" not in MODULES}
    assert documented() == names
