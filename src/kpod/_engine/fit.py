"""A whole fit: a plan, carried out on a table. Several starts, the best of which is kept.

A plan is plain values. It is independent of estimators: each writes its own, and a fit that differs from
another in one value is `replace(plan, ...)`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats
from kpod._engine.checkpoint import Checkpoint
from kpod._engine.executors import Executor
from kpod._engine.objective import GapObjective, Objective
from kpod._engine.seeding import (
    GAP_WEIGHTS,
    SEEDINGS,
    GapSeeds,
    KMeansPlusPlus,
    Seeding,
    SharedSeeds,
    fill_gaps,
    row_entries,
    sample_of,
)
from kpod._engine.sizes import (
    LARGE_TABLE,
    LEAST_SHARED_WORK,
    MOST_SAMPLE_ENTRIES,
    PASS,
    SAMPLE_ROWS_PER_CLUSTER,
    SHORT_WORK,
    STARTS,
)
from kpod._engine.solvers.hartigan import hartigan
from kpod._engine.solvers.interface import Settings, Solution, Start
from kpod._engine.solvers.lloyd import lloyd
from kpod._engine.solvers.mm import mm
from kpod._engine.table import Table

Solver = Callable[[Table, Executor, Start, Settings], Solution]
SOLVERS: Mapping[str, Solver] = MappingProxyType({"hartigan": hartigan, "lloyd": lloyd, "mm": mm})
Init = Callable[[Any, int, np.random.RandomState], Floats]
"""Initial centers, in the units of the values, from these, the number of clusters and a generator."""


class Lines(NamedTuple):
    """Where lines on progress go, and which are wanted: 1 for those of starts, 2 for those of iterations."""

    write: Callable[[str], None] = print
    verbose: int = 0

    def writer(self, level: int) -> Callable[[str], None] | None:
        """What lines of a level are given to, if they are wanted."""
        return self.write if self.verbose >= level else None


QUIET = Lines()


@dataclass(frozen=True)
class FitPlan:
    """How a table is clustered. What is None is to be chosen by the table (`_estimators/choices.py`).

    Parameters
    ----------
    n_clusters : None to choose it
    init : the name of a seeding, centers (k, p) with NaN for a column's mean, or a function
    n_starts : None for as many as it takes
    algorithm : of `SOLVERS`
    max_iter, tol : when to stop, see `Settings`
    shrinkage : None to choose it
    gaps : whether gaps count, None to decide
    random_state : what a fit draws from: a seed, or a generator, which is copied and left as it is
    by_size : whether clusters are numbered by size; those of given centers never are
    labels : whether a solution has the labels of all rows; those of a spread table stay where the rows are
    lines : where lines on progress go
    """

    n_clusters: int | None
    init: str | Floats | Init = "k-means++"
    n_starts: int | None = None
    algorithm: str = "hartigan"
    max_iter: int = 300
    tol: float = 1e-4
    shrinkage: float | None = 0.0
    gaps: bool | None = False
    random_state: int | np.random.RandomState = 0
    by_size: bool = True
    labels: bool = True
    lines: Lines = QUIET

    def part(self, **changes: Any) -> FitPlan:
        """The plan of an intermediate fit, which shows no progress."""
        return replace(self, by_size=False, labels=True, lines=QUIET, **changes)

    def generator(self) -> np.random.RandomState:
        """What a fit draws from, the same each time."""
        state = self.random_state
        return (
            copy.deepcopy(state) if isinstance(state, np.random.RandomState) else np.random.RandomState(state)
        )

    def seeds(self, n: int) -> NDArray[np.int64]:
        """The first n whole numbers from that, for generators of their own."""
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            drawn = copy.deepcopy(state)
        else:  # to make a generator takes a tenth of a fit of a small table, to seed one a hundredth of that
            drawn = Reused.generator
            drawn.seed(state)
        return drawn.randint(np.iinfo(np.int32).max, size=n)


class _Reused(threading.local):
    """A generator of this thread, which has to be seeded."""

    def __init__(self) -> None:
        self.generator = np.random.RandomState(0)


Reused = _Reused()


@dataclass(frozen=True)
class Fit:
    """A plan, with nothing left to be chosen, and the table it is carried out on.

    Parameters
    ----------
    plan : how
    table : the table
    executor : where its blocks are worked on
    values : the entries as an array or CSR array, for an `init` that is a function
    checkpoint : what an earlier fit left, and where this one leaves what is needed to go on
    seeds : the starts, if fits of the table with other numbers of clusters have them too
    """

    plan: FitPlan
    table: Table
    executor: Executor
    values: Any = None
    checkpoint: Checkpoint | None = None
    seeds: SharedSeeds | None = None

    @property
    def n_clusters(self) -> int:
        assert self.plan.n_clusters is not None
        return self.plan.n_clusters

    @property
    def settings(self) -> Settings:
        plan = self.plan
        assert plan.shrinkage is not None
        assert plan.gaps is not None
        given = not isinstance(plan.init, str) and not callable(plan.init)  # then centers keep their order
        told = iteration_callback(plan.lines, self.format_objective)
        by_size = plan.by_size and not given
        return Settings(plan.max_iter, plan.tol, plan.shrinkage, plan.gaps, by_size, plan.labels, told)

    def format_objective(self) -> Callable[[float], str]:
        """What puts the objective into words."""
        return format_objective(self.table, self.n_clusters, gaps=bool(self.plan.gaps))

    def solve(self) -> Solution:
        """The solution with the lowest objective of several starts.

        Starts of a table whose passes are short share the threads of the executor, or take turns where they
        are very short; a large table's blocks do. What a checkpoint has of a start is not done again.
        """
        plan, table, starts = self.plan, self.table, self.starts()
        work = table.n_entries * (PASS + self.n_clusters)
        short = not self.executor.remote and (work < SHORT_WORK or len(table.blocks) == 1)
        settings, own = self.settings, Executor() if short else self.executor
        write = plan.lines.writer(1)

        def solved(number: int) -> Solution:
            solution = self._solve_start(number, starts[number], own, settings)
            if write is not None:
                write(f"start {number + 1}/{len(starts)}: {self.format_objective()(solution.objective)}")
            return solution

        numbers = range(len(starts))
        shared = short and work >= LEAST_SHARED_WORK
        solutions = self.executor.map(solved, numbers) if shared else [solved(number) for number in numbers]
        best = min(solutions, key=lambda solution: solution.objective)
        return replace(best, starts=[solution.objective for solution in solutions])

    def _solve_start(
        self, number: int, start: Callable[[], Start], executor: Executor, settings: Settings
    ) -> Solution:
        solver, checkpoint = SOLVERS[self.plan.algorithm], self.checkpoint
        if checkpoint is None:
            return solver(self.table, executor, start(), settings)
        solution = checkpoint.solution(number)
        if solution is None:
            kept = checkpoint.running.get(number)
            settings = replace(settings, keep=partial(checkpoint.keep, number), resume=kept)
            begin = start() if kept is None else Start(kept["centers"])
            solution = solver(self.table, executor, begin, settings)
            checkpoint.ended(number, solution)
        return solution

    def starts(self) -> list[Callable[[], Start]]:
        """What to start from: given, or drawn when its turn comes, but fixed beforehand.

        Without a number there are as many starts as it takes; of a large table, one that was the best of
        several on a sample of the rows. Where gaps count, two of three starts look at them as well.
        """
        plan, table, k = self.plan, self.table, self.n_clusters
        if self.seeds is not None:
            assert plan.n_starts is not None
            return [partial(self.seeds.start, number, k) for number in range(plan.n_starts)]
        if callable(plan.init):
            random_state, n_starts = plan.generator(), plan.n_starts or enough_starts(table)
            given = [plan.init(self.values, k, random_state) for _ in range(n_starts)]
            return [partial(start_at, centers, table, k) for centers in given]
        if not isinstance(plan.init, str):
            return [partial(start_at, plan.init, table, k)]
        size = trial_rows(table, k) if plan.n_starts is None and plan.init == "k-means++" else table.n_rows
        n_starts = plan.n_starts or enough_starts(table)
        numbers = plan.seeds(n_starts + 1)
        if size < table.n_rows:
            return [partial(self._best_on_sample, size, numbers)]
        seedings = self._seedings(n_starts, np.random.default_rng(numbers[-1]))
        return [partial(draw, seedings[i % len(seedings)], number) for i, number in enumerate(numbers[:-1])]

    def _seedings(self, n_starts: int, rng: np.random.Generator) -> Sequence[Seeding]:
        """What starts are drawn by, in turn."""
        table, executor, k = self.table, self.executor, self.n_clusters
        weights = GAP_WEIGHTS[:n_starts] if self.plan.gaps else ()
        found: list[Seeding] = [GapSeeds(table, executor, k, rng, weight) for weight in weights]
        if n_starts > len(found):
            found.append(SEEDINGS[str(self.plan.init)](table, executor, k, rng))
        return found

    def shared_seeds(self) -> SharedSeeds | None:
        """The starts, for any number of clusters; None if they are not drawn one seed after the other."""
        n_starts = self.plan.n_starts
        if n_starts is None or not isinstance(self.plan.init, str):
            return None
        numbers = self.plan.seeds(n_starts + 1)
        seedings = self._seedings(n_starts, np.random.default_rng(numbers[-1]))
        if not all(isinstance(seeding, (KMeansPlusPlus, GapSeeds)) for seeding in seedings):
            return None
        return SharedSeeds(seedings, numbers[:-1].tolist())  # type: ignore[arg-type]

    def _best_on_sample(self, size: int, numbers: NDArray[np.int64]) -> Start:
        """Where the best of several starts ends on a sample of the rows."""
        table, executor = self.table, self.executor
        seed, of_starts = numbers.tolist()
        own = Executor() if executor.remote or len(table.blocks) == 1 else executor
        sample = sample_of(table, executor, size, np.random.default_rng(seed))
        plan = self.plan.part(n_starts=STARTS, random_state=of_starts)
        best = Fit(plan, sample, own).solve()
        return Start(np.where(sample.live, best.centers, table.fallback), gaps=best.gaps)


def enough_starts(table: Table) -> int:
    """How many starts on all rows find a good clustering at a cost in proportion."""
    return 1 if table.n_observed > LARGE_TABLE else STARTS


def trial_rows(table: Table, n_clusters: int) -> int:
    """Rows of a large table on which several starts are tried.

    All rows, and then none is tried, where a sample would be as large as the table or too large. Of a
    sparse table, a sample has too few entries of each column in each cluster (docs/speed-engineering.md).
    """
    size = max(LARGE_TABLE // row_entries(table), SAMPLE_ROWS_PER_CLUSTER * n_clusters)
    sparse = table.n_entries < table.n_rows * table.n_columns
    if table.n_observed <= LARGE_TABLE or sparse or size * table.n_columns > MOST_SAMPLE_ENTRIES:
        return table.n_rows
    return size if size < table.n_usable else table.n_rows


def draw(seeding: Seeding, number: int) -> Start:
    return seeding.draw(np.random.default_rng(number))


def start_at(centers: Floats, table: Table, n_clusters: int) -> Start:
    """A start at given centers, in the units of the values."""
    expected = (n_clusters, table.n_columns)
    if centers.shape != expected:
        raise ValueError(
            f"The initial centers have shape {centers.shape}, expected {expected}: one row per cluster."
        )
    if np.isinf(centers).any():
        raise ValueError("The initial centers contain infinity.")
    return Start(fill_gaps(table, np.where(np.isnan(centers), np.nan, table.units.to(centers))))


def format_objective(table: Table, n_clusters: int, *, gaps: bool = False) -> Callable[[float], str]:
    """What is minimised, in words: the loss in the units of the table, or the objective where gaps count."""
    name, kind = ("objective", GapObjective) if gaps else ("loss", Objective)
    return lambda value: f"{name} {kind(table, n_clusters).in_own_units(value):.6g}"


def iteration_callback(
    lines: Lines, format_of: Callable[[], Callable[[float], str]]
) -> Callable[[str, int, float], None] | None:
    """What writes a line on each iteration, if those are wanted."""
    write = lines.writer(2)
    if write is None:
        return None
    value = format_of()
    return lambda what, iteration, now: write(f"  {what} {iteration}: {value(now)}")
