"""Every public name explains itself: a docstring with an example, and a place in the reference."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = ["kpod", "kpod.datasets", "kpod.metrics", "kpod.missingness", "kpod.plot"]
NAMES = [
    (module, name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if name != "__version__"
]
REFERENCE = Path(__file__).parents[2] / "docs" / "api" / "index.md"


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


def test_every_class_that_functions_return_is_in_the_reference():
    text = (REFERENCE.parent / "results.md").read_text()
    described = {*re.findall(r"^\.\. autoclass:: kpod\.results\.(\w+)$", text, flags=re.M), "Diagnosis"}
    assert ("kpod.missingness", "Diagnosis") in documented()
    assert described == set(importlib.import_module("kpod.results").__all__)
    assert "autoclass:: kpod._" not in text


@pytest.mark.parametrize("module", MODULES[1:])
def test_modules_are_there_after_import_kpod(module):
    code = f"import kpod, sys; assert {module!r} not in sys.modules; print({module}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{module}\n", done.stderr


def test_all_examples_run():
    """But for one, of a cluster that has an address."""
    root = REFERENCE.parent.parent.parent
    skipped = [
        line.strip()
        for folder in ("src", "docs")
        for path in (root / folder).rglob("*.*")
        if path.suffix in (".py", ".md")
        for line in path.read_text().splitlines()
        if "doctest: +SKIP" in line
    ]
    assert len(skipped) == 2
    assert all("lient" in line for line in skipped)
