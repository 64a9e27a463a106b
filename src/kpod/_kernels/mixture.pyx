# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""EM steps of Gaussian mixtures over observed entries: posteriors, likelihoods and the sums that new parameters need.

Sums are of deviations from the means that the step began with, so that nothing cancels near convergence. What is
added up belongs to a range of rows; whoever merges ranges does so in their order, and gets the same bits again.
"""

from libc.math cimport M_PI, log
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from kpod._kernels.rows cimport Rows, Workspace, entries_of, real, weight_of

from kpod._kernels.panel import aligned_zeros

cdef extern from "memory.h" nogil:
    void* allocate_lines(size_t) noexcept
    void free_lines(void*) noexcept

cdef extern from "covariances.h" nogil:
    struct covariance_model:
        const double* means
        const double* covariances
        const double* shares
        Py_ssize_t k
        Py_ssize_t p
        Py_ssize_t n_matrices
    struct pattern:
        const int32_t* observed
        const int32_t* missing
        Py_ssize_t m
        Py_ssize_t n_missing
        double* cholesky
        double* slopes
        double* rest
        double* log_determinant
    int prepare_pattern(const covariance_model*, const pattern*, int) noexcept
    double covariance_row(
        const double*, int, const covariance_model*, const pattern*, double*, double*, double*
    ) noexcept
    void add_covariance_row(
        double, const covariance_model*, const pattern*, const double*, const double*, double*, double*, double*,
        double*, double*
    ) noexcept
    void add_rest(const covariance_model*, const pattern*, double*, double*) noexcept

FACTORS_AT_MOST = MOST_FACTORS


def lanes_for(Py_ssize_t k):
    """Places for k clusters side by side."""
    return (k + 3) // 4 * 4


cdef void fill_terms(
    const double* means, const double* variances, const double* loadings, const double* offsets, Py_ssize_t k,
    Py_ssize_t p, int q, Py_ssize_t L, double* out
) noexcept nogil:
    """The terms of `factor_model` (p, terms, L), places beyond cluster k untouched; offsets may be NULL."""
    cdef Py_ssize_t cluster, j
    cdef int i, c, at, n = FACTOR_TERMS(q)
    cdef double precision
    cdef const double* loading
    cdef double* to
    for cluster in range(k):
        for j in range(p):
            to = out + j * n * L + cluster
            precision = 1 / variances[cluster * p + j]
            to[0] = means[cluster * p + j]
            to[L] = precision
            to[2 * L] = log(2 * M_PI * variances[cluster * p + j])
            if offsets != NULL:
                to[2 * L] += 2 * offsets[cluster * p + j]
            loading = loadings + (cluster * p + j) * q
            at = 3 + q
            for i in range(q):
                to[(3 + i) * L] = loading[i] * precision
                for c in range(i + 1):
                    to[at * L] = loading[i] * loading[c] * precision
                    at += 1


cdef class Factors:
    """Clusters whose covariances are low rank plus diagonal, as `expect` takes them.

    Parameters
    ----------
    log_shares : float64 array (k,)
    means, variances : float64 arrays (k, p)
    loadings : float64 array (k, p, q)
    offsets : float64 array (k, p), taken off the log density of a row for each of its observed entries, or None
    """

    cdef readonly Py_ssize_t k, n_columns, lanes
    cdef readonly int q
    cdef object arrays
    cdef factor_model model

    def __cinit__(self, log_shares, means, variances, loadings, offsets=None):
        self.k, self.n_columns = np.shape(means)
        self.q = np.shape(loadings)[2]
        if self.q > MOST_FACTORS:
            raise ValueError(f"{self.q} factors are more than {MOST_FACTORS}.")
        cdef Py_ssize_t k = self.k, p = self.n_columns
        cdef int q = self.q
        if (
            np.shape(log_shares) != (k,) or np.shape(variances) != (k, p) or np.shape(loadings)[:2] != (k, p)
            or (offsets is not None and np.shape(offsets) != (k, p)) or not k or not p
        ):
            raise ValueError("shares, means, variances and loadings do not fit together")
        self.lanes = lanes_for(k)
        terms = aligned_zeros((p, FACTOR_TERMS(q), self.lanes), np.float64)
        shares = aligned_zeros((self.lanes,), np.float64)
        shares[:k] = log_shares
        shares[k:] = -np.inf
        cdef double[:, :, ::1] out = terms
        cdef const double[::1] listed = shares
        cdef const double[:, ::1] mean = np.ascontiguousarray(means, np.float64)
        cdef const double[:, ::1] variance = np.ascontiguousarray(variances, np.float64)
        cdef const double[:, :, ::1] loading = np.ascontiguousarray(loadings, np.float64)
        cdef const double[:, ::1] off
        cdef const double* first_offset = NULL
        if offsets is not None:
            off = np.ascontiguousarray(offsets, np.float64)
            first_offset = &off[0, 0]
        fill_terms(&mean[0, 0], &variance[0, 0], &loading[0, 0, 0] if q else NULL, first_offset, k, p, q, self.lanes,
                   &out[0, 0, 0])
        self.arrays = (terms, shares)
        self.model.terms, self.model.shares = &out[0, 0, 0], &listed[0]
        self.model.k, self.model.lanes, self.model.q = k, self.lanes, q

    def empty_sums(self):
        """Sums of no row: (p, 3 + 2 q + q (q + 1) / 2, lanes) by column, (1 + q (q + 1) / 2, lanes) by cluster."""
        return (
            aligned_zeros((self.n_columns, FACTOR_SUMS(self.q), self.lanes), np.float64),
            aligned_zeros((CLUSTER_SUMS(self.q), self.lanes), np.float64),
        )


def expect_factors(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Factors model,
    const int32_t[::1] labels,     # IN (n_rows,) the cluster each row is in for certain, -1 for none; or None
    double[:, :, ::1] sums,        # INOUT as `empty_sums` makes them; or None
    double[:, ::1] cluster_sums,   # INOUT likewise
    double[:, ::1] posterior,      # OUT (stop - start, k); or None
    double[::1] evidence,          # OUT (stop - start,) log-likelihood of each row; or None
    double[:, :, ::1] scores,      # OUT (stop - start, q, k) means of the factors; or None
    double[:, :, ::1] covariances,  # OUT (stop - start, q (q + 1) / 2, k) likewise
    Workspace space,
):
    """The E step of some rows; returns their weighted log-likelihood. Rows with label -1 count for nothing."""
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    cdef Py_ssize_t n = stop - start, k = model.k, q = model.q, T = TRIANGLE(model.q), L = model.lanes
    if (
        rows.n_columns != model.n_columns
        or (labels is not None and labels.shape[0] != rows.n_rows)
        or (sums is not None and (
            sums.shape[0] != rows.n_columns or sums.shape[1] != FACTOR_SUMS(q) or sums.shape[2] != L
            or cluster_sums is None or cluster_sums.shape[0] != CLUSTER_SUMS(q) or cluster_sums.shape[1] != L
            or <size_t> &sums[0, 0, 0] % 32 or <size_t> &cluster_sums[0, 0] % 32
        ))
        or (posterior is not None and (posterior.shape[0] != n or posterior.shape[1] != k))
        or (evidence is not None and evidence.shape[0] != n)
        or (scores is not None and (
            scores.shape[0] != n or scores.shape[1] != q or scores.shape[2] != k
            or covariances is None or covariances.shape[0] != n or covariances.shape[1] != T
            or covariances.shape[2] != k
        ))
    ):
        raise ValueError("rows, model and results do not fit together")
    if not n:
        return 0.0
    cdef factor_result to
    memset(&to, 0, sizeof(to))
    if sums is not None:
        to.sums, to.cluster_sums = &sums[0, 0, 0], &cluster_sums[0, 0]
    to.room = <double*> allocate_lines((((8 + 4 * q + 3 * T) * L * sizeof(double)) // 64 + 1) * 64)
    cdef double* widened = <double*> malloc((rows.longest_row + 1) * sizeof(double))
    cdef double total = 0
    try:
        if not to.room or not widened:
            raise MemoryError
        with nogil:
            total = add_rows(
                rows, start, stop, &model.model, NULL if labels is None else &labels[0], to,
                NULL if posterior is None else &posterior[0, 0], NULL if evidence is None else &evidence[0],
                NULL if scores is None or not q else &scores[0, 0, 0],
                NULL if scores is None or not q else &covariances[0, 0, 0], space, widened,
            )
    finally:
        free_lines(to.room)
        free(widened)
    return total


cdef double add_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, const factor_model* model, const int32_t* labels, factor_result to,
    double* posterior, double* evidence, double* scores, double* covariances, Workspace space, double* widened
) noexcept nogil:
    """The E step of some rows, and their weighted log-likelihood; what is not wanted may be NULL."""
    if rows.is_double:
        return factor_rows[double](rows, start, stop, model, labels, to, posterior, evidence, scores, covariances,
                                   space, widened, NULL)
    return factor_rows[float](rows, start, stop, model, labels, to, posterior, evidence, scores, covariances,
                              space, widened, NULL)


cdef double factor_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, const factor_model* model, const int32_t* labels, factor_result to,
    double* posterior, double* evidence, double* scores, double* covariances, Workspace space, double* widened,
    const real* like
) noexcept nogil:
    cdef Py_ssize_t i, e, m, k = model.k, q = model.q, T = TRIANGLE(model.q)
    cdef const int32_t* columns
    cdef const real* values
    cdef double weight, found, total = 0
    cdef int label
    for i in range(start, stop):
        m = entries_of(rows, i, space, &columns, &values)
        for e in range(m):
            widened[e] = values[e]
        label = labels[i] if labels != NULL else -1
        weight = 0 if labels != NULL and label < 0 else weight_of(rows, i)
        if posterior != NULL:
            to.posterior = posterior + (i - start) * k
        if scores != NULL:
            to.scores, to.covariances = scores + (i - start) * q * k, covariances + (i - start) * T * k
        found = factor_row(columns, widened, m, weight, label, model, &to)
        if evidence != NULL:
            evidence[i - start] = found
        total += weight * found
    return total


cdef class Covariances:
    """Clusters with covariance matrices written out, as `expect_covariances` takes them.

    Parameters
    ----------
    log_shares : float64 array (k,)
    means : float64 array (k, p)
    covariances : float64 array (1 or k, p, p), positive definite
    offsets : float64 array (k, p), taken off the log density of a row for each of its observed entries, or None
    """

    cdef readonly Py_ssize_t k, n_columns, n_matrices
    cdef object arrays
    cdef covariance_model model
    cdef const double* offsets

    def __cinit__(self, log_shares, means, covariances, offsets=None):
        cdef const double[::1] shares = np.ascontiguousarray(log_shares, np.float64)
        cdef const double[:, ::1] mean = np.ascontiguousarray(means, np.float64)
        cdef const double[:, :, ::1] matrices = np.ascontiguousarray(covariances, np.float64)
        cdef const double[:, ::1] off
        self.k, self.n_columns, self.n_matrices = mean.shape[0], mean.shape[1], matrices.shape[0]
        if (
            shares.shape[0] != self.k or matrices.shape[0] not in (1, self.k) or not self.k or not self.n_columns
            or matrices.shape[1] != self.n_columns or matrices.shape[2] != self.n_columns
        ):
            raise ValueError("shares, means and covariances do not fit together")
        self.arrays = (shares, mean, matrices)
        self.offsets = NULL
        if offsets is not None:
            off = np.ascontiguousarray(offsets, np.float64)
            if off.shape[0] != self.k or off.shape[1] != self.n_columns:
                raise ValueError("an offset for every cluster and column is needed")
            self.arrays += (off,)
            self.offsets = &off[0, 0]
        self.model.means, self.model.covariances, self.model.shares = &mean[0, 0], &matrices[0, 0, 0], &shares[0]
        self.model.k, self.model.p, self.model.n_matrices = self.k, self.n_columns, self.n_matrices


def observed_bits(Rows rows, Py_ssize_t start, Py_ssize_t stop, uint8_t[:, ::1] bits, Workspace space):
    """Which columns some rows observe, a bit each (stop - start, (p + 7) / 8), zeros before."""
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    if bits.shape[0] != stop - start or bits.shape[1] != (rows.n_columns + 7) // 8:
        raise ValueError("bits of another shape than the rows")
    if rows.is_double:
        set_bits[double](rows, start, stop, bits, space, NULL)
    else:
        set_bits[float](rows, start, stop, bits, space, NULL)


cdef void set_bits(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, uint8_t[:, ::1] bits, Workspace space, const real* like
) noexcept:
    cdef Py_ssize_t i, e, m
    cdef const int32_t* columns
    cdef const real* values
    with nogil:
        for i in range(start, stop):
            m = entries_of(rows, i, space, &columns, &values)
            for e in range(m):
                bits[i - start, columns[e] >> 3] |= <uint8_t> (1 << (columns[e] & 7))


def expect_covariances(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Covariances model,
    const Py_ssize_t[::1] order,   # IN (stop - start,) the rows less `start`, those of a pattern one after the other
    const Py_ssize_t[::1] begins,  # IN (n_patterns + 1,) where each pattern begins in that order
    const int32_t[::1] labels,     # IN (n_rows,) the cluster each row is in for certain, -1 for none; or None
    double[::1] weights,           # INOUT (k,) sums: posteriors; or None for no sums
    double[:, ::1] first,          # INOUT (k, p) deviations from the means, completed
    double[:, :, ::1] second,      # INOUT (1 or k, p, p) their products, in the upper triangle
    double[:, ::1] seen,           # INOUT (k, p) posteriors of the rows that observe a column
    double[:, ::1] posterior,      # OUT (stop - start, k); or None
    double[::1] evidence,          # OUT (stop - start,) log-likelihood of each row; or None
    Workspace space,
):
    """The E step of some rows; returns their weighted log-likelihood. Rows with label -1 count for nothing."""
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    cdef Py_ssize_t n = stop - start, k = model.k, p = model.n_columns, g, n_patterns = begins.shape[0] - 1
    cdef bint adds = weights is not None
    if (
        rows.n_columns != p or order.shape[0] != n or n_patterns < 0 or begins[0] != 0 or begins[n_patterns] != n
        or (labels is not None and labels.shape[0] != rows.n_rows)
        or (adds and (
            weights.shape[0] != k or first is None or first.shape[0] != k or first.shape[1] != p or second is None
            or second.shape[0] != model.n_matrices or second.shape[1] != p or second.shape[2] != p
            or seen is None or seen.shape[0] != k or seen.shape[1] != p
        ))
        or (posterior is not None and (posterior.shape[0] != n or posterior.shape[1] != k))
        or (evidence is not None and evidence.shape[0] != n)
    ):
        raise ValueError("rows, model and results do not fit together")
    for g in range(n_patterns):
        if begins[g] > begins[g + 1]:
            raise ValueError("patterns must begin one after the other")
    for g in range(n):
        if not 0 <= order[g] < n:
            raise IndexError(f"row {order[g]} of {n}")
    cdef size_t square = model.n_matrices * p * p
    cdef double* room = <double*> calloc(3 * square + model.n_matrices * 2 + k * p + k + 3 * p + k, sizeof(double))
    cdef int32_t* lists = <int32_t*> malloc(2 * p * sizeof(int32_t))
    cdef double total = 0
    cdef bint good = True
    try:
        if not room or not lists:
            raise MemoryError
        if rows.is_double:
            total = covariance_rows[double](rows, start, model, order, begins, labels, weights, first, second, seen,
                                            posterior, evidence, space, room, lists, &good, NULL)
        else:
            total = covariance_rows[float](rows, start, model, order, begins, labels, weights, first, second, seen,
                                           posterior, evidence, space, room, lists, &good, NULL)
    finally:
        free(room)
        free(lists)
    if not good:
        raise ArithmeticError("a covariance matrix is not positive definite")
    return total


cdef double covariance_rows(
    Rows rows, Py_ssize_t start, Covariances model, const Py_ssize_t[::1] order, const Py_ssize_t[::1] begins,
    const int32_t[::1] labels, double[::1] weights, double[:, ::1] first, double[:, :, ::1] second,
    double[:, ::1] seen, double[:, ::1] posterior, double[::1] evidence, Workspace space, double* room,
    int32_t* lists, bint* good, const real* like
) noexcept:
    cdef Py_ssize_t g, at, i, e, j, c, m, k = model.k, p = model.n_columns, n_patterns = begins.shape[0] - 1
    cdef size_t square = model.n_matrices * p * p
    cdef const int32_t* columns
    cdef const real* values
    cdef double weight, found, total = 0
    cdef int label
    cdef bint has_labels = labels is not None, has_posterior = posterior is not None
    cdef bint has_evidence = evidence is not None, adds = weights is not None
    cdef pattern of
    cdef covariance_model here = model.model
    of.cholesky, of.slopes, of.rest = room, room + square, room + 2 * square
    of.log_determinant = room + 3 * square
    cdef double* shared = of.log_determinant + model.n_matrices
    cdef double* deviations = shared + model.n_matrices
    cdef double* r = deviations + k * p
    cdef double* shares = r + k
    cdef double* widened = shares + k
    cdef double* spare = widened + p
    cdef int32_t* missing = lists + p
    of.observed, of.missing = lists, missing
    here.shares = shares
    with nogil:
        for g in range(n_patterns):
            for at in range(begins[g], begins[g + 1]):
                i = start + order[at]
                m = entries_of(rows, i, space, &columns, &values)
                if at == begins[g]:
                    of.m, of.n_missing, e = m, p - m, 0
                    for j in range(p):
                        if e < m and columns[e] == j:
                            lists[e] = j
                            e += 1
                        else:
                            missing[j - e] = j
                    if e < m or not prepare_pattern(&here, &of, adds):
                        good[0] = False
                        return 0
                    for c in range(k):
                        shares[c] = model.model.shares[c]
                        if model.offsets != NULL:
                            for e in range(m):
                                shares[c] -= model.offsets[c * p + lists[e]]
                elif m != of.m:
                    good[0] = False
                    return 0
                for e in range(m):
                    widened[e] = values[e]
                label = labels[i] if has_labels else -1
                weight = 0 if has_labels and label < 0 else weight_of(rows, i)
                found = covariance_row(widened, label, &here, &of, deviations, r, spare)
                if has_posterior:
                    for c in range(k):
                        posterior[order[at], c] = r[c]
                if has_evidence:
                    evidence[order[at]] = found
                total += weight * found
                if adds and weight > 0:
                    for c in range(k):
                        for e in range(m):
                            seen[c, lists[e]] += weight * r[c]
                    add_covariance_row(
                        weight, &here, &of, deviations, r, &weights[0], &first[0, 0], &second[0, 0, 0], shared, spare
                    )
            if adds:
                add_rest(&here, &of, shared, &second[0, 0, 0])
    return total
