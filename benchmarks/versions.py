"""This version next to another one, installed in an environment of its own: time, loss, memory.

    python -m benchmarks.versions PATH/TO/OTHER/python

The two run side by side, in processes of their own, and take turns on every table.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Sheet, geometric_mean, progress

# What a worker runs: nothing in it may need more than KPOD, NumPy and SciPy.
WORKER = r"""
import ctypes, json, re, sys, time, warnings
from inspect import signature
import numpy as np
warnings.simplefilter("ignore")
from kpod import KPOD, ObservedScaler
from kpod.datasets import make_mixture, make_ratings
from kpod.missingness import mcar

def peak():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])

def dense(n, p, k, spread, dtype, missing):
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype).type
    truth = rng.integers(k, size=n)
    X = rng.standard_normal((n, p), dtype=dtype)
    X *= dtype(spread)
    X += rng.normal(size=(k, p)).astype(dtype)[truth]
    starts = X[rng.choice(n, (9, k), replace=True)]
    for rows in np.array_split(np.arange(n), max(1, n * p // 4_000_000)):
        part = X[rows[0] : rows[-1] + 1]
        part[rng.random(part.shape, dtype=np.float32) < missing] = np.nan
    return X, starts

def drawn_by(seed):
    return {"random_state" if "random_state" in signature(mcar).parameters else "rng": seed}  # 0.1.0 said rng

def small(k, missing, seed):
    X, _ = make_mixture(k, **drawn_by(seed))
    holed = mcar(X, missing, **drawn_by(1000 + seed))
    return (holed - np.nanmean(holed, axis=0)) / np.nanstd(holed, axis=0)

def ratings():
    X, _ = make_ratings(**drawn_by(0))
    X = ObservedScaler(rows="center", scale=False).fit_transform(X)
    return X, [X[np.argsort(-np.diff(X.indptr))[:12]].toarray()]

kept = {}
def table(what, arguments):
    key = json.dumps([what, arguments])
    if key not in kept:
        kept.clear()
        kept[key] = {"dense": dense, "small": small, "ratings": ratings}[what](*arguments)
    return kept[key]

KPOD(2).fit(np.random.default_rng(0).normal(size=(100, 5)))
for line in sys.stdin:
    what, arguments, k, settings, number = json.loads(line)
    made = table(what, arguments)
    if what == "small":
        X, settings = made, {**settings, "random_state": number}
    else:
        X, starts = made
        settings = {**settings, "init": starts[number % len(starts)]}
    ctypes.CDLL(None).malloc_trim(0)  # or a fit is given what was freed before, and seems to need nothing
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    began = time.perf_counter()
    model = KPOD(k, **settings).fit(X)
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, model.inertia_, len(model.loss_curve_), peak() - before]), flush=True)
"""

# What else the machine does only adds time: of several turns with the same start, the shortest counts.
ROUNDS, MORE_ROUNDS = 3, 7
SHORT = 21  # as many starts have the tables that take milliseconds

SHAPES = [
    (1_000_000, 20, 10, 1.0), (500_000, 50, 50, 2.0), (500_000, 50, 50, 1.0),
    (1_000_000, 10, 8, 0.7), (200_000, 100, 100, 1.0), (20_000, 30, 12, 1.0),
]  # fmt: skip


def jobs() -> list[tuple[str, Any, int, dict[str, Any], str, int]]:
    """What to run: a table, clusters, settings, a name and how many times."""
    out: list[tuple[str, Any, int, dict[str, Any], str, int]] = []
    for dtype in ("float32", "float64"):
        for n, p, k, spread in SHAPES:
            for algorithm in ("lloyd", "hartigan"):
                name = f"{n} x {p}, k={k}, {spread}, 30 % missing, {dtype}, {algorithm}"
                # Starts that creep take more or fewer iterations by chance: more of them where they do.
                repeats = 21 if n <= 20_000 else 9 if (k, spread) == (50, 1.0) else 3
                shape, settings = (n, p, k, spread, dtype, 0.3), {"algorithm": algorithm}
                out.append(("dense", shape, k, settings, name, repeats))
    out += [
        ("ratings", (), 12, {"algorithm": algorithm}, f"ratings, k=12, {algorithm}", 3)
        for algorithm in ("lloyd", "hartigan")
    ]
    for k, missing in ((10, 0.5), (10, 0.75), (25, 0.5), (25, 0.75)):
        for settings, what in (({}, "10 starts"), ({"n_init": 1}, "1 start")):
            name = f"500 x 100, k={k}, {missing:.0%} missing, {what}"
            out.append(("small", (k, missing, 0), k, settings, name, 21))
    return out


class Worker:
    """A process of one version, which takes tables to fit."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path("/")
        )

    def run(self, *job: Any) -> list[float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def run() -> None:
    if len(sys.argv) < 2:
        raise SystemExit("python -m benchmarks.versions PATH/TO/OTHER/python [ONLY]")
    only = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    ours, theirs = Worker(sys.executable), Worker(sys.argv[1])
    sheet = Sheet(
        "versions",
        "This version over the other: median over starts of times taken in turn, loss, steps, memory",
        ["table", "time", "loss", "steps", "steps there", "memory, MB", "memory there, MB"],
    )
    for what, arguments, k, settings, name, repeats in jobs():
        if not only.search(name):
            continue
        progress(f"versions: {name}")
        results = []
        for number in range(repeats):
            pairs = []
            for turn in range(ROUNDS if repeats < SHORT else MORE_ROUNDS):
                order = (ours, theirs) if (number + turn) % 2 else (theirs, ours)
                pair = {worker: worker.run(what, arguments, k, settings, number) for worker in order}
                pairs.append((pair[ours], pair[theirs]))
            results.append(tuple(min(pair[side] for pair in pairs) for side in (0, 1)))
        mine, other = (np.array([pair[side] for pair in results]) for side in (0, 1))
        sheet.add(
            name,
            float(np.median(mine[:, 0] / other[:, 0])),
            float((mine[:, 1] / other[:, 1]).mean()),
            int(mine[:, 2].sum()),
            int(other[:, 2].sum()),
            float(mine[:, 3].max() / 1e6),
            float(other[:, 3].max() / 1e6),
        )
    sheet.show()
    ratios = sheet.column("time")
    print(f"time over the other: geometric mean {geometric_mean(ratios):.3f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    run()
