"""The M step: from sums over rows to the parameters that explain them best.

With factors it is a regression of each column on them, which is compiled; covariance matrices that are
written out are sums of products, kept above the floor.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Positions
from kpod._kernels.em import Bounds
from kpod._kernels.m_step import NOTHING, maximise_factors
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.expectation import Sums
from kpod._mixture.em.mixture_parameters import SMALLEST_RATE, Parameters, Prior


@dataclass(frozen=True)
class Constraints:
    """Bounds on the parameters.

    `floor` (p,) is the smallest variance of each column, `fallback` (p,) the mean where a cluster observes
    nothing, `uninformative` (p,) which columns have the same mean and variance in all clusters. With
    informative missingness, `observed` (p,) is the share of rows that observe each column, 0.5 where
    missingness is not informative. `shadowed` has the column that each of the last columns stands for, of
    which an entry only says that one is observed whose value is hidden. `loading_rows` without correlation
    stand behind every loading. Where the indicators of a category are one entry, `columns_per_entry`
    multiplies the variance of round clusters, and `more_entries` are those that the likelihood counts
    beside it.
    """

    floor: Floats
    fallback: Floats
    prior: Prior
    uninformative: NDArray[np.bool_] | None = None
    observed: Floats | None = None
    shadowed: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    loading_rows: float = 0.0
    columns_per_entry: float = 1.0
    more_entries: float = 0.0

    def compiled(self, shape: Shape) -> Bounds:
        """As `em.run_factors` takes them."""
        return Bounds(
            shape.own_loadings, shape.own_variances, shape.round, self.prior.rows, self.pulled_to, self.floor,
            self.fallback, self.tied_columns, self.loading_rows, self.columns_per_entry, self.more_entries,
            self.observed, self.shadowed, SMALLEST_RATE,
        )  # fmt: skip

    @property
    def pulled_to(self) -> Floats:
        """What variances are pulled to, if they are."""
        return self.prior.variances if self.prior.rows else self.floor

    @property
    def tied_columns(self) -> NDArray[np.uint8]:
        """Which columns are uninformative, as the kernels take them."""
        if self.uninformative is None:
            return np.zeros(len(self.floor), np.uint8)
        return self.uninformative.view(np.uint8)

    def log_density(self, of: Parameters) -> float:
        """What is added to the log-likelihood.

        By the prior, by a row behind each rate, and for entries that it counts more than once.
        """
        found = self.prior.log_density(of)
        if of.rates is not None and self.observed is not None:
            rates = np.log(of.rates) * self.observed + np.log(1 - of.rates) * (1 - self.observed)
            found += float(rates[:, : len(self.observed) - of.n_shadows].sum())
        if self.more_entries:
            found += 0.5 * self.more_entries * float(np.log(2 * np.pi * of.variances[0, 0]))
        return found


def maximise(shape: Shape, old: Parameters, sums: Sums, within: Constraints) -> Parameters:
    """The parameters that follow from the sums of an E step with the old ones."""
    found = (of_whole if shape.whole else of_factors)(shape, old, sums, within)
    if within.observed is None:
        return found
    if shape.whole:
        weights, seen = sums.parts[0], sums.parts[3]
    else:
        weights, seen = sums.parts[1][0, : old.k], sums.parts[0][:, 0, : old.k].T
    n_shadows = len(within.shadowed)
    if n_shadows:
        seen = seen.copy()
        seen[:, within.shadowed] += seen[:, -n_shadows:]
        seen[:, -n_shadows:] = seen[:, within.shadowed]
    rates = (seen + within.observed) / (weights + 1)[:, None]
    rates = np.clip(rates, SMALLEST_RATE, 1 - SMALLEST_RATE)
    return replace(found, rates=np.where(within.observed == 0.5, 0.5, rates), n_shadows=n_shadows)


def of_whole(shape: Shape, old: Parameters, sums: Sums, within: Constraints) -> Parameters:
    weights, first, second = sums.parts[:3]
    shift = first / np.maximum(weights, NOTHING)[:, None]
    products = np.triu(second) + np.triu(second, 1).transpose(0, 2, 1)
    explained = weights[:, None, None] * shift[:, :, None] * shift[:, None, :]
    if shape.own_variances:
        rows = within.prior.rows
        pulled = products - explained + (rows * within.prior.whole if rows else 0.0)
        whole = pulled / np.maximum(weights + rows, NOTHING)[:, None, None]
    else:
        whole = (products - explained.sum(axis=0)) / max(float(weights.sum()), NOTHING)
    means = np.where((weights > NOTHING)[:, None], old.means + shift, within.fallback)
    whole = above_floor(whole, within.floor)
    return Parameters(shares_of(weights), means, diagonals(whole, len(means)), old.loadings, whole, old.rates)


def diagonals(whole: Floats, k: int) -> Floats:
    return np.broadcast_to(np.diagonal(whole, axis1=1, axis2=2), (k, whole.shape[1])).copy()


def shares_of(weights: Floats) -> Floats:
    return weights / max(float(weights.sum()), 1e-300)


def above_floor(whole: Floats, floor: Floats) -> Floats:
    """The most likely matrices that are no smaller than the diagonal one of the floor."""
    roots = np.sqrt(floor)
    scaled = whole / roots[:, None] / roots
    try:
        np.linalg.cholesky(scaled - np.eye(len(floor)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        scaled = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        return np.asarray(scaled * roots[:, None] * roots)
    return whole


def triangle(packed: Floats, q: int) -> Floats:
    """Symmetric matrices (..., q, q) from their lower triangles (..., q (q + 1) / 2)."""
    out = np.empty((*packed.shape[:-1], q, q))
    rows, columns = np.tril_indices(q)
    out[..., rows, columns] = out[..., columns, rows] = packed
    return out


def of_factors(shape: Shape, old: Parameters, sums: Sums, within: Constraints) -> Parameters:
    columns, clusters = sums.parts
    if within.loading_rows:
        of = slice(old.k if shape.own_loadings else 1)
        columns[:, [3 + 2 * shape.q + i * (i + 3) // 2 for i in range(shape.q)], of] += within.loading_rows
    means, variances, loadings = (np.empty_like(a) for a in (old.means, old.variances, old.loadings))
    maximise_factors(
        columns, clusters, old.means, old.variances, shape.own_loadings, shape.own_variances, shape.round,
        within.prior.rows, within.pulled_to, within.floor, within.fallback, within.tied_columns,
        means, variances, loadings,
    )  # fmt: skip
    if shape.round:
        variances *= within.columns_per_entry
    return Parameters(shares_of(clusters[0, : old.k]), means, variances, loadings, None, old.rates)
