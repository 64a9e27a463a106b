"""Columns that are uninformative about the clusters: one mean and variance for all, if BIC says so.

Every few steps of EM, given the posteriors, each column is tested again: what its own means and variances
add to the likelihood, against log(n) for each of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Sums
from kpod._mixture.em.iteration import Solution, run
from kpod._mixture.em.maximisation import Constraints, triangle
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._mixture.search import TRIAL_STARTS, TRIAL_STEPS, TRIAL_TOL, Search
from kpod._mixture.starts import around, one_cluster

ROUNDS, STEPS = 8, 4
FEWEST = 2  # columns that are informative, in any case
SEEDS = 6
MANY = 0.2  # of the columns: clusters without them may be others, and are looked for from more starts


def can_tie_columns(shape: Shape) -> bool:
    """Whether columns of the shape can have all in common."""
    return not shape.whole and not shape.round and not shape.own_loadings


def uninformative_columns(search: Search, shape: Shape) -> NDArray[np.bool_]:
    """Which columns are uninformative in the fit of a shape that was tried."""
    parameters = search.solutions[shape].parameters
    sums = search.sample.entries.sums(parameters)
    return are_uninformative(shape, parameters, sums, search.constraints(shape))


def select(search: Search, shape: Shape) -> tuple[Solution, Constraints]:
    """The best mixture of a shape by BIC, with its uninformative columns tied."""
    entries, within = search.sample.entries, search.constraints(shape)
    one = one_cluster(entries, shape, within)
    starts = [search.start(shape, labels, within) for labels in search.clusterings[:TRIAL_STARTS]]
    share = 0.0 if shape not in search.solutions else uninformative_columns(search, shape).mean()
    if shape in search.solutions:
        starts = [search.solutions[shape].parameters, *(starts if share >= MANY else [])]
    if search.k > 1 and (share >= MANY or shape not in search.solutions):
        starts += [around(m, one, shape) for m in search.sample.means_far_apart(search.k, SEEDS, search.rng)]
    found = search.executor.map(lambda start: selected(search, shape, start, within), starts)
    return min(found, key=lambda pair: pair[0].bic(search.n_rows, pair[1]))


def selected(
    search: Search, shape: Shape, start: Parameters, within: Constraints
) -> tuple[Solution, Constraints]:
    """EM from one start, finding the uninformative columns on the way."""
    entries, parameters = search.sample.entries, start
    for number in range(ROUNDS):
        solution = run(entries, shape, parameters, within, STEPS, 0.0)
        uninformative = are_uninformative(
            shape, solution.parameters, entries.sums(solution.parameters), within
        )
        parameters = with_common_values(solution.parameters, uninformative)
        if number and within.uninformative is not None and (uninformative == within.uninformative).all():
            break
        within = replace(within, uninformative=uninformative)
    return run(entries, shape, parameters, within, TRIAL_STEPS, TRIAL_TOL), within


def with_common_values(parameters: Parameters, uninformative: NDArray[np.bool_]) -> Parameters:
    """With the uninformative columns' means and variances the same in all clusters."""

    def tied(of_columns: Floats) -> Floats:
        return np.where(uninformative, parameters.shares @ of_columns, of_columns)

    return replace(parameters, means=tied(parameters.means), variances=tied(parameters.variances))


def are_uninformative(
    shape: Shape, parameters: Parameters, sums: Sums, within: Constraints
) -> NDArray[np.bool_]:
    """Columns whose separate means and variances do not improve BIC."""
    k, q = parameters.k, parameters.q
    columns = sums.parts[0][:, :, :k].transpose(1, 2, 0)
    s, t, squares = columns[0], columns[1].copy(), columns[2].copy()
    if q:  # less what the factors explain
        z, dz = (columns[3 + i * q : 3 + (i + 1) * q].transpose(1, 2, 0) for i in range(2))
        zz = triangle(columns[3 + 2 * q :].transpose(1, 2, 0), q)
        loadings = parameters.loadings
        squares += np.einsum("lpq,lpqr,lpr->lp", loadings, zz, loadings) - 2 * (dz * loadings).sum(axis=2)
        t -= (z * loadings).sum(axis=2)
    count = np.maximum(s.sum(axis=0), 1e-300)
    away = parameters.means - parameters.shares @ parameters.means
    squares += 2 * away * t + s * away**2
    t += s * away
    common = np.maximum((squares.sum(axis=0) - t.sum(axis=0) ** 2 / count) / count, within.floor)
    residual = np.maximum(squares - t**2 / np.maximum(s, 1e-300), 0.0)
    if shape.own_variances:
        rows = within.prior.rows
        pulled = residual + (rows * within.prior.variances if rows else 0.0)
        own = np.maximum(pulled / np.maximum(s + rows, 1e-300), within.floor)
        gain = (s * (np.log(common) - np.log(own))).sum(axis=0)
    else:
        own = np.maximum(residual.sum(axis=0) / count, within.floor)
        gain = count * (np.log(common) - np.log(own))
    price = (k - 1) * (2 if shape.own_variances else 1) * np.log(np.maximum(count, 2.0))
    uninformative = gain < price
    uninformative[np.argsort(price - gain)[:FEWEST]] = False
    return uninformative
