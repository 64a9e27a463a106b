"""What runs on the workers: blocks that stay there, steps over them, and what is kept between steps."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.blocks import Block, Hidden, Units, aligned, block_of
from kpod._engine.executors import threads
from kpod._engine.workers.packing import unpack

# Fits whose states a worker keeps: what a client that died has left behind goes with the next ones.
MOST_FITS = 4


# That the workers get to forget a fit, before they are left to it.
SECONDS_TO_FORGET = 10


class Resident:
    """A block on its worker, in the units and with the hidden entries of the last request.

    Parameters
    ----------
    block : the rows
    checksum : of rows that are computed again, should they be lost; None of those that come as they are
    """

    def __init__(self, block: Block, checksum: int | None = None) -> None:
        self.block, self.checksum = block, checksum
        self._last: Block | None = None

    def block_in(self, first: int, units: Units, hidden: Hidden | None) -> Block:
        """The block as part of a table; opened rows are kept from one pass to the next."""
        last = self._last
        if (
            last is None
            or (last.first, last.units.scale, last.hidden) != (first, units.scale, hidden)
            or not np.array_equal(last.units.shift, units.shift, equal_nan=True)
        ):
            last = self.block.replace(units=units, hidden=hidden)
            last.first = first
            self._last = last
        return last

    @property
    def about(self) -> About:
        return About.of(self.block)._replace(checksum=self.checksum)

    def weighted(self, weights: Floats) -> Resident:
        block = self.block.replace(units=self.block.units)
        block.weights = aligned(weights)
        return Resident(block, self.checksum)

    def __sizeof__(self) -> int:
        """The size reported to Dask, so that it spills blocks to disk in time."""
        return self.block.n_entries * (self.block.dtype.itemsize + 4)

    def __reduce__(self) -> tuple[type[Resident], tuple[Block, int | None]]:
        return Resident, (self.block, self.checksum)


class About(NamedTuple):
    """What is known of a block without its rows."""

    n_rows: int
    n_columns: int
    n_entries: int
    dtype: np.dtype[Any]
    checksum: int | None = None
    name: str = "A block"
    weighted: bool = False

    @classmethod
    def of(cls, block: Block) -> About:
        dtype, weighted = np.dtype(block.dtype), block.weights is not None
        return cls(block.n_rows, block.n_columns, block.n_entries, dtype, weighted=weighted)


def check_unchanged(found: About, known: About, first: int) -> None:
    """Refuse rows that are not those that are known: they were lost, and computed again."""
    if found.checksum != known.checksum:
        raise ValueError(
            f"{known.name} (rows {first:,} to {first + known.n_rows - 1:,}) changed while it was in use: "
            "it was lost with a worker, and computing it again gave other values. Fit again when its "
            "source no longer changes; if every computation gives other rows, save them to files first."
        )


class Cache:
    """The states of a worker's blocks, by fit and first row, with the number of the pass that made them."""

    def __init__(self) -> None:
        self._fits: OrderedDict[str, dict[int, tuple[int, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, fit: str, first: int, wanted: int | None) -> Any:
        """A state, if it is of the pass that is wanted.

        It is no longer here then: should the pass that changes it fail, it must not be left half changed.
        """
        with self._lock:
            made, state = self._fits.get(fit, {}).pop(first, (None, None))
            return state if made == wanted else None

    def put(self, fit: str, first: int, made: int, state: Any) -> None:
        with self._lock:
            self._fits.setdefault(fit, {})[first] = made, state
            self._fits.move_to_end(fit)
            while len(self._fits) > MOST_FITS:
                self._fits.popitem(last=False)

    def forget(self, fit: str) -> None:
        with self._lock:
            self._fits.pop(fit, None)


CACHE = Cache()


def forget(fit: str) -> None:
    CACHE.forget(fit)


@dataclass(frozen=True)
class Share:
    """What one worker does in a pass: the blocks by their first rows, and the states they had."""

    fit: str
    number: int
    firsts: list[int]
    known: list[About]
    states: list[int | None]
    n_threads: int


def run_share(share: Share, job: bytes, panels: Sequence[bytes], residents: Sequence[Resident]) -> Any:
    """Run a step on some blocks; returns what they found, merged."""
    function, empty, units, hidden = unpack(job, panels)
    for resident, known, first in zip(residents, share.known, share.firsts, strict=True):
        check_unchanged(resident.about, known, first)
    blocks = [
        resident.block_in(first, units, hidden)
        for resident, first in zip(residents, share.firsts, strict=True)
    ]
    states = [
        CACHE.take(share.fit, first, made) for first, made in zip(share.firsts, share.states, strict=True)
    ]
    try:
        with threads(min(share.n_threads, len(blocks))) as executor:
            states, total = executor.accumulate(function, blocks, states, empty)
    except MemoryError as error:
        raise MemoryError(
            f"Out of memory{on_worker()} at rows {blocks[0].first:,} to "
            f"{blocks[-1].first + blocks[-1].n_rows:,}. Use smaller partitions or workers with more memory."
        ) from error
    for first, state in zip(share.firsts, states, strict=True):
        if state is not None:
            CACHE.put(share.fit, first, share.number, state)
    return total


def merged(job: bytes, panels: Sequence[bytes], parts: Sequence[Any]) -> Any:
    """The sum of several results, none of which is changed: they may be merged again."""
    total = unpack(job, panels)[1]()
    for part in parts:
        total.merge(part)
    return total


def resident(
    values_of: Callable[[], Any], number: int, *, checked: bool, weights: Floats | None = None
) -> Resident:
    """A partition as a block, wherever this runs.

    Parameters
    ----------
    values_of : what makes an array or CSR array of it
    number : of the partition
    checked : whether it may be made again, and must then be the same
    weights : of its rows, if they came along
    """
    try:
        values = values_of()
    except (TypeError, ValueError) as error:
        # Not the very type of the error, which may take more than a text.
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"Partition {number} of X{on_worker()}: {error}") from error
    block = block_of(values, 0, Units(np.zeros(values.shape[1]), 1.0), weights)
    return Resident(block, block.checksum() if checked else None)


def made(block: Block) -> Resident:
    return Resident(block)


def about(resident: Resident) -> About:
    return resident.about


def weighted(resident: Resident, weights: Floats) -> Resident:
    return resident.weighted(weights)


def carried(data: bytes) -> bytes:
    return data


def on_worker() -> str:
    """Where this runs, as the end of a phrase."""
    if "distributed" not in sys.modules:
        return f" on {socket.gethostname()}" if "SPARK_LOCAL_DIRS" in os.environ else ""
    from distributed import get_worker

    try:
        return f" on worker {get_worker().address}"
    except ValueError:  # in no worker
        return ""
