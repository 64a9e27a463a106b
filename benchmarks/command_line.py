"""The figures of the command line and the report: python -m benchmarks command_line

`kpod fit` on a CSV file of 1e6 x 20 entries (200 MB) against a script that imports the same
libraries, reads with pyarrow, fits with KPOD and writes with pyarrow; what `--report` adds to that,
against the command without it; `kpod.report` of the same table in Python, against its fit; and
`kpod --help` against importing click and rich. Runs take turns, medians are compared. The same fit with round
clusters and without the verdict against polars and KMeans, in processor seconds and in memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import kpod
from benchmarks.harness import Sheet, timed
from kpod.datasets import make_mixture
from kpod.missingness import mcar

KPOD = str(Path(sys.executable).with_name("kpod"))
SCRIPT = """
import sys, click, rich, numpy as np, pyarrow as pa, pyarrow.csv, pyarrow.compute as pc
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from kpod import KPOD
table = pa.csv.read_csv(sys.argv[1])
X = np.column_stack([column.to_numpy() for column in table.columns])
model = KPOD(5, random_state=0)
labels = (make_pipeline(StandardScaler(), model) if sys.argv[3] == "scale" else model).fit_predict(X)
pa.csv.write_csv(table.append_column("cluster", pa.array(labels)), sys.argv[2])
"""
POLARS = """
import sys, polars as pl
from sklearn.cluster import KMeans
table = pl.read_csv(sys.argv[1])
X = table.select(pl.all().fill_null(strategy="mean")).to_numpy()
labels = KMeans(10, n_init=1, random_state=0).fit(X).labels_
table.with_columns(pl.Series("cluster", labels)).write_csv(sys.argv[2])
"""
ROUND = "kpod fit -k 10 --shape round --no-verdict"
RUNS = 3


def make_values(n_rows: int = 1_000_000, n_columns: int = 20, missing: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, n_columns))[rng.integers(5, size=n_rows)]
    X = np.round(X + 0.7 * rng.normal(size=X.shape), 9)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def write(X: np.ndarray, path: str) -> None:
    columns = {f"c{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)}
    pa.csv.write_csv(pa.table(columns), path)


def seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def used(command: Sequence[str]) -> tuple[float, float]:
    """The processor seconds of a command on all threads, and its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, about = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return about.ru_utime + about.ru_stime, about.ru_maxrss / 1024


def against_polars(data: str, out: str) -> None:
    sheet = Sheet(
        "command_line-polars",
        f"{ROUND}, 1e6 x 20, over polars' read_csv, mean filling, KMeans(n_init=1) and write_csv",
        ["of", "kpod", "polars and KMeans", "ratio"],
    )
    fit = [KPOD, *ROUND.split()[1:], "-q", data, "-o", out]
    runs = np.array([
        [used(fit), used([sys.executable, "-c", POLARS, data, out])] for _ in range(RUNS)
    ])  # fmt: skip
    (seconds, mb), (of_polars, their_mb) = np.median(runs, axis=0)
    sheet.add("processor seconds", seconds, of_polars, seconds / of_polars)
    sheet.add("peak memory, GB", mb / 1024, their_mb / 1024, mb / their_mb)
    sheet.show()


def in_turn(*commands: Sequence[str], runs: int = RUNS) -> list[float]:
    """The median seconds of each command, all of them run once before any is run again."""
    times = [[seconds(command) for command in commands] for _ in range(runs)]
    return [statistics.median(side) for side in zip(*times, strict=True)]


def commands(sheet: Sheet, X: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, out, report = f"{folder}/data.csv", f"{folder}/out.csv", f"{folder}/report.html"
        write(X, data)
        fit = [KPOD, "fit", data, "-k", "5", "-q", "-o", out]
        script = [sys.executable, "-c", SCRIPT, data, out]
        plain, reported, ours = in_turn(fit, [*fit, "--report", report], [*script, "scale"])
        sheet.add("kpod fit", plain, "the script", ours, plain / ours)
        sheet.add("what --report adds", reported - plain, "kpod fit", plain, (reported - plain) / plain)
        sheet.save()
        raw, ours = in_turn([*fit, "--no-scale"], [*script, "raw"])
        sheet.add("kpod fit --no-scale", raw, "the script without scaling", ours, raw / ours)
        sheet.save()
        against_polars(data, out)
    imports = [sys.executable, "-c", "import click, rich"]
    mine, other = in_turn([KPOD, "--help"], imports, runs=15)
    sheet.add("kpod --help", mine, "importing click and rich", other, mine / other)


def python(sheet: Sheet, X: np.ndarray) -> None:
    fits, pages = [], []
    for _ in range(RUNS):
        model, fitted = timed(lambda: kpod.KPOD(5, random_state=0).fit(X))
        _, drawn = timed(lambda: kpod.report(model, X).html)
        fits.append(fitted)
        pages.append(drawn)
    fitted, drawn = statistics.median(fits), statistics.median(pages)
    sheet.add("kpod.report", drawn, "KPOD.fit", fitted, drawn / fitted)


def run() -> None:
    sheet = Sheet(
        "command_line",
        "The command line and the report, a table of 1e6 x 20, 20 % missing",
        ["what", "seconds", "against", "its seconds", "ratio"],
    )
    X = make_values()
    commands(sheet, X)
    python(sheet, X)
    sheet.show()
    X = mcar(make_mixture(8, n_samples=100_000, n_features=50, random_state=0)[0], 0.3, random_state=0)
    page = kpod.report(kpod.KPOD(8, random_state=0).fit(X), X).html
    print(f"\nReport of a 100,000 x 50 table: {len(page.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    run()
