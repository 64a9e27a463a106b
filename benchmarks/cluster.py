"""What a Dask cluster adds to an iteration: two workers of one thread against two threads, in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.dense import make, punch
from benchmarks.harness import Sheet, progress, timed
from kpod._engine.executors import Executor, threads
from kpod._engine.solvers.interface import Settings
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.table import make_table
from kpod._engine.workers.dask_executor import Cluster
from kpod._inputs.dask_tables import DaskTable

N_BLOCKS, N_ITERATIONS, N_WARM = 64, 25, 3
SHAPES = [(200_000, 20, 20), (1_000_000, 20, 20), (1_000_000, 50, 50)]


def descent(X: Any, executor: Executor, centers: np.ndarray) -> Descent:
    table = make_table(DaskTable(X, executor), executor)
    return Descent(table, executor, table.units.to(centers), Settings(tol=0))


def run() -> None:
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
            here, there = descent(rows, two, centers), descent(rows, Cluster(client), centers)
            times = []
            for _ in range(N_ITERATIONS):
                pair = [timed(lambda: (it.assign(), it.update()))[1] for it in (here, there)]
                times.append(pair)
            ms = 1000 * np.array(times[N_WARM:])
            sheet.add(
                n, p, k, *np.median(ms, axis=0), float(np.median(ms[:, 1] - ms[:, 0])),
                str(np.array_equal(here.centers, there.centers)),
            )  # fmt: skip
    sheet.show()


if __name__ == "__main__":
    run()
