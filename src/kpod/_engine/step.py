"""One pass over the rows of a block: what every solver is made of.

    step(block, state, partial) -> state

A step reads the rows of one block, compares them with what it carries (a `Panel`, as a rule),
brings the block's state up to date and adds what it found to a `Partial`. Steps, blocks, states
and partials are picklable, so that a step can be run wherever the block is.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kpod._common.system import allocate, own_memory
from kpod._common.typing import AnyFloats, Floats, Labels, Positions, Singles
from kpod._engine.blocks import Block
from kpod._engine.sizes import CHUNKS_WITH_GAPS, SMALL_ROOM
from kpod._kernels import lloyd as comparing
from kpod._kernels import moves as moving
from kpod._kernels import rows as kernels
from kpod._kernels.moves import Gaps
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Rows, Sums, Workspace


def room(n: int, dtype: np.dtype[Any], scratch: str | None) -> AnyFloats:
    """Zeros in memory of their own, which is given back at once; or in a file without a name."""
    n_bytes = max(1, n * dtype.itemsize)
    if n_bytes < SMALL_ROOM:
        return np.zeros(n, dtype)
    with suppress(OSError):  # no room there: memory will do
        if scratch is not None:
            with tempfile.TemporaryFile(dir=scratch) as file:
                allocate(file.fileno(), n_bytes)
                return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype, n)
    return np.frombuffer(own_memory(n_bytes), dtype, n)


@dataclass
class State:
    """The labels of a block's rows, and bounds on their distances.

    `upper` is at least the distance of a row to its own center, `lower` at most that to any
    other, as of the last panel. For a fixed row, distance is a seminorm of the center, so a
    center that moves by d over all columns changes it by at most d: bounds are carried from one
    step to the next by the drift of the centers, and rows they settle are not read.

    In Lloyd's iteration a state is a cache. Labels are a function of rows and panel, so that one
    that was lost (None) is made again from the last panel: see `Recall`.
    """

    labels: Labels
    upper: Singles
    lower: Singles

    @classmethod
    def unknown(cls, n_rows: int, labels: Labels | None = None, scratch: str | None = None) -> State:
        """Before the first step: no labels, or those given, and no bounds.

        With a `scratch` directory they are kept in a file there, without a name, which goes with
        the state or its process.
        """
        state = cls(
            room(n_rows, np.dtype(np.int32), scratch),
            *room(2 * n_rows, np.dtype(np.float32), scratch).reshape(2, -1),
        )
        state.labels[:] = -1 if labels is None else labels
        state.upper[:] = np.inf
        return state

    def drop_bounds(self) -> None:
        """Free the memory of the bounds, when labels are all that is still wanted."""
        self.upper = self.lower = np.empty(0, np.float32)

    def forget_bounds(self, rows: Positions | slice) -> None:
        self.upper[rows], self.lower[rows] = np.inf, 0


@dataclass
class Partial:
    """What steps found: changes of the clusters' sums, and of the loss.

    `sums` are exact, and merging is addition in any order. `gains` has what each block took off
    the loss, so that those are added up in one order too.
    """

    sums: Sums | None
    changed: int = 0
    gains: dict[int, float] = field(default_factory=dict)

    @classmethod
    def empty(cls, *sums: Any) -> Partial:
        """Of no row, with the sums of k clusters in some units: the arguments of `Sums`, if any."""
        return cls(Sums(*sums) if sums else None)

    def merge(self, other: Partial) -> None:
        if self.sums is not None and other.sums is not None and other.changed:
            self.sums.add(other.sums)
        self.changed += other.changed
        self.gains.update(other.gains)

    @property
    def gain(self) -> float:
        """What the changes took off the loss."""
        return math.fsum(self.gains.values())


class Drift(NamedTuple):
    """How far each center moved since the last step, and how far the farthest-moving other did."""

    own: Singles
    other: Singles

    @classmethod
    def none(cls, k: int) -> Drift:
        return cls(np.zeros(k, np.float32), np.zeros(k, np.float32))


class Relabelled(NamedTuple):
    """Rows (by number in the table) that were given another label since the last step."""

    rows: Positions
    labels: Labels


NOT_KEPT = np.empty(0)
NOTHING_RELABELLED = Relabelled(np.empty(0, np.intp), np.empty(0, np.int32))


class Spaces:
    """Buffers, used again from step to step; each thread has its own while it works."""

    def __init__(self) -> None:
        self._idle: list[Workspace] = []

    @contextmanager
    def of(self, rows: Rows, stride: int = 0, chunk: int = 1) -> Iterator[Workspace]:
        try:
            space = self._idle.pop()
        except IndexError:
            space = None
        if space is None or not space.fits(rows, stride, chunk):
            space = Workspace(rows, stride, chunk)
        try:
            yield space
        finally:
            self._idle.append(space)

    def __reduce__(self) -> tuple[Callable[[], Spaces], tuple[()]]:
        return spaces_here, ()


SPACES = Spaces()


def spaces_here() -> Spaces:
    """Those of this process: a step that arrives from another one finds the buffers of the last."""
    return SPACES


@dataclass
class Recall:
    """What a lost state is made again from: the panel of the last assignment, and labels given since.

    Parameters
    ----------
    panel : None before the first assignment
    relabelled : rows whose labels changed since
    numbers : the new number of each cluster, if they were given others since; a state has the old ones
    """

    panel: Panel | None = None
    relabelled: Relabelled = NOTHING_RELABELLED
    numbers: Labels | None = None

    def __call__(self, block: Block, rows: Rows, state: State | None, spaces: Spaces) -> State:
        """The state, with labels that are up to date."""
        if state is None:
            state = State.unknown(block.n_rows, scratch=block.scratch)
            if self.panel is not None:
                compare(block, rows, self.panel, Drift.none(self.panel.k), state, None, spaces)
        last = block.first + block.n_rows
        here = (self.relabelled.rows >= block.first) & (self.relabelled.rows < last)
        if here.any():
            local = self.relabelled.rows[here] - block.first
            state.labels[local] = self.relabelled.labels[here]
            state.forget_bounds(local)
        if self.numbers is not None:
            state.labels[:] = self.numbers[state.labels]
        return state


def compare(
    block: Block, rows: Rows, panel: Panel, drift: Drift, state: State, sums: Sums | None, spaces: Spaces
) -> tuple[int, float]:
    """Assign the rows of a block; returns how many changed, and what that took off the loss."""
    total, gains = 0, 0.0
    chunk = rows.chunk if panel.terms is None else CHUNKS_WITH_GAPS * rows.chunk
    with spaces.of(rows, widest(panel), chunk) as space:
        for start, stop in block.pieces(panel.k):
            changed, gain = comparing.assign(
                rows, start, stop, panel, *drift, state.labels, state.upper, state.lower, sums, space
            )
            total += changed
            gains += gain
    return total, gains


@dataclass
class Assign:
    """Give every row its nearest center.

    Parameters
    ----------
    panel : what rows are compared with
    drift : how far its centers are from those of the panel before
    before : that panel, and labels given since
    bounded : whether rows may be passed over by their bounds
    """

    panel: Panel
    drift: Drift
    before: Recall = field(default_factory=Recall)
    bounded: bool = True
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State | None, partial: Partial) -> State:
        with block.rows() as rows:
            state = self.before(block, rows, state, self.spaces)
            if not self.bounded:
                state.forget_bounds(slice(None))
            changed, gain = compare(block, rows, self.panel, self.drift, state, partial.sums, self.spaces)
        partial.changed += changed
        partial.gains[block.first] = gain
        return state


def widest(panel: Panel) -> int:
    return max(panel.stride, panel.single_stride)


@dataclass
class AddUp:
    """Add the rows to the sums of their clusters."""

    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State, partial: Partial) -> State:
        assert partial.sums is not None
        with block.rows() as rows, self.spaces.of(rows) as space:
            for start, stop in block.pieces(8):
                kernels.add_up(rows, start, stop, state.labels, partial.sums, space)
        partial.changed += block.n_rows
        return state


class MoveFactors(NamedTuple):
    """What squared differences cost and gain when a row moves.

    `costs` (p, stride): what one costs on joining a cluster; `own` (k, p, 2): a center, and what a squared
    difference gains on leaving it; `largest_gains` (k,) and `smallest_cost`: roots of the largest of each
    cluster, and of the smallest of any; `gaps`: what gaps gain and cost, where they count.
    """

    costs: AnyFloats
    own: Floats
    largest_gains: Singles
    smallest_cost: float
    gaps: Gaps | None = None


@dataclass
class Screen:
    """Find the rows that a single-row move may pay for; `found` gathers them by block.

    Parameters
    ----------
    panel, drift : as in `Assign`
    factors : what a move costs and gains; with informative missingness there are no bounds
    """

    panel: Panel
    drift: Drift
    factors: MoveFactors
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State, found: Found) -> State:
        candidates, n = np.empty(block.n_rows, np.intp), 0
        costs, own, largest_gains, smallest_cost, gaps = self.factors
        if gaps is not None:
            state.forget_bounds(slice(None))
            if block.weights is not None:  # what gaps gain and cost depends on the weight
                found.rows[block.first] = np.flatnonzero(block.weights > 0)
                return state
        with block.rows() as rows, self.spaces.of(rows, widest(self.panel), rows.chunk) as space:
            for start, stop in block.pieces(self.panel.k):
                n += moving.screen(
                    rows, start, stop, self.panel, costs, *self.drift, largest_gains, smallest_cost,
                    state.labels, state.upper, state.lower, own, gaps, candidates[n:], space,
                )  # fmt: skip
        found.rows[block.first] = candidates[:n].copy()
        if gaps is not None:
            state.forget_bounds(slice(None))
        return state


@dataclass
class Found:
    """Rows (numbered within their block), or something of the rows, by the first row of the block."""

    rows: dict[int, Any] = field(default_factory=dict)

    def merge(self, other: Found) -> None:
        self.rows.update(other.rows)


@dataclass
class Loss:
    """Sum up the weighted squared partial distances of rows to their own centers."""

    centers: Floats
    before: Recall = field(default_factory=Recall)
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State | None, total: LossSum, out: Floats = NOT_KEPT) -> State:
        part = 0.0
        with block.rows() as rows:
            state = self.before(block, rows, state, self.spaces)
            with self.spaces.of(rows) as space:
                for start, stop in block.pieces(8):
                    part += kernels.losses(rows, start, stop, state.labels, self.centers, out, space)
        total.rows[block.first] = part
        return state


class LossSum(Found):
    """The loss of each block."""

    @property
    def total(self) -> float:
        return math.fsum(self.rows.values())


@dataclass
class Label:
    """Gather the labels of the rows."""

    before: Recall = field(default_factory=Recall)
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State | None, found: Found) -> State:
        if state is None or len(self.before.relabelled.rows):
            with block.rows() as rows:
                state = self.before(block, rows, state, self.spaces)
        found.rows[block.first] = state.labels
        return state


@dataclass
class CountLabels:
    """Count the rows of each cluster."""

    before: Recall = field(default_factory=Recall)
    spaces: Spaces = field(default_factory=Spaces)

    def __call__(self, block: Block, state: State | None, counts: LabelCounts) -> State:
        with block.rows() as rows:
            state = self.before(block, rows, state, self.spaces)
        counts.n += np.bincount(state.labels, minlength=len(counts.n))
        return state


@dataclass
class LabelCounts:
    """The number of rows of each cluster."""

    n: Positions

    @classmethod
    def none(cls, k: int) -> LabelCounts:
        return cls(np.zeros(k, np.intp))

    def merge(self, other: LabelCounts) -> None:
        self.n += other.n


@dataclass
class Worst:
    """The rows of a block that lose most where they are: their number, loss, label and weight."""

    centers: Floats
    most: int
    before: Recall = field(default_factory=Recall)

    def __call__(self, block: Block, state: State | None, found: WorstRows) -> State:
        lost = np.empty(block.n_rows)
        state = Loss(self.centers, self.before)(block, state, LossSum(), lost)
        worst = np.argsort(-lost, kind="stable")[: self.most]
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        found.rows += [
            WorstRow(block.first + int(i), float(lost[i]), int(state.labels[i]), float(weights[i]), entries)
            for i, entries in zip(worst, block.entries(worst), strict=True)
        ]
        return state


class WorstRow(NamedTuple):
    """One of them, with its entries."""

    row: int
    loss: float
    label: int
    weight: float
    entries: Floats


@dataclass
class WorstRows:
    """Those of several blocks."""

    rows: list[WorstRow] = field(default_factory=list)

    def merge(self, other: WorstRows) -> None:
        self.rows += other.rows

    def first(self, n: int) -> Sequence[WorstRow]:
        """The n that lose most; of equals, those that come first in the table."""
        return sorted(self.rows, key=lambda row: (-row.loss, row.row))[:n]


def distances(block: Block, panel: Panel) -> AnyFloats:
    """What a block's rows are compared with each center by: squared partial distances (n_rows, k)."""
    out = np.empty((block.n_rows, panel.k), block.dtype)
    with block.rows() as rows:
        space = Workspace(rows, widest(panel), 1)
        for start, stop in block.pieces(panel.k):
            comparing.distances(rows, start, stop, panel, out, space)
    return out
