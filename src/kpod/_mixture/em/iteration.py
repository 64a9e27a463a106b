"""EM from one start: from labels to parameters, and steps until the likelihood no longer rises."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Labels
from kpod._engine.sizes import CALL_WORK
from kpod._kernels.em import run_factors
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.maximisation import Constraints, maximise
from kpod._mixture.em.mixture_parameters import Parameters, Prior

LABELLED_STEPS = 5  # with the clusters kept, until covariances are those of the clusters


@dataclass(frozen=True)
class Solution:
    """Where EM ended: the parameters, and what it maximised, after each step.

    That is the log-likelihood, and the log density of the prior where there is one. `log_likelihood` and the
    last of `trace` are those of the parameters.
    """

    shape: Shape
    parameters: Parameters
    log_likelihood: float
    trace: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def objective(self) -> float:
        return self.trace[-1] if self.trace else -np.inf

    def bic(self, n_rows: float, within: Constraints) -> float:
        """Minus twice the log-likelihood, and log(n) for every parameter."""
        k, p = self.parameters.means.shape
        uninformative = 0 if within.uninformative is None else int(within.uninformative.sum())
        return -2 * self.log_likelihood + self.shape.n_parameters(k, p, uninformative) * float(np.log(n_rows))


def run(
    entries: Entries, shape: Shape, start: Parameters, within: Constraints, n_steps: int, tol: float
) -> Solution:
    """EM until a step gains no more than `tol` for each row, at most `n_steps`."""
    if len(entries.ranges) == 1 and not shape.whole and (start.rates is None or within.observed is not None):
        return run_compiled(entries, shape, start, within, n_steps, tol)
    parameters, trace = start, []
    for _ in range(n_steps + 1):
        sums = entries.sums(parameters)
        trace.append(sums.log_likelihood + within.log_density(parameters))
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= tol * entries.weight
        if converged or len(trace) > n_steps:
            break
        parameters = maximise(shape, parameters, sums, within)
    return Solution(shape, parameters, sums.log_likelihood, trace, converged)


def run_compiled(
    entries: Entries, shape: Shape, start: Parameters, within: Constraints, n_steps: int, tol: float
) -> Solution:
    """The same on a table of one range, many steps in a call."""
    (rows,) = entries.ranges
    shares, means, variances, loadings = (
        np.array(a, np.float64, order="C")
        for a in (start.shares, start.means, start.variances, start.loadings)
    )
    rates, n_shadows = None, 0
    if within.observed is not None:
        rates = np.full(means.shape, 0.5) if start.rates is None else np.array(start.rates, order="C")
        n_shadows = len(within.shadowed)
    bounds, little = within.compiled(shape), tol * entries.weight
    work = (1 + shape.q) ** 2 * start.k * rows.block.n_entries
    trace = np.empty(n_steps + 1)
    done, before, has_rates = 0, np.inf, start.rates is not None
    with rows.opened() as (opened, space):
        while True:
            stop = min(n_steps + 1, done + 1 + CALL_WORK // work)
            n, likelihood, converged = run_factors(
                opened, rows.start, rows.stop, bounds, shares, means, variances, loadings, rates, has_rates,
                before, little, stop == n_steps + 1, trace[done:stop], space,
            )  # fmt: skip
            done, before, has_rates = done + n, trace[done + n - 1], rates is not None
            if converged or done == n_steps + 1:
                break
    parameters = Parameters(shares, means, variances, loadings, None, rates, n_shadows)
    return Solution(shape, parameters, likelihood, trace[:done].tolist(), converged)


def round_start(entries: Entries, within: Constraints, k: int) -> Parameters:
    """All clusters alike, with the means and variances of the columns."""
    table = entries.table
    p = table.n_columns
    variances = np.maximum(table.variances, within.floor)
    return Parameters(
        np.full(k, 1 / k), np.tile(within.fallback, (k, 1)), np.tile(variances, (k, 1)), np.zeros((k, p, 0))
    )


def from_labels(entries: Entries, shape: Shape, labels: Labels, k: int, within: Constraints) -> Parameters:
    """Parameters of the clusters of some rows; label -1 counts for nothing."""
    if shape.whole:
        base = from_labels(entries, Shape("tied_diag"), labels, k, replace(within, prior=Prior()))
        n = k if shape.own_variances else 1
        whole = np.tile(np.diag(base.variances[0]), (n, 1, 1))
        return labelled_steps(entries, shape, replace(base, whole=whole), labels, within)
    if shape.q:
        plain = Shape("diag" if shape.own_variances else "tied_diag")
        base = from_labels(entries, plain, labels, k, within)
        return labelled_steps(entries, shape, with_factors(base, shape.q), labels, within)
    start = round_start(entries, within, k)
    return maximise(shape, start, entries.sums(start, labels), within)


def labelled_steps(
    entries: Entries,
    shape: Shape,
    parameters: Parameters,
    labels: Labels,
    within: Constraints,
) -> Parameters:
    for _ in range(LABELLED_STEPS):
        parameters = maximise(shape, parameters, entries.sums(parameters, labels), within)
    return parameters


def with_factors(base: Parameters, n_more: int) -> Parameters:
    """With so many more factors in common, each in some direction: EM turns them to where they belong."""
    k, p = base.means.shape
    rng = np.random.default_rng(base.q)
    direction = rng.normal(size=(p, n_more)) * np.sqrt(base.variances.mean(axis=0))[:, None] / 2
    loadings = np.concatenate([base.loadings, np.broadcast_to(direction, (k, p, n_more))], axis=2)
    return replace(base, loadings=loadings, variances=base.variances * 0.75)


def smallest_variances(variances: Floats, live: NDArray[np.bool_], share: float) -> Floats:
    """The floor of the columns' variances: a share of their own; 1 where nothing is observed."""
    typical = float(variances[variances > 0].mean()) if (variances > 0).any() else 1.0
    return np.where(live, share * np.where(variances > 0, variances, typical), 1.0)
