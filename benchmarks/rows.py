"""What one row costs in each pass, in nanoseconds, on one thread.

    python -m benchmarks rows
    python -m benchmarks.rows [--level avx2] [PATH/TO/OTHER/python]

The second command puts another version, installed in an environment of its own, next to this one: they
take turns, and the shortest turn of each counts. `--level` is for the loops of a lower instruction set
than the processor has, in this version.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.harness import Sheet, progress
from kpod._engine.executors import Executor
from kpod._engine.step import Assign, Drift, Partial, State
from kpod._engine.table import make_table, measure
from kpod._kernels import lloyd
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Sums

# columns, clusters
SHAPES = [(10, 8), (20, 10), (30, 12), (50, 50), (100, 100)]
DTYPES = ("float32", "float64")
MISSING = (0.3, 0.7)
ENTRIES = 400_000
TURNS = 3
REPEATS = 60
PASSES = ["statistics", "full assignment", "bound check", "first iteration"]


def make(p: int, k: int, missing: float, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A table that fits the cache, and centers to compare it with."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(k, p))
    X = (means[rng.integers(k, size=ENTRIES // p)] + rng.normal(size=(ENTRIES // p, p))).astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    return X, means


def passes(p: int, k: int, missing: float, dtype: str) -> dict[str, Callable[[], object]]:
    """Each pass by name, over all rows of one table."""
    X, means = make(p, k, missing, dtype)
    table = make_table(X, Executor())
    panel, still = Panel(table.units.to(means)), Drift.none(k)
    states = [State.unknown(block.n_rows) for block in table.blocks]
    step = Assign(panel, still)

    def assign(of: Assign, fresh: bool = False) -> None:
        partial = Partial(Sums(k, *table.sums_units))
        for block, state in zip(table.blocks, states, strict=True):
            if fresh:
                state.labels[:] = -1
            of(block, state, partial)

    assign(step)
    return {
        "statistics": lambda: [measure(block) for block in table.blocks],
        "full assignment": lambda: assign(Assign(panel, still, bounded=False)),
        "bound check": lambda: assign(step),
        "first iteration": lambda: assign(step, fresh=True),
    }


def nanoseconds(p: int, k: int, missing: float, dtype: str) -> list[float]:
    """What a row costs in each pass: the shortest of several turns."""
    of = passes(p, k, missing, dtype)
    return [min(seconds(of[name]) for _ in range(REPEATS)) * 1e9 / (ENTRIES // p) for name in PASSES]


def tables() -> list[tuple[str, int, int, float]]:
    return [(dtype, p, k, missing) for dtype, (p, k), missing in itertools.product(DTYPES, SHAPES, MISSING)]


def one_turn(python: str, level: str | None) -> np.ndarray:
    """What a row of every table costs in each pass, in a process of another version."""
    command = [python, "-m", "benchmarks.rows", "--worker", *([] if level is None else ["--level", level])]
    return np.array(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def seconds(function: Callable[[], object]) -> float:
    """Of a call; a call is so short that on a busy machine, too, some are not disturbed."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def run(other: str | None = None, level: str | None = None) -> None:
    versions = [(sys.executable, level)] if other is None else [(other, None), (sys.executable, level)]
    best = [np.inf] * len(versions)
    for turn in range(TURNS):
        for i, version in enumerate(versions):
            progress(f"rows: turn {turn + 1} of {TURNS}, {version[0]}")
            best[i] = np.minimum(best[i], one_turn(*version))
    sheet = Sheet(
        "rows",
        "Nanoseconds a row, one thread" + (", the other version and this one" if other else ""),
        ["shape", "dtype", "missing", *PASSES],
    )
    for (dtype, p, k, missing), *costs in zip(tables(), *best, strict=True):
        cells = [" -> ".join(f"{value:.1f}" for value in of_pass) for of_pass in zip(*costs, strict=True)]
        sheet.add(f"{p} columns, k={k}", dtype, f"{missing:.0%}", *cells)
    sheet.show()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("other", nargs="?")
    parser.add_argument("--level")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.worker:
        run(arguments.other, arguments.level)
        return
    if arguments.level is not None:
        lloyd.use_level(arguments.level)
    print(json.dumps([nanoseconds(p, k, missing, dtype) for dtype, p, k, missing in tables()]))


if __name__ == "__main__":
    main()
