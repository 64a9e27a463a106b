"""How long shape "auto" takes with the number of clusters given, in default fits of another version.

    python -m benchmarks.shape_time PATH/TO/OTHER/python

A fit, and the comparison of shapes after it, over a default fit of the other version; both take turns, and of
several turns the shortest counts. The time asked for is 25 fits of commit 45ed974 on 500 x 20, and 12 on
20,000 x 20.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness import Sheet, progress
from benchmarks.mixture import Design, centers, with_gaps

ROUNDS = 5
WORKER = r"""
import json, sys, time, warnings
import numpy as np
from kpod import KPOD
warnings.simplefilter("ignore")
X, k = np.load(sys.argv[1]), int(sys.argv[2])
KPOD(k, random_state=0).fit(X)
for line in sys.stdin:
    began, processor = time.perf_counter(), time.process_time()
    KPOD(k, random_state=int(line)).fit(X)
    print(json.dumps([time.perf_counter() - began, time.process_time() - processor]), flush=True)
"""


def round_groups(rng: np.random.Generator, n: int) -> Design:
    y = rng.integers(4, size=n)
    return centers(rng, 4, 20, 0.9)[y] + rng.normal(size=(n, 20)), y


def two_factors(rng: np.random.Generator, n: int) -> Design:
    y = rng.integers(5, size=n)
    factors = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 20))
    return centers(rng, 5, 20, 1.0)[y] + factors + rng.normal(size=(n, 20)), y


def own_shapes(rng: np.random.Generator, n: int) -> Design:
    y = rng.integers(3, size=n)
    roots = rng.normal(size=(3, 20, 21)) / 20**0.5
    return centers(rng, 3, 20, 0.9)[y] + np.einsum("nij,nj->ni", roots[y], rng.normal(size=(n, 21))), y


DESIGNS = {"round": round_groups, "two common factors": two_factors, "own covariances": own_shapes}
WANTED = {500: 25, 20_000: 12}


def with_shapes(X: np.ndarray, k: int, seed: int) -> str:
    from kpod import KPOD
    from kpod._findings.cluster_shapes import choose_shape

    return choose_shape(X, KPOD(k, random_state=seed).fit(X), "auto")[1].shape_


def run() -> None:
    if len(sys.argv) < 2:
        raise SystemExit("python -m benchmarks.shape_time PATH/TO/OTHER/python")
    warnings.simplefilter("ignore")
    sheet = Sheet(
        "shape_time",
        'Shape "auto" with k given, in default fits of the other version: shortest of turns taken in turn',
        ["table", "one fit there, ms", "shape auto, ms", "fits", "fits, processor", "asked for", "shape"],
    )
    for n, wanted in WANTED.items():
        for number, (name, design) in enumerate(DESIGNS.items()):
            rng = np.random.default_rng([5, number, n])
            X, y = design(rng, n)
            X, k = with_gaps(X, 0.3, rng), len(np.unique(y))
            progress(f"shape_time: {n} x 20, {name}")
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "table.npy"
                np.save(path, X)
                theirs = subprocess.Popen(
                    [sys.argv[1], "-c", WORKER, str(path), str(k)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                )  # fmt: skip
                assert theirs.stdin is not None
                assert theirs.stdout is not None
                results = []
                for turn in range(ROUNDS):
                    others = []
                    for seed in range(3):
                        theirs.stdin.write(f"{seed}\n")
                        theirs.stdin.flush()
                        others.append(json.loads(theirs.stdout.readline()))
                    began, processor = time.perf_counter(), time.process_time()
                    shape = with_shapes(X, k, turn % 2)
                    ours = [time.perf_counter() - began, time.process_time() - processor]
                    results.append([*ours, *np.median(others, axis=0)])
                theirs.stdin.close()
                theirs.wait()
            wall, ours, other_wall, other = np.min(results, axis=0).tolist()
            sheet.add(
                f"{n} x 20, {name}",
                1e3 * other_wall,
                1e3 * wall,
                wall / other_wall,
                ours / other,
                wanted,
                shape,
            )
            sheet.save()
    sheet.show()


if __name__ == "__main__":
    run()
