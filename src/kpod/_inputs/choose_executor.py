"""Where the rows of a table are computed on: threads of this process, or the workers of a cluster.

A new kind of cluster is an executor in `_engine/workers/`, chosen here, and a module for its tables here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scipy import sparse

from kpod._common.sentences.formatting import kind_of
from kpod._engine import sizes
from kpod._engine.executors import Executor, threads
from kpod._engine.workers import dask_executor, spark_executor
from kpod._engine.workers.dask_executor import ACTIVE
from kpod._inputs import validation
from kpod._inputs.partitions import Partitions


@contextmanager
def on_dask(client: Any) -> Iterator[None]:
    """Run fits of tables on disk on a Dask cluster.

    Inside, `KPOD.fit`, `predict` and `score` send the blocks of any table to the workers of `client`:
    for a scanned or memory-mapped table only their position in the file, which the workers must be
    able to open under the same path; for an array in memory the data themselves. Dask arrays and
    DataFrames do not need this context: they run on the active client's cluster anyway.

    Parameters
    ----------
    client : distributed.Client

    Examples
    --------
    >>> import kpod
    >>> from distributed import Client
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> with kpod.on_dask(client):  # doctest: +SKIP
    ...     model = kpod.KPOD(20).fit(kpod.scan("folder/*.parquet"))
    """
    from distributed import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"on_dask takes a distributed.Client, got {kind_of(client)}. Use Client(cluster), or "
            "Client(address) with that of the scheduler."
        )
    dask_executor.check_usable(client)
    token = ACTIVE.set(client)
    try:
        yield
    finally:
        ACTIVE.reset(token)


def active_client() -> Any:
    """The client whose cluster a Dask collection runs on: that of `on_dask`, or the current one, or None."""
    if ACTIVE.get() is not None or "distributed" not in sys.modules:
        return ACTIVE.get()
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def is_spread(X: Any) -> bool:
    """Whether X is worked on by machines of a cluster, or could be."""
    return validation.is_dask(X) or validation.is_spark(X) or ACTIVE.get() is not None


@contextmanager
def nearby(values: Any, executor: Executor, n_threads: int) -> Iterator[tuple[Any, Executor]]:
    """A table and what runs over it: a small one comes here, where a pass over it takes no message.

    Its blocks are the same, and so is every bit of a result.
    """
    n_entries = values.nnz if sparse.issparse(values) else values.size
    if not executor.remote or n_entries > sizes.SMALL_REMOTE_TABLE:
        yield values, executor
        return
    if isinstance(values, Partitions):
        values = values.brought_here(executor)
    with threads(n_threads) as here:
        yield values, here


@contextmanager
def executor_for(X: Any, n_threads: int) -> Iterator[Executor]:
    """What runs over the blocks of a table: threads, or the workers of a cluster."""
    if validation.is_spark(X):
        with spark_executor.spark_executor(X.sparkSession) as executor:
            yield executor
        return
    client = active_client() if validation.is_dask(X) else ACTIVE.get()
    with threads(n_threads) if client is None else dask_executor.dask_executor(client) as executor:
        yield executor
