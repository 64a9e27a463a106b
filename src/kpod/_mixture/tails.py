r"""Heavy tails: rows with scales of their own, which no Gaussian has.

A row of scale :math:`1 / u`, with :math:`u \sim \text{Gamma}(\nu / 2, \nu / 2)`, around the center of its
cluster has a t density with :math:`\nu` degrees of freedom. Gaussian clusters of several spreads, one on
top of the other, describe such tails well, and are no evidence of groups. So they are compared with round
clusters that have a t density, and judged by whether a t density fits their own rows better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from kpod._common.typing import Floats, Labels
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.mixture_parameters import Parameters

DEGREES = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0, 50.0, 100.0)
SCALES = np.geomspace(0.3, 1.5, 30)  # of the covariances, which are too large for the middle of heavy tails
STEPS, EVERY = 60, 10  # of EM, and after how many the degrees of freedom are found anew
TOL = 1e-4  # of log-likelihood a row
SMALLEST_VARIANCE = 1e-6


@dataclass(frozen=True)
class HeavyTails:
    """Round clusters with a t density: log-likelihood, degrees of freedom, and the number of parameters."""

    log_likelihood: float
    degrees: float
    n_parameters: int

    def bic(self, weight: float) -> float:
        return -2 * self.log_likelihood + self.n_parameters * float(np.log(weight))


def t_log_density(distances: Floats, n_observed: Floats, degrees: float) -> Floats:
    """Log density of rows by their squared distances, but for what the covariances add."""
    half = (degrees + n_observed) / 2
    constant = gammaln(half) - gammaln(degrees / 2) - n_observed / 2 * np.log(degrees * np.pi)
    return np.asarray(constant - half * np.log1p(distances / degrees))


def log_sum(logs: Floats) -> Floats:
    """Logarithms of the sums of rows whose logarithms are given."""
    most = logs.max(axis=1)
    return np.asarray(most + np.log(np.exp(logs - most[:, None]).sum(axis=1)))


def round_with_tails(values: Floats, labels: Labels, k: int, weights: Floats) -> HeavyTails:
    """Fit round clusters with a t density by EM, from labels; columns have variances of their own.

    `values` is a dense table with NaN.
    """
    mask = (~np.isnan(values)).astype(np.float64)
    x, n_observed = np.where(mask > 0, values, 0.0), mask.sum(axis=1)
    n, p = x.shape
    r = (labels[:, None] == np.arange(k)).astype(np.float64)
    u, degrees, before, found = np.ones((n, k)), DEGREES[-1], -np.inf, -np.inf
    floor = SMALLEST_VARIANCE * np.maximum((weights @ x**2) / np.maximum(weights @ mask, 1e-300), 1e-300)
    for step in range(STEPS):
        w = weights[:, None] * r
        s, counts = (w * u).T @ mask + 1e-9, w.T @ mask
        means = (w * u).T @ x / s
        squares = ((w * u).T @ x**2 - s * means**2).sum(axis=0)
        variances = np.maximum(squares / np.maximum(counts.sum(axis=0), 1e-9), floor)
        shares = np.log(np.maximum(w.sum(axis=0) / weights.sum(), 1e-300))
        d = (
            (x**2 @ (1 / variances))[:, None]
            - 2 * x @ (means / variances).T
            + mask @ (means**2 / variances).T
        )
        d, offset = np.maximum(d, 0.0), -0.5 * mask @ np.log(variances)

        def logs(of: float, d: Floats = d, shares: Floats = shares, offset: Floats = offset) -> Floats:
            return shares + offset[:, None] + t_log_density(d, n_observed[:, None], of)

        if step % EVERY == 0:
            degrees = max(DEGREES, key=lambda of: float(weights @ log_sum(logs(of))))
        density = logs(degrees)
        rows = log_sum(density)
        r, u = np.exp(density - rows[:, None]), (degrees + n_observed)[:, None] / (degrees + d)
        before, found = found, float(weights @ rows)
        if step > EVERY and found - before < TOL * weights.sum():
            break
    return HeavyTails(found, degrees, k - 1 + k * p + p + 1)


def distances(values: Floats, labels: Labels, parameters: Parameters) -> Floats:
    """Squared Mahalanobis distance of each row from its cluster, over its observed columns.

    What is off the log density of a row at the mean. `values` are dense with NaN, in the units of the
    parameters.
    """
    out = np.zeros(len(values))
    for cluster in np.unique(labels[labels >= 0]):
        at = np.flatnonzero(labels == cluster)
        one = Parameters(
            np.ones(1),
            parameters.means[[cluster]],
            parameters.variances[[cluster]],
            parameters.loadings[[cluster]],
            None if parameters.whole is None else parameters.covariance(cluster)[None],
        )
        rows = values[at]
        middle = np.where(np.isnan(rows), np.nan, parameters.means[cluster])
        out[at] = 2 * (log_densities(middle, one) - log_densities(rows, one))
    return np.maximum(out, 0.0)


def log_densities(values: Floats, parameters: Parameters) -> Floats:
    units = Units(np.zeros(values.shape[1]), 1.0)
    table = make_table(np.ascontiguousarray(values), Executor(), units=units)
    return Entries(table, Executor()).posterior(parameters)[1]


def gain_of_tails(distances: Floats, n_observed: Floats, weights: Floats) -> tuple[float, float]:
    """What a t density adds to the log-likelihood of an entry over a normal one, and its degrees of freedom.

    Given the distances of rows; for both densities, covariances may be too large by a factor.
    """
    total = max(float(weights @ n_observed), 1e-300)

    def best(of_scaled: list[Floats]) -> float:
        sized = zip(of_scaled, SCALES, strict=True)
        return max(float(weights @ (log - n_observed / 2 * np.log(scale))) for log, scale in sized)

    normal = best([-0.5 * (distances / s + n_observed * np.log(2 * np.pi)) for s in SCALES])
    found = {of: best([t_log_density(distances / s, n_observed, of) for s in SCALES]) for of in DEGREES}
    degrees = max(found, key=lambda of: found[of])
    return max(0.0, (found[degrees] - normal) / total), degrees
