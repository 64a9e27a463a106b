"""Fits on a real cluster whose workers are killed or stopped; run by hand, not by pytest.

    python -m tests.campaigns.worker_deaths [--killed 20] [--gone 5] [--stopped 3] [--spark 20] [--seed 0]

`killed`: every worker is killed (SIGKILL) once, each at a moment of its own, and its nanny starts another;
`gone`: all workers are killed at a random moment, and none are started; `stopped`: one worker is
stopped (SIGSTOP) for 20 seconds; `spark`: all Python processes of a Spark session are killed once, at a
random moment. Every fit must end, with the bits of a fit without a cluster or with an error that says what
happened; "hangs" is what has not ended after ten minutes. The last line counts.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress

import dask
import dask.array as da
import distributed
import numpy as np
import psutil
from dask.delayed import delayed

from kpod import KPOD
from kpod._engine import sizes
from tests.helpers.spark import frame_of, spark_session
from tests.helpers.tables import clustered

N_WORKERS, N_ROWS = 2, 1000
FITTED = ("cluster_centers_", "counts_", "inertia_", "loss_curve_", "column_means_")
MOST_SECONDS = 600


def part(seed):
    """A partition, made on a worker; slowly, as from a disk."""
    time.sleep(0.05)
    return clustered(np.random.default_rng(seed), N_ROWS, 10, k=8, missing=0.4, spread=1.2)[0]


def table():
    parts = [delayed(part, pure=False)(seed) for seed in range(12)]
    return da.concatenate([da.from_delayed(one, (N_ROWS, 10), float) for one in parts])


def model(max_iter=30):
    return KPOD(8, init=part(0)[:8], tol=0, max_iter=max_iter)


@contextmanager
def with_nannies():
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=100
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def without_nannies():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=100) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        flags = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, *flags]
        started = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(N_WORKERS)]
        try:
            client.wait_for_workers(N_WORKERS, MOST_SECONDS)
            yield client
        finally:
            for worker in started:
                worker.kill()
                worker.wait()


def pids(client):
    """Of all workers, once all are back."""
    while True:
        with suppress(Exception):  # one is on its way out, or not there yet
            found = list(client.run(os.getpid).values())
            if len(found) == N_WORKERS:
                return found
        time.sleep(0.5)


def later(seconds, pid, what):
    timer = threading.Timer(seconds, send, [pid, what])
    timer.start()
    return timer


def send(pid, what):
    with suppress(ProcessLookupError):
        os.kill(pid, what)


def kill_each_once(client, rng, seconds):
    moments = rng.uniform(0, seconds, N_WORKERS)
    return [later(at, pid, signal.SIGKILL) for pid, at in zip(pids(client), moments, strict=True)]


def kill_for_good(client, rng, seconds):
    moment = rng.uniform(0, seconds)
    return [later(moment, pid, signal.SIGKILL) for pid in pids(client)]


def stop_one(client, rng, seconds):
    pid, moment = rng.choice(pids(client)), rng.uniform(0, seconds)
    return [later(moment, pid, signal.SIGSTOP), later(moment + 20, pid, signal.SIGCONT)]


def outcome(where, X, here):
    """How a fit ends: "same bits", "other bits", "hangs", or the error."""
    found = []

    def fit():
        try:
            with where:
                there = model(here.max_iter).fit(X)
            equal = all(np.array_equal(getattr(there, name), getattr(here, name)) for name in FITTED)
            found.append("same bits" if equal else "OTHER BITS")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(MOST_SECONDS)
    return found[0] if found else "HANGS"


def disturbed(client, harm, rng, here, seconds, kind, number):
    """Print and return how a fit ends in the course of which something happens to workers of Dask."""
    client.wait_for_workers(N_WORKERS, MOST_SECONDS)
    timers = harm(client, rng, seconds)
    return run_disturbed(timers, client.as_current(), table(), here, kind, number)


def run_disturbed(timers, where, X, here, kind, number):
    began = time.monotonic()
    found = outcome(where, X, here)
    early = ", before the last signal" if any(timer.is_alive() for timer in timers) else ""
    print(f"{kind} {number}: {found} ({time.monotonic() - began:.1f} s{early})", flush=True)
    for timer in timers:
        timer.join()
    return f"{kind}: {found.split(' at ')[0]}"


def kill_processes_of_spark():
    """The Python processes of the session's executors, but not the one that forks them."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if all("pyspark.daemon" in one.cmdline() for one in (process, process.parent())):
                process.kill()
                KILLED.append(process.pid)


KILLED = []


def killed_on_spark(n, rng):
    """How fits end in the course of which all Python processes of Spark are killed."""
    spark = spark_session()
    with tempfile.TemporaryDirectory() as folder:
        rows = table().compute()
        X, here = (
            frame_of(spark, rows, folder, 4, "abcdefghij"),
            model(6).fit(da.from_array(rows, (3 * N_ROWS, 10))),
        )
        assert outcome(nullcontext(), X, here) == "same bits"
        began = time.monotonic()
        assert outcome(nullcontext(), X, here) == "same bits"
        seconds = time.monotonic() - began
        print(f"undisturbed on Spark: same bits ({seconds:.1f} s)", flush=True)
        for number in range(n):
            before, timer = len(KILLED), threading.Timer(rng.uniform(0, seconds), kill_processes_of_spark)
            timer.start()
            found = run_disturbed([timer], nullcontext(), X, here, "spark", number)
            yield found if len(KILLED) > before else f"{found}, with no process to kill"
    spark.stop()


def main():
    parser = argparse.ArgumentParser()
    for kind, n in {"killed": 20, "gone": 5, "stopped": 3, "spark": 20}.items():
        parser.add_argument(f"--{kind}", type=int, default=n)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes.SMALL_REMOTE_TABLE = 0  # or else the table comes here, and a killed worker is not missed
    here = model().fit(table())
    rng = np.random.default_rng(given.seed)
    counts = Counter()
    # On a busy machine, it may take minutes until workers are back.
    with dask.config.set({"kpod.no-workers-timeout": "10 minutes"}), with_nannies() as client:
        began = time.monotonic()
        assert outcome(client.as_current(), table(), here) == "same bits"
        seconds = time.monotonic() - began
        print(f"undisturbed: same bits ({seconds:.1f} s)", flush=True)
        for kind, harm in {"stopped": stop_one, "killed": kill_each_once}.items():
            for number in range(getattr(given, kind)):
                counts[disturbed(client, harm, rng, here, seconds, kind, number)] += 1
    with dask.config.set({"kpod.no-workers-timeout": "5s"}):
        for number in range(given.gone):
            with without_nannies() as client:
                counts[disturbed(client, kill_for_good, rng, here, seconds, "gone", number)] += 1
    if given.spark:
        counts.update(killed_on_spark(given.spark, rng))
    print(dict(counts))
    if any(word in key for key in counts for word in ("HANGS", "OTHER BITS")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
