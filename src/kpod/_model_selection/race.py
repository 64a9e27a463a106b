r"""Candidates compared fold by fold, and dropped once they cannot win.

After m of M folds, let the error of a way lie z standard errors (paired) above the smallest. If the folds
that are left showed no difference between the two, it would lie

.. math:: z \sqrt{m / M}

standard errors above in the end. Where that is more than `OUT`, the way is not fitted to the other folds: it
could be taken, or be as good as the one that is taken, only if those folds contradicted the ones before.
Ways are settings (numbers of clusters, shrinkages), of which the smallest within the noise is taken. One
larger than the best so far has to end below that by more than the noise, so `OUT_LARGER` is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kpod._common.typing import Floats, Labels
from kpod._engine.executors import Executor
from kpod._engine.sizes import LEAST_SHARED_WORK, PASS
from kpod._engine.solvers.interface import Solution
from kpod._engine.table import Table
from kpod._model_selection.holdout import Errors, Fold, above, add_up

OUT = 2.5  # standard errors in the end, the most that a number between two rivals has to be worse than both
OUT_LARGER = 1.0  # for a larger setting than the best

Fit = Callable[[Table, Executor], Solution]
Compare = Callable[[Sequence[Any], int], Mapping[Any, Errors]]
"""The errors of some ways, by name, on the first so many folds, by which they are compared."""


def is_out(errors: Errors, best: Errors, n_folds: int, of: int, most: float = OUT) -> bool:
    """Whether errors on so many folds are too large for the other folds to make up for it."""
    return above(errors, best) * float(np.sqrt(n_folds / of)) > most


def extended(errors: Errors, best: Errors, best_in_all: Errors) -> Errors:
    """Errors on some folds as they would be on all, if they differed from the best by as much there."""
    ratio = best_in_all.count / errors.count
    by_row, by_column = best_in_all.by_row.copy(), best_in_all.by_column.copy()
    by_row[np.searchsorted(best_in_all.rows, errors.rows)] += ratio * (errors.by_row - best.by_row)
    by_column += ratio * (errors.by_column - best.by_column)
    counts, rows = best_in_all.column_counts, best_in_all.rows
    return Errors(by_row, by_column, best_in_all.count, counts, rows)


@dataclass
class Runner:
    """What is known of one way of fitting: errors on the first fold, on the first two, and so on."""

    fit: Fit
    errors: list[Errors] = field(default_factory=list)
    squared: list[Floats] = field(default_factory=list)  # of each fold
    labels: list[Labels] = field(default_factory=list)
    first: Solution | None = None  # of the first fold

    @property
    def n_folds(self) -> int:
        return len(self.labels)


class Race:
    """Fit folds in several ways, and square the errors of the centers on what each hides.

    Parameters
    ----------
    folds : as `holdout.folds` makes them, of one table
    executor : shared by the fits of a small table, given to each fit of a large one; very short ones take
        turns
    done : told the name of the way after each fit, from the thread that ran it
    dropped : told the name of a way, and of how many folds it is spared
    is_late : whether time is up: then nothing more is fitted than one fold in one way
    compare : what ways are compared by; the errors of the centers, unless given
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        executor: Executor,
        done: Callable[[Any], None] | None = None,
        dropped: Callable[[Any, int], None] = lambda _name, _n: None,
        is_late: Callable[[], bool] = lambda: False,
        compare: Compare | None = None,
    ) -> None:
        self.folds, self.executor, self.done = folds, executor, done
        self.dropped, self.is_late = dropped, is_late
        self.compare = compare or self.errors_of_centers
        self.runners: dict[Any, Runner] = {}

    def errors_of_centers(self, names: Sequence[Any], n_folds: int) -> dict[Any, Errors]:
        """Of some ways on the first so many folds."""
        return {name: self.runners[name].errors[n_folds - 1] for name in names}

    def run(self, fits: Mapping[Any, Fit]) -> None:
        """Judge more ways on fold after fold, for as long as they can win."""
        running, n_folds = {name: Runner(fit) for name, fit in fits.items()}, len(self.folds)
        nothing_yet = not self.runners
        for number in range(1, n_folds + 1):
            if not running:
                break
            self._judge(running, at_least_one=nothing_yet and number == 1)
            judged = {name: runner for name, runner in running.items() if runner.n_folds == number}
            self.runners |= judged
            staying = self._staying(judged, number)
            for name in [name for name in running if name not in staying]:
                self.dropped(name, n_folds - running[name].n_folds)
            running = staying

    def _staying(self, judged: Mapping[Any, Runner], n_folds: int) -> dict[Any, Runner]:
        """Those of the ways judged on so many folds that can still win; none where time was up before."""
        if not judged:
            return {}
        names = [name for name, runner in self.runners.items() if runner.n_folds >= n_folds]
        errors = self.compare(names, n_folds)
        best, of = min(errors, key=lambda name: errors[name].mean), len(self.folds)

        def stays(name: Any) -> bool:
            return not is_out(errors[name], errors[best], n_folds, of, OUT_LARGER if name > best else OUT)

        return {name: runner for name, runner in judged.items() if stays(name)}

    def labels(self, name: Any, n_folds: int) -> list[Labels]:
        """The labels of the first folds in one way, which are fitted now if they were not before."""
        runner = self.runners[name]
        while runner.n_folds < n_folds:
            self._judge({name: runner}, at_least_one=True)
        return runner.labels[:n_folds]

    @property
    def errors(self) -> dict[Any, Errors]:
        """The errors of every way on all folds; of one that was dropped, by its distance from the best.

        Where time was up, on as many folds as any way was fitted to.
        """
        n_folds = max(runner.n_folds for runner in self.runners.values())
        best = min(
            (runner for runner in self.runners.values() if runner.n_folds == n_folds),
            key=lambda runner: runner.errors[-1].mean,
        )
        return {
            name: runner.errors[-1]
            if runner.n_folds == n_folds
            else extended(runner.errors[-1], best.errors[runner.n_folds - 1], best.errors[-1])
            for name, runner in self.runners.items()
        }

    def _judge(self, runners: Mapping[Any, Runner], *, at_least_one: bool) -> None:
        """The next fold of some ways, which have as many behind them."""
        table = self.folds[0].table
        shared = len(table.blocks) == 1 and table.n_entries * 2 * PASS >= LEAST_SHARED_WORK
        names = sorted(runners, reverse=shared)  # on threads, those that take longest first
        number = runners[names[0]].n_folds
        fold, smallest = self.folds[number], min(names)

        def judge(name: Any) -> tuple[Floats, Solution] | None:
            if self.is_late() and not (at_least_one and name == smallest):
                return None
            solution = runners[name].fit(fold.table, self.executor)
            squared = fold.squared_errors(solution.labels, solution.centers)
            if self.done is not None:
                self.done(name)
            return squared, solution

        found = self.executor.map(judge, names) if shared else [judge(name) for name in names]
        shape = table.n_rows, table.n_columns
        for name, judged in zip(names, found, strict=True):
            if judged is None:
                continue
            runner, (squared, solution) = runners[name], judged
            runner.first = solution if number == 0 else runner.first
            runner.squared.append(squared)
            runner.labels.append(solution.labels)
            errors = add_up(shape, self.folds[: number + 1], runner.squared, table.weights, table.groups)
            runner.errors.append(errors)
