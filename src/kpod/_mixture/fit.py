"""A whole fit of a Gaussian mixture: a shape, several starts on a sample, and EM on all rows from the best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.executors import Executor
from kpod._engine.table import Table
from kpod._mixture.expectation import Entries
from kpod._mixture.iteration import Solution, run, smallest_variances
from kpod._mixture.maximisation import Constraints
from kpod._mixture.parameters import Parameters, Prior
from kpod._mixture.search import AUTO_STARTS, Search, candidates
from kpod._mixture.shape import Shape
from kpod._mixture.starts import Sample, standardised_sample

FEW_VALUES = 20  # a column of no more is not continuous,
GLANCE = 200  # and one that has more in so many rows is
STEP_VARIANCE = 1 / 6  # of the step between its values, the least that a cluster has of it


@dataclass(frozen=True)
class Options:
    """What is fitted, and for how long."""

    n_components: int
    covariance_type: str = "auto"
    n_factors: int | str | None = "auto"
    n_init: int | None = None
    max_iter: int = 300
    tol: float = 1e-4
    reg_covar: float = 1e-6
    variance_prior: float = 5.0


@dataclass(frozen=True)
class Fitted:
    """The mixture, in the units of the table, and what it rests on."""

    solution: Solution
    within: Constraints
    bics: dict[Shape, float]


def fit_mixture(table: Table, executor: Executor, options: Options, rng: np.random.Generator) -> Fitted:
    """The best of several starts, of the shape that was asked for or is best."""
    k = options.n_components
    sample = standardised_sample(table, executor, rng)
    within = constraints_of(sample, options)
    search = Search(sample, k, within, options.variance_prior, executor, rng)
    n_starts = AUTO_STARTS if options.n_init is None else options.n_init
    shapes = candidates(options.covariance_type, options.n_factors, int(table.live.sum()))
    alone = len(shapes) == 1 and len(shapes[0]) == 1
    shape = shapes[0][0] if alone else search.choose(shapes, n_starts)
    found = search.fit(shape, n_starts, options.max_iter, options.tol)
    search.tried[shape] = found.bic(search.n_rows, within)
    within = in_table(search.constraints(shape), sample)
    start = sample.in_table(found.parameters)
    left = max(1, options.max_iter - len(found.trace) + 1)
    solution = run(Entries(table, executor), shape, start, within, left, options.tol)
    if sample.table.n_rows == int(table.usable.sum()):  # the same likelihood, in other units
        offset = solution.trace[0] - found.trace[-1]
        solution = replace(solution, trace=[value + offset for value in found.trace[:-1]] + solution.trace)
    order = np.argsort(-solution.parameters.shares, kind="stable")
    solution = replace(solution, parameters=solution.parameters.in_order(order))
    return Fitted(solution, within, search.tried)


def constraints_of(sample: Sample, options: Options) -> Constraints:
    """Floors of the variances and what nothing is known of, in the units of the sample."""
    table = sample.table
    floor = smallest_variances(table.variances, table.live, options.reg_covar)
    return Constraints(np.maximum(floor, floor_of_steps(table)), table.fallback, Prior())


def floor_of_steps(table: Table) -> Floats:
    """The least variances of columns of few values, 0 for others: rounding alone has half of that."""
    out = np.zeros(table.n_columns)
    some = table.entries(np.arange(min(table.n_rows, GLANCE)))
    counts = np.array([len(np.unique(column[~np.isnan(column)])) for column in some.T])
    few = np.flatnonzero(counts <= FEW_VALUES)
    if len(few):
        every = table.entries(np.arange(table.n_rows))[:, few]
        for j, column in zip(few, every.T, strict=True):
            values = np.unique(column[~np.isnan(column)])
            if 2 <= len(values) <= FEW_VALUES:
                out[j] = STEP_VARIANCE * float(np.diff(values).min()) ** 2
    return out


def in_table(within: Constraints, sample: Sample) -> Constraints:
    """Constraints of a sample in the units of the table."""
    squares = sample.spreads**2
    prior = within.prior
    if prior.rows:
        whole = (
            prior.whole if not prior.whole.size else prior.whole * sample.spreads[:, None] * sample.spreads
        )
        prior = Prior(prior.rows, prior.variances * squares, whole)
    return replace(
        within,
        floor=within.floor * squares,
        fallback=within.fallback * sample.spreads + sample.means,
        prior=prior,
    )


def n_parameters(shape: Shape, parameters: Parameters, n_live: int, n_silent: int = 0) -> float:
    """Of a fitted mixture, rates included."""
    rates = 0 if parameters.rates is None else parameters.rates.size
    return shape.n_parameters(parameters.k, n_live, n_silent) + rates
