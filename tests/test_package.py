"""What the package promises as a whole."""

import ast
import importlib.metadata
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import kpod

HEAVY = ["pandas", "polars", "pyarrow", "matplotlib", "dask", "jinja2", "rich", "click"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_kpod_alone_loads_nothing():
    loaded = run("import sys; before = set(sys.modules); import kpod; print(*set(sys.modules) - before)")
    assert not {"numpy", "scipy", "sklearn"} & set(loaded.split())


def test_the_core_pulls_in_nothing_heavy():
    """Nothing, that is, that scikit-learn does not load by itself where it is installed."""
    loaded = run(
        "import sys, numpy as np, sklearn.base, sklearn.datasets, sklearn.utils.validation\n"
        "before = set(sys.modules); from kpod import KPOD; import kpod.missingness, kpod.datasets\n"
        "KPOD(2).fit(np.eye(4)).impute(np.eye(4)); print(*set(sys.modules) - before)"
    )
    assert "kpod._estimator" in loaded
    assert not set(HEAVY) & set(loaded.split())


def test_the_version_stands_in_one_place():
    assert kpod.__version__ == importlib.metadata.version("scikit-kpod")
    root = Path(__file__).parent.parent
    built = [*(root / "src").rglob("*.py"), root / "pyproject.toml", root / "meson.build"]
    holding = [path for path in built if f'"{kpod.__version__}"' in path.read_text().replace("'", '"')]
    assert holding == [root / "meson.build"]


def test_whatever_is_imported_is_declared():
    """By the package itself for its core, by its extras for what they need; not by way of others."""
    root = Path(__file__).parent.parent
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    listed = [declared["dependencies"], *declared["optional-dependencies"].values()]
    names = {re.match(r"[\w-]+", requirement)[0] for part in listed for requirement in part}
    known = {"scikit-learn": "sklearn"}
    allowed = {known.get(name, name) for name in names} | {"kpod"} | sys.stdlib_module_names
    allowed |= {"markupsafe"}  # part of jinja2's own interface
    for path in (root / "src").rglob("*.py"):
        if path.name == "_executors.py":  # joblib and threadpoolctl, on their way out
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            for module in modules:
                assert module.partition(".")[0] in allowed, f"{path.name} imports {module}"


def test_public_names():
    assert "KPOD" in dir(kpod)
    for name in kpod.__all__:
        assert getattr(kpod, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kpod.nothing


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("step", ["lloyd.Descent.assign", "hartigan.Moves.sweep"])
def test_ctrl_c_is_heard_within_a_second(n_threads, step):
    """Long in Lloyd, or long in single-row moves: the signal is sent once the step has begun."""
    code = f"""
import time, numpy as np
from kpod import KPOD
from kpod._engine import hartigan, lloyd
original = {step}
def announced(*args):
    print("begun", flush=True)
    return original(*args)
{step} = announced
if "sweep" in "{step}":
    lloyd.Descent.lloyd = lambda d: (d.assign(), d.update(), d.note("lloyd", 1, 0.0))
X = np.random.default_rng(0).normal(size=(300_000, 40)).astype(np.float32)
try:
    KPOD(60, init=X[:60], max_iter=10_000, tol=0, n_threads={n_threads}).fit(X)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    output, _ = process.communicate(timeout=30)
    assert "stopped" in output
    assert time.monotonic() - sent < 2, "one second, and one more for the interpreter to leave"
