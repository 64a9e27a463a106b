"""Waiting for a Dask cluster: in rounds, with a look at the client and its workers after each.

Dask's own calls wait for as long as it takes, which is forever once the last worker is gone or the
client's event loop has stopped; and its error about tasks that were lost is reworded.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kpod._common.sentences.formatting import counted
from kpod._common.warnings import warn

SECONDS_A_ROUND = 1.0
SECONDS_TO_WARNING = 10.0
SETTING = "kpod.no-workers-timeout"  # in Dask's configuration
DEFAULT = "1 minute"


class ClientClosedError(RuntimeError):
    """The client was closed while somebody waited for it."""


def wait_for(connection: Connection, call: Callable[..., Any], *args: Any, **how: Any) -> Any:
    """What a method of a connection's client returns, or an error once that cannot be expected any more.

    The call is left to itself then: Dask's `gather` ends with the tasks it waits for, which the caller
    calls off, and logs errors of its own if it is cancelled before.
    """
    pending = start(connection.client, call, *args, **how)
    watch = Watch(connection)
    while not concurrent.futures.wait([pending], SECONDS_A_ROUND).done:
        watch.look()
    return pending.result()


def wait_for_workers(connection: Connection) -> dict[str, int]:
    """The threads of each worker, as soon as there is one."""
    watch = Watch(connection)
    while not (workers := wait_for(connection, connection.client.nthreads)):
        watch.look()
        time.sleep(0.1)
    return workers


def start(client: Any, call: Callable[..., Any], *args: Any, **how: Any) -> concurrent.futures.Future[Any]:
    """A call of a client, under way on its event loop: there, its methods return what can be awaited."""

    async def made() -> Any:
        answer = call(*args, **how)
        return await answer if inspect.isawaitable(answer) else answer

    coroutine = made()
    try:
        pending = asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop)
    except RuntimeError as error:  # the loop is closed
        coroutine.close()
        raise ClientClosedError from error
    weakref.finalize(pending, close_if_never_run, coroutine)
    return pending


def close_if_never_run(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Python warns of coroutines that were never awaited, which is what a loop that stops leaves behind."""
    if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
        coroutine.close()


class Watch:
    """Since when a cluster has had no workers, or has not answered."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.client, self.address = connection, connection.client, connection.address
        self.limit = no_workers_timeout()
        self.since: float | None = None
        self.warned = False
        self._pending: concurrent.futures.Future[Any] | None = None

    def look(self) -> None:
        """Warn of a cluster without workers, and raise once it has had none for long."""
        if self.client.status in ("closing", "closed"):
            raise ClientClosedError
        if self.connection.was_restarted:  # workers may be back, but what was asked of those before is lost
            raise concurrent.futures.CancelledError
        n_workers = self._n_workers()
        if n_workers:
            self.since, self.warned = None, False
            return
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        waited, limit = now - self.since, self.limit
        # A scheduler that does not answer is stopped, cut off, or busy with something large.
        mute = n_workers is None
        remedy = "See whether it is running" if mute else f"Start some: dask worker {self.address}"
        if waited >= limit:
            raise RuntimeError(
                f"The Dask scheduler at {self.address} has {'not answered' if mute else 'had no workers'} "
                f"for {limit:g} seconds. {remedy}. To wait longer, "
                f"dask.config.set({{'{SETTING}': '1 hour'}})."
            )
        if waited >= SECONDS_TO_WARNING and not self.warned:
            self.warned = True
            warn(
                f"The Dask scheduler at {self.address} {'does not answer' if mute else 'has no workers'}. "
                f"{remedy}. If nothing changes, an error is raised in {limit - waited:.0f} seconds.",
                RuntimeWarning,
            )

    def _n_workers(self) -> int | None:
        """As the scheduler reports them; None while it has not answered."""
        with suppress(Exception):
            pending = self._pending or start(self.client, self.client.nthreads)
            self._pending = None
            if concurrent.futures.wait([pending], SECONDS_A_ROUND).done:
                return len(pending.result())
            self._pending = pending
        return None


@dataclass(frozen=True)
class Connection:
    """A client's connection to its scheduler when a fit began: the fit's blocks last as long as that."""

    client: Any
    address: str
    generation: int  # counts restarts
    comm: Any

    @classmethod
    def of(cls, client: Any) -> Connection:
        return cls(client, address_of(client), client.generation, client.scheduler_comm)

    @property
    def was_restarted(self) -> bool:
        return bool(self.client.generation != self.generation)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Dask's error about blocks that cannot be made, reworded."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"{counted(error.allowed_failures + 1, 'worker')} died on the same part of the table, the "
                f"last one at {error.last_worker.address}, most likely out of memory. Use smaller partitions "
                "or workers with more memory."
            ) from error
        except CommClosedError as error:
            raise RuntimeError(self._cut_off) from error
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
            raise RuntimeError(self._why_lost(error)) from error

    @property
    def _cut_off(self) -> str:
        return (
            f"The connection to the Dask scheduler at {self.address} was lost, and the table with it. "
            "Fit again once the scheduler can be reached."
        )

    def _why_lost(self, error: BaseException) -> str:
        if self.was_restarted:
            return (
                f"The Dask cluster at {self.address} was restarted while it was in use, and lost the table. "
                "Fit again."
            )
        if self.client.scheduler_comm is not self.comm:
            return self._cut_off
        return (
            f"Part of the table was lost with its worker and cannot be recomputed ({error}). Data "
            "scattered to workers exist only once: read them in tasks (dask.array.from_delayed, "
            "read_parquet) instead."
        )


def no_workers_timeout() -> float:
    """Seconds without workers after which a fit raises."""
    import dask
    from dask.utils import parse_timedelta

    given = dask.config.get(SETTING, DEFAULT)
    try:
        return float(parse_timedelta(given))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{SETTING} in Dask's configuration must be a time such as '10 minutes', got {given!r}."
        ) from error


def address_of(client: Any) -> str:
    """Of its scheduler."""
    return client.scheduler.address if client.scheduler is not None else "an unknown address"
