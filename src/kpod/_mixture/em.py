r"""Gaussian mixtures on the observed entries, started from a clustering.

Row i belongs to cluster l with probability :math:`\pi_l`; given that, its observed entries are

.. math:: x_{ij} = \mu_{lj} + \lambda_{lj}^\top z_i + \varepsilon_{ij},\qquad
          z_i \sim N(0, I_q),\quad \varepsilon_{ij} \sim N(0, \psi_j)

With q = 0 factors and one variance for all columns this is the soft version of k-means: how sure a
row's label is. With factors, columns may be correlated *within* clusters, in the same way in all of
them (common loadings) or in each its own way (a mixture of factor analyzers): what is a group, and
what is a trend. Where gaps count, whether an entry is observed is part of the data, at a rate
:math:`\rho_{lj}` for each cluster and column. Fitted by EM (Ghahramani & Hinton 1996), the scale of the
factors freed in every step (Liu, Rubin & Wu 1998), which takes a tenth of the steps. Everything is a
product of the table, or of its mask, with a small matrix, so dense and sparse tables share the code, a
chunk of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats, Labels, Positions

CHUNK = 4096
COLUMNS_AT_ONCE = 256
SMALLEST_VARIANCE = 1e-6  # of a column's own, so that a constant or doubled column divides nothing
SMALLEST_RATE = 1e-3  # at which entries are observed or missing: nothing is impossible
PRIOR = 1e-3  # rows at the column's mean behind every center: none rests on nothing
SHRINK_LOADINGS = 1.0  # rows without correlation behind every loading
POWER_STEPS = 15
SWEPT_AT_ONCE = 1 << 16  # numbers in matrices that are inverted together: they stay in the cache


@dataclass
class Mixture:
    """Shares (k,), centers (k, p), loadings (1 or k, p, q), variances (p,).

    Centers are less the column means of the table. `rates` (k, p) is how often entries are observed where
    gaps count, else None. `log_likelihood` is that of the parameters one step before.
    """

    shares: Floats
    centers: Floats
    loadings: Floats
    variances: Floats
    log_likelihood: float = -np.inf
    rates: Floats | None = None

    @property
    def n_factors(self) -> int:
        return self.loadings.shape[2]

    def own(self) -> Mixture:
        """The same, with loadings of its own for every cluster."""
        loadings = np.repeat(self.loadings, len(self.shares), axis=0)
        return replace(self, loadings=loadings, log_likelihood=-np.inf)


@dataclass
class Part:
    """A chunk of rows: values less the column means (0 where missing), squares, mask, weights.

    `seen` is the mask with what is hidden: the value of an entry is hidden, not that it was observed.
    """

    values: Any
    squares: Any
    mask: Any
    seen: Any
    weights: Floats
    at: slice


class Entries:
    """The observed entries of a dense or CSR table, less the column means, in chunks of rows."""

    def __init__(
        self,
        X: Any,
        weights: Floats | None = None,
        hidden: tuple[Positions, Positions] | None = None,
        groups: ColumnGroups | None = None,
    ) -> None:
        """Those of X without the `hidden` ones (rows and columns, row by row).

        Columns of a group are one where columns are counted: what gaps say, and one variance for all.
        """
        n_rows, self.n_columns = X.shape
        self.groups = groups or ColumnGroups.none(self.n_columns)
        weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        chunks = [slice(start, min(start + CHUNK, n_rows)) for start in range(0, n_rows, CHUNK)]
        tables = [(*_without(*_values_and_mask(X[at]), at, hidden), at) for at in chunks]
        nothing = np.zeros(self.n_columns)
        self.weight = float(weights.sum())
        self.counts = sum((mask.T @ weights[at] for _, mask, _, at in tables), nothing)
        self.seen_counts = sum((seen.T @ weights[at] for _, _, seen, at in tables), nothing)
        counts = np.where(self.counts > 0, self.counts, 1)
        sums = sum((values.T @ weights[at] for values, _, _, at in tables), nothing)
        self.means = sums / counts
        self.parts = [
            _part(values, mask, seen, self.means, weights[at], at) for values, mask, seen, at in tables
        ]
        self.squares = sum((p.squares.T @ p.weights for p in self.parts), np.zeros(self.n_columns))
        variances = self.squares / counts
        typical = float(variances[variances > 0].mean()) if (variances > 0).any() else 1.0
        self.floor = SMALLEST_VARIANCE * np.where(variances > 0, variances, typical)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


def parts(X: Any, means: Floats) -> Iterator[Part]:
    """Chunks of a table whose column means are given."""
    for start in range(0, X.shape[0], CHUNK):
        at = slice(start, min(start + CHUNK, X.shape[0]))
        values, mask = _values_and_mask(X[at])
        yield _part(values, mask, mask, means, np.ones(at.stop - at.start), at)


def _values_and_mask(X: Any) -> tuple[Any, Any]:
    if sparse.issparse(X):
        keep = ~np.isnan(X.data)
        indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr]
        data, indices = X.data[keep].astype(np.float64), X.indices[keep]
        values = sparse.csr_array((data, indices, indptr), shape=X.shape)
        return values, _like(values, np.ones(values.nnz))
    observed = ~np.isnan(X)
    return np.where(observed, X, 0.0).astype(np.float64), observed.astype(np.float64)


def _without(
    values: Any, seen: Any, at: slice, hidden: tuple[Positions, Positions] | None
) -> tuple[Any, Any, Any]:
    """Values and mask without the hidden entries of the rows `at`, and the mask with them."""
    if hidden is None:
        return values, seen, seen
    low, high = np.searchsorted(hidden[0], [at.start, at.stop])
    rows, columns = hidden[0][low:high] - at.start, hidden[1][low:high]
    if not sparse.issparse(values):
        mask = seen.copy()
        values[rows, columns] = mask[rows, columns] = 0.0
        return values, mask, seen
    n_columns = values.shape[1]
    own = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr)) * n_columns + values.indices
    data = np.where(np.isin(own, rows * n_columns + columns), np.nan, values.data)
    return *_values_and_mask(_like(values, data)), seen


def _like(table: Any, data: Floats) -> Any:
    return sparse.csr_array((data, table.indices, table.indptr), shape=table.shape)


def _part(values: Any, mask: Any, seen: Any, means: Floats, weights: Floats, at: slice) -> Part:
    if sparse.issparse(values):
        values = _like(values, values.data - means[values.indices])
        return Part(values, _like(values, values.data**2), mask, seen, weights, at)
    values = values - mask * means
    return Part(values, values**2, mask, seen, weights, at)


@dataclass
class Expected:
    """Log of share times density (n, k), less what all clusters share; means and covariances of factors.

    What they share (n,) stands alone: of a row far out, it would leave no digits for the differences.
    Means are (n, k, q), covariances (n, 1 or k, q, q).
    """

    log_density: Floats
    common: Floats
    scores: Floats
    covariances: Floats

    def posterior(self) -> Floats:
        out = np.exp(self.log_density - self.log_density.max(axis=1, keepdims=True))
        return np.asarray(out / out.sum(axis=1, keepdims=True))

    def evidence(self) -> Floats:
        """The log-likelihood of each row."""
        return self.common + log_sums(self.log_density)


def log_sums(a: Floats) -> Floats:
    """log(sum(exp(a))) of each row, without overflow."""
    largest = a.max(axis=1)
    return largest + np.log(np.exp(a - largest[:, None]).sum(axis=1))


def expect(part: Part, m: Mixture) -> Expected:
    """The E-step of a chunk of rows."""
    (k, p), q, own = m.centers.shape, m.n_factors, len(m.loadings)
    n = part.values.shape[0]
    precision = 1 / m.variances
    common = -0.5 * (part.squares @ precision + part.mask @ np.log(2 * np.pi * m.variances))
    log_density = part.values @ (m.centers * precision).T
    log_density -= 0.5 * (part.mask @ (m.centers**2 * precision).T)
    with np.errstate(divide="ignore"):
        log_density += np.log(m.shares)
    if m.rates is not None:
        log_density += part.seen @ np.log(m.rates / (1 - m.rates)).T + np.log(1 - m.rates).sum(axis=1)
    if not q:
        return Expected(log_density, common, np.zeros((n, k, 0)), np.zeros((n, own, 0, 0)))
    weighted = m.loadings * precision[:, None]
    outer = np.einsum("lpq,lpr->plqr", m.loadings, weighted).reshape(p, -1)
    inverse = np.eye(q) + (part.mask @ outer).reshape(n, own, q, q)
    shift = (m.centers[:, :, None] * weighted).transpose(1, 0, 2).reshape(p, k * q)
    b = (part.values @ weighted.transpose(1, 0, 2).reshape(p, own * q)).reshape(n, own, q)
    b = b - (part.mask @ shift).reshape(n, k, q)
    covariances, log_determinant = inverted(inverse)
    scores = b @ covariances[:, 0] if own == 1 else np.einsum("nlq,nlqr->nlr", b, covariances)
    log_density += 0.5 * ((b * scores).sum(axis=2) - log_determinant)
    return Expected(log_density, common, scores, covariances)


def inverted(matrices: Floats) -> tuple[Floats, Floats]:
    """The inverses of many small matrices (n, own, q, q), and the logarithms of their determinants.

    Each is the identity and something positive semidefinite, so its pivots are 1 or more, in any order: all
    matrices are swept at once, one pivot after the other. LAPACK, which takes them one by one, needs two to
    ten times as long for up to 6 factors, and as long for 12 and more.
    """
    out, q = np.empty_like(matrices), matrices.shape[-1]
    log_determinant = np.zeros(matrices.shape[:2])
    size = max(1, SWEPT_AT_ONCE // matrices[0].size)
    for start in range(0, len(matrices), size):
        at = slice(start, start + size)
        a = matrices[at].transpose(2, 3, 0, 1).copy("C")
        for j in range(q):
            pivot, column = a[j, j].copy(), a[:, j].copy()
            log_determinant[at] += np.log(pivot)
            row = a[j] / pivot
            a -= column[:, None] * row
            a[j], a[:, j], a[j, j] = row, -column / pivot, 1 / pivot
        out[at] = a.transpose(2, 3, 0, 1)
    return out, log_determinant


def step(entries: Entries, m: Mixture, *, isotropic: bool) -> Mixture:
    """One EM step. Given labels and factors, a column is a weighted regression on them."""
    (k, p), q, own = m.centers.shape, m.n_factors, len(m.loadings)
    shares, total = np.zeros(k), 0.0
    s, t, seen = np.zeros((p, k)), np.zeros((p, k)), np.zeros((p, k))
    s_z, s_zz, t_z = np.zeros((p, k * q)), np.zeros((p, own * q * q)), np.zeros((p, own * q))
    second_moment = np.zeros((own, q, q))
    for part in entries:
        e = expect(part, m)
        total += float(part.weights @ e.evidence())
        r = e.posterior() * part.weights[:, None]
        shares += r.sum(axis=0)
        s += part.mask.T @ r
        t += part.values.T @ r
        if m.rates is not None:
            seen += part.seen.T @ r
        if q:
            n = len(r)
            rz = r[:, :, None] * e.scores
            if own == 1:
                zz = (rz.transpose(0, 2, 1) @ e.scores)[:, None]
                zz = zz + part.weights[:, None, None, None] * e.covariances
                linear = rz.sum(axis=1)
            else:
                zz = rz[:, :, :, None] * e.scores[:, :, None, :] + r[:, :, None, None] * e.covariances
                linear = rz.reshape(n, k * q)
            second_moment += zz.sum(axis=0)
            s_z += part.mask.T @ rz.reshape(n, k * q)
            s_zz += part.mask.T @ zz.reshape(n, own * q * q)
            t_z += part.values.T @ linear
    rates = None if m.rates is None else _rates(entries, seen, shares)
    s += PRIOR
    centers, loadings = (t / s).T, np.zeros((own, p, 0))
    explained = (centers.T * t).sum(axis=1)
    if q:
        cross, scaled = s_z.reshape(p, k, q), s_z.reshape(p, k, q) / s[:, :, None]
        left = s_zz.reshape(p, own, q, q) + SHRINK_LOADINGS * np.eye(q)
        right = t_z.reshape(p, own, q)
        if own == 1:
            left = left - np.einsum("plq,plr->pqr", cross, scaled)[:, None]
            right = right - np.einsum("plq,pl->pq", scaled, t)[:, None]
        else:
            left = left - cross[:, :, :, None] * scaled[:, :, None, :]
            right = right - scaled * t[:, :, None]
        slopes = np.linalg.solve(left, right[..., None])[..., 0]
        centers = ((t - (cross * slopes).sum(axis=2)) / s).T
        explained = (centers.T * t).sum(axis=1) + (slopes * t_z.reshape(p, own, q)).sum(axis=(1, 2))
        size = (shares if own > 1 else shares.sum(keepdims=True))[:, None, None]
        scale = np.linalg.cholesky(second_moment / np.maximum(size, 1e-9) + 1e-9 * np.eye(q))
        loadings = slopes.transpose(1, 0, 2) @ scale
    residual = np.maximum(entries.squares - explained, 0)
    variances = _variances(entries, residual, isotropic)
    return Mixture(shares / shares.sum(), centers, loadings, variances, total, rates)


def _rates(entries: Entries, seen: Floats, shares: Floats) -> Floats:
    """How often each cluster has an entry of each column, with one row of the whole table behind it."""
    overall = entries.seen_counts / max(entries.weight, 1e-300)
    rates = (seen + overall[:, None]) / (shares + 1)
    # The first column of a group speaks for all: what is as likely in all clusters says nothing.
    return np.where(entries.groups.first, np.clip(rates.T, SMALLEST_RATE, 1 - SMALLEST_RATE), 0.5)


def _variances(entries: Entries, residual: Floats, isotropic: bool) -> Floats:
    counts = np.maximum(entries.counts, 1e-300)
    if isotropic:
        variances = np.full(len(counts), residual.sum() / counts[entries.groups.first].sum())
    else:
        variances = residual / counts
    return np.maximum(variances, entries.floor)


def run(entries: Entries, m: Mixture, *, isotropic: bool, n_steps: int, tol: float) -> Mixture:
    """EM until a step gains less than `tol` of log-likelihood a row, at most `n_steps`."""
    before = -np.inf
    for _ in range(n_steps):
        m = step(entries, m, isotropic=isotropic)
        if m.log_likelihood - before < tol * entries.weight:
            break
        before = m.log_likelihood
    return m


def from_labels(entries: Entries, labels: Labels, k: int, *, isotropic: bool, gaps: bool = False) -> Mixture:
    """Shares, means and variances of a clustering, and with `gaps` its rates; no factors yet."""
    p = entries.n_columns
    s, t, seen, shares = np.zeros((p, k)), np.zeros((p, k)), np.zeros((p, k)), np.zeros(k)
    for part in entries:
        r = (labels[part.at][:, None] == np.arange(k)) * part.weights[:, None]
        shares += r.sum(axis=0)
        s += part.mask.T @ r
        t += part.values.T @ r
        seen += part.seen.T @ r
    centers = (t / np.maximum(s, PRIOR)).T
    residual = np.maximum(entries.squares - (centers.T * t).sum(axis=1), 0)
    rates = _rates(entries, seen, shares) if gaps else None
    shares = (shares + 1) / (shares.sum() + k)
    variances = _variances(entries, residual, isotropic)
    return Mixture(shares, centers, np.zeros((1, p, 0)), variances, rates=rates)


def with_factor(entries: Entries, m: Mixture) -> Mixture:
    """One more common factor, along what the residuals have most in common (power iteration)."""
    residuals = [_residuals(part, m) for part in entries]
    scale = 1 / np.sqrt(m.variances)
    direction = np.random.default_rng(0).normal(size=entries.n_columns)
    direction /= np.linalg.norm(direction)
    for _ in range(POWER_STEPS):
        new = np.zeros(entries.n_columns)
        for part, residual in zip(entries, residuals, strict=True):
            new += scale * (residual.T @ _scores(part, residual, scale, direction))
        direction = new / max(float(np.linalg.norm(new)), 1e-300)
    amount = sum(
        float(part.weights @ _scores(part, residual, scale, direction) ** 2)
        for part, residual in zip(entries, residuals, strict=True)
    )
    size = np.sqrt(max(amount / max(entries.weight, 1e-300), 1e-12))
    loading = (direction * size / scale)[None, :, None]
    return replace(m, loadings=np.concatenate([m.loadings, loading], axis=2), log_likelihood=-np.inf)


def with_factors(entries: Entries, m: Mixture, number: int) -> Mixture:
    """Several more common factors."""
    for _ in range(number):
        m = with_factor(entries, m)
    return m


def _scores(part: Part, residual: Any, scale: Floats, direction: Floats) -> Floats:
    return (residual @ (scale * direction)) / np.maximum(part.mask @ direction**2, 1e-12)


def _residuals(part: Part, m: Mixture) -> Any:
    """What the mixture leaves unexplained of the observed entries."""
    e = expect(part, m)
    r = e.posterior()
    if sparse.issparse(part.values):
        rows = np.repeat(np.arange(part.values.shape[0]), np.diff(part.values.indptr))
        return _like(part.values, part.values.data - _fitted(e, r, m, rows, part.values.indices))
    fitted = r @ m.centers + np.einsum("nlq,nl->nq", e.scores, r) @ m.loadings[0].T
    return part.values - part.mask * fitted


def _fitted(e: Expected, r: Floats, m: Mixture, rows: Positions, columns: Positions) -> Floats:
    """Expected values of some entries, given the observed ones."""
    values = np.einsum("el,el->e", r[rows], m.centers.T[columns])
    if m.n_factors:
        scores = r[:, :, None] * e.scores
        if len(m.loadings) == 1:
            values += np.einsum("eq,eq->e", scores.sum(axis=1)[rows], m.loadings[0][columns])
        else:
            values += np.einsum("elq,elq->e", scores[rows], m.loadings.transpose(1, 0, 2)[columns])
    return values


def predict_entries(entries: Entries, m: Mixture, rows: Positions, columns: Positions) -> Floats:
    """Expected values of entries that are not in the table, given those that are.

    `rows` must be sorted. In the units of the table.
    """
    predicted = np.zeros(len(rows))
    for part in entries:
        low, high = np.searchsorted(rows, [part.at.start, part.at.stop])
        if low < high:
            e = expect(part, m)
            inside = rows[low:high] - part.at.start, columns[low:high]
            predicted[low:high] = _fitted(e, e.posterior(), m, *inside)
    return predicted + entries.means[columns]


def posterior(entries: Entries, m: Mixture) -> Floats:
    """Probability of each cluster for each row (n, k); the shares where nothing was observed."""
    return np.vstack([expect(part, m).posterior() for part in entries])


def surprise_of_gaps(entries: Entries, m: Mixture) -> Floats:
    r"""How unexpected it is what each row lacks (n,).

    .. math:: -2 \sum_j \log \sum_l P(l \mid \text{row } i \text{ but for the gap in } j)\, P(o_{ij} \mid l)

    Each row is left out of the rates that it is judged by. Columns that all rows have, or none, say nothing.
    """
    assert m.rates is not None
    expected = [expect(part, m) for part in entries]
    p, k = entries.n_columns, len(m.shares)
    total, seen = np.zeros(k), np.zeros((p, k))
    for part, e in zip(entries, expected, strict=True):
        r = e.posterior() * part.weights[:, None]
        total += r.sum(axis=0)
        seen += part.seen.T @ r
    overall = entries.seen_counts / max(entries.weight, 1e-300)
    columns = np.flatnonzero((overall > 0) & (overall < 1) & entries.groups.first)
    out = np.zeros(sum(len(part.weights) for part in entries))
    for part, e in zip(entries, expected, strict=True):
        p_own = e.posterior()
        r = p_own * part.weights[:, None]
        per = p_own / (total - r + 1)
        for start in range(0, len(columns), COLUMNS_AT_ONCE):
            some = columns[start : start + COLUMNS_AT_ONCE]
            here = part.seen[:, some]
            here = here.toarray() if sparse.issparse(here) else here
            # Without the gap of a column, the posterior is what it is with it, over how likely the gap was.
            seen_there, rate = seen[some].T + overall[some], m.rates[:, some]
            if_seen = (per @ (seen_there / rate) - (per * r) @ (1 / rate)) / (p_own @ (1 / rate))
            missing = p_own @ (1 / (1 - rate))
            if_missing = 1 - per @ (seen_there / (1 - rate)) / missing
            chance = np.where(here, if_seen, if_missing)
            out[part.at] -= 2 * np.log(np.maximum(chance, SMALLEST_RATE)).sum(axis=1)
    return out
