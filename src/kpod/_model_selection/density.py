"""The number of clusters of any shape by the held-out log density of normal scores.

Squared errors see groups that differ in their centers, and no others: not spreads, and little where some
cells are outliers. So where clusters may have any shape, the number is chosen a second time, by the log
density of rows that were held out. What columns look like on their own must not make clusters: each column is
replaced by normal scores, ties broken at random, so that one group whose columns have any distribution and
any common factors is one normal cluster. One cluster may have heavy tails as well (a t density), so that rows
with scales of their own are one group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from kpod._common.typing import Floats, Positions
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import from_labels, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Parameters, Prior
from kpod._mixture.search import Search, candidates
from kpod._mixture.starts import Sample
from kpod._mixture.tails import DEGREES, SCALES, distances, t_log_density

MOST_ENTRIES = 1 << 15  # that mixtures are fitted to
MOST_COLUMNS = 100
MOST_CLUSTERS = 8
FEWEST_ROWS = 40
N_FOLDS = 5
N_STARTS = 16  # of each number of clusters
STEPS, TOL = 25, 1e-3
PRIOR_ROWS = 5.0
SMALLEST_VARIANCE = 1e-4
PATIENCE = 2  # numbers in a row that are worse, after which more are not tried
NOISE = 2.0  # standard errors of the difference: the smallest number within this of the best is taken


@dataclass(frozen=True)
class DensityChoice:
    """The log density of each held-out row by number of clusters, and the number that follows.

    `numbers` are those to choose from; one cluster is compared with in any case.
    """

    by_k: dict[int, Floats]
    numbers: frozenset[int]

    @property
    def n_rows(self) -> int:
        """How many rows it rests on."""
        return len(self.by_k[1])

    @cached_property
    def best(self) -> int:
        """The number with the highest log density."""
        among = [k for k in self.by_k if k in self.numbers]
        return max(among or self.by_k, key=lambda k: float(self.by_k[k].sum()))

    @cached_property
    def k(self) -> int:
        """The smallest number within the noise of the best."""
        return min(k for k in self.by_k if k == self.best or (k in self.numbers and self.supports(k)))

    @property
    def still_rising(self) -> bool:
        """Whether the most that were tried are the best, so that no number follows.

        Groups that no Gaussian fits are followed by more and more of them.
        """
        return self.best == min(max(self.numbers), MOST_CLUSTERS)

    def supports(self, k: int) -> bool:
        """Whether so many clusters are within the noise of the best."""
        return k in self.by_k and self.above(self.best, k) <= NOISE

    def above(self, k: int, other: int) -> float:
        """By how many standard errors the log density with k clusters is above that with others."""
        difference = self.by_k[k] - self.by_k[other]
        error = float(difference.std(ddof=1)) * np.sqrt(len(difference))
        return float(difference.sum() / error) if error > 0 else 0.0


def normal_scores(values: Floats, rng: np.random.Generator) -> Floats:
    """The columns of a dense table with NaN by their ranks, ties broken at random."""
    out = np.full(values.shape, np.nan)
    for j, column in enumerate(values.T):
        seen = np.flatnonzero(~np.isnan(column))
        order = np.lexsort((rng.random(len(seen)), column[seen]))
        out[seen[order], j] = ndtri((np.arange(len(seen)) + 0.5) / max(len(seen), 1))
    return out


@dataclass(frozen=True)
class DensitySearch:
    """Mixtures of all shapes on the normal scores of a table, by number of clusters."""

    scores: Floats
    weights: Floats
    executor: Executor
    seed: int

    @classmethod
    def of(cls, values: Any, weights: Floats | None, executor: Executor, seed: int = 0) -> DensitySearch:
        """Of an array with NaN, or some of its rows."""
        rng = np.random.default_rng(seed)
        weights = np.ones(len(values)) if weights is None else weights
        most = max(200, MOST_ENTRIES // values.shape[1])
        seen = np.flatnonzero((~np.isnan(values)).any(axis=1) & (weights > 0))
        if len(seen) > most:
            seen = np.sort(rng.choice(seen, most, replace=False))
        rows = np.asarray(values[seen], np.float64)
        enough = (~np.isnan(rows)).sum(axis=0) > 2 * N_FOLDS
        return cls(normal_scores(rows[:, enough], rng), weights[seen], executor, seed)

    @property
    def enough(self) -> bool:
        """Whether there are rows and columns to learn from."""
        n, p = self.scores.shape
        return n >= FEWEST_ROWS and p > 1

    @cached_property
    def folds(self) -> list[Positions]:
        order = np.random.default_rng(self.seed).permutation(len(self.scores))
        return np.array_split(order, N_FOLDS)

    def entries(self, without: Positions | None = None) -> Entries:
        """The rows, some of them without weight."""
        weights = self.weights.copy()
        if without is not None:
            weights[without] = 0.0
        units = Units(np.zeros(self.scores.shape[1]), 1.0)
        return Entries(make_table(self.scores, Executor(), weights=weights, units=units), Executor())

    @cached_property
    def trained(self) -> list[Entries]:
        """The table without the weight of each fold."""
        return [self.entries(fold) for fold in self.folds]

    def choice(self, numbers: Iterable[int]) -> DensityChoice:
        """Try one cluster and more of them, for as long as that may help."""
        among = frozenset(numbers)
        by_k: dict[int, Floats] = {}
        worse = 0
        for k in range(1, min(max(among), MOST_CLUSTERS, len(self.scores) // 2) + 1):
            by_k[k] = self.weights * self.log_density(k)
            worse = 0 if max(by_k, key=lambda n: float(by_k[n].sum())) == k else worse + 1
            if worse == PATIENCE:
                break
        return DensityChoice(by_k, among)

    def log_density(self, k: int) -> Floats:
        """Of each row, by the mixture of k clusters that was fitted without its fold."""
        table = self.entries().table
        n, p = self.scores.shape
        rng = np.random.default_rng([self.seed, k])
        sample = Sample(table, np.arange(n), np.zeros(p), np.ones(p))
        floor = smallest_variances(table.variances, table.live, SMALLEST_VARIANCE)
        search = Search(
            sample, k, Constraints(floor, table.fallback, Prior()), PRIOR_ROWS, self.executor, rng
        )
        shape = search.choose(candidates("auto", "auto", p, k), N_STARTS)
        labels, within = search.labels(search.solutions[shape]), search.constraints(shape)

        def of_fold(number: int) -> Floats:
            fold, entries = self.folds[number], self.trained[number]
            own = labels.copy()
            own[fold] = -1
            start = from_labels(entries, shape, own, k, within)
            solution = run(entries, shape, start, within, STEPS, TOL)
            found = entries.posterior(solution.parameters)[1]
            if k == 1:
                found = self.with_tails(found, solution.parameters, fold)
            return found[fold]

        out = np.empty(n)
        for fold, found in zip(self.folds, self.executor.map(of_fold, range(N_FOLDS)), strict=True):
            out[fold] = found
        return out

    def with_tails(self, normal: Floats, parameters: Parameters, fold: Positions) -> Floats:
        """Log densities of one cluster, with heavy tails if the other rows support them."""
        n_observed = (~np.isnan(self.scores)).sum(axis=1).astype(np.float64)
        off = distances(self.scores, np.zeros(len(self.scores), np.int32), parameters)
        rest = normal + 0.5 * (off + n_observed * np.log(2 * np.pi))  # what the covariances add
        weights = self.weights.copy()
        weights[fold] = 0.0
        best = normal
        for degrees in DEGREES:
            for scale in SCALES:
                heavy = (
                    rest - 0.5 * n_observed * np.log(scale) + t_log_density(off / scale, n_observed, degrees)
                )
                best = heavy if weights @ heavy > weights @ best else best
        return best
