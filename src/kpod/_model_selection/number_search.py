"""The search behind `choose_k`: which numbers are tried, on which hidden entries, and which is chosen.

Every number of clusters is judged by the squared error on the same hidden entries; `NumberVerdict` is what
follows. The constants were chosen on tables of other seeds than those of `python -m benchmarks choose`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from kpod._common.blas import one_thread
from kpod._common.long_waits import Wait
from kpod._common.progress import Progress
from kpod._common.typing import Floats, Labels
from kpod._engine.blocks import some_rows
from kpod._engine.executors import Executor
from kpod._engine.solvers.interface import Solution
from kpod._engine.table import Table, make_table
from kpod._model_selection import holdout
from kpod._model_selection.correlated import Mixtures, NumberVerdict, most_mixture_rows
from kpod._model_selection.holdout import Errors, Fold, smallest_within
from kpod._model_selection.race import Fit, Race, extended
from kpod._model_selection.separation import n_apart
from kpod._model_selection.trials import NOISE, StepCounter, Trial, Trials, counted, work_of_fit
from kpod.metrics import silhouette_scores

FIRST_RANGE = 10  # "auto" looks at 1 to 10 first,
LAST_RANGE = 40  # and at up to 40 while more clusters keep helping
MOST_ROWS = 20_000
MOST_SILHOUETTE_ROWS = 1_000
STARTS = 3
MANY_ENTRIES = 20_000  # observed, beyond which half the folds are enough
LEAST_HIDDEN = 20
SHRINKAGES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # in rows of mean weight

YOURSELF = "Give the number of clusters yourself."


class TooLittleError(ValueError):
    """Nothing can be hidden and predicted."""


class Fitter(Protocol):
    """How an estimator fits a table of the engine; None for its own number of starts."""

    def __call__(
        self,
        table: Table,
        executor: Executor,
        n_clusters: int,
        shrinkage: float,
        n_starts: int | None,
        start: Floats | None = None,
    ) -> Solution:
        """Fit; from centers in the units of the values, if there is a start."""
        ...


@dataclass(frozen=True)
class Search:
    """A search: the rows and folds that it rests on, how they are clustered, and what was tried so far."""

    values: Any  # the rows that the choice rests on: an array with NaN, or CSR
    table: Table  # the same for the engine
    executor: Executor
    fitter: Fitter
    shrinkage: float
    usable: int  # rows of the whole table that it could rest on
    folds: list[Fold]
    trials: Trials
    counter: StepCounter = field(default_factory=StepCounter)
    extend: Callable[[int], bool] | None = None  # whether to try more clusters than so many, if they help
    settled: dict[int, Solution] = field(default_factory=dict)  # by number, with all starts

    @classmethod
    def of(
        cls,
        values: Any,
        table: Table,
        executor: Executor,
        fitter: Fitter,
        shrinkage: float,
        rng: np.random.RandomState,
        progress: Progress | None = None,
        *,
        gaps: bool = False,
        extend: Callable[[int], bool] | None = None,
        wait: Wait | None = None,
        deadline: float | None = None,
    ) -> Search:
        """A search on a table, or on a sample of its rows; what was tried until the deadline has to do."""
        usable = np.flatnonzero(table.usable)
        if table.groups.n_sources == 1:
            category = "" if table.n_columns == 1 else ", a category,"
            raise TooLittleError(
                f"X has one column{category} (n_features = {table.n_columns}): with its entry hidden, "
                f"nothing is left of a row to predict it from. {YOURSELF}"
            )
        most = min(MOST_ROWS, most_mixture_rows(table)) if gaps else MOST_ROWS
        rows = usable if len(usable) <= most else np.sort(rng.permutation(usable)[:most])
        if len(rows) < table.n_rows:
            values = some_rows(values, rows)
            weights = None if table.weights is None else table.weights[rows]
            table = make_table(values, executor, weights=weights, groups=table.groups)
        seed = int(rng.randint(2**31 - 1))
        n_folds = holdout.N_FOLDS if table.n_observed <= MANY_ENTRIES else holdout.N_FOLDS // 2
        folds = holdout.folds(table, executor, seed, n_folds=n_folds)
        hidden = sum(fold.n_hidden for fold in folds)
        if hidden < LEAST_HIDDEN or min(fold.n_hidden for fold in folds) == 0:
            raise TooLittleError(
                f"X has too few observed entries to hide some and predict them: {hidden} could be hidden, at "
                f"least {LEAST_HIDDEN} are needed (n_samples = {table.n_rows}; every row must keep one entry "
                f"and every column two). {YOURSELF}"
            )
        trials, counter = Trials(table, gaps), StepCounter(progress, wait, deadline)
        return cls(values, table, executor, fitter, shrinkage, len(usable), folds, trials, counter, extend)

    def with_shrinkage(self, shrinkage: float) -> Search:
        """The same search from the beginning, on the same folds, with another shrinkage."""
        return replace(self, shrinkage=shrinkage, trials=Trials(self.table, self.trials.gaps), settled={})

    @property
    def gaps(self) -> bool:
        """Whether they count."""
        return self.trials.gaps

    @property
    def most(self) -> int:
        """The most clusters that "auto" looks at."""
        return min(LAST_RANGE, max(1, self.usable // 2))

    @cached_property
    def race(self) -> Race:
        """The numbers of clusters that were tried, on the folds."""

        def done(k: int) -> None:
            self.counter.advance(counted(k), work_of_fit(k))

        def dropped(k: int, n_folds: int) -> None:
            self.counter.skip(n_folds, work_of_fit(k))

        compare = self.errors_with_gaps if self.gaps else None
        return Race(self.folds, self.executor, done, dropped, lambda: self.counter.is_late, compare)

    def fit_of(self, k: int, shrinkage: float) -> Fit:
        """How folds are fitted."""
        n_starts = STARTS if k > 1 else 1
        return partial(self.fitter, n_clusters=k, shrinkage=shrinkage, n_starts=n_starts)

    def try_centers(self, ks: Iterable[int]) -> None:
        """Hold entries out and predict them by the centers, for each of some numbers of clusters."""
        ks = list(ks)
        self.counter.plan_fits(ks, len(self.folds) + 1)
        self.race.run({k: self.fit_of(k, self.shrinkage) for k in ks})
        errors, deviances = self.errors_and_deviances() if self.gaps else (self.race.errors, {})
        for k, trial in self.trials.by_k.items():
            trial.errors, trial.deviance = errors[k], deviances.get(k)
        for k in ks:
            if k not in errors:
                self.counter.skip(1, work_of_fit(k))  # there was no time for it
        found = [k for k in ks if k in errors]
        for k, whole in zip(found, self.executor.map(self.fit_whole, found), strict=True):
            self.trials.by_k[k] = Trial(errors[k], deviances.get(k), whole)
            self.counter.advance(counted(k), work_of_fit(k))

    def errors_and_deviances(self) -> tuple[dict[int, Errors], dict[int, Floats]]:
        """What clusters with gaps of their own fail to predict: values on all folds, and gaps.

        Of a number that was dropped, the values by its distance from the best.
        """
        n_folds = {k: runner.n_folds for k, runner in self.race.runners.items()}
        most = max(n_folds.values())
        in_all = self.errors_with_gaps([k for k, n in n_folds.items() if n == most], most)
        best = min(in_all, key=lambda k: in_all[k].mean)
        errors, deviances = {}, {}
        for k, n in n_folds.items():
            errors[k], deviances[k] = self.of_fold_labels(k, n)
            if n < most:
                some, every = (self.of_fold_labels(best, number)[0] for number in (n, most))
                errors[k] = extended(errors[k], some, every)
        return errors, deviances

    def errors_with_gaps(self, ks: Sequence[int], n_folds: int) -> dict[int, Errors]:
        """What some numbers of clusters fail to predict on the first folds, values and gaps in one."""
        parts = {k: self.of_fold_labels(k, n_folds) for k in ks}
        variance = min(errors.mean for errors, _ in parts.values())
        return {k: self.trials.with_gaps(*part, variance) for k, part in parts.items()}

    def of_fold_labels(self, k: int, n_folds: int) -> tuple[Errors, Floats]:
        """What k clusters with gaps of their own fail to predict on the first folds: values, and gaps."""
        return self.mixtures.of_labels(self.race.runners[k].labels[:n_folds], k)

    def fold_labels(self, k: int, n_folds: int) -> list[Labels]:
        """The labels of the first folds; a number that was dropped has not all of them yet."""
        self.counter.plan(max(0, n_folds - self.race.runners[k].n_folds))
        return self.race.labels(k, n_folds)

    def fit_whole(self, k: int) -> Solution:
        """A fit of all that is observed, from where that of the first fold ended: for loss and silhouette."""
        first = self.race.runners[k].first
        assert first is not None
        start = self.table.units.back(first.centers)
        return self.fitter(self.table, self.executor, k, self.shrinkage, 1, start)

    def settle(self, k: int) -> Solution:
        """The fit of a number with all the starts that a fit has."""
        if k not in self.settled:
            whole = self.fitter(self.table, self.executor, k, self.shrinkage, None)
            self.settled[k] = self.trials.by_k[k].whole = whole
        return self.settled[k]

    def try_all(self, k: Any) -> bool:
        """Try the numbers of "auto" or of a list; returns whether it was "auto"."""
        ks, extendable = numbers(k, self.usable)
        self.try_centers(ks)
        while extendable and self.trials.choice == max(self.trials.by_k) < self.most:
            end = max(self.trials.by_k)
            if self.counter.is_late:
                break
            if self.extend is not None and not self.extend(end):
                break
            self.try_centers(range(end + 1, min(2 * end, LAST_RANGE, self.most) + 1))
        return extendable

    def best_shrinkage(self, k: int) -> float:
        """The smallest shrinkage whose error at k clusters is within the noise of the best."""
        weights = self.table.weights
        unit = 1.0 if weights is None else float(weights.mean())
        tried = [unit * shrinkage for shrinkage in SHRINKAGES]
        self.counter.plan_fits([k] * len(tried), len(self.folds))
        work = work_of_fit(k)
        race = Race(
            self.folds,
            self.executor,
            lambda _: self.counter.advance(counted(k), work),
            lambda _, n: self.counter.skip(n, work),
        )
        race.run({shrinkage: self.fit_of(k, shrinkage) for shrinkage in tried})
        return smallest_within(race.errors, NOISE)

    @cached_property
    def mixtures(self) -> Mixtures:
        """Mixtures on the same folds; of a sample of the rows, evenly spaced, where there are many."""
        n = self.table.n_rows
        rows = np.linspace(0, n - 1, min(n, most_mixture_rows(self.table))).astype(np.intp)
        return Mixtures(
            self.values, rows, self.folds, self.executor, self.trials, self.fold_labels, self.counter
        )

    def loss(self, k: int) -> float:
        """The loss for each observed entry, on the same scale as the error."""
        whole, scale = self.trials.by_k[k].whole, self.table.units.scale
        return float(whole.loss / max(whole.counts.sum(), 1e-300)) / scale / scale

    def silhouettes(self) -> list[float]:
        """Of every number that was tried; NaN where there is none: one cluster, or as many as rows."""
        n, most = self.table.n_rows, MOST_SILHOUETTE_ROWS
        chosen = np.linspace(0, n - 1, min(most, n)).astype(np.intp)
        labels = [self.trials.by_k[k].whole.labels[chosen] for k in sorted(self.trials.by_k)]
        return silhouette_scores(self.values[chosen], labels)

    def n_apart(self, k: int) -> int:
        """How many of k clusters are separated by a border at which rows are sparse.

        Where gaps count, clusters may overlap in their values and be separate all the same: all of them.
        """
        if self.gaps:
            return k
        whole = self.settle(k)
        return n_apart(self.values, whole.labels, self.table.units.back(whole.centers))

    def verdict(self) -> NumberVerdict:
        by_centers = self.trials.choice
        if by_centers == 1 or self.counter.is_late:
            return NumberVerdict(by_centers, by_centers, False, self.trials.errors, None, "")
        with one_thread():
            return self.mixtures.verdict(by_centers)


def numbers(k: Any, usable: int) -> tuple[list[int], bool]:
    """The numbers of clusters to try, and whether more may be tried."""
    if isinstance(k, str):
        if k != "auto":
            raise ValueError(f"k must be 'auto' or the numbers of clusters to choose from, got {k!r}.")
        return list(range(1, min(FIRST_RANGE, max(1, usable // 2)) + 1)), True
    if isinstance(k, Integral) or not isinstance(k, Iterable):
        raise ValueError(
            f"k must be 'auto' or several numbers to choose from, such as range(1, 11); got {k!r}. "
            "For a fixed number use KPOD(n_clusters=...)."
        )
    given = list(k)
    for value in given:
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"k must hold whole numbers from 1 up, got {value!r}.")
    ks = sorted({int(value) for value in given})
    if not ks:
        raise ValueError("k is empty: give at least one number of clusters, such as range(1, 11).")
    if ks[-1] > usable:
        raise ValueError(
            f"k goes up to {ks[-1]}, but only {usable} rows of X have anything observed: "
            f"at most {usable} clusters can be asked for."
        )
    return ks, False
