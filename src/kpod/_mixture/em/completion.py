"""What is missing of a row, given what is observed: means, standard deviations, random draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kpod._common.typing import Floats
from kpod._engine.blocks import Units, block_of
from kpod._kernels.mixture import Factors
from kpod._mixture.em.expectation import Range, expect
from kpod._mixture.em.maximisation import triangle
from kpod._mixture.em.mixture_parameters import Parameters

AT_ONCE = 1 << 20  # numbers of rows, clusters and columns


class Given(NamedTuple):
    """Of some rows, given what they observe, by cluster.

    Probabilities (n, k), means and variances of all entries (n, k, p), and the covariances of those
    missing, as roots: `noise` (n, k, p), and (n, k, p, m) what m independent numbers add to them.
    """

    rows: slice
    posterior: Floats
    means: Floats
    variances: Floats
    noise: Floats
    roots: Floats


def given_observed(values: Floats, parameters: Parameters) -> Iterator[Given]:
    """Of the rows of a dense table with NaN, a few at a time."""
    n, p = values.shape
    step = max(1, AT_ONCE // (parameters.k * p * (p if parameters.whole is not None else 1 + parameters.q)))
    for start in range(0, n, step):
        part = np.ascontiguousarray(values[start : start + step])
        yield of_rows(part, slice(start, start + len(part)), parameters)


def of_rows(values: Floats, at: slice, parameters: Parameters) -> Given:
    (n, p), k, q = values.shape, parameters.k, parameters.q
    model = parameters.model()
    posterior, evidence = np.empty((n, k)), np.empty(n)
    scores = covariances = None
    if isinstance(model, Factors) and q:
        scores, covariances = np.empty((n, q, k)), np.empty((n, q * (q + 1) // 2, k))
    rows = Range(block_of(values, 0, Units(np.zeros(p), 1.0)), 0, n)
    with rows.opened() as (opened, space):
        expect(opened, rows, model, posterior, evidence, scores, covariances, space)
    if not isinstance(model, Factors):
        return whole_given(values, at, posterior, parameters)
    means = np.repeat(parameters.means[None], n, axis=0)
    variances = np.repeat(parameters.variances[None], n, axis=0)
    roots = np.zeros((n, k, p, 0))
    if scores is not None and covariances is not None:
        means += np.einsum("nqk,kpq->nkp", scores, parameters.loadings)
        root = np.linalg.cholesky(triangle(covariances.transpose(0, 2, 1), q))  # (n, k, q, q)
        roots = parameters.loadings[None] @ root
        variances = variances + (roots**2).sum(axis=3)
    noise = np.repeat(np.sqrt(parameters.variances)[None], n, axis=0)
    return Given(at, posterior, means, variances, noise, roots)


def whole_given(values: Floats, at: slice, posterior: Floats, parameters: Parameters) -> Given:
    (n, p), k = values.shape, parameters.k
    means, variances = np.repeat(parameters.means[None], n, axis=0), np.zeros((n, k, p))
    roots = np.zeros((n, k, p, p))
    patterns, of_row = np.unique(np.isnan(values), axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        if not missing.any():
            continue
        here, seen, columns = np.flatnonzero(of_row.ravel() == number), ~missing, np.flatnonzero(missing)
        for cluster in range(k):
            at_missing = here[:, None], cluster, columns
            s = parameters.covariance(cluster)
            slopes = np.linalg.solve(s[np.ix_(seen, seen)], s[np.ix_(seen, missing)])
            rest = s[np.ix_(missing, missing)] - s[np.ix_(missing, seen)] @ slopes
            deviations = values[np.ix_(here, seen)] - parameters.means[cluster, seen]
            means[at_missing] += deviations @ slopes
            eigenvalues, vectors = np.linalg.eigh(rest)
            root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
            variances[at_missing] = np.maximum(np.diag(rest), 0.0)
            roots[here[:, None, None], cluster, columns[:, None], np.arange(len(columns))] = root
    return Given(at, posterior, means, variances, np.zeros((n, k, p)), roots)


def expected(given: Given) -> tuple[Floats, Floats]:
    """Means and standard deviations (n, p) over clusters."""
    mean = np.einsum("nk,nkp->np", given.posterior, given.means)
    square = given.variances + (given.means - mean[:, None]) ** 2
    return mean, np.sqrt(np.einsum("nk,nkp->np", given.posterior, square))


def drawn(given: Given, rng: np.random.Generator) -> Floats:
    """One draw of all entries (n, p): a cluster by its probability, then values given the cluster."""
    n, _ = given.posterior.shape
    cumulated = np.cumsum(given.posterior, axis=1)
    chance: Floats = rng.random((n, 1))
    cluster = (chance * cumulated[:, -1:] > cumulated).sum(axis=1)
    rows = np.arange(n)
    factors = rng.standard_normal((n, given.roots.shape[3]))
    values = given.means[rows, cluster] + np.einsum("npq,nq->np", given.roots[rows, cluster], factors)
    return values + given.noise[rows, cluster] * rng.standard_normal(values.shape)
