"""The figures of the command line: python benchmarks/command_line.py

`kpod fit` on a CSV file of 1e6 x 20 entries (200 MB) against a script that imports the same
libraries, reads with pyarrow, fits with KPOD and writes with pyarrow; `kpod --help` against
importing click and rich; and the size of the report of a 100,000 x 50 table. Runs take turns,
medians are compared.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import kpod
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


def make_table(path, n_rows=1_000_000, n_columns=20, missing=0.2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, n_columns))[rng.integers(5, size=n_rows)]
    X = np.round(X + 0.7 * rng.normal(size=X.shape), 9)
    X[rng.random(X.shape) < missing] = np.nan
    names = [f"c{j}" for j in range(n_columns)]
    pa.csv.write_csv(
        pa.table(dict(zip(names, (pa.array(c, from_pandas=True) for c in X.T), strict=True))), path
    )


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(name, ours, theirs, times):
    runs = [(seconds(ours), seconds(theirs)) for _ in range(times)]
    mine, other = (statistics.median(side) for side in zip(*runs, strict=True))
    print(f"{name}: {mine:.2f} s against {other:.2f} s, ratio {mine / other:.2f}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        data, out = f"{folder}/data.csv", f"{folder}/out.csv"
        make_table(data)
        print(f"CSV file of {Path(data).stat().st_size / 1e6:.0f} MB")
        fit = [KPOD, "fit", data, "-k", "5", "-q", "-o", out]
        script = [sys.executable, "-c", SCRIPT, data, out]
        compare("kpod fit", fit, [*script, "scale"], 3)
        compare("kpod fit --no-scale", [*fit, "--no-scale"], [*script, "raw"], 3)
    imports = [sys.executable, "-c", "import click, rich"]
    compare("kpod --help", [KPOD, "--help"], imports, 15)
    X = mcar(make_mixture(8, n_samples=100_000, n_features=50, rng=0)[0], 0.3, rng=0)
    page = kpod.report(kpod.KPOD(8, random_state=0).fit(X), X).html
    print(f"report of a 100,000 x 50 table: {len(page.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
