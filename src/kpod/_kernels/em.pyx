# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""EM of a mixture with factors in one call: E steps over the rows of one range, each followed by its M step.

For tables so small that a step takes no longer than the calls it is made of; threads with a table each do not wait
for each other.
"""

from libc.math cimport INFINITY, M_PI, log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from kpod._kernels.m_step cimport maximise, rescale, room_of
from kpod._kernels.mixture cimport (
    CLUSTER_SUMS, FACTOR_SUMS, FACTOR_TERMS, MOST_FACTORS, TRIANGLE, add_rows, factor_model, factor_result, fill_terms
)
from kpod._kernels.rows cimport Rows, Workspace

from kpod._kernels.mixture import lanes_for
from kpod._kernels.panel import aligned_zeros

cdef extern from "memory.h" nogil:
    void* allocate_lines(size_t) noexcept
    void free_lines(void*) noexcept


cdef class Bounds:
    """What the parameters of a mixture with factors are bound by.

    Parameters
    ----------
    own_loadings, own_variances, is_round, prior_rows, prior, floor, fallback, silent : as in `maximise_factors`
    loading_rows : without correlation, behind every loading
    columns_per_entry, more_entries : see `Constraints`
    observed : float64 array (p,), the share of rows that observe a column, 0.5 where that is not informative; or None
    shadowed : intp array, the column that each of the last columns stands for
    smallest_rate : of a cluster that observes a column
    """

    cdef bint own_loadings, own_variances, is_round
    cdef double prior_rows, loading_rows, columns_per_entry, more_entries, smallest_rate
    cdef Py_ssize_t n_columns
    cdef const double[::1] prior, floor, fallback, observed
    cdef const unsigned char[::1] silent
    cdef const Py_ssize_t[::1] shadowed

    def __cinit__(
        self, bint own_loadings, bint own_variances, bint is_round, double prior_rows, const double[::1] prior,
        const double[::1] floor, const double[::1] fallback, const unsigned char[::1] silent, double loading_rows,
        double columns_per_entry, double more_entries, const double[::1] observed, const Py_ssize_t[::1] shadowed,
        double smallest_rate,
    ):
        cdef Py_ssize_t p = floor.shape[0], i
        if (
            prior.shape[0] != p or fallback.shape[0] != p or silent.shape[0] != p or shadowed.shape[0] > p
            or (observed is not None and observed.shape[0] != p)
        ):
            raise ValueError("constraints do not fit together")
        for i in range(shadowed.shape[0]):
            if not 0 <= shadowed[i] < p - shadowed.shape[0]:
                raise IndexError("a column of shadows stands for a column that there is not")
        self.own_loadings, self.own_variances, self.is_round = own_loadings, own_variances, is_round
        self.prior_rows, self.loading_rows, self.smallest_rate = prior_rows, loading_rows, smallest_rate
        self.columns_per_entry, self.more_entries = columns_per_entry, more_entries
        self.prior, self.floor, self.fallback, self.silent = prior, floor, fallback, silent
        self.observed, self.shadowed, self.n_columns = observed, shadowed, p


def run_factors(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Bounds within,
    double[::1] shares,          # INOUT (k,)
    double[:, ::1] means,        # INOUT (k, p)
    double[:, ::1] variances,    # INOUT (k, p)
    double[:, :, ::1] loadings,  # INOUT (k, p, q)
    double[:, ::1] rates,        # INOUT (k, p) how often clusters observe columns; or None where gaps do not count
    bint has_rates,              # whether there are any before the first M step
    double before,               # the objective of an earlier step, infinite if there was none
    double little,               # a gain that ends it
    bint is_last,                # whether the last E step is the last of all, with no M step behind it
    double[::1] trace,           # OUT (n,) the objective of each E step
    Workspace space,
):
    """Up to n steps; returns how many, the log-likelihood of the last, and whether it gained no more than `little`."""
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    cdef Py_ssize_t k = means.shape[0], p = means.shape[1], L, n = k * p, t = 0, j, c
    cdef int q = loadings.shape[2], T, i
    if (
        rows.n_columns != p or within.n_columns != p or not k or not p or start == stop or q > MOST_FACTORS
        or shares.shape[0] != k or variances.shape[0] != k or variances.shape[1] != p
        or loadings.shape[0] != k or loadings.shape[1] != p
        or (rates is None) != (within.observed is None)
        or (rates is not None and (rates.shape[0] != k or rates.shape[1] != p))
        or not trace.shape[0]
    ):
        raise ValueError("rows, parameters and constraints do not fit together")
    L, T = lanes_for(k), TRIANGLE(q)
    cdef double[:, :, ::1] terms = aligned_zeros((p, FACTOR_TERMS(q), L), np.float64)
    cdef double[::1] log_shares = aligned_zeros((L,), np.float64)
    cdef double[:, :, ::1] sums = aligned_zeros((p, FACTOR_SUMS(q), L), np.float64)
    cdef double[:, ::1] cluster_sums = aligned_zeros((CLUSTER_SUMS(q), L), np.float64)
    cdef double[:, ::1] old_means = np.empty((k, p)), old_variances = np.empty((k, p)), offsets = np.empty((k, p))
    cdef factor_model model
    cdef factor_result to
    model.terms, model.shares, model.k, model.lanes, model.q = &terms[0, 0, 0], &log_shares[0], k, L, q
    memset(&to, 0, sizeof(to))
    to.sums, to.cluster_sums = &sums[0, 0, 0], &cluster_sums[0, 0]
    to.room = <double*> allocate_lines((((8 + 4 * q + 3 * T) * L * sizeof(double)) // 64 + 1) * 64)
    cdef double* widened = <double*> malloc((rows.longest_row + 1) * sizeof(double))
    cdef double* room = <double*> malloc(room_of(k, q) * sizeof(double))
    cdef double* of_loadings = &loadings[0, 0, 0] if q else NULL
    cdef double likelihood = 0
    cdef bint converged = False
    try:
        if not to.room or not widened or not room:
            raise MemoryError
        with nogil:
            while True:
                fill_shares(within, shares, rates, has_rates, &log_shares[0], &offsets[0, 0])
                fill_terms(&means[0, 0], &variances[0, 0], of_loadings, &offsets[0, 0] if has_rates else NULL, k, p, q,
                           L, &terms[0, 0, 0])
                memset(&sums[0, 0, 0], 0, p * FACTOR_SUMS(q) * L * sizeof(double))
                memset(&cluster_sums[0, 0], 0, CLUSTER_SUMS(q) * L * sizeof(double))
                likelihood = add_rows(rows, start, stop, &model, NULL, to, NULL, NULL, NULL, NULL, space, widened)
                trace[t] = likelihood + log_density(within, variances, rates, has_rates)
                converged = before < INFINITY and trace[t] - before <= little
                before = trace[t]
                t += 1
                if converged or (is_last and t == trace.shape[0]):
                    break
                for i in range(q):
                    for j in range(p):
                        for c in range(k if within.own_loadings else 1):
                            sums[j, 3 + 2 * q + TRIANGLE(i) + i, c] += within.loading_rows
                memcpy(&old_means[0, 0], &means[0, 0], n * sizeof(double))
                memcpy(&old_variances[0, 0], &variances[0, 0], n * sizeof(double))
                maximise(
                    sums, old_means, old_variances, within.own_loadings, within.own_variances, within.is_round,
                    within.prior_rows, within.prior, within.floor, within.fallback, within.silent, means, variances,
                    loadings, room,
                )
                if q:
                    rescale(cluster_sums, k, within.own_loadings, loadings, room)
                if within.is_round:
                    for c in range(k):
                        for j in range(p):
                            variances[c, j] *= within.columns_per_entry
                if within.observed is not None:
                    new_rates(within, sums, cluster_sums, rates)
                    has_rates = True
                new_shares(cluster_sums, shares)
                if t == trace.shape[0]:
                    break
    finally:
        free_lines(to.room)
        free(widened)
        free(room)
    return t, likelihood, converged


cdef void new_shares(const double[:, ::1] cluster_sums, double[::1] shares) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t c
    for c in range(shares.shape[0]):
        total += cluster_sums[0, c]
    for c in range(shares.shape[0]):
        shares[c] = cluster_sums[0, c] / max(total, 1e-300)


cdef void new_rates(
    Bounds within, const double[:, :, ::1] sums, const double[:, ::1] cluster_sums, double[:, ::1] rates
) noexcept nogil:
    """How often clusters observe a column, or observe it where its value is hidden."""
    cdef Py_ssize_t k = rates.shape[0], p = rates.shape[1], n = within.shadowed.shape[0], c, j, at
    cdef double rate, seen
    for c in range(k):
        for j in range(p):
            rates[c, j] = sums[j, 0, c]
        for at in range(n):
            seen = rates[c, within.shadowed[at]] + rates[c, p - n + at]
            rates[c, within.shadowed[at]] = rates[c, p - n + at] = seen
        for j in range(p):
            rate = (rates[c, j] + within.observed[j]) / (cluster_sums[0, c] + 1)
            rate = min(max(rate, within.smallest_rate), 1 - within.smallest_rate)
            rates[c, j] = 0.5 if within.observed[j] == 0.5 else rate


cdef void fill_shares(
    Bounds within, const double[::1] shares, const double[:, ::1] rates, bint has_rates, double* logs, double* offsets
) noexcept nogil:
    """Log densities of a row of which nothing is observed, and what each observed entry takes off."""
    cdef Py_ssize_t k = shares.shape[0], p = within.n_columns, c, j
    for c in range(k):
        logs[c] = log(shares[c])
        for j in range(p if has_rates else 0):
            offsets[c * p + j] = log(1 / rates[c, j] - 1)
            if rates[0, j] != 0.5 and j < p - within.shadowed.shape[0]:
                logs[c] += log(1 - rates[c, j])
    for c in range(k, (k + 3) // 4 * 4):
        logs[c] = -INFINITY


cdef double log_density(
    Bounds within, const double[:, ::1] variances, const double[:, ::1] rates, bint has_rates
) noexcept nogil:
    """What is added to the log-likelihood: see `Constraints.log_density`."""
    cdef Py_ssize_t k = variances.shape[0], p = variances.shape[1], c, j
    cdef double of_prior = 0, of_rates = 0, found = 0
    if within.prior_rows:
        for c in range(k):
            for j in range(p):
                of_prior += log(variances[c, j]) + within.prior[j] / variances[c, j]
        found -= 0.5 * within.prior_rows * of_prior
    if has_rates:
        for c in range(k):
            for j in range(p - within.shadowed.shape[0]):
                of_rates += log(rates[c, j]) * within.observed[j] + log(1 - rates[c, j]) * (1 - within.observed[j])
        found += of_rates
    if within.more_entries:
        found += 0.5 * within.more_entries * log(2 * M_PI * variances[0, 0])
    return found
