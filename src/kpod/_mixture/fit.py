"""A whole fit of a mixture: a shape, several starts on a sample, and EM on all rows from the best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Labels
from kpod._engine.executors import Executor
from kpod._engine.table import Table
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import Solution, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Parameters, Prior
from kpod._mixture.outlying_cells import ROUNDS, Prices, bitmap
from kpod._mixture.search import AUTO_STARTS, Search, candidates
from kpod._mixture.starts import Sample, standardised, standardised_sample
from kpod._mixture.uninformative_columns import can_tie_columns, select, uninformative_columns

FEW_VALUES = 20  # a column of no more is not continuous,
GLANCE = 200  # and one that has more in so many rows is
STEP_VARIANCE = 1 / 6  # of the step between its values, the least that a cluster has of it


@dataclass(frozen=True)
class Options:
    """What is fitted, and for how long.

    `gaps`: with informative missingness; `outlier_cells` and `select_columns` are True, False or "auto".
    """

    n_components: int
    covariance_type: str = "auto"
    n_factors: int | str | None = "auto"
    n_init: int | None = None
    max_iter: int = 300
    tol: float = 1e-4
    reg_covar: float = 1e-6
    variance_prior: float = 5.0
    gaps: bool = False
    outlier_cells: bool | str = False
    select_columns: bool | str = False

    @property
    def n_starts(self) -> int:
        return AUTO_STARTS if self.n_init is None else self.n_init


@dataclass(frozen=True)
class Fitted:
    """The mixture, in the units of the table, and what it rests on.

    `prices` say which cells are outliers, if any are; `within.uninformative` which columns are uninformative.
    """

    solution: Solution
    within: Constraints
    bics: dict[str, float]
    prices: Prices | None = None


@dataclass(frozen=True)
class Attempt:
    """A mixture of a sample, and its BIC in the units of the table."""

    sample: Sample
    search: Search
    solution: Solution
    within: Constraints
    bic: float
    prices: Prices | None = None

    @property
    def labels(self) -> Labels:
        return self.search.labels(self.solution)


def fit_mixture(
    table: Table, executor: Executor, options: Options, rng: np.random.Generator, clusterings: list[Labels]
) -> Fitted:
    """The best of several starts, with the given shape or the best one.

    `clusterings` are labels of all rows to start from as well.
    """
    together = options.covariance_type in ("spherical", "tied_spherical")
    sample = standardised_sample(table, rng, together=together)
    kept = [labels[sample.rows] for labels in clusterings]
    best = None
    if options.outlier_cells is not True:
        best = attempt(sample, table, options, executor, rng, kept)
    if options.outlier_cells:
        values = table.entries(sample.rows)
        prices = Prices.of(values)
        if best is None or prices.may_pay(values, weights_of(table, sample)):
            robust = without_outlier_cells(sample, prices, table, options, executor, rng, kept)
            best = robust if best is None or robust.bic < best.bic else best
    assert best is not None
    return on_all_rows(best, table, executor, options)


def attempt(
    sample: Sample,
    table: Table,
    options: Options,
    executor: Executor,
    rng: np.random.Generator,
    clusterings: list[Labels],
    shape: Shape | None = None,
) -> Attempt:
    """The best mixture of a sample, of a shape that is given or is the best."""
    p, k = int(table.live.sum()), options.n_components
    within = constraints_of(sample, table, options)
    search = Search(
        sample,
        k,
        within,
        options.variance_prior,
        executor,
        rng,
        clusterings,
        own_clusterings=options.n_starts > len(clusterings),
    )
    shapes = candidates(options.covariance_type, options.n_factors, p, k)
    if options.select_columns is True:
        shapes = [[shape for shape in chain if can_tie_columns(shape)] for chain in shapes]
    if shape is None:
        alone = [shape for chain in shapes for shape in chain]
        shape = alone[0] if len(alone) == 1 else search.choose(shapes, options.n_starts)
    found: Solution | None = None
    if options.select_columns is not True:
        found = search.final(shape, options.n_starts, options.max_iter, options.tol)
        within = search.constraints(shape)
        search.tried[shape], search.solutions[shape] = found.bic(search.n_rows, within), found
    if options.select_columns:
        selected = with_tied_columns(search, shape, found, options)
        if selected is not None:
            found, within = selected
    assert found is not None
    bic = found.bic(search.n_rows, within) + 2 * found.log_likelihood
    return Attempt(sample, search, found, within, bic - 2 * sample.log_likelihood(found.log_likelihood))


def with_tied_columns(
    search: Search, shape: Shape, found: Solution | None, options: Options
) -> tuple[Solution, Constraints] | None:
    """The mixture with its uninformative columns tied, if it is better than what was found.

    Tying uninformative columns costs as much likelihood as there are parameters less, in the mean; what
    costs more than twice that has found other clusters, which happen to leave some columns alone.
    """
    tried = filter(can_tie_columns, {shape: 0.0} | search.tried)
    of = min(tried, key=lambda s: search.tried.get(s, 0.0), default=None)
    if of is None or (found is not None and not uninformative_columns(search, of).any()):
        return None
    other, within = select(search, of)
    other = run(search.sample.entries, of, other.parameters, within, options.max_iter, options.tol)
    if found is None:
        return other, within
    k, p = other.parameters.means.shape
    assert within.uninformative is not None
    n_tied = of.n_parameters(k, p) - of.n_parameters(k, p, int(within.uninformative.sum()))
    cost = search.solutions[of].log_likelihood - other.log_likelihood
    better = other.bic(search.n_rows, within) < found.bic(search.n_rows, search.within)
    return (other, within) if better and cost <= n_tied else None


def without_outlier_cells(
    sample: Sample,
    prices: Prices,
    table: Table,
    options: Options,
    executor: Executor,
    rng: np.random.Generator,
    clusterings: list[Labels],
) -> Attempt:
    """The best mixture of a sample without its outlying cells, which are found anew in every round."""
    values = table.entries(sample.rows)
    weights = weights_of(table, sample)
    outliers, best, shape = prices.suspects(values), None, None
    for number in range(ROUNDS):
        clean = np.where(outliers, np.nan, values)
        means, variances = moments(clean, weights)
        part = standardised(table, sample.rows, clean, means, variances)
        few = options if number == 0 else replace(options, n_init=1)
        now = attempt(part, table, few, executor, rng, clusterings, shape)
        paid = float(weights @ prices.log_density(values, outliers))
        now = replace(now, bic=now.bic - 2 * paid, prices=prices)
        best = now if best is None or now.bic < best.bic else best
        before, outliers = outliers, prices.outliers(values, part.in_table(now.solution.parameters))
        clusterings, shape = [now.labels], now.solution.shape
        if (outliers == before).all():
            break
    assert best is not None
    return best


def weights_of(table: Table, sample: Sample) -> Floats:
    return np.ones(len(sample.rows)) if table.weights is None else table.weights[sample.rows]


def moments(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted means and variances of the observed entries of each column."""
    seen = ~np.isnan(values)
    filled, counts = np.where(seen, values, 0.0), np.maximum(weights @ seen, 1e-300)
    means = weights @ filled / counts
    return means, weights @ np.where(seen, filled - means, 0.0) ** 2 / counts


def on_all_rows(best: Attempt, table: Table, executor: Executor, options: Options) -> Fitted:
    """EM on all rows, from the parameters of the sample."""
    shape, found, sample = best.solution.shape, best.solution, best.sample
    within = in_table(best.within, sample)
    start = sample.in_table(found.parameters)
    ignored = None if best.prices is None else outlier_bitmaps(table, best.prices, start)
    left = max(1, options.max_iter - len(found.trace) + 1)
    solution = run(Entries(table, executor, ignored), shape, start, within, left, options.tol)
    if sample.table.n_rows == table.n_rows and ignored is None:  # the same likelihood, in other units
        offset = solution.trace[0] - found.trace[-1]
        solution = replace(solution, trace=[value + offset for value in found.trace[:-1]] + solution.trace)
    order = np.argsort(-solution.parameters.shares, kind="stable")
    solution = replace(solution, parameters=solution.parameters.in_order(order))
    bics = {str(of): bic for of, bic in sorted(best.search.tried.items(), key=lambda item: item[1])}
    return Fitted(solution, within, bics, best.prices)


def outlier_bitmaps(table: Table, prices: Prices, parameters: Parameters) -> list[NDArray[np.uint8]]:
    """The outlying cells of each block, and what is hidden of it, as `Entries` takes them."""
    blocks = (block.entries(np.arange(block.n_rows)) for block in table.blocks)
    return [bitmap(np.isnan(entries) | prices.outliers(entries, parameters)) for entries in blocks]


def constraints_of(sample: Sample, table: Table, options: Options) -> Constraints:
    """Floors and fallbacks of the parameters, and rates of gaps, in the units of the sample."""
    of = sample.table
    floor = smallest_variances(of.variances, of.live, options.reg_covar)
    observed = None
    if options.gaps:
        weight = float(table.n_rows if table.weights is None else table.weights.sum())
        observed = table.about.weights / weight
        speaks = (observed > 0) & (observed < 1) & table.groups.first
        observed = np.where(speaks, observed, 0.5)
    return Constraints(np.maximum(floor, floor_of_steps(of)), of.fallback, Prior(), observed=observed)


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
