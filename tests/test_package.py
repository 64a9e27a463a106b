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

ROOT = Path(__file__).parent.parent
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
    elsewhere = [ROOT / "pyproject.toml", ROOT / "conda/recipe.yaml", ROOT / "CITATION.cff"]
    built = [*(ROOT / "src").rglob("*.py"), *elsewhere, ROOT / "meson.build"]
    holding = [path for path in built if f'"{kpod.__version__}"' in path.read_text().replace("'", '"')]
    assert holding == [ROOT / "meson.build"]


MODULES = {"scikit-learn": "sklearn", "python-calamine": "python_calamine"}
# The folders and files that may import the packages of an extra; all others make do with the core's.
EXTRAS = {
    "plot/": ["plot"],
    "_report/": ["report"],
    "_io/": ["cli", "excel", "stats"],
    "cli/": ["cli"],
    "_scanned.py": ["cli"],
    "_dask.py": ["dask"],
    "_engine/cluster.py": ["dask"],
}


def modules_of(requirements):
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in requirements]
    return {MODULES.get(name, name) for name in names}


def imports_of(path):
    """What a file imports, at its top or where it is used, except for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "imported":
            yield node.args[0].value


def test_whatever_is_imported_is_declared():
    """By the package itself for its core, by an extra for what that serves; not by way of others."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = modules_of(declared["dependencies"]) | {"kpod"} | sys.stdlib_module_names
    used = set()
    for path in (ROOT / "src/kpod").rglob("*.py"):
        place = str(path.relative_to(ROOT / "src/kpod"))
        extras = [extra for start, names in EXTRAS.items() if place.startswith(start) for extra in names]
        more = modules_of(r for extra in extras for r in declared["optional-dependencies"][extra])
        found = set(imports_of(path))
        assert found <= core | more, f"{place} imports {sorted(found - core - more)}"
        used |= found
    for requirements in [declared["dependencies"], *declared["optional-dependencies"].values()]:
        assert modules_of(requirements) <= used, "nothing is declared that nobody imports"


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda/recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:\n")[0]
    wanted = [f"python{declared['requires-python']}", *declared["dependencies"]]
    assert [line.strip("- ").replace(" ", "") for line in run.splitlines()] == wanted


def test_every_source_file_is_installed():
    """And found by those who build from an sdist: of the kernels, meson installs what is listed only."""
    installed = Path(kpod.__file__).parent
    kinds = (".py", ".pyi", ".csv", ".html", ".typed")
    sources = [path for path in (ROOT / "src/kpod").rglob("*") if path.suffix in kinds]
    assert len(sources) > 80
    for path in sources:
        assert (installed / path.relative_to(ROOT / "src/kpod")).exists(), path


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
import signal, time, numpy as np
from kpod import KPOD
from kpod._engine import hartigan, lloyd
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started us in the background
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
    try:
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "stopped" in output
    assert time.monotonic() - sent < 2, "one second, and one more for the interpreter to leave"
