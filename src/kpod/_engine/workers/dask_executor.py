"""Steps on the workers of a Dask cluster.

A block is made on a worker by a task whose recipe the scheduler keeps, so that a block that is lost
with its worker is made again elsewhere. A pass over the table is one task for each worker, which
runs the step on the blocks that are there, on the worker's threads, and merges what they found; a
tree of tasks merges that of the workers. A panel is a task of its own: it goes over the wire once
for each worker, and workers hand it on to each other. States stay where their blocks are, as a
cache: one that is not of the pass before is made again from the panel of that pass (`step.Recall`).
Sums are exact, so neither the number of workers nor the shape of the tree shows in a single bit.
"""

from __future__ import annotations

import importlib.metadata
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.sizes import FAN_IN, SMALL_PARCEL, WORKER_SHARE
from kpod._engine.workers.builds import DISTRIBUTION, build, check_builds, check_versions
from kpod._engine.workers.packing import Job, pack_panel
from kpod._engine.workers.remote import RemoteBlock, RemoteExecutor
from kpod._engine.workers.waiting import ClientClosedError, Connection, start, wait_for, wait_for_workers
from kpod._engine.workers.worker import (
    SECONDS_TO_FORGET,
    About,
    Share,
    about,
    carried,
    forget,
    made,
    merged,
    run_share,
    weighted,
)
from kpod._kernels.panel import Panel

ACTIVE: ContextVar[Any] = ContextVar("kpod_dask_client", default=None)


class DaskExecutor(RemoteExecutor):
    """The workers of a Dask cluster; made by `cluster`."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self.connection = Connection.of(client)
        self._checked: set[str] = set()
        self._plan: list[tuple[str, list[int], int]] = []
        self._planned_for: Any = None
        self._panels: OrderedDict[int, tuple[Panel, Any]] = OrderedDict()

    def place(self, blocks: list[Any]) -> list[Any]:
        """Blocks on workers: each travels as its recipe, and is made there."""
        self.check_workers()
        sources = [
            block.source if isinstance(block, RemoteBlock) else self._submit(made, block) for block in blocks
        ]
        return [self._placed(block, source) for block, source in zip(blocks, sources, strict=True)]

    def _placed(self, block: Any, source: Any) -> RemoteBlock:
        about = block.about if isinstance(block, RemoteBlock) else About.of(block)
        out = RemoteBlock(self, source, about, block.first, block.units, block.weights, block.hidden)
        out.file = block.file
        return out

    def make(self, recipes: Sequence[Any]) -> tuple[list[Any], list[About]]:
        """Futures of resident blocks made from delayed values, and the facts about each."""
        self.check_workers()
        sources = self.client.compute(list(recipes))
        try:
            return sources, self.results([self._submit(about, source) for source in sources])
        except BaseException:
            self._call_off(sources)
            raise

    def weighted(self, source: Any, weights: Floats) -> Any:
        """The future of a resident with weights."""
        return self._submit(weighted, source, weights)

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """What tasks return; if one fails, the others are called off."""
        try:
            return wait_for(self.connection, self.client.gather, list(futures))
        except BaseException:
            self._call_off(list(futures))
            raise

    def check_workers(self) -> dict[str, int]:
        """The threads of each worker; all of them have this version of the package, and these kernels."""
        workers = wait_for_workers(self.connection)
        new = sorted(workers.keys() - self._checked)
        if new:
            # A function of the standard library, which a worker without the package can run.
            versions = self._run(importlib.metadata.version, DISTRIBUTION, workers=new)
            check_versions(versions)
            same = [name for name, version in versions.items() if isinstance(version, str)]
            builds = self._run(build, workers=same) if same else {}
            check_builds(builds)
            self._checked.update(name for name, kernels in builds.items() if isinstance(kernels, dict))
        return workers

    def close(self) -> None:
        """Let the workers forget the states."""
        # Workers that are gone took the states with them; others drop them for those of the next fits.
        with suppress(Exception):
            if self.client.status == "running":
                start(self.client, self.client.run, forget, self.fit, on_error="ignore").result(
                    SECONDS_TO_FORGET
                )

    def _call_off(self, futures: list[Any]) -> None:
        """Cancel tasks after an error; an error in doing so must not hide the first one."""
        with suppress(Exception):
            wait_for(self.connection, self.client.cancel, futures)

    def _run(self, function: Callable[..., Any], *args: Any, workers: Sequence[str]) -> dict[str, Any]:
        """What a function returns on each worker, or the error."""
        return wait_for(self.connection, self.client.run, function, *args, workers=workers, on_error="return")

    def run_pass(self, job: Job, blocks: Sequence[RemoteBlock], states: Sequence[int | None]) -> list[Any]:
        """What all blocks found, merged by workers and then in a tree."""
        data, panels = self._carry(job.data), [self._carried_panel(panel) for panel in job.panels]
        parts = [
            self._submit(
                run_share,
                Share(
                    self.fit,
                    self.number,
                    [blocks[i].first for i in mine],
                    [blocks[i].about for i in mine],
                    [states[i] for i in mine],
                    n_threads,
                ),
                data,
                panels,
                [blocks[i].source for i in mine],
                workers=[worker],
                allow_other_workers=True,
            )
            for worker, mine, n_threads in self._shares(blocks)
        ]
        while len(parts) > FAN_IN:
            parts = [
                self._submit(merged, data, panels, parts[i : i + FAN_IN])
                for i in range(0, len(parts), FAN_IN)
            ]
        return self.results(parts)

    def _shares(self, blocks: Sequence[RemoteBlock]) -> list[tuple[str, list[int], int]]:
        """Which blocks each worker takes: the same in every pass while there are the same workers."""
        workers = self.check_workers()
        requested = ([block.source.key for block in blocks], workers)
        if requested != self._planned_for:
            holders = wait_for(self.connection, self.client.who_has, [block.source for block in blocks])
            known = self.client.scheduler_info(n_workers=-1)["workers"]
            self._plan = plan(
                [block.n_entries * block.dtype.itemsize for block in blocks],
                [list(holders.get(block.source.key, ())) for block in blocks],
                workers,
                {name: known[name].get("memory_limit") or 0 for name in workers if name in known},
            )
            self._planned_for = requested
        return self._plan

    def _carry(self, data: bytes) -> Any:
        """Data for every worker: with its task if small, else as a task whose result workers hand on."""
        return data if len(data) <= SMALL_PARCEL else self._submit(carried, data)

    def _carried_panel(self, panel: Panel) -> Any:
        """A panel on its way; the last two are remembered, and sent once."""
        if id(panel) not in self._panels:
            self._panels[id(panel)] = panel, self._carry(pack_panel(panel))
        self._panels.move_to_end(id(panel))
        while len(self._panels) > 2:
            self._panels.popitem(last=False)
        return self._panels[id(panel)][1]

    def _submit(self, function: Callable[..., Any], *args: Any, **how: Any) -> Any:
        with quiet_about_size():
            return self.client.submit(
                function, *args, key=f"kpod-{function.__name__}-{uuid.uuid4().hex}", **how
            )


def plan(
    sizes: Sequence[int],
    holders: Sequence[Sequence[str]],
    workers: Mapping[str, int],
    limits: Mapping[str, int],
) -> list[tuple[str, list[int], int]]:
    """Shares of the blocks: worker, positions, and threads for each.

    Blocks stay where they are as far as workers get work in proportion to their threads. A worker
    has one share, on all of its threads, unless its blocks would take up too much of its memory at
    a time; then it has several, each on one thread, between which Dask spills blocks to disk.

    Parameters
    ----------
    sizes : bytes of each block
    holders : the workers that have each block
    workers : threads of each
    limits : bytes of memory of each, 0 for no limit
    """
    total, n_threads = sum(sizes), sum(workers.values())
    load = dict.fromkeys(workers, 0)
    mine: dict[str, list[int]] = {name: [] for name in workers}

    def give(position: int, candidates: Sequence[str]) -> None:
        name = min(candidates, key=lambda name: (load[name] / workers[name], name))
        load[name] += sizes[position]
        mine[name].append(position)

    left = []
    for position, size in enumerate(sizes):
        near = [
            name
            for name in holders[position]
            if name in load and load[name] + size / 2 <= total * workers[name] / n_threads
        ]
        if near:
            give(position, near)
        else:
            left.append(position)
    for position in left:
        give(position, list(workers))
    shares = []
    for name, positions in mine.items():
        most = WORKER_SHARE * limits.get(name, 0) or np.inf
        if load[name] <= most:
            shares += [(name, positions, workers[name])] if positions else []
            continue
        batch: list[int] = []
        for position in positions:
            if batch and sum(sizes[i] for i in [*batch, position]) > most / workers[name]:
                shares.append((name, batch, 1))
                batch = []
            batch.append(position)
        shares.append((name, batch, 1))
    return shares


def quiet_about_size() -> Any:
    """Dask warns of tasks with much data in them, which the panel of many centers is."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


@contextmanager
def dask_executor(client: Any) -> Iterator[DaskExecutor]:
    """An executor on the workers of a client's cluster."""
    check_usable(client)
    executor = DaskExecutor(client)
    with thread_left_to_others():
        try:
            with executor.connection.explained():
                yield executor
        except Exception as error:
            if not isinstance(error, ClientClosedError) and not is_closed(client):
                raise
            raise RuntimeError(
                "The client of the Dask cluster was closed while it was in use. Keep it open until fit, "
                "predict or score is done."
            ) from error
        finally:
            executor.close()


def is_closed(client: Any) -> bool:
    return client.status in ("closing", "closed")


def check_usable(client: Any) -> None:
    """Refuse a client that is closed, and one that has to be awaited."""
    if is_closed(client):
        raise RuntimeError("The client of the Dask cluster is closed. Connect a new one: Client(address).")
    if client.asynchronous:
        raise TypeError(
            "The client of the Dask cluster is asynchronous, and fit, predict and score wait for their "
            "results. Connect another one, Client(address), and use it on another thread: "
            "await asyncio.to_thread(model.fit, X)."
        )


@contextmanager
def thread_left_to_others() -> Iterator[None]:
    """In a task, let the worker run others meanwhile: those waited for may need the only thread it has."""
    from distributed import rejoin, secede

    try:
        secede()  # type: ignore[no-untyped-call]
    except (ValueError, KeyError, AttributeError):
        # In no task, in one that has left the worker's threads already, or on a thread of its own.
        yield
        return
    try:
        yield
    finally:
        rejoin()  # type: ignore[no-untyped-call]
