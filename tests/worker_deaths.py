"""Fits on a real cluster whose workers are killed or stopped; run by hand, not by pytest.

    python -m tests.worker_deaths [--killed 20] [--gone 5] [--stopped 3] [--seed 0]

`killed`: every worker is killed (SIGKILL) once, each at a moment of its own, and its nanny starts another;
`gone`: all workers are killed at a random moment, and nobody starts others; `stopped`: one worker is stopped
(SIGSTOP) for 20 seconds. Every fit must end, with the bits of a fit without a cluster or with an error that
says what happened; "hangs" is what has not ended after ten minutes. The last line counts.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from contextlib import contextmanager, suppress

import dask
import dask.array as da
import distributed
import numpy as np
from dask.delayed import delayed

from kpod import KPOD
from tests.conftest import clustered

N_WORKERS = 3
FITTED = ("labels_", "cluster_centers_", "counts_", "inertia_", "loss_curve_", "column_means_")
MOST_SECONDS = 600


def part(seed):
    """A partition, made on a worker; slowly, as from a disk."""
    time.sleep(0.05)
    return clustered(np.random.default_rng(seed), 3000, 10, k=8, missing=0.4, spread=1.2)[0]


def table():
    parts = [delayed(part, pure=False)(seed) for seed in range(12)]
    return da.concatenate([da.from_delayed(one, (3000, 10), float) for one in parts])


def model():
    return KPOD(8, init=part(0)[:8], tol=0, max_iter=60)


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
    return list(client.run(os.getpid).values())


def send(pid, what):
    with suppress(ProcessLookupError):
        os.kill(pid, what)


def kill_each_once(client, rng, seconds):
    for pid, moment in zip(pids(client), rng.uniform(0, seconds, N_WORKERS), strict=True):
        threading.Timer(moment, send, [pid, signal.SIGKILL]).start()


def kill_for_good(client, rng, seconds):
    moment = rng.uniform(0, seconds)
    for pid in pids(client):
        threading.Timer(moment, send, [pid, signal.SIGKILL]).start()


def stop_one(client, rng, seconds):
    pid, moment = rng.choice(pids(client)), rng.uniform(0, seconds)
    threading.Timer(moment, send, [pid, signal.SIGSTOP]).start()
    threading.Timer(moment + 20, send, [pid, signal.SIGCONT]).start()


def outcome(client, here):
    """How a fit ends: "same bits", "other bits", "hangs", or the error."""
    found = []

    def fit():
        try:
            with client.as_current():
                there = model().fit(table())
            equal = all(np.array_equal(getattr(there, name), getattr(here, name)) for name in FITTED)
            found.append("same bits" if equal else "OTHER BITS")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(MOST_SECONDS)
    return found[0] if found else "HANGS"


def run(kind, number, rng, here):
    """Print and return how a fit ends in the course of which something happens to workers."""
    makes, harm = {
        "killed": (with_nannies, kill_each_once),
        "gone": (without_nannies, kill_for_good),
        "stopped": (with_nannies, stop_one),
    }[kind]
    with makes() as client:
        began = time.monotonic()
        undisturbed = outcome(client, here)
        seconds = time.monotonic() - began
        harm(client, rng, seconds)
        found = outcome(client, here)
        took = time.monotonic() - began - seconds
    print(f"{kind} {number}: {found} ({took:.1f} s, {seconds:.1f} s undisturbed)", flush=True)
    assert undisturbed == "same bits", undisturbed
    return f"{kind}: {found if found.isupper() or found == 'same bits' else found.split(' at ')[0] + ' ...'}"


def main():
    parser = argparse.ArgumentParser()
    for kind, n in {"killed": 20, "gone": 5, "stopped": 3}.items():
        parser.add_argument(f"--{kind}", type=int, default=n)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    here = model().fit(table())
    rng = np.random.default_rng(given.seed)
    with dask.config.set({"kpod.no-workers-timeout": "15s"}):
        counts = Counter(
            run(kind, number, rng, here)
            for kind in ("killed", "gone", "stopped")
            for number in range(getattr(given, kind))
        )
    print(dict(counts))
    if any(word in key for key in counts for word in ("HANGS", "OTHER BITS")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
