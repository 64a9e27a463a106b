"""Clusters that lose what a fit needs (workers, client, scheduler): it ends with the same bits, or an error.

Workers are processes of their own, without a nanny, so that one that is killed stays away. Every fit runs
on a thread, and one that has not ended after minutes fails its test, rather than the whole run.
"""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from kpod import KPOD
from kpod._engine.workers import waiting
from tests.engine.test_dask import (
    da,
    dask,
    distributed,
    in_chunks,
    on_workers,  # noqa: F401  # a fixture
    same,
    table,
    until,
)
from tests.helpers.clusters import patient  # noqa: F401  # the fixture

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::ResourceWarning")
SAFETY_NET = 3000


def local_cluster(n_workers=0):
    """A scheduler in this process, and so many workers with a nanny."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=100
    )


@contextmanager
def scheduler():
    """A client of a cluster without workers."""
    with local_cluster() as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def workers(client, n=1):
    """So many workers, which nobody starts again."""
    flags = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, *flags]
    before = len(client.nthreads())
    started = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(n)]
    try:
        until(lambda: len(client.nthreads()) == before + n, SAFETY_NET)
        yield started
    finally:
        for worker in started:
            worker.kill()
            worker.wait()


def ended(function):
    """What a function returns or raises, on a thread; a hang is an error."""
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SAFETY_NET)
    assert found, "the fit hangs"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def fit_and(act, client, X, at="lloyd 2:"):
    """A fit in which something happens after an iteration."""
    model = KPOD(5, init=X[:5], tol=0)
    model._progress_line = lambda line: act() if at in line else None

    def fit():
        with client.as_current():
            return model.fit(in_chunks(X))

    return ended(fit)


def kill(started):
    for worker in started:
        worker.send_signal(signal.SIGKILL)
        worker.wait()


def test_a_fit_without_workers_says_so_and_then_raises(monkeypatch):
    monkeypatch.setattr(waiting, "SECONDS_TO_WARNING", 0)
    X = table(n_rows=800)
    with scheduler() as client, dask.config.set({"kpod.no-workers-timeout": "2s"}):
        address = client.scheduler.address
        warned = rf"{address} has no workers\. Start some: dask worker {address}"
        raised = rf"{address} has had no workers for 2 seconds.*kpod\.no-workers-timeout"
        with (
            workers(client, 2) as started,
            pytest.warns(RuntimeWarning, match=warned),
            pytest.raises(RuntimeError, match=raised),
        ):
            fit_and(lambda: kill(started), client, X)
        # None from the beginning.
        with pytest.warns(RuntimeWarning, match=warned), pytest.raises(RuntimeError, match=raised):
            fit_and(lambda: None, client, X)


@pytest.mark.parametrize("odd", ["10 min", None, "soon"])
def test_a_setting_that_is_no_time_is_refused(odd):
    with dask.config.set({"kpod.no-workers-timeout": odd}), pytest.raises(ValueError, match="must be a time"):
        waiting.no_workers_timeout()
    with dask.config.set({"kpod.no-workers-timeout": "10 minutes"}):
        assert waiting.no_workers_timeout() == 600


def test_workers_that_come_back_in_time_end_with_the_same_bits(monkeypatch):
    X = table(n_rows=800)
    here = KPOD(5, init=X[:5], tol=0).fit(in_chunks(X))
    with scheduler() as client, workers(client) as started, ExitStack() as later:

        def replace():
            kill(started)
            until(lambda: not client.nthreads(), SAFETY_NET)
            threading.Thread(target=later.enter_context, args=[workers(client)]).start()

        there = fit_and(replace, client, X)
    same(here, there)


def test_a_worker_that_stops_for_a_while_costs_time():
    X = table(n_rows=800)
    here = KPOD(5, init=X[:5], tol=0).fit(in_chunks(X))
    with scheduler() as client, workers(client, 2) as started:

        def stop():
            started[0].send_signal(signal.SIGSTOP)
            threading.Timer(2, started[0].send_signal, [signal.SIGCONT]).start()

        there = fit_and(stop, client, X)
    same(here, there)


def waits_for(X, path):
    """A partition that takes until a file is there."""
    until(lambda: os.path.exists(path), SAFETY_NET)  # noqa: PTH110
    return X


def test_clients_that_are_closed_by_another_thread_are_told_of(tmp_path):
    """While the fit waits for what never comes."""
    X = table(n_rows=800)
    slow = in_chunks(X).map_blocks(waits_for, str(tmp_path / "go"), dtype=X.dtype, meta=X[:0])
    with scheduler() as other, workers(other):
        client = distributed.Client(other.scheduler.address, set_as_default=False)

        def close():
            until(lambda: any(other.processing().values()), SAFETY_NET)
            client.close()

        def fit():
            with client.as_current():
                KPOD(5, init=X[:5]).fit(slow)

        threading.Thread(target=close, daemon=True).start()
        with pytest.raises(RuntimeError, match="was closed while it was in use"):
            ended(fit)
        (tmp_path / "go").touch()


def test_loops_that_stop_before_a_call_has_begun_leave_no_warning_behind():
    """A call is handed over, and the loop ends before its next round."""
    loop = asyncio.new_event_loop()
    client = SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop))
    pending = waiting.start(client, lambda: None)
    loop.close()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        del pending
        gc.collect()
    assert not seen, seen[0].message
    with pytest.raises(waiting.ClientClosedError):
        waiting.start(client, lambda: None)


def test_clusters_that_are_restarted_are_told_of():
    """What was lost was no scattered data, and to read it in tasks is no help."""
    X = table(n_rows=800)
    with (
        local_cluster(1) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(RuntimeError, match=r"was restarted while it was in use.*Fit again"),
    ):
        fit_and(lambda: client.restart(timeout=SAFETY_NET), client, X)


def test_a_restart_ends_a_wait_for_workers_that_are_gone():
    """The scheduler can go on trying to reach a worker of before, while new ones are there."""
    with local_cluster(1) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        connection = waiting.Connection.of(client)
        client.restart(timeout=SAFETY_NET)
        until(client.nthreads, SAFETY_NET)
        gone = client.loop.asyncio_loop.create_future()

        def wait():
            with connection.explained():
                waiting.wait_for(connection, lambda: gone)

        with pytest.raises(RuntimeError, match=r"was restarted while it was in use"):
            ended(wait)
        client.loop.add_callback(gone.cancel)


@contextmanager
def scheduler_process(folder):
    """A client of a scheduler that is a process of its own, and that process."""
    about = folder / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port", "0"]
    process = subprocess.Popen([*command, "--scheduler-file", str(about)], stderr=subprocess.DEVNULL)
    try:
        until(about.exists, SAFETY_NET)
        with distributed.Client(
            scheduler_file=str(about), set_as_default=False, timeout=SAFETY_NET
        ) as client:
            yield client, process
    finally:
        process.kill()
        process.wait()


def test_schedulers_that_do_not_answer_or_die_are_told_of(tmp_path):
    X = table(n_rows=800)
    with scheduler_process(tmp_path) as (client, process), workers(client):
        with (
            dask.config.set({"kpod.no-workers-timeout": "2s"}),
            pytest.raises(RuntimeError, match=r"has not answered for 2 seconds\. See whether it is running"),
        ):
            fit_and(lambda: process.send_signal(signal.SIGSTOP), client, X)
        process.send_signal(signal.SIGCONT)
        until(client.nthreads, SAFETY_NET)
        client._timeout = 1  # of its attempts to connect again
        with pytest.raises(RuntimeError, match=r"connection to the Dask scheduler at .* was lost|was closed"):
            fit_and(process.kill, client, X)


def test_clients_of_an_event_loop_are_refused():
    """Waiting in the very thread that would have to answer never ends."""

    async def fit():
        async with distributed.Client(processes=False, asynchronous=True, dashboard_address=":0") as client:
            with client.as_current():
                KPOD(2).fit(da.ones((10, 2), chunks=5))

    with pytest.raises(TypeError, match="asynchronous"):
        ended(lambda: asyncio.run(fit()))
