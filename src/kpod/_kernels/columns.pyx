# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Columns as files have them become rows as the engine takes them, counted on the way; and rows are standardised."""

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, frexp, isfinite, ldexp, log2, rint, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t

import numpy as np

ctypedef fused real:
    float
    double


cdef extern from "columns.h" nogil:
    const Py_ssize_t TILE_STRIDE
    void interleave_f32(
        const float** columns, const uint8_t** bits, const int64_t* first_bits, Py_ssize_t p, Py_ssize_t n,
        float* tile, float* out, double* low, double* high, int64_t* gaps, uint8_t* whole)
    void interleave_f64(
        const double** columns, const uint8_t** bits, const int64_t* first_bits, Py_ssize_t p, Py_ssize_t n,
        double* tile, double* out, double* low, double* high, int64_t* gaps, uint8_t* whole)
    void standardise_f32(
        const float* x, const double* mean, const double* scale, Py_ssize_t width, Py_ssize_t n, float* out)
    void standardise_f64(
        const double* x, const double* mean, const double* scale, Py_ssize_t width, Py_ssize_t n, double* out)
    void count_observed_f32(const float* x, const int32_t* groups, Py_ssize_t p, Py_ssize_t n, int32_t* counts)
    void count_observed_f64(const double* x, const int32_t* groups, Py_ssize_t p, Py_ssize_t n, int64_t* counts)


def interleave(
    list columns,              # IN p arrays (n,) of the type of `out`
    list bits,                 # IN p bitmaps, set where there is a value, least bit first; None where all are there
    const int64_t[::1] first,  # IN (p,) the bit of the first row
    real[:, ::1] out,          # OUT (n, p) the rows, NaN where there is no value
    double[::1] low,           # INOUT (p,) the smallest value of each column
    double[::1] high,          # INOUT (p,) the largest
    int64_t[::1] gaps,         # INOUT (p,) how many are missing or NaN
    uint8_t[::1] whole,        # INOUT (p,) whether all are whole numbers
):
    """Columns side by side, as rows; and statistics of each."""
    cdef Py_ssize_t n = out.shape[0], p = out.shape[1], j
    cdef const real[::1] column
    cdef const uint8_t[::1] bitmap
    for counted in (columns, bits, first, low, high, gaps, whole):
        if len(counted) != p:
            raise ValueError("as much of everything as there are columns")
    if n == 0 or p == 0:
        return
    cdef uintptr_t[::1] places = np.zeros(p, np.uintp), maps = np.zeros(p, np.uintp)
    for j in range(p):
        column = columns[j]
        if column.shape[0] != n:
            raise ValueError("columns of another length than the rows")
        places[j] = <uintptr_t> &column[0]
        if bits[j] is None:
            continue
        bitmap = bits[j]
        if first[j] < 0 or first[j] + n > 8 * bitmap.shape[0]:
            raise ValueError("bits beyond the bitmap")
        maps[j] = <uintptr_t> &bitmap[0]
    if real is float:
        turned_f = np.empty((p, TILE_STRIDE), np.float32)
        call_f32(places, maps, first, p, n, turned_f, out, low, high, gaps, whole)
    else:
        turned_d = np.empty((p, TILE_STRIDE))
        call_f64(places, maps, first, p, n, turned_d, out, low, high, gaps, whole)


cdef void call_f32(
    uintptr_t[::1] places, uintptr_t[::1] maps, const int64_t[::1] first, Py_ssize_t p, Py_ssize_t n,
    float[:, ::1] turned, float[:, ::1] out, double[::1] low, double[::1] high, int64_t[::1] gaps, uint8_t[::1] whole,
) noexcept:
    with nogil:
        interleave_f32(
            <const float**> &places[0], <const uint8_t**> &maps[0], &first[0], p, n, &turned[0, 0], &out[0, 0],
            &low[0], &high[0], &gaps[0], &whole[0])


cdef void call_f64(
    uintptr_t[::1] places, uintptr_t[::1] maps, const int64_t[::1] first, Py_ssize_t p, Py_ssize_t n,
    double[:, ::1] turned, double[:, ::1] out, double[::1] low, double[::1] high, int64_t[::1] gaps, uint8_t[::1] whole,
) noexcept:
    with nogil:
        interleave_f64(
            <const double**> &places[0], <const uint8_t**> &maps[0], &first[0], p, n, &turned[0, 0], &out[0, 0],
            &low[0], &high[0], &gaps[0], &whole[0])


def standardise(
    const real[:, ::1] rows,  # IN (n, p)
    const double[::1] mean,   # IN (width,) of as many entries as are taken at a time: whole rows
    const double[::1] scale,  # IN (width,)
    real[:, ::1] out,         # OUT (n, p), another array than `rows`
):
    """(x - mean) / scale of every entry."""
    cdef Py_ssize_t n = rows.shape[0], p = rows.shape[1], width = mean.shape[0]
    if out.shape[0] != n or out.shape[1] != p or scale.shape[0] != width or (p and (width < p or width % p)):
        raise ValueError("rows, means and scales do not fit together")
    if n == 0 or p == 0:
        return
    if &rows[0, 0] == &out[0, 0]:
        raise ValueError("rows are standardised into another array")
    with nogil:
        if real is float:
            standardise_f32(&rows[0, 0], &mean[0], &scale[0], width, n * p, &out[0, 0])
        else:
            standardise_f64(&rows[0, 0], &mean[0], &scale[0], width, n * p, &out[0, 0])


def count_observed(
    const real[:, ::1] rows,     # IN (n, p), NaN in the gaps
    const int32_t[::1] groups,   # IN (n,) of each row, negative for none
    Py_ssize_t n_groups,
):
    """How often each column is observed in each group: (n_groups, p)."""
    cdef Py_ssize_t n = rows.shape[0], p = rows.shape[1], i
    cdef int32_t[:, ::1] short_counts
    cdef int64_t[:, ::1] long_counts
    if groups.shape[0] != n:
        raise ValueError("as many groups as rows")
    for i in range(n):
        if groups[i] >= n_groups:
            raise ValueError("a group beyond their number")
    out = np.zeros((n_groups, p), np.int32 if real is float else np.int64)
    if n == 0 or p == 0 or n_groups == 0:
        return out
    if real is float:
        short_counts = out
        with nogil:
            count_observed_f32(&rows[0, 0], &groups[0], p, n, &short_counts[0, 0])
    else:
        long_counts = out
        with nogil:
            count_observed_f64(&rows[0, 0], &groups[0], p, n, &long_counts[0, 0])
    return out


def units_at_a_glance(double[:, ::1] some, double far, bint single):
    """What is taken off the columns of a few rows, and the power of two that is the usual size of what is left.

    Zeros where a column lies around zero, within `far` standard deviations, so that no digit of a small entry is lost;
    of a constant column, the constant. `some` (n, p) is overwritten; None if all is zero or missing.
    """
    cdef Py_ssize_t n = some.shape[0], p = some.shape[1], i, j, count, n_sizes = 0, sizes = 0
    cdef double largest = 0, unit, mean, spread, highest, step, value
    cdef int exponent, of_unit
    out = np.zeros(p)
    cdef double[::1] shift = out
    with nogil:
        for i in range(n):
            for j in range(p):
                if isfinite(some[i, j]):
                    largest = max(largest, fabs(some[i, j]))
        if largest > 0:
            frexp(largest, &of_unit)
            of_unit -= 1
            unit = ldexp(1, of_unit)  # divided by it, squares neither overflow nor, all of them, underflow
            for j in range(p):
                count, mean, spread, highest = 0, 0, 0, -INFINITY
                for i in range(n):
                    if isfinite(some[i, j]):
                        some[i, j] /= unit
                        mean += some[i, j]
                        highest = max(highest, some[i, j])
                        count += 1
                if not count:
                    continue
                mean /= count
                for i in range(n):
                    if isfinite(some[i, j]):
                        spread += (some[i, j] - mean) * (some[i, j] - mean)
                spread = sqrt(spread / count)
                if spread > 0:
                    frexp(spread, &exponent)
                    step = ldexp(0.5, exponent)
                    value = step * rint((0 if fabs(mean) < far * spread else mean) / step)
                else:
                    value = highest
                shift[j] = <float> (value * unit) if single else value * unit
                for i in range(n):
                    value = fabs(some[i, j] - shift[j] / unit)
                    if isfinite(some[i, j]) and value > 0:
                        frexp(value, &exponent)
                        sizes += exponent
                        n_sizes += 1
    if largest == 0:
        return None
    return out, (round(sizes / n_sizes) if n_sizes else 0) + of_unit


def anchors_of_sums(
    const double[::1] weights,   # IN (p,) of the observed entries of each column
    const double[::1] squares,   # IN (p,) their sums
    const double[::1] exponent,  # IN (p,) the mean binary exponent of those that are not 0
    const int64_t[::1] nonzero,  # IN (p,) their number
    double of_weight,            # the mean logarithm (base 2) of the weights of rows; infinite if these are 1
    Py_ssize_t n_rows,
    double digits,               # binary, that an entry of usual size keeps
    int most_levels,
):
    """The anchors (levels, p) that `table.units_of_sums` has."""
    cdef Py_ssize_t p = weights.shape[0], j
    cdef int level = 0, further = <int> np.ceil(np.log2(n_rows)) - 52, last
    cdef bint enough = False
    if squares.shape[0] != p or exponent.shape[0] != p or nonzero.shape[0] != p:
        raise ValueError("as much of everything as there are columns")
    units, wanted_of = np.empty(p, np.intc), np.empty(p)
    cdef int[::1] unit = units
    cdef double[::1] wanted = wanted_of
    for j in range(p):
        frexp(sqrt(weights[j]) * sqrt(squares[j]) * (1 + 1e-9), &last)
        unit[j] = last - 51
        wanted[j] = min(exponent[j] + log2(max(weights[j] / max(nonzero[j], 1), DBL_MIN)), exponent[j] + of_weight)
        wanted[j] -= digits
    out = np.empty((most_levels, p))
    cdef double[:, ::1] anchors = out
    while level < most_levels and not enough:
        enough = True
        for j in range(p):
            last = unit[j] + level * further
            anchors[level, j] = ldexp(1.5, max(last, -1000) + 52)
            if nonzero[j] > 0 and last > wanted[j]:
                enough = False
        level += 1
    return out[:level].copy()
