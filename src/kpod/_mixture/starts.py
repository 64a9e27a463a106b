"""Where EM starts: the clusters of KPOD, and rows far apart as means, tried by the dozen.

k-means divides what is large, so that its clusters are a poor start where groups differ in size or spread.
EM from rows far apart, with half of the variances and correlations of the whole table around each, finds
small groups as well; it is run for a few steps from many such rows, and goes on from the best of them.
Columns are in units of their standard deviations here, so that the unit of a column does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.fit import SOLVERS, Fit, FitPlan
from kpod._engine.table import Table, make_table
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import Solution, from_labels, run
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Parameters, Prior

Rounds = tuple[tuple[int, int, int], ...]

SAMPLE_ENTRIES = 1 << 15  # places in the table that starts are tried on,
FEWEST_ROWS = 1000  # and rows of it at the least
HALF = 0.5  # of the whole table's variances around a row that is a start
MANY = ((5, 6, 2), (15, 4, 2))  # steps of a round, one of how many starts goes on, and the least that do
FEW = ((8, 4, 1),)
PRIOR_STEPS = 10
SEED_ROWS = 2000  # that such rows are drawn from


def most_rows(n_columns: int) -> int:
    """How many rows starts are tried on, and shapes compared by."""
    return max(SAMPLE_ENTRIES // n_columns, FEWEST_ROWS)


def standardised_sample(table: Table, rng: np.random.Generator, *, together: bool = False) -> Sample:
    """Rows with any information, all or some, in units of the columns' standard deviations.

    With `together`, in one unit for all columns.
    """
    rows = np.flatnonzero(table.usable)
    size = most_rows(table.n_columns)
    if len(rows) > size:
        rows = np.sort(rng.choice(rows, size, replace=False, shuffle=False))
    variances = np.full(table.n_columns, table.variances[table.live].mean()) if together else table.variances
    return standardised(table, rows, table.entries(rows), table.fallback, variances)


def standardised(table: Table, rows: Positions, entries: Floats, means: Floats, variances: Floats) -> Sample:
    """Some rows of a table, less the means and over the roots of the variances that are given."""
    spreads = np.where(variances > 0, np.sqrt(variances), 1.0)
    weights = None if table.weights is None else table.weights[rows]
    units = Units(np.where(table.live, 0.0, np.nan), 1.0)
    values = (entries - means) / spreads
    sample = make_table(values, Executor(), weights=weights, units=units, groups=table.groups)
    return Sample(sample, rows, means, spreads)


@dataclass(frozen=True)
class Sample:
    """Rows of a table in units of the columns' standard deviations, less their means."""

    table: Table
    rows: Positions
    means: Floats
    spreads: Floats

    @cached_property
    def entries(self) -> Entries:
        return Entries(self.table, Executor())

    def in_table(self, parameters: Parameters) -> Parameters:
        """Parameters of the sample in the units of the table."""
        whole = parameters.whole
        return replace(
            parameters,
            means=parameters.means * self.spreads + self.means,
            variances=parameters.variances * self.spreads**2,
            loadings=parameters.loadings * self.spreads[:, None],
            whole=None if whole is None else whole * self.spreads[:, None] * self.spreads,
        )

    def log_likelihood(self, of_sample: float) -> float:
        """That of the rows of the sample, in the units of the table."""
        return of_sample - float(self.table.about.weights @ np.log(self.spreads))

    def clusterings(self, k: int, n: int, seed: int) -> list[Labels]:
        """Labels of KPOD from n starts, the lowest loss first."""
        table = self.table
        plan = FitPlan(k, n_starts=n, algorithm="lloyd", max_iter=100, random_state=seed, by_size=False)
        fit = Fit(plan, table, Executor())
        found = [SOLVERS["lloyd"](table, Executor(), start(), fit.settings) for start in fit.starts()]
        found.sort(key=lambda solution: solution.objective)
        labels = [np.where(table.observed > 0, s.labels, -1).astype(np.int32) for s in found]
        return [a for i, a in enumerate(labels) if not any(np.array_equal(a, b) for b in labels[:i])]

    def means_far_apart(self, k: int, n: int, rng: np.random.Generator) -> list[Floats]:
        """Rows as means (k, p), n times, drawn as k-means++ draws them: by their distance from those before.

        By the first draw of each and no better one, as scikit-learn and `KPOD` would take: the best by
        squared distances lie where most rows are.
        """
        rows = np.arange(self.table.n_rows)
        if len(rows) > SEED_ROWS:
            rows = rng.choice(rows, SEED_ROWS, replace=False)
        entries = self.table.entries(rows)
        observed = ~np.isnan(entries)
        filled = np.where(observed, entries, self.table.fallback)
        mask, values = observed.astype(np.float64), np.where(observed, entries, 0.0)
        weights = np.ones(len(rows)) if self.table.weights is None else self.table.weights[rows]
        return [filled[far_apart(mask, values, weights, k, rng)] for _ in range(n)]


def far_apart(mask: Floats, values: Floats, weights: Floats, k: int, rng: np.random.Generator) -> list[int]:
    """Rows drawn in turn, by the squared distance from the nearest over the columns that both observe."""
    p = mask.shape[1]
    chosen = [int(rng.choice(len(mask), p=weights / weights.sum()))]
    nearest = np.full(len(mask), np.inf)
    for _ in range(k - 1):
        own, row = mask[chosen[-1]], values[chosen[-1]]
        squares = (values**2) @ own - 2 * (values @ row) + mask @ row**2
        shared = mask @ own
        # Rows that share little are as far apart as any two.
        distances = (np.maximum(squares, 0.0) + 2.0) * p / (shared + 1.0)
        distances[chosen[-1]] = 0.0
        nearest = np.minimum(nearest, distances)
        chances = nearest * weights
        total = float(chances.sum())
        chosen.append(int(rng.choice(len(mask), p=chances / total if total > 0 else None)))
    return chosen


def one_cluster(entries: Entries, shape: Shape, within: Constraints) -> Parameters:
    """The whole table as one cluster of the shape."""
    labels = np.zeros(entries.table.n_rows, np.int32)
    within = replace(within, prior=Prior())
    return run(
        entries, shape.tied, from_labels(entries, shape.tied, labels, 1, within), within, 20, 1e-3
    ).parameters


def around(means: Floats, one: Parameters, shape: Shape) -> Parameters:
    """Clusters of the shape around some means, alike, each with half of the table's variances."""
    k = len(means)
    whole = None
    if one.whole is not None:
        whole = np.repeat(HALF * one.whole, k if shape.own_variances else 1, axis=0)
    return Parameters(
        np.full(k, 1 / k),
        means,
        np.repeat(HALF * one.variances, k, axis=0),
        np.repeat(np.sqrt(HALF) * one.loadings, k, axis=0),
        whole,
        None if one.rates is None else np.repeat(one.rates, k, axis=0),
    )


def prior_of(
    entries: Entries, shape: Shape, labels: Labels, k: int, within: Constraints, rows: float
) -> Prior:
    """What variances of their own are pulled to: those that the clusters of KPOD have in common."""
    if not rows or not shape.own_variances:
        return Prior()
    within = replace(within, prior=Prior())
    start = from_labels(entries, shape.tied, labels, k, within)
    common = run(entries, shape.tied, start, within, PRIOR_STEPS, 1e-3).parameters
    whole = np.zeros((0, 0)) if common.whole is None else common.whole[0]
    return Prior(rows, common.variances[0], whole)


def best_of(
    entries: Entries,
    shape: Shape,
    starts: list[Parameters],
    within: Constraints,
    executor: Executor,
    n_steps: int,
    tol: float,
    rounds: Rounds = MANY,
) -> Solution:
    """EM from all starts for a few steps, from the best for some more, and from the last to its end."""

    def steps(some: list[Parameters], n: int, tol: float) -> list[Solution]:
        found = executor.map(lambda start: run(entries, shape, start, within, n, tol), some)
        return sorted(found, key=lambda solution: -solution.objective)

    for n, share, least in rounds:
        if len(starts) > least:
            found = steps(starts, n, 0.0)
            starts = [solution.parameters for solution in found[: max(least, len(found) // share)]]
    return steps(starts, n_steps, tol)[0]
