"""What every solver takes and returns: a start and settings, a solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kpod._common.typing import Floats, Labels
from kpod._engine.objective import GapModel

Snapshot = dict[str, Any]
"""Arrays and numbers by name: what a start needs in order to go on."""


@dataclass(frozen=True)
class Settings:
    """When to stop, and the progress callback.

    Lloyd stops when a step moves the centers by no more than `tol` times the mean variance of the
    columns (squared, in all); with 0, when no row changes its label or the objective no longer
    falls. Single-row moves stop when no row moves, or when a sweep lowers the objective by no more
    than a tenth of `tol` of it. `iteration_callback` is told of every iteration: what was done, its number
    and the objective. `bounded=False` compares every row in every iteration. `keep` is given a function
    after every iteration that makes a snapshot to go on from; `resume` is such a snapshot. `gaps` says
    whether those count (`GapObjective`), `by_size` whether clusters are numbered from the largest to the
    smallest in the end, or as they started, `labels` whether those of all rows are wanted.
    """

    max_iter: int = 300
    tol: float = 0.0
    shrinkage: float = 0.0
    gaps: bool = False
    by_size: bool = False
    labels: bool = True
    iteration_callback: Callable[[str, int, float], None] | None = None
    bounded: bool = True
    keep: Callable[[Callable[[], Snapshot]], None] | None = None
    resume: Snapshot | None = None


@dataclass(frozen=True)
class Start:
    """Initial centers in the engine's units; labels, or a model of gaps, where the seeding has its own."""

    centers: Floats
    labels: Labels | None = None
    gaps: GapModel | None = None


@dataclass(frozen=True)
class Solution:
    """Labels, centers, the weight behind each entry of them, and how they came about.

    `loss` is the plain loss of labels and centers, `objective` what was minimised, `trace` that
    after each iteration and `losses` the loss then (with what shrinkage adds). `gaps` is what else
    the rows were compared by, `starts` what each of the starts ended with of which this is the best.
    """

    labels: Labels
    centers: Floats
    counts: Floats
    loss: float
    objective: float
    trace: list[float]
    n_iter: int
    converged: bool
    losses: list[float]
    gaps: GapModel | None = None
    starts: list[float] = field(default_factory=list)
