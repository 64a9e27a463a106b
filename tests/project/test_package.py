"""What the package promises as a whole."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import kpod
from kpod._engine import blocks, sizes

ROOT = Path(__file__).parents[2]
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
    assert "kpod._estimators.kpod" in loaded
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
    "_analysis/": ["files"],
    "_findings/unused_columns.py": ["files"],
    "_columns/": ["files"],
    "_files/": ["files", "excel", "stats"],
    "_files/locations/": ["delta", "urls"],
    "_files/pieces/queries.py": ["iceberg"],
    "cli/": ["cli"],
    "_inputs/scanned.py": ["files"],
    "_inputs/dask_tables.py": ["dask"],
    "_inputs/choose_executor.py": ["dask"],
    "_inputs/spark_packing.py": ["spark"],
    "_inputs/spark_tables.py": ["spark"],
    "_estimators/in_partitions.py": ["spark"],
    "_engine/workers/": ["dask", "spark"],
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
    """And found by those who build from an sdist; of the kernels, meson installs only what is listed."""
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


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from kpod import KPOD
from kpod._engine import blocks, executors
from kpod._engine.solvers import hartigan
from kpod._engine.solvers import lloyd
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started us in the background
step, n_threads = sys.argv[1], int(sys.argv[2])
blocks.CALL_WORK = hartigan.CALL_WORK = 1 << 17  # hundreds of calls in a step
blocks.ENTRIES_PER_BLOCK = 1 << 15
begun, calls, after, left = [], [], [], threading.Event()

def share(self, *args, original=executors.Threads._share):
    try:
        original(self, *args)
    except KeyboardInterrupt:
        left.set()
        raise

executors.Threads._share = share

def count():
    if after or len(calls) == 3:
        if not after:
            os.kill(os.getpid(), signal.SIGINT)
        after.append(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            left.wait()  # the main thread has its turn, however busy the machine
    elif begun:
        calls.append(1)

def in_pieces(block, k, pieces=blocks.Block.pieces):
    for piece in pieces(block, k):
        count()
        yield piece

class Watched:
    def __getattr__(self, name, kernels=hartigan.kernels):
        count()
        return getattr(kernels, name)

def announced(cls, name):
    original = getattr(cls, name)
    def method(*args):
        begun.append(1)
        return original(*args)
    setattr(cls, name, method)

if step == "assign":
    blocks.Block.pieces = in_pieces
    announced(lloyd.Descent, "assign")
else:
    hartigan.kernels = Watched()
    announced(hartigan.Moves, "sweep")
    lloyd.Descent.lloyd = lambda d: (d.assign(), d.update(), d.note("lloyd", 1, 0.0))
X = np.random.default_rng(0).normal(size=(60_000, 10))
try:
    KPOD(20, init=X[:20], max_iter=10_000, tol=0, n_threads=n_threads).fit(X)
except KeyboardInterrupt:
    print(len(begun), after.count("MainThread"), len(after))
"""


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("step", ["assign", "sweep"])
def test_ctrl_c_is_heard_between_calls(n_threads, step):
    """In the middle of a step, of Lloyd's iteration or of single-row moves, and not only after it.

    The signal is sent in the middle of the first step. The main thread begins no other compiled call, and
    the others end the block that they are at.
    """
    command = [sys.executable, "-W", "ignore", "-c", INTERRUPTED, step, str(n_threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    n_steps, in_main_thread, in_all = map(int, done.stdout.split())
    assert n_steps == 1
    assert in_main_thread <= 1
    assert in_all <= 20  # of hundreds


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (5000, 40), (50, 30_000), (300_000, 2)])
@pytest.mark.parametrize("k", [1, 8, 1000])
def test_no_compiled_call_takes_long(shape, k, monkeypatch):
    """The calls between which Ctrl-C is heard: so much work each, unless it is a single row."""
    monkeypatch.setattr(blocks, "CALL_WORK", 1 << 20)
    (block,) = blocks.blocks_of(np.zeros(shape)[:20_000], blocks.Units(np.zeros(shape[1]), 1.0), None)[:1]
    ends = 0
    for start, stop in block.pieces(k):
        assert start == ends
        assert (stop - start) * k * block.row_entries <= 1 << 20 or stop - start == 1
        ends = stop
    assert ends == block.n_rows
    assert sizes.CALL_WORK <= 1 << 30


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("kpod.read('t.csv')", "kpod.read with backend='pandas' needs pandas, which is not installed"),
        ("kpod.read('t.csv', backend='polars')", "needs polars, which is not installed: pip install polars."),
        ("kpod.datasets.load_incomplete_wine(as_frame=True)", "as_frame=True needs pandas"),
    ],
)
def test_data_frames_of_a_library_that_is_not_installed(tmp_path, call, said):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    code = f"import sys; sys.modules['pandas'] = sys.modules['polars'] = None\nimport kpod\n{call}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
