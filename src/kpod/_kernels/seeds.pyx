# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Draw seeds from rows that were listed as entries in single precision."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

cdef extern from "seeds.h" nogil:
    void seed_distances(
        const int32_t*, const float*, Py_ssize_t, const float*, const float*, Py_ssize_t,
        float, float, float, double, float*, double*
    ) noexcept

# More candidates than this are never drawn for one seed.
MOST_CANDIDATES = 64


cdef class Sample:
    """Rows to draw seeds from, as lists of entries.

    Parameters
    ----------
    start : intp array (n + 1,), where the entries of each row begin
    columns, values : int32 and float32 arrays of the entries
    weights : float64 array (n,)
    n_columns : int
    shares : float32 array (n_columns,), what each column counts for when those are counted that two rows
        share, or None for 1; the values of a column have been divided by the root of that
    """

    cdef readonly Py_ssize_t n_rows, n_columns, n_entries
    cdef readonly float n_counted
    cdef const Py_ssize_t[::1] start
    cdef const int32_t[::1] columns
    cdef const float[::1] values
    cdef const double[::1] weights
    cdef const float[::1] shares

    def __cinit__(
        self, const Py_ssize_t[::1] start, const int32_t[::1] columns, const float[::1] values,
        const double[::1] weights, Py_ssize_t n_columns, const float[::1] shares=None
    ):
        cdef Py_ssize_t i, e, n = weights.shape[0]
        if (
            n < 1 or n_columns < 1 or start.shape[0] != n + 1 or columns.shape[0] != values.shape[0]
            or start[0] != 0 or start[n] != columns.shape[0]
        ):
            raise ValueError("rows and entries do not fit together")
        for i in range(n):
            if start[i] > start[i + 1]:
                raise IndexError("rows of a negative length")
        for e in range(columns.shape[0]):
            if not 0 <= columns[e] < n_columns:
                raise IndexError(f"column {columns[e]} of {n_columns}")
        if shares is not None and shares.shape[0] != n_columns:
            raise ValueError("a share for every column is needed")
        cdef double counted = 0
        for e in range(n_columns):
            counted += 1 if shares is None else shares[e]
        self.n_rows, self.n_columns, self.n_entries, self.n_counted = n, n_columns, columns.shape[0], counted
        self.shares = shares
        self.start, self.columns, self.values, self.weights = start, columns, values, weights


def draw_seeds(
    Sample sample,
    double variance,              # IN mean variance of a column
    const double[:, ::1] uniform,  # IN (n_seeds, m) one number from 0 to 1 for each candidate of each seed
    float[::1] nearest,           # INOUT (n,) distance to the nearest seed; all inf: there is none yet
    double[::1] mass,             # buffer (n,)
    float[:, ::1] panel,          # buffer (p, stride), stride >= m; 32-byte aligned
    float[:, ::1] observed,       # buffer (p, stride), likewise
    float[:, ::1] distances,      # buffer (n, stride)
    double[::1] potentials,       # buffer (stride,)
    Py_ssize_t[::1] drawn,        # OUT (n_seeds,) the rows that became seeds
):
    """For each seed, draw candidates as likely as their distance from the seeds before it, and keep the best."""
    cdef Py_ssize_t n = sample.n_rows, m = uniform.shape[1], stride = panel.shape[1], seed
    cdef Py_ssize_t i, c, e, low, high, middle, best
    cdef const Py_ssize_t[::1] start = sample.start
    cdef const int32_t[::1] columns = sample.columns
    cdef const float[::1] values = sample.values
    cdef const double[::1] weights = sample.weights
    cdef const float[::1] shares = sample.shares
    cdef bint count_all = shares is None
    cdef double total, target
    cdef Py_ssize_t candidate[64]
    if not 1 <= m <= min(64, stride) or stride % 8:
        raise ValueError(f"{m} candidates for {min(64, stride)} places, which must be a multiple of 8")
    if (
        nearest.shape[0] != n or mass.shape[0] != n or panel.shape[0] != sample.n_columns
        or observed.shape[0] != panel.shape[0] or observed.shape[1] != stride
        or distances.shape[0] != n or distances.shape[1] != stride or potentials.shape[0] != stride
        or drawn.shape[0] != uniform.shape[0]
    ):
        raise ValueError("rows and buffers do not fit together")
    if <size_t> &panel[0, 0] % 32 or <size_t> &observed[0, 0] % 32:
        raise ValueError("buffers must be aligned to 32 bytes")
    cdef bint first
    with nogil:
        for seed in range(uniform.shape[0]):
            first, total, best = nearest[0] == INFINITY, 0, 0
            for i in range(n):
                total += weights[i] if first else weights[i] * nearest[i]
                mass[i] = total
            if total <= 0:  # every row coincides with a seed
                for i in range(n):
                    total += weights[i]
                    mass[i] = total
            panel[:, :] = 0
            observed[:, :] = 0
            potentials[:] = 0
            for c in range(m):
                target = uniform[seed, c] * total
                low = 0
                high = n - 1
                while low < high:
                    middle = (low + high) // 2
                    if mass[middle] > target:
                        high = middle
                    else:
                        low = middle + 1
                candidate[c] = low
                for e in range(start[low], start[low + 1]):
                    panel[columns[e], c] = values[e]
                    observed[columns[e], c] = 1 if count_all else shares[columns[e]]
            for i in range(n):
                seed_distances(&columns[0] + start[i], &values[0] + start[i], start[i + 1] - start[i], &panel[0, 0],
                               &observed[0, 0], stride, sample.n_counted, <float> variance, nearest[i],
                               weights[i], &distances[i, 0], &potentials[0])
            for c in range(1, m):
                if potentials[c] < potentials[best]:
                    best = c
            for i in range(n):
                nearest[i] = distances[i, best]
            nearest[candidate[best]] = 0
            drawn[seed] = candidate[best]
