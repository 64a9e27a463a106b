"""What `kpod fit` takes with everything left open: the number of clusters, the shape, gaps, and the verdict.

CPU seconds of the whole command, start of Python and reading included, so that other work on the machine
does not count; on two idle cores the wait is between half of them and all. `TABLES` (names with semicolons)
asks for some of the tables.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Sheet, progress
from kpod.datasets import load_incomplete_wine

OPEN = ("--missingness", "auto")
HOW: dict[str, tuple[str, ...]] = {
    "given": ("-k", "10", "--shape", "round", "--no-verdict"),
    "round": ("--shape", "round", *OPEN),
    "any shape": ("--shape", "auto", *OPEN),
}


def groups(path: Path, n: int, p: int = 20, k: int = 5) -> Path:
    """Groups four standard deviations apart in a table with 10 % of its entries missing."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(k, p))[rng.integers(k, size=n)] * 1.5 + rng.normal(size=(n, p))
    columns = [pa.array(x, mask=rng.random(n) < 0.1) for x in X.T]
    pq.write_table(pa.table(columns, [f"x{j}" for j in range(p)]), path)
    return path


def cpu_seconds(path: Path, options: tuple[str, ...], folder: Path) -> float:
    command = [
        sys.executable,
        "-m",
        "kpod",
        "fit",
        str(path),
        *options,
        "-q",
        "-o",
        str(folder / "out.parquet"),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> None:
    sheet = Sheet(
        "budget",
        "CPU seconds of kpod fit, by what is left open",
        ["table", "-k 10 --shape round --no-verdict", "all but the shape", "everything"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = {
            "wine, 178 x 13": lambda: Path(load_incomplete_wine().filename),
            "20,000 x 20": lambda: groups(folder / "20.parquet", 20_000),
            "1,000,000 x 20": lambda: groups(folder / "1000.parquet", 1_000_000),
        }
        wanted = os.environ.get("TABLES")
        for table, make in tables.items():
            if wanted and table not in wanted.split(";"):
                continue
            path, seconds = make(), []
            for how, options in HOW.items():
                progress(f"{table}, {how}")
                seconds.append(round(cpu_seconds(path, options, folder), 1))
            sheet.add(table, *seconds)
            sheet.save()
    sheet.show()
