"""Break the code in small ways and see whether the tests notice; run by hand, not by pytest.

    python -m tests.campaigns.mutants [PATTERN] [--sample N] [--seed S] [--budget SECONDS]
    python -m tests.campaigns.mutants --kernels [PATTERN]

A mutant is one source file with one thing changed: a comparison, an operator, a constant, a
statement left out. It is written into a copy of the installed package, and those tests that call the
function in question are run on it, cheapest first, until one fails. Which do is found out once, by running
all of them (half an hour). Where all pass in spite of it, look: either the change makes no difference, or a
test is missing.

PATTERN is matched against `path:line`, e.g. `_engine/` or `_engine/step.py:1`. Mutants of the
kernels are a list below; they are compiled one after another in one build directory.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
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
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
# What a test takes and which functions it calls, by the first run; delete it after changing tests.
MEASURED = ROOT / "build" / "mutants.json"

# What broken code may take: a mutant may read /dev/zero to its end.
MOST_MEMORY = 6 << 30

# What makes no difference but in speed: sizes at which another way is taken to the same result.
LEFT_OUT = ["_engine/sizes.py"]
# The tests of the kernels, which cannot be seen calling anything.
KERNEL_TESTS = ["test_kernels", "test_solvers", "test_engine", "test_promises", "test_sparse", "test_gaps"]


def kernel_tests() -> list[Path]:
    return [next(TESTS.rglob(f"{name}.py")) for name in KERNEL_TESTS]


# Mutants of the kernels: file, what is there, what is put in its place. Not among them is what makes
# no difference but in speed: looser bounds, and a first look in single precision that sees less or
# takes another of equally near centers, for double precision then decides.
KERNELS = [
    # Bounds without slack, a first look without margin, centers that drift unnoticed.
    ("lloyd.pyx", "(m + 3) * epsilon + 3e-7", "0"),
    ("bounds.inc", "margin = look->roundoff * own + look->of_centers", "margin = 0 * own"),
    ("lloyd.pyx", "<float> (4 * SINGLE * panel.longest) + UNDERFLOW", "0"),
    ("bounds.inc", "(of->upper + i) + moved)", "(of->upper + i))"),
    ("bounds.inc", "(of->lower + i) - others_moved)", "(of->lower + i))"),
    ("lloyd.pyx", "second if own[c] == first else first", "second"),
    ("bounds.inc", "clear &= other < infinite;", ";"),
    ("lloyd.pyx", "<float> (slack_of_terms(panel, m, 2 * SINGLE) + gap_error)", "0"),
    ("lloyd.pyx", "sqrt(best + absolute)", "sqrt(best)"),
    ("bounds.inc", "other = SELECT(other < largest, other, largest);", "other = largest;"),
    ("bounds.inc", "*beyond |= *label >= of->k;", "*beyond |= *label > of->k;"),
    # The loss of a row where it was, its weight, and its sums.
    ("rows.pxd", "return weight * join_list_f64(", "return join_list_f64("),
    ("rows.pxd", "left.counts += before * p", "left.counts += now * p"),
    ("rows.pxd", "centers + max(before, 0) * p", "centers + now * p"),
    # Gaps in the last columns of a row, columns beyond the eighth.
    ("few.inc", "(rows, shift, scale, p - 4, tile)", "(rows, shift, scale, 0, tile)"),
    ("few.inc", "} else if (p % 4)", "} else if (p % 4 == 5)"),
    ("few.inc", "rows[r + t < n ? r + t : r]", "rows[r]"),
    ("compact.h", "m += values[m] == values[m];", "m += 1;"),
    ("compact.h", "_mm256_set1_epi32((int)j)", "_mm256_set1_epi32(0)"),
    ("distances.inc", "(low2 == low) & (place2 < place)", "(low2 == low) & (place2 > place)"),
    ("distances.inc", "CHOOSE(larger < nearer, larger, nearer)", "larger"),
    ("distances.inc", "larger < next, larger, next", "larger < next, next, larger"),
    ("distances.inc", "sum[v] += odd[v];", ";"),
    ("distances.inc", "left < strip ? left : strip", "strip"),
    (
        "panel.pyx",
        "self.single_offsets[c] = self.complete[c] = <float> INFINITY",
        "self.single_offsets[c] = self.complete[c] = 0",
    ),
    ("panel.pyx", "self.longest = max(self.longest, sqrt(squares))", "self.longest = sqrt(squares)"),
    ("panel.pyx", "if any_nan(&rows[0, 0], n) or ", "if "),
    # The second level of exact sums, the number of entries that are not 0.
    ("passes.inc", "left -= part;", ""),
    ("passes.inc", "moved -= moving;", "moved += moving;"),
    ("passes.inc", "largest[j] = size > largest[j] ? size : largest[j];", "largest[j] = size;"),
    ("passes.inc", "gaps[r] += (z != z) & *fresh;", "gaps[0] += (z != z) & *fresh;"),
    (
        "passes.inc",
        "const double d = values[e] - center[columns[e]];",
        "const double d = values[e] - center[e];",
    ),
    ("passes.h", "value -= parts[l];", ""),
    ("passes.inc", "weight + r, about", "weight, about"),
    # What gaps take off: the columns of a group, groups after the first, the last strip of centers, and how
    # far it may be off.
    ("gaps.h", "&& g * GAP_COLUMNS + bit < p", ""),
    ("gaps.h", "group += 2 * GAP_PATTERNS * wide", "group += GAP_PATTERNS * wide"),
    ("gaps.h", "left < strip ? left : strip", "strip"),
    ("gaps.h", "gaps[r * n_bytes + b]", "gaps[b]"),
    ("gaps.h", "(common[r] + unit * taken[l])", "unit * taken[l]"),
    ("gaps.h", "largest / (32000 - n_groups)", "largest / 64000"),
    ("panel.pyx", "self.gap_error = GAP_BYTES(p) * self.gap_unit", "self.gap_error = 0"),
    ("panel.pyx", "self.largest_terms < LARGEST_TERMS", "True"),
    ("compact.h", "gaps[j / 8] = (uint8_t)~mask;", "gaps[j / 8] = (uint8_t)(~mask & 15);"),
    ("compact.h", "(~mask & 15) << 4 :", "(~mask & 15) :"),
    ("compact.h", "<< (j & 7);", "<< 0;"),
    ("panel.pyx", "<float> (offsets[c] + added)", "<float> offsets[c]"),
    # Hidden entries, rows that leave a cluster.
    ("rows.pxd", "== rows.only_hidden", "!= rows.only_hidden"),
    ("rows.pxd", "else fallback", "else 0"),
    ("rows.pyx", "0 <= self.indices[e] < self.n_columns", "0 <= self.indices[e] <= self.n_columns"),
    ("rows.pyx", "self.indptr[self.n_rows] == n", "True"),
    ("rows.pyx", "not array.flags.aligned", "False"),
    ("entries.pyx", " and not (n_hidden == m and u == highest)", ""),
    ("rows.pyx", "loss *= weight_of(rows, i)", "pass"),
    ("entries.pyx", "min(max(value, -1e15), 1e15)", "value"),
    ("rows.pyx", "self.weights += other.weights", "pass"),
    # A cluster's last row, a column that a row alone supports, the best of several moves.
    ("moves.pyx", "if sizes[now] <= 1:", "if sizes[now] <= 0:"),
    ("moves.pyx", "if n > alone:", "if n > 0:"),
    ("moves.pyx", "n / (n - weight)", "n / (n + weight)"),
    ("moves.pyx", "if total >= limit:", "if total >= 0:"),
    ("moves.pyx", "best = gain * (1 - ROUNDING)", "best = gain"),
    ("moves.pyx", "best = cost + extra", "pass"),
    ("moves.pyx", "if cost < gain * (1 + 2 * (m + 4) * epsilon) + of_terms:", "if cost < gain / 2:"),
    ("moves.pyx", "second[r] if space.nearest[r] == now else best[r]", "best[r]"),
    ("moves.pyx", "second[r] if space.nearest[r] == now else best[r]", "second[r]"),
    ("moves.pyx", "if weight_of(rows, i) == 0:", "if False:"),
    ("moves.pyx", "sizes[to] += 1", "pass"),
    ("moves.pyx", "lowered[0] += weight * (gain - lowest_cost)", "lowered[0] += gain - lowest_cost"),
    ("moves.pyx", "upper[i] * largest_gains[now] < lower[i] * smallest_cost", "upper[i] < lower[i]"),
    ("descent.pyx", "upper[found[r]], lower[found[r]] = <float> INFINITY, 0", "pass"),
    ("descent.pyx", "largest = max(largest, leaving)", "pass"),
    ("descent.pyx", "loss -= lowered", "pass"),
    ("descent.pyx", "and (gaps is None or fall <= little_fall)", ""),
    ("descent.pyx", "moving.variance = gaps.variance_of(loss)", "pass"),
    ("descent.pyx", "more = step + n", "pass"),
    ("gap_likelihood.pyx", "total += max(observed * observed, missing * missing)", "pass"),
    # Seeds.
    ("seeds.pyx", "if potentials[c] < potentials[best]:", "if potentials[c] > potentials[best]:"),
    ("seeds.pyx", "if mass[middle] > target:", "if mass[middle] >= target:"),
    ("seeds.pyx", "weights[i] * nearest[i]", "nearest[i]"),
    ("seeds.pyx", "nearest[candidate[best]] = 0", "pass"),
    ("seeds.pyx", "if total <= 0:", "if total < 0:"),
    ("seeds.h", "both * d * d", "d * d"),
    ("seeds.h", "d[t] < nearest ? d[t] : nearest", "d[t]"),
    ("seeds.h", "out + c, 1);", "out + c, 2);"),
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

    @property
    def function(self) -> str | None:
        """The function it is in, as its code object is called; None outside of any."""
        name, found, node = "", None, self.tree
        while node is not None:
            inner = [child for child in ast.iter_child_nodes(node) if self.is_in(child)]
            node = inner[0] if inner else None
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name += node.name
                if isinstance(node, ast.FunctionDef):
                    found = f"{self.path} {name}"
                name += "." if isinstance(node, ast.ClassDef) else ".<locals>."
        return found

    def is_in(self, node: ast.AST) -> bool:
        return any(child is self.node for child in ast.walk(node))

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
    """Those of all files, chosen by a pattern."""
    out: list[Mutant] = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package).as_posix()
        if path not in LEFT_OUT:
            out += mutants_of(path, file.read_text("utf-8"))
    return [mutant for mutant in out if pattern in mutant.place]


def sampled(mutants: list[Mutant], size: int | None, seed: int) -> list[Mutant]:
    """Some mutants of each file, drawn at random."""
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.path, []).append(mutant)
    for path, same in by_file.items():
        random.Random(f"{path} {seed}").shuffle(same)
    return [mutant for same in by_file.values() for mutant in same[:size]]


def measured() -> dict[str, tuple[float, list[str]]]:
    """Seconds of processor time and functions called by test, as far as they are known."""
    return json.loads(MEASURED.read_text()) if MEASURED.exists() else {}


def base_of(test: str) -> str:
    """The name of a test without its parameters."""
    return test.split("[", maxsplit=1)[0]


class TestSelection:
    """A pytest plugin: a few parameters of each test, the cheapest first, for a number of seconds."""

    def __init__(self, budget: float, each: int, calls: str = "", *, whole_files: bool = False) -> None:
        self.budget, self.each, self.calls, self.whole_files = budget, each, calls, whole_files
        self.known: dict[str, tuple[float, set[str]]] = {}
        for name, (spent, called) in measured().items():
            before = self.known.get(base_of(name), (0.0, set()))
            self.known[base_of(name)] = max(before[0], spent), before[1].union(called)

    def of(self, mutant: Mutant) -> TestSelection:
        """The tests that call the function it is in; outside of functions, any of the file."""
        calls = mutant.function or f"{mutant.path} "
        return TestSelection(self.budget, self.each, calls, whole_files=self.whole_files)

    @property
    def files(self) -> list[str]:
        found = {name.split("::")[0] for name in self.known if self.concerns(name)}
        return sorted(str(ROOT / name) for name in found)

    def seconds(self, item) -> float:
        return self.known.get(base_of(item.nodeid), (1.0, set()))[0]

    def concerns(self, test: str) -> bool:
        if not self.calls:
            return True
        called = self.known.get(base_of(test), (0, set()))[1]
        if self.calls.endswith(" "):
            return any(name.startswith(self.calls) for name in called)
        return self.calls in called

    def pytest_collection_modifyitems(self, items):
        by_test: dict[str, list] = {}
        for item in items:
            by_test.setdefault(base_of(item.nodeid), []).append(item)
        draw = random.Random(0)
        chosen = [item for same in by_test.values() for item in draw.sample(same, min(self.each, len(same)))]
        wanted = (item for item in chosen if self.whole_files or self.concerns(item.nodeid))
        chosen = sorted(wanted, key=self.seconds)
        total = itertools.accumulate(map(self.seconds, chosen))
        items[:] = [item for item, until in zip(chosen, total, strict=True) if until <= self.budget]


class Stopwatch(TestSelection):
    """The same without a limit, which measures what each test takes and calls."""

    def __init__(self, each: int, package: Path) -> None:
        super().__init__(float("inf"), each)
        self.package, self.spent, self.calls, self.codes = package, Counter(), {}, set()

    def trace(self, frame, _event, _arg) -> None:
        self.codes.add(frame.f_code)

    def pytest_runtest_setup(self):
        self.codes = set()
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def pytest_runtest_logreport(self, report):
        now = sum(os.times()[:4])
        spent = now - getattr(self, "last", now)
        self.spent[report.nodeid] += max(spent, report.duration / 3)  # other processes
        self.last = now
        inside = [code for code in self.codes.copy() if code.co_filename.startswith(str(self.package))]
        paths = (Path(code.co_filename).relative_to(self.package).as_posix() for code in inside)
        names = {f"{path} {code.co_qualname}" for path, code in zip(paths, inside, strict=True)}
        self.calls[report.nodeid] = sorted(names.union(self.calls.get(report.nodeid, ())))

    def pytest_sessionfinish(self):
        MEASURED.parent.mkdir(exist_ok=True)
        new = {name: (spent, self.calls[name]) for name, spent in self.spent.items()}
        MEASURED.write_text(json.dumps(measured() | new))


def run(package: Path, files: list[str], plugin: object, limit: float, log: Path) -> str:
    """Run tests on a copy of the package, in a child of this process: passed, failed or timed out."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
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
            options = ["-x", "-q", imported, "-p", "no:cacheprovider", "--timeout=0"]  # processor time counts
            code = pytest.main([*options, *files], plugins=[plugin])
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(int(code))
    end = time.monotonic() + 60 * limit  # other processes may want the processor too
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


def verdict(mutant: Mutant, package: Path, choice: TestSelection, log: Path) -> str:
    """The verdict of the tests on a mutant."""
    file = package / mutant.path
    original = file.read_text("utf-8")
    file.write_text(mutant.source(), "utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    try:
        tests = choice.of(mutant)
        return run(package, tests.files, tests, 2 * choice.budget + 8, log) if tests.files else "untested"
    finally:
        file.write_text(original, "utf-8")


def measure_tests(package: Path, files: list[Path], each: int, log: Path) -> None:
    """Run the tests not run before once, to know that they pass, how long they take and what they call."""
    known = {name.split("::")[0] for name in measured()}
    for file in files:
        if file.relative_to(ROOT).as_posix() in known:
            continue
        print(f"measuring {file.name}", file=sys.stderr, flush=True)
        if run(package, [str(file)], Stopwatch(each, package), 1800, log) != "survived":
            sys.exit(f"the tests fail without any change: {log.read_text()}")


class Kernels:
    """A build directory of the kernels, for one mutant after another."""

    def __init__(self, folder: Path, package: Path, log: Path) -> None:
        self.sources, self.build, self.package, self.log = folder / "sources", folder / "build", package, log
        left_out = shutil.ignore_patterns(".*", "build", "docs", "paper", "benchmarks", "tests")
        shutil.copytree(ROOT, self.sources, ignore=left_out)
        # One copy of the loops instead of one per instruction set, little optimised: fast to compile.
        options = ["-Dbuildtype=plain", "-Dc_args=-O1 -DKPOD_SANITIZE -march=native"]
        if not self.call("meson", "setup", *options, str(self.build), str(self.sources)) or not self.make():
            sys.exit(f"the kernels do not build without any change: {log.read_text()}")

    def call(self, *command: str) -> bool:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with self.log.open("w") as sink:
            env = os.environ | {"PATH": path}
            return subprocess.run(command, env=env, stdout=sink, stderr=sink, check=False).returncode == 0

    def make(self) -> bool:
        """Compile what changed, and put it into the package."""
        if not self.call("ninja", "-C", str(self.build)):
            return False
        for file in self.build.rglob("_kernels/*.so"):
            shutil.copy(file, self.package / "_kernels")
        return True

    @contextlib.contextmanager
    def changed(self, name: str, before: str, after: str) -> Iterator[bool]:
        """The package with one kernel changed; whether that compiles."""
        folder = self.sources / "src" / "kpod" / "_kernels"
        file = folder / ("loops" if name.endswith((".h", ".inc")) else "") / name
        text = file.read_text("utf-8")
        assert before in text, f"{name} has no {before!r}"
        file.write_text(text.replace(before, after), "utf-8")
        try:
            if name.endswith(".pxd"):
                for module in folder.glob("*.pyx"):
                    module.touch()
            yield self.make()
        finally:
            file.write_text(text, "utf-8")


def try_kernels(pattern: str, package: Path, choice: TestSelection, log: Path) -> None:
    """Build and test each mutant of the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = Kernels(Path(folder), package, log)
        limit, files = 2 * choice.budget + 8, [str(file) for file in kernel_tests()]
        said = run(package, files, choice, limit, log)
        if said != "survived":
            sys.exit(f"the tests fail without any change: {log.read_text()}")
        for name, before, after in KERNELS:
            if pattern not in f"_kernels/{name}  {before}":
                continue
            with kernels.changed(name, before, after) as built:
                said = run(package, files, choice, limit, log) if built else "not built"
            print(f"{said:9}  {name}  {before}  ->  {after}", flush=True)


def main() -> None:
    """Read the arguments, and try mutants one by one."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--sample", type=int, help="mutants of each file")
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
            measure_tests(package, kernel_tests(), options.each, log)
            try_kernels(options.pattern, package, TestSelection(options.budget, options.each), log)
            return
        mutants = sampled(all_mutants(package, options.pattern), options.sample, options.seed)
        if options.list:
            print(*sorted(map(str, mutants)), sep="\n")
            return
        measure_tests(package, sorted(TESTS.rglob("test_*.py")), options.each, log)
        choice = TestSelection(options.budget, options.each)
        counts: dict[str, Counter[str]] = {}
        for mutant in mutants:
            said = verdict(mutant, package, choice, log)
            if said == "survived":  # perhaps for want of the right parameters, which were not measured
                all_of_them = TestSelection(3 * options.budget, 1_000, whole_files=True)
                said = verdict(mutant, package, all_of_them, log)
            counts.setdefault(mutant.path, Counter())[said] += 1
            print(f"{said:9}  {mutant}", flush=True)
    for path, count in sorted(counts.items()):
        print(path, *(f"{n} {said}" for said, n in sorted(count.items())), sep="  ")


if __name__ == "__main__":
    main()
