"""The trials of a search for the number of clusters, and its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from kpod._common.long_waits import Wait
from kpod._common.progress import Progress
from kpod._common.typing import Floats
from kpod._engine.solvers.interface import Solution
from kpod._engine.table import Table
from kpod._model_selection.holdout import Errors, smallest_within

clock = time.monotonic
NOISE = 1.0  # standard errors (paired): the smallest number of centers within this of the best is taken


def counted(k: int) -> str:
    return "1 cluster" if k == 1 else f"{k} clusters"


def work_of_fit(k: int) -> float:
    """The work of a fit with k clusters next to others: the time of one grows with them, from an offset."""
    return k + 2.0


@dataclass
class Trial:
    """What is known about one number of clusters: on hidden entries, and on all that is observed.

    With informative missingness, also the deviance of the gaps of each row.
    """

    errors: Errors
    deviance: Floats | None
    whole: Solution  # from one start, that of the first fold, until the number is settled


@dataclass(frozen=True)
class Trials:
    """The numbers of clusters that were tried on a table, by number."""

    table: Table
    gaps: bool = False  # whether they count in the clustering, and so in the errors
    by_k: dict[int, Trial] = field(default_factory=dict)

    def with_gaps(self, errors: Errors, deviance: Floats | None, variance: float | None = None) -> Errors:
        r"""Errors on hidden values, and the deviance of gaps, as parts of one likelihood.

        A squared error e is worth :math:`e / \sigma^2` of minus twice the log-likelihood, so what gaps add is
        taken :math:`\sigma^2` times, the variance, or the smallest mean error so far; and by the share of the
        observed values that was hidden.
        """
        if deviance is None:
            return errors
        if variance is None:
            variance = min(trial.errors.mean for trial in self.by_k.values())
        share = errors.count / float(self.table.about.weights[self.table.groups.first].sum())
        weights = 1.0 if self.table.weights is None else self.table.weights
        return errors.plus(variance * share * weights * deviance)

    @property
    def errors(self) -> dict[int, Errors]:
        """What each number of clusters fails to predict."""
        return {k: self.with_gaps(trial.errors, trial.deviance) for k, trial in self.by_k.items()}

    @property
    def choice(self) -> int:
        """The number of clusters by the errors of centers."""
        return smallest_within(self.errors, NOISE)


@dataclass
class StepCounter:
    """Counts steps done and planned, and reports them to the callback; several threads may call it."""

    progress: Progress | None = None
    wait: Wait | None = None
    deadline: float | None = None  # by `clock`
    done: int = 0
    planned: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and clock() >= self.deadline

    def plan(self, more: int, work: float = 0.0) -> None:
        """So many steps more, the beginning of a stage of so much work if any is given."""
        with self._lock:
            self.planned += more
            if self.wait and work:
                self.wait.begin(work)

    def plan_fits(self, ks: Iterable[int], times: int) -> None:
        """Plan to fit each number of clusters so many times."""
        ks = list(ks)
        self.plan(len(ks) * times, times * sum(map(work_of_fit, ks)))

    def advance(self, text: str, work: float = 0.0) -> None:
        with self._lock:
            self.done += 1
            if self.progress:
                self.progress(self.done, max(self.planned, self.done), text)
            self.step(work)

    def skip(self, steps: int, work: float) -> None:
        """So many steps less, of so much work each."""
        self.planned -= steps
        if self.wait:
            self.wait.skip(steps * work)

    def step(self, work: float) -> None:
        """So much work more is done."""
        with self._lock:
            if self.wait and work:
                self.wait.step(work)
