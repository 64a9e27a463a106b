"""Break the code in small ways and see whether the tests notice; run by hand, not by pytest.

    python -m tests.mutants [PATTERN] [--sample N] [--seed S] [--budget SECONDS]
    python -m tests.mutants --kernels [PATTERN]

A mutant is one source file with one thing changed: a comparison, an operator, a constant, a
statement left out. It is written into a copy of the installed package, and the tests that belong
to the file are run on it, cheapest first, until one fails. Tests that pass in spite of it are to
be looked at: either the change makes no difference, or a test is missing.

PATTERN is matched against `path:line`, e.g. `_engine/` or `_engine/step.py:1`. Mutants of the
kernels are a list below; each is built from scratch.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fnmatch
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# How long a test takes, as measured by the first run; delete the file after changing tests.
DURATIONS = ROOT / "build" / "mutants.json"

ENGINE = ["test_kernels", "test_solvers", "test_engine", "test_promises", "test_sparse", "test_estimator"]
COMMAND = ["test_cli", "test_files"]
# The tests of a source file: the first pattern that fits.
TESTS_OF = {
    "_engine/*": ENGINE,
    "_kernels/*": ENGINE,
    "_estimator.py": ["test_estimator", "test_promises", "test_inputs", "test_sparse", "test_modelfile"],
    "_validation.py": ["test_inputs", "test_estimator", "test_sparse", "test_promises", "test_scaler"],
    "_scaler.py": ["test_scaler", "test_sparse", "test_modelfile"],
    "_io/modelfile.py": ["test_modelfile", "test_cli"],
    "_io/*": ["test_tables", "test_files", "test_cli"],
    "cli/*": COMMAND,
}

# Mutants of the kernels: file, what is there, what is put in its place.
KERNELS = [
    # Bounds without slack, a first look without margin, centers that drift unnoticed.
    ("lloyd.pyx", "(m + 3) * epsilon + 3e-7", "0"),
    ("lloyd.pyx", "(2 * SINGLE) * (own + 2 * longest) + UNDERFLOW", "0"),
    ("lloyd.pyx", "(upper[0] + drift)", "(upper[0])"),
    ("lloyd.pyx", "(lower[0] - other_drift)", "(lower[0])"),
    ("lloyd.pyx", "second if own[c] == first else first", "second"),
    # The loss of a row where it was.
    ("lloyd.pyx", "change += loss_of", "change -= loss_of"),
    # The last of equally near centers, gaps in the last columns of a row, columns beyond the eighth.
    ("few.inc", "less = sums[c] < low", "less = sums[c] <= low"),
    ("compact.h", "m += values[m] == values[m];", "m += 1;"),
    ("compact.h", "_mm256_set1_epi32((int)j)", "_mm256_set1_epi32(0)"),
    # The second level of exact sums, the number of entries that are not 0.
    ("passes.inc", "left -= part;", ""),
    ("passes.inc", "*(longs *)(nonzero + j) -= moving;", "*(longs *)(nonzero + j) += moving;"),
    # Hidden entries, rows that leave a cluster.
    ("rows.pxd", "== rows.only_hidden", "!= rows.only_hidden"),
    ("rows.pxd", "double weight = sign * weight_of(rows, i)", "double weight = weight_of(rows, i)"),
    # A cluster's last row, a column that a row alone supports, seeds.
    ("moves.pyx", "if sizes[now] <= 1:", "if sizes[now] <= 0:"),
    ("moves.pyx", "if n > alone:", "if n > 0:"),
    ("seeds.pyx", "if potentials[c] < potentials[best]:", "if potentials[c] > potentials[best]:"),
]


@dataclass(frozen=True)
class Mutant:
    """One file with one thing changed: a field of a node."""

    path: str  # within the package
    tree: ast.Module
    node: ast.AST
    field: str
    value: object

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def line(self) -> int:
        node, old = self.node, getattr(self.node, self.field)
        if self.field in BODIES:
            node = next(a for a, b in zip(old, self.value, strict=True) if a is not b)  # type: ignore[call-overload]
        return getattr(node, "lineno", 0)

    def source(self) -> str:
        """The file with the change."""
        old = getattr(self.node, self.field)
        setattr(self.node, self.field, self.value)
        try:
            return ast.unparse(ast.fix_missing_locations(self.tree))
        finally:
            setattr(self.node, self.field, old)

    def __str__(self) -> str:
        before, after = ast.unparse(self.tree).splitlines(), self.source().splitlines()
        for end in (0, -1):  # what both have before the change, then after it
            while before and after and before[end] == after[end]:
                del before[end], after[end]
        lines = (" ".join(line.strip() for line in some) for some in (before, after))
        return f"{self.place}  " + "  ->  ".join(lines)


BODIES = ("body", "orelse", "finalbody")
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
}  # fmt: skip


def variants(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The ways to change a node: a field, and what to put there."""
    match node:
        case ast.Compare(ops=[operator]):
            yield from (("ops", [other()]) for other in COMPARISONS.get(type(operator), ()))
        case ast.BinOp() | ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield "op", ARITHMETIC[type(node.op)]()
        case ast.BoolOp():
            yield "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        case ast.If() | ast.IfExp():
            yield "test", ast.UnaryOp(ast.Not(), node.test)
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int() | float() as value):
            yield "value", {0: 1, 1: 0}.get(value, 2 * value)
        case ast.Return(value=ast.AST() as value) if not is_constant(value, None):
            yield "value", ast.Constant(None)
        case ast.Call():
            yield from (("keywords", without(node.keywords, i)) for i in range(len(node.keywords)))
        case ast.comprehension(ifs=[_, *_]):
            yield "ifs", []
    for name in BODIES:
        body = getattr(node, name, None)
        if isinstance(body, list):
            found = [i for i, statement in enumerate(body) if can_go(statement)]
            yield from ((name, [*body[:i], ast.Pass(), *body[i + 1 :]]) for i in found)


def without(items: list, i: int) -> list:
    return items[:i] + items[i + 1 :]


def is_constant(node: ast.AST, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def can_go(statement: ast.stmt) -> bool:
    """Whether the file still makes sense without a statement."""
    match statement:
        case ast.Expr(value=ast.Call() | ast.Yield()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            return True
        case ast.If(orelse=[]):
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that do something: no annotations, decorators, imports or assertions."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Import | ast.ImportFrom | ast.Assert):
                yield from walk(child)


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a Python file."""
    tree = ast.parse(source)
    for node in walk(tree):
        for name, value in variants(node):
            yield Mutant(path, tree, node, name, value)


def all_mutants(package: Path, pattern: str) -> list[Mutant]:
    """Those of all files with tests of their own, chosen by a pattern."""
    out: list[Mutant] = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package).as_posix()
        if any(fnmatch.fnmatch(path, known) for known in TESTS_OF):
            out += mutants_of(path, file.read_text("utf-8"))
    return [mutant for mutant in out if pattern in mutant.place]


def tests_of(path: str) -> list[str]:
    names = next(names for known, names in TESTS_OF.items() if fnmatch.fnmatch(path, known))
    return [str(TESTS / f"{name}.py") for name in names]


def durations() -> dict[str, float]:
    """Seconds of processor time by test, as far as they are known."""
    return json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}


class Choice:
    """A pytest plugin: a few parameters of each test, the cheapest first, for a number of seconds."""

    def __init__(self, budget: float, each: int) -> None:
        self.budget, self.each = budget, each
        self.seconds = durations()

    def pytest_collection_modifyitems(self, items):
        by_test: dict[str, list] = {}
        for item in items:
            by_test.setdefault(item.nodeid.split("[")[0], []).append(item)
        draw = random.Random(0)
        chosen = [item for same in by_test.values() for item in draw.sample(same, min(self.each, len(same)))]
        chosen.sort(key=lambda item: self.seconds.get(item.nodeid, 1))
        total = itertools.accumulate(self.seconds.get(item.nodeid, 1) for item in chosen)
        items[:] = [item for item, until in zip(chosen, total, strict=True) if until <= self.budget]


class Stopwatch(Choice):
    """The same without a limit, which measures what each test takes."""

    def __init__(self, each: int) -> None:
        super().__init__(float("inf"), each)
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        now = sum(os.times()[:4])
        spent = now - getattr(self, "last", now)
        self.seconds[report.nodeid] += max(spent, report.duration / 3)  # other processes
        self.last = now

    def pytest_sessionfinish(self):
        DURATIONS.parent.mkdir(exist_ok=True)
        DURATIONS.write_text(json.dumps(durations() | self.seconds))


def run(package: Path, files: list[str], plugin: object, limit: float, log: Path) -> str:
    """Run tests on a copy of the package, in a child of this process: passed, failed or timed out."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.RLIM_INFINITY))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(sink, stream)
        os.environ |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ.setdefault("KPOD_TEST_SEED", "5")
        sys.path.insert(0, str(package.parent))
        sys.dont_write_bytecode = True
        code = 1
        try:
            import hypothesis
            import pytest

            phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # no shrinking
            hypothesis.settings.register_profile("mutants", database=None, phases=phases)
            hypothesis.settings.load_profile("mutants")
            imported = "-Wignore::pytest.PytestAssertRewriteWarning"
            code = pytest.main(["-x", "-q", imported, "-p", "no:cacheprovider", *files], plugins=[plugin])
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(int(code))
    end = time.monotonic() + 10 * limit  # other processes may want the processor too
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", -signal.SIGXCPU: "timed out"}.get(code, "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def preload() -> None:
    """Import what every child needs, and nothing of kpod."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # so that there is no thread to lose in a fork
    for name in (
        "numpy",
        "scipy.sparse",
        "sklearn.cluster",
        "pandas",
        "pytest",
        "hypothesis.extra.numpy",
        "click",
    ):
        __import__(name)
    assert "kpod" not in sys.modules


def installed() -> Path:
    """The installed package, found without importing it."""
    from importlib.metadata import files

    (init,) = [file for file in files("scikit-kpod") or [] if file.as_posix().endswith("kpod/__init__.py")]
    return Path(init.locate()).parent


@contextlib.contextmanager
def scratch_copy(package: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(package, Path(folder) / "kpod"))


def verdict(mutant: Mutant, package: Path, choice: Choice, log: Path) -> str:
    """What the tests say of a mutant."""
    file = package / mutant.path
    original = file.read_text("utf-8")
    file.write_text(mutant.source(), "utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    try:
        return run(package, tests_of(mutant.path), choice, 2 * choice.budget + 8, log)
    finally:
        file.write_text(original, "utf-8")


def measure_tests(package: Path, mutants: list[Mutant], each: int, log: Path) -> None:
    """Run the tests not run before once, to know that they pass and how long they take."""
    known = {name.split("::")[0] for name in durations()}
    files = sorted({file for mutant in mutants for file in tests_of(mutant.path)})
    for file in files:
        if Path(file).relative_to(ROOT).as_posix() in known:
            continue
        if run(package, [file], Stopwatch(each), 1800, log) != "survived":
            sys.exit(f"the tests fail without any change: {log.read_text()}")


def build(kernel: tuple[str, str, str], target: Path, log: Path) -> bool:
    """Install the sources with one of the kernels changed; whether that compiles."""
    path, before, after = kernel
    sources = target / "sources"
    shutil.copytree(
        ROOT, sources, ignore=shutil.ignore_patterns(".*", "build", "docs", "paper", "benchmarks")
    )
    file = sources / "src" / "kpod" / path
    text = file.read_text("utf-8")
    assert text.count(before) >= 1, f"{path} has no {before!r}"
    file.write_text(text.replace(before, after, 1), "utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    path_ = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with log.open("w") as sink:
        done = subprocess.run(
            [*command, "--target", str(target / "site"), str(sources)],
            env=os.environ | {"PATH": path_},
            stdout=sink,
            stderr=sink,
            check=False,
        )
    return done.returncode == 0


def try_kernels(pattern: str, choice: Choice, log: Path) -> None:
    """Build and test each mutant of the kernels."""
    for kernel in KERNELS:
        if pattern not in kernel[0]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            target, said = Path(folder), "not built"
            if build(kernel, target, log):
                limit = 2 * choice.budget + 8
                said = run(target / "site" / "kpod", tests_of("_kernels/*"), choice, limit, log)
        print(f"{said:9}  {kernel[0]}  {kernel[1]}  ->  {kernel[2]}", flush=True)


def main() -> None:
    """Read the arguments, and try mutants one by one."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=25, help="seconds of tests for a mutant")
    parser.add_argument("--each", type=int, default=3, help="parameters of each test")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    options = parser.parse_args()

    preload()
    with scratch_copy(installed()) as package:
        log = package.parent / "log.txt"
        if options.kernels:
            try_kernels(options.pattern, Choice(options.budget, options.each), log)
            return
        mutants = all_mutants(package, options.pattern)
        random.Random(options.seed).shuffle(mutants)
        mutants = mutants[: options.sample]
        if options.list:
            print(*sorted(map(str, mutants)), sep="\n")
            return
        measure_tests(package, mutants, options.each, log)
        choice = Choice(options.budget, options.each)
        counts: dict[str, Counter[str]] = {}
        for mutant in mutants:
            said = verdict(mutant, package, choice, log)
            counts.setdefault(mutant.path, Counter())[said] += 1
            print(f"{said:9}  {mutant}", flush=True)
    for path, count in sorted(counts.items()):
        print(path, *(f"{n} {said}" for said, n in sorted(count.items())), sep="  ")


if __name__ == "__main__":
    main()
