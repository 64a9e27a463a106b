r"""Gaussian mixtures on the observed entries, started from a clustering.

Row i belongs to cluster l with probability :math:`\pi_l`; given that, its observed entries are

.. math:: x_{ij} = \mu_{lj} + \lambda_j^\top z_i + \varepsilon_{ij},\qquad
          z_i \sim N(0, I_q),\quad \varepsilon_{ij} \sim N(0, \psi_j)

With q = 0 factors and one variance for all columns this is the soft version of k-means: how sure a
row's label is. With factors, columns may be correlated *within* clusters, in the same way in all of
them (a mixture of factor analyzers with common loadings): what is a group, and what is a trend.
Fitted by EM (Ghahramani & Hinton 1996); everything is a product of the table, or of its mask, with a
small matrix, so that dense and sparse tables share the code and rows are worked on in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from kpod._blocks import Floats, Labels, Positions

CHUNK = 4096
SMALLEST_VARIANCE = 1e-6  # of a column's own, so that a constant or doubled column divides nothing


@dataclass
class Mixture:
    """Parameters: shares (k,), centers (k, p), loadings (p, q), variances (p,)."""

    shares: Floats
    centers: Floats
    loadings: Floats
    variances: Floats
    log_likelihood: float = field(default=-np.inf)

    @property
    def n_factors(self) -> int:
        return self.loadings.shape[1]


@dataclass
class Part:
    """Rows of a table: values (0 where missing), mask, and weights."""

    values: Any
    mask: Any
    weights: Floats
    at: slice


class Entries:
    """The observed entries of a dense or CSR table, less the column means, in chunks of rows."""

    def __init__(self, X: Any, weights: Floats | None = None) -> None:
        n_rows, self.n_columns = X.shape
        weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        self.parts: list[Part] = []
        for start in range(0, n_rows, CHUNK):
            at = slice(start, min(start + CHUNK, n_rows))
            self.parts.append(Part(*_values_and_mask(X[at]), weights[at], at))
        self.n_rows = n_rows
        counts = sum((p.mask.T @ p.weights for p in self.parts), np.zeros(self.n_columns))
        sums = sum((p.values.T @ p.weights for p in self.parts), np.zeros(self.n_columns))
        self.counts = counts
        self.means = np.where(counts > 0, sums / np.where(counts > 0, counts, 1), 0.0)
        for p in self.parts:
            p.values = _less(p.values, p.mask, self.means)
        squares = sum((_squared(p.values).T @ p.weights for p in self.parts), np.zeros(self.n_columns))
        self.variances = np.where(counts > 0, squares / np.where(counts > 0, counts, 1), 1.0)
        typical = float(self.variances[self.variances > 0].mean()) if (self.variances > 0).any() else 1.0
        self.floor = SMALLEST_VARIANCE * np.where(self.variances > 0, self.variances, typical)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


def _values_and_mask(X: Any) -> tuple[Any, Any]:
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64)
        keep = ~np.isnan(X.data)
        if not keep.all():
            indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr]
            X = sparse.csr_array((X.data[keep], X.indices[keep], indptr), shape=X.shape)
        return X, sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    X = np.asarray(X, dtype=np.float64)
    observed = ~np.isnan(X)
    return np.where(observed, X, 0.0), observed.astype(np.float64)


def _less(values: Any, mask: Any, means: Floats) -> Any:
    if sparse.issparse(values):
        return sparse.csr_array(
            (values.data - means[values.indices], values.indices, values.indptr), shape=values.shape
        )
    return values - mask * means


def _squared(values: Any) -> Any:
    return values.power(2) if sparse.issparse(values) else values**2


@dataclass
class Expected:
    """The E-step of one part: log density (n, k), factor means (n, k, q) and covariances (n, q, q)."""

    log_density: Floats
    scores: Floats
    covariances: Floats


def expect(part: Part, m: Mixture) -> Expected:
    """Given the parameters: log of share times density of the observed entries, and the factors."""
    q, k = m.n_factors, len(m.shares)
    precision = 1 / m.variances
    n = part.values.shape[0]
    distances = (
        (_squared(part.values) @ precision)[:, None]
        - 2 * (part.values @ (m.centers * precision).T)
        + part.mask @ (m.centers**2 * precision).T
    )
    log_density = -0.5 * (distances + (part.mask @ np.log(2 * np.pi * m.variances))[:, None])
    scores, covariances = np.zeros((n, k, q)), np.zeros((n, q, q))
    if q:
        weighted = m.loadings * precision[:, None]
        outer = (m.loadings[:, :, None] * weighted[:, None, :]).reshape(-1, q * q)
        inverse = np.eye(q) + (part.mask @ outer).reshape(n, q, q)
        covariances = np.linalg.inv(inverse)
        shift = (m.centers[:, :, None] * weighted[None]).transpose(1, 0, 2).reshape(-1, k * q)
        b = (part.values @ weighted)[:, None, :] - (part.mask @ shift).reshape(n, k, q)
        scores = b @ covariances
        log_density += 0.5 * ((b * scores).sum(axis=2) - np.linalg.slogdet(inverse)[1][:, None])
    with np.errstate(divide="ignore"):
        log_density += np.log(m.shares)
    return Expected(log_density, scores, covariances)


def step(entries: Entries, m: Mixture, *, isotropic: bool, ridge: float = 1e-3) -> Mixture:
    """One EM step; `log_likelihood` of the result is that of the parameters given."""
    q, k, p = m.n_factors, len(m.shares), entries.n_columns
    s_l, t_l, shares = np.zeros((p, k)), np.zeros((p, k)), np.zeros(k)
    s_lz, s_zz, t_z = np.zeros((p, k * q)), np.zeros((p, q * q)), np.zeros((p, q))
    squares, total = np.zeros(p), 0.0
    for part in entries:
        e = expect(part, m)
        evidence = logsumexp(e.log_density, axis=1)
        total += float(part.weights @ evidence)
        r = np.exp(e.log_density - evidence[:, None]) * part.weights[:, None]
        shares += r.sum(axis=0)
        s_l += part.mask.T @ r
        t_l += part.values.T @ r
        squares += _squared(part.values).T @ part.weights
        if q:
            n = len(r)
            rz = r[:, :, None] * e.scores
            zz = np.einsum("nkq,nkr->nqr", rz, e.scores) + part.weights[:, None, None] * e.covariances
            s_lz += part.mask.T @ rz.reshape(n, k * q)
            s_zz += part.mask.T @ zz.reshape(n, q * q)
            t_z += part.values.T @ rz.sum(axis=1)
    # One observation at the column's mean for every center: none rests on nothing.
    s_l += ridge
    loadings = np.zeros((p, q))
    if q:
        cross = s_lz.reshape(p, k, q)
        scaled = cross / s_l[:, :, None]
        left = s_zz.reshape(p, q, q) - np.einsum("pkq,pkr->pqr", cross, scaled) + ridge * np.eye(q)
        right = t_z - np.einsum("pkq,pk->pq", scaled, t_l)
        loadings = np.linalg.solve(left, right[:, :, None])[:, :, 0]
        centers = ((t_l - np.einsum("pkq,pq->pk", cross, loadings)) / s_l).T
        explained = (centers.T * t_l).sum(axis=1) + (loadings * t_z).sum(axis=1)
    else:
        centers = (t_l / s_l).T
        explained = (centers.T * t_l).sum(axis=1)
    residual = np.maximum(squares - explained, 0)
    counts = np.maximum(entries.counts, 1e-300)
    variances = np.full(p, residual.sum() / counts.sum()) if isotropic else residual / counts
    return Mixture(shares / shares.sum(), centers, loadings, np.maximum(variances, entries.floor), total)


def posterior(entries: Entries, m: Mixture) -> Floats:
    """Probability of each cluster for each row (n, k); the shares where nothing was observed."""
    return np.vstack([_normalised(expect(part, m).log_density) for part in entries])


def _normalised(log_density: Floats) -> Floats:
    return np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))


def start_from_labels(
    entries: Entries, labels: Labels, k: int, *, isotropic: bool
) -> Mixture:
    """Shares, means and variances of a clustering; nothing correlated yet."""
    p = entries.n_columns
    s_l, t_l, shares, squares = np.zeros((p, k)), np.zeros((p, k)), np.zeros(k), np.zeros(p)
    for part in entries:
        label = labels[part.at]
        r = (label[:, None] == np.arange(k)) * part.weights[:, None]
        shares += r.sum(axis=0)
        s_l += part.mask.T @ r
        t_l += part.values.T @ r
        squares += _squared(part.values).T @ part.weights
    centers = (t_l / np.maximum(s_l, 1e-300)).T
    residual = np.maximum(squares - (centers.T * t_l).sum(axis=1), 0)
    counts = np.maximum(entries.counts, 1e-300)
    variances = np.full(p, residual.sum() / counts.sum()) if isotropic else residual / counts
    shares = (shares + 1) / (shares.sum() + k)
    return Mixture(shares, centers, np.zeros((p, 0)), np.maximum(variances, entries.floor))


def with_factor(entries: Entries, m: Mixture, rng: np.random.Generator) -> Mixture:
    """One more factor, along what the residuals have most in common (a few power steps)."""
    p = entries.n_columns
    direction = rng.normal(size=p)
    residuals = []
    for part in entries:
        e = expect(part, m)
        r = _normalised(e.log_density)
        fitted = r @ m.centers
        if m.n_factors:
            fitted = fitted + np.einsum("nkq,nk->nq", e.scores, r) @ m.loadings.T
        if sparse.issparse(part.values):
            rows = np.repeat(np.arange(part.values.shape[0]), np.diff(part.values.indptr))
            data = part.values.data - fitted[rows, part.values.indices]
            residuals.append(
                sparse.csr_array((data, part.values.indices, part.values.indptr), shape=part.values.shape)
            )
        else:
            residuals.append(part.values - part.mask * fitted)
    scale = 1 / np.sqrt(m.variances)
    for _ in range(15):
        new = np.zeros(p)
        for part, residual in zip(entries, residuals, strict=True):
            observed = part.mask @ direction**2
            new += (residual.T @ (((residual @ (scale * direction)) / np.maximum(observed, 1e-12)))) * scale
        direction = new / max(np.linalg.norm(new), 1e-300)
    amount = 0.0
    for part, residual in zip(entries, residuals, strict=True):
        z = (residual @ (scale * direction)) / np.maximum(part.mask @ direction**2, 1e-12)
        amount += float(part.weights @ z**2)
    total = sum(float(part.weights.sum()) for part in entries)
    size = np.sqrt(max(amount / max(total, 1e-300), 1e-12))
    loading = direction / np.maximum(scale, 1e-300) * size
    return Mixture(
        m.shares, m.centers, np.column_stack([m.loadings, loading]), m.variances
    )


def run(entries: Entries, m: Mixture, *, isotropic: bool, n_steps: int, tol: float = 1e-5) -> Mixture:
    """EM until a step gains less than `tol` a row, at most `n_steps`."""
    weight = sum(float(part.weights.sum()) for part in entries)
    before = -np.inf
    for _ in range(n_steps):
        m = step(entries, m, isotropic=isotropic)
        if m.log_likelihood - before < tol * weight:
            break
        before = m.log_likelihood
    return m


def predict_entries(entries: Entries, m: Mixture, rows: Positions, columns: Positions) -> Floats:
    """Expected values of entries that were not observed, given what was (in the units of the table)."""
    predicted = np.zeros(len(rows))
    for part in entries:
        # Rows come in order, so those of a part are a range.
        low, high = np.searchsorted(rows, [part.at.start, part.at.stop])
        if low == high:
            continue
        e = expect(part, m)
        r = _normalised(e.log_density)
        i, j = rows[low:high] - part.at.start, columns[low:high]
        predicted[low:high] = (r[i] * m.centers.T[j]).sum(axis=1)
        if m.n_factors:
            scores = np.einsum("nkq,nk->nq", e.scores, r)
            predicted[low:high] += (scores[i] * m.loadings[j]).sum(axis=1)
    return predicted + entries.means[columns]
