"""What KPOD("auto") costs, in default fits of another version: python -m benchmarks.auto PATH/TO/OTHER/python

The unit is a fit of that version with the true number of clusters, on one thread, on the same table: one that
does not get shorter when fits do. Seconds on one thread and on two; the shortest of a few runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import Sheet, progress

# What a worker runs: nothing in it may need more than KPOD and NumPy.
WORKER = r"""
import json, sys, time, warnings
from inspect import signature
import numpy as np
warnings.simplefilter("ignore")
from kpod import KPOD
from kpod.datasets import load_incomplete_wine, make_mixture
from kpod.missingness import mcar

def drawn_by(function, seed):
    return {"random_state" if "random_state" in signature(function).parameters else "rng": seed}

def standardised(X):
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)

def groups(n, p, k, missing, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(k, p))[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[rng.random(X.shape, dtype=np.float32) < missing] = np.nan
    return X.astype(dtype), k

def paper():
    X, _ = make_mixture(10, **drawn_by(make_mixture, 0))
    return standardised(mcar(X, 0.25, **drawn_by(mcar, 1))), 10

TABLES = {
    "wine, 178 x 13": lambda: (standardised(np.asarray(load_incomplete_wine().data, float)), 3),
    "500 x 100": paper,
    "8,000 x 30": lambda: groups(8000, 30, 12, 0.3, np.float64),
    "1,000,000 x 20": lambda: groups(1_000_000, 20, 10, 0.3, np.float32),
}
name, settings, runs = json.loads(sys.argv[1])
X, k = TABLES[name]()
KPOD(2).fit(np.random.default_rng(0).normal(size=(100, 5)))
seconds = []
for seed in range(runs):
    began = time.perf_counter()
    model = KPOD(**{"n_clusters": k, **settings}, random_state=seed).fit(X)
    seconds.append(time.perf_counter() - began)
print(json.dumps([min(seconds), len(model.cluster_centers_)]))
"""
TABLES = {"wine, 178 x 13": 5, "500 x 100": 5, "8,000 x 30": 3, "1,000,000 x 20": 2}  # and how many runs
AUTO = {"n_clusters": "auto"}
BOTH = {**AUTO, "missingness": "auto"}


def seconds(
    python: str, table: str, settings: dict[str, Any], n_threads: int, runs: int
) -> tuple[float, int]:
    """The shortest of some fits, and the number of clusters of the last."""
    command = [python, "-c", WORKER, json.dumps([table, settings, runs])]
    environment = {**os.environ, "OMP_NUM_THREADS": str(n_threads)}
    found = subprocess.run(
        command, env=environment, cwd=Path("/"), check=True, capture_output=True, text=True
    )
    shortest, k = json.loads(found.stdout)
    return shortest, k


def run() -> None:
    if len(sys.argv) < 2:
        raise SystemExit("python -m benchmarks.auto PATH/TO/OTHER/python [TABLE]")
    sheet = Sheet(
        "auto",
        'KPOD("auto") in default fits of another version on one thread',
        [
            "table",
            "a default fit, s",
            "auto, s",
            "in fits",
            "gaps open too, in fits",
            "two threads over one",
            "k",
        ],
    )
    for table, runs in TABLES.items():
        if len(sys.argv) > 2 and sys.argv[2] not in table:
            continue
        progress(f"auto: {table}")
        unit = seconds(sys.argv[1], table, {}, 1, 3 * runs)[0]
        (one, k), (two, _) = (seconds(sys.executable, table, AUTO, n, runs) for n in (1, 2))
        both = seconds(sys.executable, table, BOTH, 1, runs)[0]
        sheet.add(table, unit, one, one / unit, both / unit, two / one, k)
        sheet.save()
    sheet.show()


if __name__ == "__main__":
    run()
