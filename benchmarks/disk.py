"""Tables on disk: python -m benchmarks disk

A fit on a mapped file against the same table in memory, 12.5 million x 20 float32 (1 GB), k = 20, 30 %
missing, `lloyd`: seconds an iteration, in turn, and the memory of its own (RssAnon: mapped pages do not
count). And `kpod fit` on ten Parquet files of 5 million x 50 in all (2 GB of numbers): seconds, processor
seconds and memory of its own; with OLD_KPOD set to the program of version 0.1.0, that on one such file, too.
And the peak of all resident memory, mapped pages and libraries included, of `kpod fit` and `kpod predict` on
ten Parquet files of 4 million x 20 float32 (320 MB). Takes 5 GB of disk.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import Sheet, progress

FIT = """
import json, sys, time, warnings
import numpy as np
import kpod
warnings.simplefilter("ignore")
X = kpod.scan(sys.argv[1]) if sys.argv[2] == "disk" else np.load(sys.argv[1])
times = []
model = kpod.KPOD(20, algorithm="lloyd", n_init=1, max_iter=6, tol=0, random_state=0)
model._progress_line = lambda line: times.append(time.perf_counter())
model.fit(X)
print(json.dumps({"seconds": float(np.median(np.diff(times[:6]))), "loss": model.inertia_}))
"""


def watched(command: list[str], what: str = "RssAnon") -> tuple[str, float, float, float]:
    """Standard output, seconds, processor seconds and the peak of RssAnon, or of another one, in MB."""
    before, began, peak = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0.0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out: list[str] = []
    reader = threading.Thread(target=lambda: out.append(process.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    while process.poll() is None:
        found = re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        time.sleep(0.02)
    reader.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return out[0], time.perf_counter() - began, used, peak


def rows(rng: np.random.Generator, centers: np.ndarray, n: int) -> np.ndarray:
    X = centers[rng.integers(len(centers), size=n)]
    X = X + rng.standard_normal(X.shape, dtype=X.dtype)
    X[rng.random(X.shape, dtype=np.float32) < 0.3] = np.nan
    return X


def iterations(folder: Path) -> None:
    path, n, rng = folder / "x.npy", 12_500_000, np.random.default_rng(0)
    centers = rng.normal(size=(20, 20)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, 20))
    for start in range(0, n, n // 50):
        X[start : start + n // 50] = rows(rng, centers, n // 50)
    del X
    found: dict[str, list[tuple[float, float]]] = {"memory": [], "disk": []}
    for turn in range(3):
        for where, results in found.items():
            progress(f"disk: {where}, {turn + 1} of 3")
            out, _, _, peak = watched([sys.executable, "-c", FIT, str(path), where])
            results.append((json.loads(out)["seconds"], peak))
    path.unlink()
    sheet = Sheet("disk", "12,500,000 x 20 float32, k = 20, lloyd", ["where", "s an iteration", "own MB"])
    for where, results in found.items():
        seconds, peaks = zip(*results, strict=True)
        sheet.add(where, float(np.median(seconds)), max(peaks))
    memory, disk = sheet.column("s an iteration")
    sheet.add("ratio", disk / memory, None)
    sheet.show()


def parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, n, p = np.random.default_rng(0), 5_000_000, 50
    centers, whole = 3 * rng.normal(size=(10, p)), None
    (folder / "parts").mkdir()
    for part in range(10):
        columns = {
            f"c{j}": pa.array(x, from_pandas=True) for j, x in enumerate(rows(rng, centers, n // 10).T)
        }
        table = pa.table(columns)
        pq.write_table(table, folder / "parts" / f"{part}.parquet")
        whole = whole or pq.ParquetWriter(folder / "one.parquet", table.schema)
        whole.write_table(table)
    assert whole is not None
    whole.close()
    options = ["-k", "10", "-q", "-o", str(folder / "out.parquet")]
    program = str(Path(sys.executable).with_name("kpod"))
    commands = {
        "in pieces": [program, "fit", str(folder / "parts"), "--scratch", str(folder), *options],
    }
    if "OLD_KPOD" in os.environ:
        commands["0.1.0"] = [os.environ["OLD_KPOD"], "fit", str(folder / "one.parquet"), *options]
    sheet = Sheet("disk-cli", "kpod fit, 5,000,000 x 50", ["what", "s", "processor s", "own MB"])
    for what, command in commands.items():
        progress(f"disk: kpod fit, {what}")
        sheet.add(what, *watched(command)[1:])
    sheet.show()


def resident(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, n, p = np.random.default_rng(0), 4_000_000, 20
    centers = (3 * rng.normal(size=(10, p))).astype(np.float32)
    (folder / "single").mkdir()
    for part in range(10):
        columns = rows(rng, centers, n // 10).T
        table = pa.table({f"c{j}": pa.array(x, from_pandas=True) for j, x in enumerate(columns)})
        pq.write_table(table, folder / "single" / f"{part}.parquet")
    program, out = str(Path(sys.executable).with_name("kpod")), ["-q", "-o", str(folder / "out.parquet")]
    parts, model = str(folder / "single"), str(folder / "model.kpod")
    pieces = ["--scratch", str(folder)]
    sheet = Sheet(
        "disk-resident",
        "4,000,000 x 20 float32, 320 MB",
        ["what", "s", "processor s", "resident MB", "of it"],
    )
    for what, command in (
        ("kpod fit", [program, "fit", parts, "-k", "10", "--model", model, *pieces, *out]),
        ("kpod predict", [program, "predict", model, parts, *pieces, *out]),
    ):
        progress(f"disk: {what}, resident memory")
        _, seconds, used, peak = watched(command, "VmHWM")
        sheet.add(what, seconds, used, peak * 1.048576, peak * (1 << 20) / (4 * n * p))
    sheet.show()


def run() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("KPOD_SCRATCH")) as folder:
        iterations(Path(folder))
        parquet(Path(folder))
        resident(Path(folder))
