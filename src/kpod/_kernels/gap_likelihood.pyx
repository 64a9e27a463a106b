# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""The likelihood of which entries are missing: `GapObjective` has the formulas, this computes them.

Step by step or in one call, a fit has the same bits because both come here.
"""

from libc.math cimport log, log1p, sqrt

import numpy as np

from kpod._kernels.rows cimport Sums


cdef inline double h(double u) noexcept nogil:
    """The function u ln u."""
    return u * log(u) if u > 0 else 0


cdef inline double weight_in(Sums totals, Py_ssize_t c) noexcept nogil:
    """The weight of the rows of a cluster, its parts from fine to coarse."""
    cdef double total = 0
    cdef int level
    for level in range(totals.kept.n_count_levels - 1, -1, -1):
        total += totals.kept_weights[level * totals.k + c]
    return total


cdef inline double count_in(Sums totals, Py_ssize_t at) noexcept nogil:
    """The weight of those that observe a column; `at` is cluster * p + column."""
    cdef double total = 0
    cdef int level
    for level in range(totals.kept.n_count_levels - 1, -1, -1):
        total += totals.kept.counts[level * totals.kept.step + at]
    return total


cdef class GapLikelihood:
    """Of k clusters of a table.

    Parameters
    ----------
    observed : float64 array (p,), the share of each column that is observed; 0 or 1 where its gaps say nothing
    k : int
    weight : of all rows
    degrees : of freedom of the observed entries
    floor : the least variance of an entry within its cluster
    """

    def __init__(self, observed, Py_ssize_t k, double weight, double degrees, double floor):
        cdef const double[::1] shares = np.array(observed, np.float64)
        cdef Py_ssize_t j
        if not shares.shape[0] or k < 1:
            raise ValueError("a likelihood of no cluster or no column")
        self.arrays, self.observed = shares, &shares[0]
        self.k, self.n_columns = k, shares.shape[0]
        self.weight, self.degrees, self.floor = weight, degrees, floor
        for j in range(self.n_columns):
            self.n_informative += 0 < shares[j] < 1

    cdef int check(self, Sums totals) except -1:
        if totals.k != self.k or totals.n_columns != self.n_columns:
            raise ValueError("totals of another shape than the likelihood")
        return 0

    cdef double variance_of(self, double loss) noexcept nogil:
        return max(loss / self.degrees, self.floor)

    def variance(self, double loss):
        """The variance of an entry within its cluster."""
        return self.variance_of(loss)

    cdef void rates_of(self, Sums totals, double* rates, double* shares) noexcept nogil:
        cdef Py_ssize_t c, j, p = self.n_columns
        cdef double weight, q, rate
        for c in range(self.k):
            weight = weight_in(totals, c)
            shares[c] = (weight + 1) / (self.weight + self.k)
            for j in range(p):
                q = self.observed[j]
                rate = 1 - q
                if 0 < q < 1:
                    rate = (weight - count_in(totals, c * p + j) + (1 - q)) / (weight + 1)
                rates[c * p + j] = min(max(rate, 0.0), 1.0)

    def rates(self, Sums totals):
        """The share of each cluster that lacks each column (k, p), and of all rows in each cluster (k,)."""
        self.check(totals)
        rates, shares = np.empty((self.k, self.n_columns)), np.empty(self.k)
        cdef double[:, ::1] by_column = rates
        cdef double[::1] by_cluster = shares
        self.rates_of(totals, &by_column[0, 0], &by_cluster[0])
        return rates, shares

    cdef double value_of(self, Sums totals, double loss) noexcept nogil:
        cdef Py_ssize_t c, j, p = self.n_columns
        cdef double weight, count, q, variance = self.variance_of(loss), of_cluster, likelihood = 0
        for c in range(self.k):
            weight = weight_in(totals, c)
            of_cluster = (1 - self.n_informative) * h(weight + 1)
            for j in range(p):
                q = self.observed[j]
                if 0 < q < 1:
                    count = count_in(totals, c * p + j)
                    of_cluster += h(count + q) + h(weight - count + (1 - q))
            likelihood += of_cluster
        return loss / variance + self.degrees * log(variance) - 2 * likelihood

    def value(self, Sums totals, double loss):
        """The objective F, where the loss is that of the best centers of the totals."""
        self.check(totals)
        return self.value_of(totals, loss)


cdef void terms_of(
    const double* rates, const double* shares, double variance, Py_ssize_t k, Py_ssize_t p,
    double* offsets, double* terms, double* roots
) noexcept nogil:
    """What `terms` does; `roots` has those of observed entries, of missing ones, and of the clusters' shares."""
    cdef Py_ssize_t c, j, at, n = k * p
    cdef double worth = 2 * variance, observed, missing, share
    cdef bint informative
    for c in range(k):
        offsets[c] = 0
    for j in range(p):
        informative = True
        for c in range(k):
            informative = informative and 0 < rates[c * p + j] < 1
        for c in range(k):
            at = c * p + j
            observed, missing = 0, 0
            if informative:
                observed, missing = -worth * log1p(-rates[at]), -worth * log(rates[at])
            offsets[c] += missing
            terms[at] = observed - missing
            roots[at], roots[n + at] = sqrt(observed), sqrt(missing)
    for c in range(k):
        share = -worth * log(min(shares[c], 1.0))  # of one cluster, rounding makes it more
        offsets[c] += share
        for j in range(p):
            roots[2 * n + c * p + j] = sqrt(share)


def terms(const double[:, ::1] rates, const double[::1] shares, double variance):
    """Offsets (k,) and terms (k, p) of a panel, and the roots (3, k, p) of what they are sums of.

    Gaps of a column say nothing where they are certain, or certain not to be, in a cluster.
    """
    cdef Py_ssize_t k = rates.shape[0], p = rates.shape[1]
    if shares.shape[0] != k or not k or not p:
        raise ValueError("rates and shares do not fit together")
    offsets, by_entry, roots = np.empty(k), np.empty((k, p)), np.empty((3, k, p))
    cdef double[::1] into_offsets = offsets
    cdef double[:, ::1] into_terms = by_entry
    cdef double[:, :, ::1] into_roots = roots
    terms_of(&rates[0, 0], &shares[0], variance, k, p, &into_offsets[0], &into_terms[0, 0], &into_roots[0, 0, 0])
    return offsets, by_entry, roots


cdef void roots_moved(
    const double* before, const double* after, Py_ssize_t k, Py_ssize_t p, double* moved
) noexcept nogil:
    cdef Py_ssize_t c, j, at, n = k * p
    cdef double observed, missing, share, total
    for c in range(k):
        total = 0
        for j in range(p):
            at = c * p + j
            observed, missing = after[at] - before[at], after[n + at] - before[n + at]
            total += max(observed * observed, missing * missing)
        share = after[2 * n + c * p] - before[2 * n + c * p]
        moved[c] = total + share * share


def distance_moved(const double[:, :, ::1] before, const double[:, :, ::1] after):
    """The square of how far roots moved (k,): of each column's, the one that moved farther."""
    cdef Py_ssize_t k = after.shape[1], p = after.shape[2]
    if before.shape[0] != 3 or after.shape[0] != 3 or before.shape[1] != k or before.shape[2] != p or not k or not p:
        raise ValueError("roots do not fit together")
    moved = np.empty(k)
    cdef double[::1] out = moved
    roots_moved(&before[0, 0, 0], &after[0, 0, 0], k, p, &out[0])
    return moved
