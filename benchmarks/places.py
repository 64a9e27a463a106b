"""Tables wherever they are: python -m benchmarks places

`kpod fit -k 12 --no-verdict` on a folder of Parquet files, 40 million x 20 float32 (3.2 GB of numbers, 30 %
missing; PLACES_ROWS for fewer), against pyarrow reading the same columns batch by batch, in turn: processor
seconds (the lower of two runs, as the pages of the first scratch file may be new to the machine), the peak of
all resident memory (mapped pages included) over the size of the numbers, and that of memory of its own.
And what the same rows take from a Hive folder, a Delta table, a lazy frame of polars and a bucket (moto's
server, in the same process), 2 million of them: processor seconds of `kpod.scan`, each of which has to give
the same bits (a Delta table those that deltalake reads, which writes rows in an order of its own).
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.disk import rows, watched
from benchmarks.harness import Sheet, progress

ROWS = int(os.environ.get("PLACES_ROWS", "40000000"))
FEWER, PARTS, P = 2_000_000, 20, 20
READ = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
    for batch in pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18).iter_batches((1 << 20) // 20):
        pass
"""


def write(folder: Path, n: int, parts: int = PARTS) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centers = (3 * rng.normal(size=(12, P))).astype(np.float32)
    folder.mkdir()
    for part in range(parts):
        columns = rows(rng, centers, n // parts).T
        table = pa.table({f"c{j}": pa.array(x, from_pandas=True) for j, x in enumerate(columns)})
        pq.write_table(table, folder / f"part-{part:02}.parquet")


def command_line(folder: Path) -> None:
    progress(f"places: writing {ROWS:,} rows")
    write(folder / "flat", ROWS)
    flat, program = str(folder / "flat"), str(Path(sys.executable).with_name("kpod"))
    sheet = Sheet(
        "places",
        f"{ROWS:,} x {P} float32 in {PARTS} Parquet files",
        ["what", "s", "processor s", "of pyarrow's", "resident, of the numbers", "own MB"],
    )
    read = [sys.executable, "-c", READ, flat]
    fit = [
        program,
        "fit",
        flat,
        "-k",
        "12",
        "--shape",
        "round",
        "--no-verdict",
        "--json",
        "--scratch",
        str(folder),
    ]
    found: dict[str, list[tuple[str, float, float, float]]] = {"pyarrow": [], "kpod fit": []}
    for kind in ("RssAnon", "VmHWM"):
        for what, command in (("pyarrow", read), ("kpod fit", fit)):
            progress(f"places: {what}")
            found[what].append(watched(command, kind))
    least, seconds = (min(run[2] for run in found["pyarrow"]), min(run[1] for run in found["pyarrow"]))
    sheet.add("pyarrow reads", seconds, least, 1.0, None, None)
    (_, first, used, own), (_, second, again, peak) = found["kpod fit"]
    used = min(used, again)
    resident = peak * (1 << 20) / (4 * ROWS * P)
    sheet.add("kpod fit -k 12", min(first, second), used, used / least, resident, own * 1.048576)
    sheet.show()


def digest(table: Any) -> bytes:
    """Of the bits of a table."""
    if not isinstance(table, np.ndarray):
        table = np.column_stack([column.to_numpy() for column in table.columns])
    return hashlib.blake2b(np.ascontiguousarray(table)).digest()


def the_same_bits(folder: Path) -> None:
    import logging

    import deltalake
    import polars as pl
    import pyarrow.dataset as ds
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    import kpod

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    write(folder / "few", FEWER, 4)
    few = ds.dataset(folder / "few")
    for number, part in enumerate(sorted((folder / "few").iterdir())):
        place = folder / "hive" / f"year={2020 + number}"
        place.mkdir(parents=True)
        (place / part.name).symlink_to(part)
    deltalake.write_deltalake(str(folder / "delta"), few.to_table(), target_file_size=1 << 40)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    bucket = fs.S3FileSystem(
        access_key="x", secret_key="x", region="us-east-1", endpoint_override=f"http://{host}:{port}",
        allow_bucket_creation=True,
    )  # fmt: skip
    bucket.create_dir("tables")
    fs.copy_files(str(folder / "few"), "tables/few", fs.LocalFileSystem(), bucket)
    names = [f"c{j}" for j in range(P)]
    places = {
        "Parquet folder": (folder / "few", {}),
        "Hive folder": (folder / "hive", {}),
        "Delta table": (folder / "delta", {}),
        "LazyFrame": (pl.scan_parquet(sorted((folder / "few").iterdir())), {}),
        "S3": ("tables/few", {"filesystem": bucket}),
    }
    sheet = Sheet("places-bits", f"{FEWER:,} x {P} float32", ["place", "s", "processor s", "the same bits"])
    expected = None
    for what, (place, options) in places.items():
        progress(f"places: {what}")
        began, used = time.perf_counter(), time.process_time()
        with kpod.scan(place, columns=names, scratch=folder, progress=lambda *_: None, **options) as table:
            seconds, used = time.perf_counter() - began, time.process_time() - used
            found = digest(table.values)
        expected = expected or found
        own = digest(deltalake.DeltaTable(place).to_pyarrow_table()) if what == "Delta table" else expected
        sheet.add(what, seconds, used, "yes" if found == own else "NO")
    sheet.show()
    server.stop()


def run() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("KPOD_SCRATCH")) as folder:
        the_same_bits(Path(folder))
        command_line(Path(folder))
