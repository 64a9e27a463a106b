"""What runs in a task of Spark: steps over blocks that lie in files of the executor's machine.

Spark hands a task to any of the Python processes of an executor, so what has to last from one pass to the
next cannot be in the memory of one of them. It is in the directory in which Spark keeps blocks of its own,
which it deletes with the executor: rows as they are, to be mapped, and the states of each block, of the
last two passes. All of it is a cache. Rows that are not there are packed again from their source, and states
that are not there are made again from the panel of the pass before (`step.Recall`).
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kpod._common.typing import AnyFloats
from kpod._engine.blocks import Block, DenseBlock, Units
from kpod._engine.windows import SCRATCH
from kpod._engine.workers.packing import unpack
from kpod._engine.workers.worker import About, Resident, check_unchanged

Row = tuple[int | None, bytes, Any]
"""What a task returns: a block, an answer for the client, and the weights of the block."""
BITS = 20  # of the number of a block, that count the blocks of its partition
SCHEMA = "block long, answer binary, weights binary"


@dataclass(frozen=True)
class Folder:
    """The files of one fit on the machine where this runs."""

    fit: str

    @property
    def path(self) -> Path:
        first = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return Path(first or tempfile.gettempdir()) / f"kpod-{self.fit}"

    def write(self, name: str, data: Any) -> None:
        """Whole or not at all: another attempt at the same task may write, or read, at the same time."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=self.path)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(part).replace(self.path / name)

    def keep(self, number: int, about: About, entries: Any, weights: Any) -> None:
        """Keep a block; its checksum is part of its name."""
        for kind, data in (("entries", entries), ("weights", weights)):
            if data is not None:
                self.write(block_file(kind, number, about), data)

    def block(self, number: int, about: About) -> Block | None:
        """A block that is kept here, or None."""
        shape = about.n_rows, about.n_columns
        try:
            entries = np.memmap(self.path / block_file("entries", number, about), about.dtype, "r", 0, shape)
            weights: AnyFloats | None = None
            if about.weighted:
                weights = np.fromfile(self.path / block_file("weights", number, about), np.float64)
        except (OSError, ValueError):  # not there, or cut short by a full disk
            return None
        block = DenseBlock(entries, 0, Units(np.zeros(about.n_columns), 1.0), weights)
        block.scratch = None
        return block

    def state(self, first: int, made: int | None) -> Any:
        """The state of a block that a pass made, or None."""
        if made is None:
            return None
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            return pickle.loads((self.path / f"state-{first}-{made}").read_bytes())
        return None

    def put_state(self, first: int, number: int, state: Any, made: int | None) -> None:
        """Keep a state beside the one it was made from, which another attempt at the same pass needs."""
        self.write(f"state-{first}-{number}", pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
        for old in self.path.glob(f"state-{first}-*"):
            if old.name not in (f"state-{first}-{number}", f"state-{first}-{made}"):
                old.unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def block_file(kind: str, number: int, about: About) -> str:
    return f"{kind}-{number}-{about.checksum}{SCRATCH}"


class Work(NamedTuple):
    """The work of a pass on a block: its first row, the facts about it, and the pass that made its state."""

    first: int
    known: About
    state: int | None


@dataclass
class Outcome:
    """The result of a pass over some blocks; blocks not found; machines with another version of kpod."""

    total: Any = None
    n_blocks: int = 0
    missing: list[int] = field(default_factory=list)
    stale: list[tuple[str, Any]] = field(default_factory=list)

    def merge(self, other: Outcome) -> None:
        self.n_blocks += other.n_blocks
        self.missing += other.missing
        self.stale += other.stale
        if self.total is None:
            self.total = other.total
        elif other.total is not None:
            self.total.merge(other.total)


@dataclass(frozen=True)
class Pass:
    """A step over the blocks of a partition.

    Parameters
    ----------
    fit, number : which pass
    job, panels : the step, see `packing`
    work : what to do to each block, by its number
    """

    fit: str
    number: int
    job: bytes
    panels: Sequence[bytes]
    work: Mapping[int, Work]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Row]:
        folder, outcome = Folder(self.fit), Outcome()
        function, empty, units, hidden = unpack(self.job, self.panels)
        for number, answer in blocks_in(batches):
            if number not in self.work:
                continue
            first, known, made = self.work[number]
            check_unchanged(opened(answer), known, first)
            block = folder.block(number, known)
            if block is None:
                outcome.missing.append(number)
                continue
            outcome.n_blocks += 1
            outcome.total = empty() if outcome.total is None else outcome.total
            block = Resident(block, known.checksum).block_in(first, units, hidden)
            state = function(block, folder.state(first, made), outcome.total)
            if state is not None:
                folder.put_state(first, self.number, state, made)
        yield None, answered(outcome), None


@dataclass(frozen=True)
class Merge:
    """Merge what several partitions found."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Row]:
        total = Outcome()
        for batch in batches:
            for answer in batch.column("answer").to_pylist():
                total.merge(opened(answer))
        yield None, answered(total), None


@dataclass(frozen=True)
class Forget:
    """Delete the files of a fit."""

    fit: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Row]:
        list(batches)
        Folder(self.fit).remove()
        yield None, answered(Outcome()), None


def blocks_in(batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    """The number of each block, and what packing found of it."""
    for batch in batches:
        yield from zip(batch.column("block").to_pylist(), batch.column("answer").to_pylist(), strict=True)


def answered(what: Any) -> bytes:
    return pickle.dumps(what, pickle.HIGHEST_PROTOCOL)


def opened(answer: bytes) -> Any:
    """An answer; an error that a task answered with is raised."""
    what = pickle.loads(answer)
    if isinstance(what, Exception):
        raise what
    return Outcome(stale=[what]) if type(what) is tuple else what


@cache
def keep_imports() -> None:
    """Leave what is imported to no garbage collector: Spark runs one after every task, for 40 ms and more."""
    gc.freeze()


def run(inner: bytes, batches: Iterable[Any]) -> Iterator[Row]:
    """Run a task of this version; an error is an answer too, for its words not to be lost in a traceback."""
    try:
        yield from pickle.loads(inner)(batches)
        keep_imports()
    except (MemoryError, TypeError, ValueError, OSError) as error:
        kind = type(error) if type(error) in (MemoryError, TypeError, ValueError) else RuntimeError
        where = "" if kind is not RuntimeError else f"On {socket.gethostname()}: "
        yield None, answered(kind(f"{where}{error}")), None
