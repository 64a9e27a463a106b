"""What a cluster adds to an iteration: Dask against two threads in turn, Spark against its own k-means."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod._engine.executors import Executor, threads
from kpod._engine.solvers.interface import Settings
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.table import make_table
from kpod._engine.workers.dask_executor import DaskExecutor
from kpod._engine.workers.spark_executor import spark_executor
from kpod._inputs.collections import table_of

N_BLOCKS, N_ITERATIONS, N_WARM = 64, 25, 3
SHAPES = [(200_000, 20, 20), (1_000_000, 20, 20), (1_000_000, 50, 50)]
SPARK_ROWS, SPARK_PARTITIONS, SPARK_ITERATIONS, SPARK_ROUNDS = 250_000, 8, 8, 5


def descent(X: Any, executor: Executor, centers: np.ndarray) -> Descent:
    table = make_table(table_of(X, executor, None), executor)
    return Descent(table, executor, table.units.to(centers), Settings(tol=0))


def dask() -> Sheet:
    import dask.array as da
    from distributed import Client, LocalCluster

    sheet = Sheet(
        "cluster",
        f"Iterations of lloyd in {N_BLOCKS} blocks, 30 % missing, float32: two workers against two threads",
        ["n", "p", "k", "threads: ms", "workers: ms", "median difference: ms", "same bits"],
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        threads(2) as two,
    ):
        for n, p, k in SHAPES:
            progress(f"cluster: {n} x {p}, k = {k}")
            X, _ = make(n, p, k, 2.0, np.float32)
            centers = X[:k].astype(np.float64)
            rows = da.from_array(punch(X, 0.3), chunks=(-(-n // N_BLOCKS), p))
            here, there = descent(rows, two, centers), descent(rows, DaskExecutor(client), centers)
            times = []
            for _ in range(N_ITERATIONS):
                pair = [timed(lambda: (it.assign(), it.update()))[1] for it in (here, there)]
                times.append(pair)
            ms = 1000 * np.array(times[N_WARM:])
            sheet.add(
                n, p, k, *np.median(ms, axis=0), float(np.median(ms[:, 1] - ms[:, 0])),
                str(np.array_equal(here.centers, there.centers)),
            )  # fmt: skip
    return sheet


def written(X: np.ndarray, folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, part in enumerate(np.array_split(X, SPARK_PARTITIONS)):
        columns = {f"c{j}": pa.array(part[:, j], from_pandas=True) for j in range(X.shape[1])}
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return folder


def used(task: Callable[[], Any]) -> tuple[Any, float]:
    """What a task returns, and the processor seconds of this process, the JVM and its Python processes."""
    before = processor_seconds()
    return task(), processor_seconds() - before


def processor_seconds() -> float:
    import psutil

    here, total = psutil.Process(), 0.0
    for process in [here, *here.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # children that have ended included
    return total


def spark(n: int = SPARK_ROWS * SPARK_PARTITIONS, p: int = 20, k: int = 20) -> Sheet:
    """An iteration beside one of MLlib's KMeans, on column means in the gaps; packing beside a sum of all.

    Each after a first round that nobody counts; medians.
    """
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    sheet = Sheet(
        "spark",
        f"Processor seconds on Spark, local[2], {SPARK_PARTITIONS} Parquet files, 30 % missing, float32",
        [
            "n",
            "p",
            "k",
            "sums: s",
            "packing: s",
            "of sums",
            "first: s",
            "iteration: s",
            "MLlib: s",
            "of MLlib",
        ],
    )
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g").config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.files.openCostInBytes", str(1 << 40)).getOrCreate()
    )  # fmt: skip
    X, _ = make(n, p, k, 2.0, np.float32)
    centers = X[:k].astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        frame = session.read.parquet(str(written(punch(X, 0.3), Path(folder))))
        columns = [f.sum(name) for name in frame.columns]  # or Parquet's footer would answer
        rounds = []
        for number in range(1 + SPARK_ROUNDS):
            progress(f"cluster: Spark, round {number} of {SPARK_ROUNDS}")
            sums = used(lambda: frame.agg(*columns).collect())[1]
            with spark_executor(session) as executor:
                values, packing = used(partial(table_of, frame, executor, None))
                table = make_table(values, executor)
                it = Descent(table, executor, table.units.to(centers), Settings(tol=0))
                _, first = used(lambda it=it: (it.assign(), it.update()))
                later = [used(lambda it=it: (it.assign(), it.update()))[1] for _ in range(SPARK_ITERATIONS)]
            rounds.append([sums, packing, first, float(np.mean(later))])
        sums, packing, first, iteration = np.median(rounds[1:], axis=0)

        # Only now: its vectors take up much of the JVM's memory.
        means = frame.agg(*(f.mean(name).alias(name) for name in frame.columns)).first().asDict()
        assembler = VectorAssembler(inputCols=frame.columns, outputCol="x")
        vectors = assembler.transform(frame.fillna(means)).select("x").persist()
        vectors.count()

        def peer(iterations: int) -> float:
            kmeans = KMeans(k=k, featuresCol="x", maxIter=iterations, tol=0.0, seed=0, initMode="random")
            return used(lambda: kmeans.fit(vectors))[1]

        peers: list[float] = []
        for number in range(1 + SPARK_ROUNDS):
            progress(f"cluster: MLlib, round {number} of {SPARK_ROUNDS}")
            peers.append((peer(1 + SPARK_ITERATIONS) - peer(1)) / SPARK_ITERATIONS)
            mllib = float(np.median(peers[1:] or peers))
            sheet.rows = [
                [n, p, k, sums, packing, packing / sums, first, iteration, mllib, iteration / mllib]
            ]
            sheet.save()
    session.stop()
    return sheet


def run() -> None:
    for sheet in (dask(), spark()):
        sheet.show()


if __name__ == "__main__":
    run()
