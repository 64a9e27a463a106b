"""Steps on the executors of Spark.

A DataFrame is packed once into blocks, in files where this happens; Spark keeps (`persist`) a line about
each, and which executor made it. A pass over the table is one job: it goes to where each block was made,
finds its rows in a file, and brings back what it found, merged by partition and, where these are many, in a
tree. If an executor is gone, Spark packs its partitions again, elsewhere, before the pass gets there. Blocks
that a task did not find, since Spark ran it on another executor than the one that made them, are asked for
in another job, and if none of them is found, all are packed again. Only the DataFrame interface is used,
which Spark Connect has as well.
"""

from __future__ import annotations

import importlib.metadata
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from kpod._engine.sizes import SPARK_FAN_IN
from kpod._engine.workers.builds import DISTRIBUTION, build, check_builds, check_versions
from kpod._engine.workers.packing import Job, pack_panel
from kpod._engine.workers.remote import RemoteBlock, RemoteExecutor
from kpod._engine.workers.spark_worker import BITS, SCHEMA, Forget, Merge, Outcome, Pass, Work, opened
from kpod._engine.workers.worker import About

# Of a job, before it is given up: Spark repeats tasks by itself, but not on a local master.
MOST_ATTEMPTS = 3


def task(
    inner: bytes, distribution: str, version: str, kernels: dict[str, str], batches: Iterator[Any]
) -> Iterator[Any]:
    """A task as Spark gets it: by value, so that an executor without the package raises an error.

    Parameters
    ----------
    inner : the task of the package, pickled
    distribution, version, kernels : what the client has, see `builds`
    batches : of the partition
    """
    import importlib.metadata
    import pickle
    import socket

    import pyarrow as pa

    def row(block: Any, *rest: Any) -> Any:
        columns = [pa.array([block], pa.int64()), *(pa.array([part], pa.binary()) for part in rest)]
        return pa.RecordBatch.from_arrays(columns, ["block", "answer", "weights"])

    found: Any
    try:
        found = importlib.metadata.version(distribution)
    except ImportError as error:
        found = ImportError(str(error))
    if found == version:
        from kpod._engine.workers import builds, spark_worker

        found = builds.build()
        if all(found.get(file, own) == own for file, own in kernels.items()):
            for answer in spark_worker.run(inner, batches):
                yield row(*answer)
            return
    for _ in batches:  # or else Spark throws the process away
        pass
    yield row(None, pickle.dumps((socket.gethostname(), found)), None)


task.__module__ = "__main__"


class SparkExecutor(RemoteExecutor):
    """The executors of a Spark session; made by `spark_executor`."""

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        self._packed: Any = None
        self._n_partitions = 0

    def place(self, blocks: list[Any]) -> list[Any]:
        return blocks

    def pack(self, frame: Any, packing: Callable[[Any], Any]) -> list[tuple[int, About, Any]]:
        """Make blocks of a DataFrame by a task that does so: the number of each, its shape and weights."""
        self._packed = self._tasks(frame, packing).persist()
        rows = self._run(self._packed.collect)
        check_stale([told for row in rows if row.block is None for told in opened(row.answer).stale])
        self._n_partitions = max((row.block >> BITS for row in rows), default=0) + 1
        return [
            (row.block, opened(row.answer), None if row.weights is None else np.frombuffer(row.weights))
            for row in sorted(rows, key=lambda row: row.block)
        ]

    def run_pass(self, job: Job, blocks: Sequence[RemoteBlock], states: Sequence[int | None]) -> list[Any]:
        """What all blocks found, merged by partition and then in a tree."""
        step = partial(Pass, self.fit, self.number, job.data, [pack_panel(panel) for panel in job.panels])
        work = {
            block.source: Work(block.first, block.about, state)
            for block, state in zip(blocks, states, strict=True)
        }
        total, left, packed_again = Outcome(), work, False
        while left:
            found = self._outcome(step(left))
            gone, missing = len(left) - found.n_blocks - len(found.missing), len(found.missing)
            if gone or (packed_again and missing == len(left)):
                raise RuntimeError(
                    f"Spark no longer has {gone or missing} of {len(work)} blocks of X. Its source may "
                    "have other rows now: fit again when it no longer changes."
                )
            if missing == len(left):
                self._packed = self._packed.unpersist(blocking=True).persist()
                packed_again = True
            left = {number: work[number] for number in found.missing}
            total.merge(found)
        return [] if total.total is None else [total.total]

    def close(self) -> None:
        """Let the executors forget the table."""
        with suppress(Exception):  # those that are gone took it with them
            if self._packed is not None:
                self._tasks(self._packed.select("block"), Forget(self.fit)).collect()
                self._packed.unpersist()

    def _outcome(self, each: Callable[[Any], Any]) -> Outcome:
        """What a task found on all partitions."""
        answers, n = self._tasks(self._packed.select("block", "answer"), each), self._n_partitions
        while n > SPARK_FAN_IN:
            n = -(-n // SPARK_FAN_IN)
            answers = self._tasks(answers.select("answer").repartition(n), Merge())
        total = Outcome()
        for row in self._run(lambda: answers.select("answer").collect()):
            total.merge(opened(row.answer))
        check_stale(total.stale)
        return total

    def _tasks(self, frame: Any, each: Callable[[Any], Any]) -> Any:
        inner = pickle.dumps(each, pickle.HIGHEST_PROTOCOL)
        version = importlib.metadata.version(DISTRIBUTION)
        return frame.mapInArrow(partial(task, inner, DISTRIBUTION, version, build()), SCHEMA)

    def _run(self, action: Callable[[], Any]) -> Any:
        """The result of an action, which is repeated if Spark gives it up: a local master repeats no task."""
        for left in reversed(range(MOST_ATTEMPTS)):
            try:
                return action()
            except Exception as error:
                if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                    raise
                if not left:
                    raise RuntimeError(
                        f"Spark gave up on the table {MOST_ATTEMPTS} times, at last with: {reason(error)}"
                    ) from error
        raise AssertionError


def check_stale(stale: Sequence[tuple[str, Any]]) -> None:
    """Refuse machines whose package is not that of this process."""
    found = dict(stale)
    check_versions(found)
    check_builds({host: what for host, what in found.items() if isinstance(what, dict)})


def reason(error: Exception) -> str:
    """The message of an error of Spark, without the stack of the JVM."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Exception" in line or "Error" in line]
    return (told[-1] if told else lines[0] if lines else type(error).__name__)[:300]


@contextmanager
def spark_executor(session: Any) -> Iterator[SparkExecutor]:
    """An executor on the executors of a Spark session."""
    executor = SparkExecutor(session)
    try:
        yield executor
    finally:
        executor.close()
