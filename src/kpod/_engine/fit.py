"""A whole fit: several starts, the best of which is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kpod._engine.checkpoint import Checkpoint
from kpod._engine.executors import Executor
from kpod._engine.seeding import GAP_WEIGHTS, SEEDINGS, GapSeeds, Seeding, row_entries, sample_of
from kpod._engine.sizes import (
    LARGE_TABLE,
    MOST_SAMPLE_ENTRIES,
    PASS,
    SAMPLE_ROWS_PER_CLUSTER,
    SHORT_WORK,
    STARTS,
)
from kpod._engine.solvers.hartigan import hartigan
from kpod._engine.solvers.lloyd import Settings, Solution, Start, lloyd
from kpod._engine.solvers.mm import mm
from kpod._engine.table import Table

Solver = Callable[[Table, Executor, Start, Settings], Solution]
SOLVERS: Mapping[str, Solver] = MappingProxyType({"hartigan": hartigan, "lloyd": lloyd, "mm": mm})


def enough_starts(table: Table) -> int:
    """How many starts on all rows find a good clustering at a cost in proportion."""
    return 1 if table.n_observed > LARGE_TABLE else STARTS


def drawn_starts(
    table: Table,
    executor: Executor,
    init: str,
    n_clusters: int,
    n_starts: int | None,
    random_state: np.random.RandomState,
    algorithm: str,
    settings: Settings,
    checkpoint: Checkpoint | None = None,
) -> list[Callable[[], Start]]:
    """Starts that are drawn when their turn comes, but fixed beforehand: by a checkpoint, if it has any.

    Without a number there are as many as it takes; of a large table, one that was the best of several
    on a sample of the rows. Where gaps count, two of three starts look at them as well.
    """
    size = trial_rows(table, n_clusters) if n_starts is None and init == "k-means++" else table.n_rows
    n_starts = n_starts or enough_starts(table)
    numbers = random_state.randint(np.iinfo(np.int32).max, size=n_starts + 1)
    if checkpoint is not None:
        checkpoint.numbers = numbers.tolist() if checkpoint.numbers is None else checkpoint.numbers
        numbers = np.array(checkpoint.numbers)
    if size < table.n_rows:
        tried = partial(best_on_sample, table, executor, init, n_clusters, size, numbers, algorithm, settings)
        return [tried]
    rng = np.random.default_rng(numbers[-1])
    seedings: list[Seeding] = []
    if settings.gaps:
        seedings = [GapSeeds(table, executor, n_clusters, rng, weight) for weight in GAP_WEIGHTS[:n_starts]]
    if n_starts > len(seedings):
        seedings.append(SEEDINGS[init](table, executor, n_clusters, rng))
    return [partial(draw, seedings[i % len(seedings)], number) for i, number in enumerate(numbers[:-1])]


def trial_rows(table: Table, n_clusters: int) -> int:
    """Rows of a large table on which several starts are tried.

    All rows, and then none is tried, where a sample would be as large as the table or too large. Of a
    sparse table, a sample has too few entries of each column in each cluster (docs/speed.md).
    """
    size = max(LARGE_TABLE // row_entries(table), SAMPLE_ROWS_PER_CLUSTER * n_clusters)
    sparse = table.n_entries < table.n_rows * table.n_columns
    if table.n_observed <= LARGE_TABLE or sparse or size * table.n_columns > MOST_SAMPLE_ENTRIES:
        return table.n_rows
    return size if size < int(table.usable.sum()) else table.n_rows


def best_on_sample(
    table: Table,
    executor: Executor,
    init: str,
    n_clusters: int,
    size: int,
    numbers: NDArray[np.int64],
    algorithm: str,
    settings: Settings,
) -> Start:
    """Where the best of several starts ends on a sample of the rows."""
    seed, of_starts = numbers.tolist()
    own = Executor() if executor.remote or len(table.blocks) == 1 else executor
    sample = sample_of(table, executor, size, np.random.default_rng(seed))
    settings = replace(settings, iteration_callback=None)
    starts = drawn_starts(
        sample, own, init, n_clusters, STARTS, np.random.RandomState(of_starts), algorithm, settings
    )
    best, _ = best_of(starts, sample, own, algorithm, n_clusters, settings)
    return Start(np.where(sample.live, best.centers, table.fallback), gaps=best.gaps)


def draw(seeding: Seeding, number: int) -> Start:
    return seeding.draw(np.random.default_rng(number))


def best_of(
    starts: Sequence[Callable[[], Start]],
    table: Table,
    executor: Executor,
    algorithm: str,
    n_clusters: int,
    settings: Settings,
    done: Callable[[int, Solution], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Solution, list[float]]:
    """The solution with the lowest objective, and the objectives of all starts.

    Starts of a table whose passes are short share the threads of the executor; a large table's
    blocks do. `done` is told of each start that ended. What a checkpoint has of a start is not done
    again.
    """
    short = not executor.remote and (
        table.n_entries * (PASS + n_clusters) < SHORT_WORK or len(table.blocks) == 1
    )

    def solve(number: int) -> Solution:
        solution = None if checkpoint is None else checkpoint.solution(number)
        if solution is None:
            solution = solve_anew(number)
        if done is not None:
            done(number, solution)
        return solution

    def solve_anew(number: int) -> Solution:
        solver, own = SOLVERS[algorithm], Executor() if short else executor
        if checkpoint is None:
            return solver(table, own, starts[number](), settings)
        kept = checkpoint.running.get(number)
        start = starts[number]() if kept is None else Start(kept["centers"])
        saving = replace(settings, keep=partial(checkpoint.keep, number), resume=kept)
        solution = solver(table, own, start, saving)
        checkpoint.ended(number, solution)
        return solution

    order = range(len(starts))
    solutions = executor.map(solve, order) if short else [solve(number) for number in order]
    best = min(solutions, key=lambda solution: solution.objective)
    return best, [solution.objective for solution in solutions]
