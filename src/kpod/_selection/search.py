"""The search behind `choose_k`: what is tried, on which hidden entries, and which number that makes.

Every number of clusters is judged by the squared error on the same hidden entries; `Verdict` says what
follows. The constants were chosen on tables of other seeds than those of `python -m benchmarks choose`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kpod._common.blas import one_thread
from kpod._common.typing import Floats, Labels
from kpod._common.waiting import Wait
from kpod._engine.blocks import some_rows
from kpod._engine.executors import Executor
from kpod._engine.solvers.lloyd import Solution
from kpod._engine.table import Table, make_table
from kpod._mixture import em
from kpod._selection import holdout
from kpod._selection.correlated import (
    NOISE,
    Correlated,
    Mixtures,
    Reduced,
    Verdict,
    counted,
    most_mixture_rows,
    settled,
    work_of_fit,
)
from kpod._selection.holdout import Errors, Fold, smallest_within
from kpod._selection.separation import n_apart
from kpod.metrics import silhouette_score

FIRST_RANGE = 10  # "auto" looks at 1 to 10 first,
LAST_RANGE = 40  # and at up to 40 while more clusters keep helping
MOST_ROWS = 20_000
MOST_SILHOUETTE_ROWS = 2_000
STARTS = 3
MANY_ENTRIES = 20_000  # observed, beyond which half the folds tell as much as is needed
LEAST_HIDDEN = 20
SHRINKAGES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # in rows of mean weight


Progress = Callable[[int, int, str], None]
YOURSELF = "Give the number of clusters yourself."


class TooLittleError(ValueError):
    """Nothing can be hidden and predicted."""


class Fitter(Protocol):
    """How an estimator fits a table of the engine; None for its own number of starts."""

    def __call__(
        self, table: Table, executor: Executor, n_clusters: int, shrinkage: float, n_starts: int | None
    ) -> Solution:
        """Fit."""
        ...


@dataclass
class Trial:
    """What is known about one number of clusters: on hidden entries, and on all that is observed.

    Where gaps count, also how unexpected those of each row are.
    """

    errors: Errors
    surprise: Floats | None
    labels: list[Labels]  # of each fold
    whole: Solution


@dataclass
class Search:
    """The state of a search: what was tried so far, on which folds."""

    values: Any  # the rows that the choice rests on: an array with NaN, or CSR
    table: Table  # the same for the engine
    executor: Executor
    fitter: Fitter
    shrinkage: float
    usable: int  # rows of the whole table that it could rest on
    folds: list[Fold]
    progress: Progress | None = None
    gaps: bool = False  # whether they count in the clustering, and so in the mixtures
    extend: Callable[[int], bool] | None = None  # whether to try more clusters than so many, if they help
    centers: dict[int, Trial] = field(default_factory=dict)
    correlated: dict[int, Correlated] = field(default_factory=dict)
    done: int = 0
    planned: int = 0
    lock: Any = field(default_factory=threading.Lock)
    wait: Wait | None = None

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
    ) -> Search:
        """A search on a table, or on a sample of its rows."""
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
        return cls(
            values, table, executor, fitter, shrinkage, len(usable), folds, progress, gaps, extend, wait=wait
        )

    def with_shrinkage(self, shrinkage: float) -> Search:
        """The same search from the beginning, on the same folds, with another shrinkage."""
        return replace(self, shrinkage=shrinkage, centers={}, correlated={})

    @property
    def weights(self) -> Floats | None:
        return self.table.weights

    @property
    def most(self) -> int:
        """The most clusters that "auto" looks at."""
        return min(LAST_RANGE, max(1, self.usable // 2))

    def plan(self, more: int) -> None:
        self.planned += more

    def plan_fits(self, ks: Iterable[int], times: int) -> None:
        """Plan to fit each number of clusters so many times."""
        ks = list(ks)
        self.plan(len(ks) * times)
        if self.wait:
            self.wait.begin(times * sum(map(work_of_fit, ks)))

    def tell(self, text: str, work: float = 0.0) -> None:
        with self.lock:
            self.done += 1
            if self.progress:
                self.progress(self.done, max(self.planned, self.done), text)
            if self.wait and work:
                self.wait.step(work)

    def held_out(self, settings: list[tuple[int, float]]) -> list[holdout.HeldOut]:
        """What some numbers of clusters with some shrinkage are worth on the folds."""
        fits = [
            partial(self.fitter, n_clusters=k, shrinkage=shrinkage, n_starts=STARTS if k > 1 else 1)
            for k, shrinkage in settings
        ]

        def done(way: int) -> None:
            k, _ = settings[way]
            self.tell(counted(k), work_of_fit(k))

        return holdout.held_out(self.folds, fits, self.executor, done)

    def try_centers(self, ks: Iterable[int]) -> None:
        """Hold entries out and predict them by the centers, for each of some numbers of clusters."""
        ks = list(ks)
        self.plan_fits(ks, len(self.folds) + 1)
        for k, trial in zip(ks, self.held_out([(k, self.shrinkage) for k in ks]), strict=True):
            # For loss and silhouette only, until one is chosen.
            n_starts = None if self.table.n_observed <= MANY_ENTRIES else STARTS
            whole = self.fitter(self.table, self.executor, k, self.shrinkage, n_starts)
            self.tell(counted(k), work_of_fit(k))
            errors, surprise = trial.errors, None
            if self.gaps:
                errors, surprise = self.mixtures.of_labels(trial.labels, k)
            self.centers[k] = Trial(errors, surprise, trial.labels, whole)

    def settle(self, k: int) -> None:
        """Fit the number that was chosen with all the starts that a fit has."""
        if k > 1 and self.table.n_observed > MANY_ENTRIES:
            self.centers[k].whole = self.fitter(self.table, self.executor, k, self.shrinkage, None)

    def try_all(self, k: Any) -> bool:
        """Try what "auto" or a list of numbers asks for; returns whether it was "auto"."""
        ks, extendable = numbers(k, self.usable)
        self.try_centers(ks)
        while extendable and self.centers_choice() == max(self.centers) and max(self.centers) < self.most:
            end = max(self.centers)
            if self.extend is not None and not self.extend(end):
                break
            self.try_centers(range(end + 1, min(2 * end, LAST_RANGE, self.most) + 1))
        return extendable

    def best_shrinkage(self, k: int) -> float:
        """The smallest shrinkage whose error at k clusters is within the noise of the best."""
        unit = 1.0 if self.weights is None else float(self.weights.mean())
        tried = [unit * shrinkage for shrinkage in SHRINKAGES]
        self.plan_fits([k] * len(tried), len(self.folds))
        found = self.held_out([(k, shrinkage) for shrinkage in tried])
        curve = {shrinkage: trial.errors for shrinkage, trial in zip(tried, found, strict=True)}
        return smallest_within(curve, NOISE)

    def centers_choice(self) -> int:
        return smallest_within(self.by_centers, NOISE)

    @property
    def by_centers(self) -> dict[int, Errors]:
        """What each number of clusters fails to predict."""
        return {k: self.with_gaps(trial.errors, trial.surprise) for k, trial in self.centers.items()}

    def with_gaps(self, errors: Errors, surprise: Floats | None) -> Errors:
        r"""Errors on hidden values, and what was unexpected about gaps, as parts of one likelihood.

        A squared error e is worth :math:`e / \sigma^2` of minus twice the log-likelihood, so what gaps add is
        taken :math:`\sigma^2` times, the smallest mean error so far; and by the share of the observed values
        that was hidden.
        """
        if surprise is None:
            return errors
        variance = min(trial.errors.mean for trial in self.centers.values())
        share = errors.count / float(self.table.about.weights[self.table.groups.first].sum())
        weights = 1.0 if self.weights is None else self.weights
        return errors.plus(variance * share * weights * surprise)

    @cached_property
    def mixtures(self) -> Mixtures:
        return Mixtures(self, self.mixture_rows())

    def mixture_rows(self) -> Any:
        """A sample of the rows where the table is too large for mixtures: evenly spaced."""
        n = self.table.n_rows
        return np.linspace(0, n - 1, min(n, most_mixture_rows(self.table))).astype(np.intp)

    def loss(self, k: int) -> float:
        """The loss for each observed entry, on the same scale as the error."""
        whole, scale = self.centers[k].whole, self.table.units.scale
        return float(whole.loss / max(whole.counts.sum(), 1e-300)) / scale / scale

    def silhouette(self, k: int) -> float:
        """NaN where there is none: one cluster, or as many as rows."""
        labels = self.centers[k].whole.labels
        most = MOST_SILHOUETTE_ROWS
        chosen = np.linspace(0, len(labels) - 1, min(most, len(labels))).astype(np.intp)
        labels = labels[chosen]
        n_clusters = len(np.unique(labels[labels >= 0]))
        if not 1 < n_clusters < (labels >= 0).sum():
            return np.nan
        return silhouette_score(self.values[chosen], labels)

    def n_apart(self, k: int) -> int:
        """How many of k clusters are separated by a border at which rows are sparse.

        Where gaps count, clusters may overlap in their values and be separate all the same: all of them.
        """
        if self.gaps:
            return k
        whole = self.centers[k].whole
        return n_apart(self.values, whole.labels, self.table.units.back(whole.centers))

    def agreement(self, verdict: Verdict) -> float:
        """Adjusted Rand index of the clusters and the groups of the mixture with correlated columns."""
        k, own = verdict.k, verdict.kind == "own"
        found, labels = self.correlated[k], self.centers[k].whole.labels
        rows = self.mixture_rows()
        reduced = Reduced.of(self.values[rows], self.table.groups)
        entries = em.Entries(
            reduced.values, None if self.weights is None else self.weights[rows], groups=reduced.groups
        )
        with one_thread():
            start = em.from_labels(entries, labels[rows], k, isotropic=False, gaps=self.gaps)
            m = settled(entries, start)
            for _ in range(found.n_own if own else found.n_common):
                m = settled(entries, em.with_factor(entries, m))
            m = settled(entries, m.own()) if own else m
            groups = em.posterior(entries, m).argmax(axis=1)
        return float(adjusted_rand_score(labels[rows], groups))

    def verdict(self) -> Verdict:
        by_centers = self.centers_choice()
        if by_centers == 1:
            return Verdict(1, 1, False, self.by_centers, None, "")
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
