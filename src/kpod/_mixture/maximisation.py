r"""The M step: from sums over rows to the parameters that explain them best.

Given the clusters and factors of the rows, a column is a weighted regression on the factors, in each cluster
with a mean of its own. With :math:`d` the deviations from the means before, the sums are :math:`s = \sum r`,
:math:`t = \sum r d`, :math:`\sum r d^2`, :math:`\sum r z`, :math:`\sum r d z` and :math:`\sum r z z^\top`. The
scale of the factors is freed in every step (Liu, Rubin & Wu 1998), which takes a tenth of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats
from kpod._mixture.expectation import Sums
from kpod._mixture.parameters import Parameters, Prior
from kpod._mixture.shape import Shape

NOTHING = 1e-8  # rows: a mean that rests on less is the column's
RIDGE = 1e-6  # of a row, behind every loading, so that no equation is singular


@dataclass(frozen=True)
class Constraints:
    """What the parameters are kept to.

    `floor` (p,) is the smallest variance of each column, `fallback` (p,) the mean where a cluster observes
    nothing, `silent` (p,) says which columns have the same mean and variance in all clusters.
    """

    floor: Floats
    fallback: Floats
    prior: Prior
    silent: NDArray[np.bool_] | None = None


def maximise(shape: Shape, old: Parameters, sums: Sums, within: Constraints) -> Parameters:
    """The parameters that follow from the sums of an E step with the old ones."""
    return (of_whole if shape.whole else of_factors)(shape, old, sums, within)


def of_whole(shape: Shape, old: Parameters, sums: Sums, within: Constraints) -> Parameters:
    weights, first, second = sums.parts
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
    (columns, clusters), q, k = sums.parts, old.q, old.k
    columns = columns[:, :, :k].transpose(1, 2, 0)  # (sums, k, p)
    s, t, squares = columns[:3]
    weights = clusters[0, :k]
    some = np.maximum(s, NOTHING)
    if q:
        z, dz = (columns[3 + i * q : 3 + (i + 1) * q].transpose(1, 2, 0) for i in range(2))  # (k, p, q)
        zz = triangle(columns[3 + 2 * q :].transpose(1, 2, 0), q)
        slopes = loadings_of(shape, old, (some, t, z, dz, zz), within)
        explained = (z * slopes).sum(axis=2)
        shift = shifts(old, (s, some, t - explained), within)
        curve = np.einsum("lpq,lpqr,lpr->lp", slopes, zz, slopes) - 2 * (dz * slopes).sum(axis=2)
        residual = squares - 2 * shift * (t - explained) + shift**2 * s + curve
        second = triangle(clusters[1:, :k].T, q)
        loadings = slopes @ scales(second, weights, own=shape.own_loadings)
    else:
        loadings, shift = old.loadings, shifts(old, (s, some, t), within)
        residual = squares - 2 * shift * t + shift**2 * s
    means = old.means + shift
    if (s < NOTHING).any():
        means = np.where(s < NOTHING, within.fallback, means)
    variances = variances_of(shape, np.maximum(residual, 0.0), s, within)
    return Parameters(shares_of(weights), means, variances, loadings, None, old.rates)


def loadings_of(shape: Shape, old: Parameters, sums: tuple[Floats, ...], within: Constraints) -> Floats:
    """Slopes of the regression of each column on the factors (k, p, q)."""
    s, t, z, dz, zz = sums
    q = z.shape[2]
    left = zz - z[..., :, None] * (z / s[..., None])[..., None, :]
    right = dz - z * (t / s)[..., None]
    ridge = RIDGE * np.eye(q)
    if shape.own_loadings:
        return np.linalg.solve(left + ridge, right[..., None])[..., 0]
    precision = 1 / old.variances
    left, right = np.einsum("lp,lpqr->pqr", precision, left), np.einsum("lp,lpq->pq", precision, right)
    if within.silent is not None and within.silent.any():  # one mean for all clusters
        here = within.silent
        w = precision[:, here]
        s_all, t_all = (w * s[:, here]).sum(axis=0), (w * t[:, here]).sum(axis=0)
        z_all = (w[..., None] * z[:, here]).sum(axis=0)
        left[here] = np.einsum("lp,lpqr->pqr", w, zz[:, here])
        left[here] -= z_all[:, :, None] * (z_all / s_all[:, None])[:, None, :]
        right[here] = np.einsum("lp,lpq->pq", w, dz[:, here]) - z_all * (t_all / s_all)[:, None]
    slopes = np.linalg.solve(left + ridge * precision.mean(axis=0)[:, None, None], right[..., None])[..., 0]
    return np.broadcast_to(slopes, (len(s), *slopes.shape))


def shifts(old: Parameters, sums: tuple[Floats, Floats, Floats], within: Constraints) -> Floats:
    """How far the means move (k, p)."""
    s, some, t = sums
    out = t / some
    if within.silent is not None and within.silent.any():
        w = 1 / old.variances[:, within.silent]
        common = (w * t[:, within.silent]).sum(axis=0) / np.maximum(
            (w * s[:, within.silent]).sum(axis=0), 1e-300
        )
        out[:, within.silent] = common
    return out


def scales(second: Floats, weights: Floats, *, own: bool) -> Floats:
    """What factors of any scale are multiplied by to have that of the standard normal (k or 1, q, q)."""
    if not own:
        second, weights = second.sum(axis=0, keepdims=True), weights.sum(keepdims=True)
    q = second.shape[-1]
    few = weights < 2 * q
    mean = second / np.maximum(weights, NOTHING)[:, None, None]
    mean[few] = np.eye(q)
    return np.linalg.cholesky(mean + 1e-12 * np.eye(q))


def variances_of(shape: Shape, residual: Floats, s: Floats, within: Constraints) -> Floats:
    """Variances (k, p) from the sums of squares that are left."""
    rows, pulled, floor, k = within.prior.rows, within.prior.variances, within.floor, len(s)
    if shape.own_variances:
        if rows:
            residual, s = residual + rows * pulled, s + rows
        if within.silent is not None and within.silent.any():
            residual, s = residual.copy(), s.copy()
            residual[:, within.silent] = residual[:, within.silent].mean(axis=0)
            s[:, within.silent] = s[:, within.silent].mean(axis=0)
    else:
        residual, s = residual.sum(axis=0, keepdims=True), s.sum(axis=0, keepdims=True)
    if shape.round:
        residual, s = residual.sum(axis=1, keepdims=True), s.sum(axis=1, keepdims=True)
        floor = np.full_like(floor, floor.mean())
    variances = residual / np.maximum(s, NOTHING)
    return np.maximum(np.broadcast_to(variances, (k, len(floor))), floor)
