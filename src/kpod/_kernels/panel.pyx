# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""What rows are compared with: centers, an offset for each, and optional terms for each entry."""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int16_t
from libc.string cimport memcpy, memset

import math

import numpy as np

cdef extern from "memory.h" nogil:
    size_t CACHE_LINE
    void* allocate_lines(size_t) noexcept
    void free_lines(void*) noexcept

cdef extern from "gaps.h" nogil:
    int GAP_PATTERNS, GAP_LANES
    float make_gap_table(
        const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*, int16_t*
    ) noexcept

cdef extern from "vectors.h" nogil:
    int FEW_CENTERS
    Py_ssize_t GAP_BYTES(Py_ssize_t) noexcept

VECTOR_BYTES = 32
cdef size_t MOST_GAP_BYTES = 1 << 20
cdef double LARGEST_TERMS = 1e30  # that a table is made of


def aligned_zeros(shape, dtype):
    """Zeros that start on a cache line, so that no vector straddles two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + CACHE_LINE, np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + size].view(dtype).reshape(shape)


def side_by_side(by_center, dtype):
    """An array (k, n_columns) transposed and padded to whole vectors."""
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    out = aligned_zeros((by_center.shape[1], -(-len(by_center) // lanes) * lanes), dtype)
    out[:, : len(by_center)] = by_center.T
    return out


cdef inline size_t whole_lines(size_t n_bytes) noexcept:
    return (n_bytes + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE


cdef bint any_nan(const double* values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if values[i] != values[i]:
            return True
    return False


cdef class Panel:
    """Centers as rows are compared with them, in single and in double precision.

    A row is compared with center l by

        offsets[l] + sum over its observed columns j of (z_j - centers[l, j])^2 + terms[l, j]

    and every kernel takes all of it.

    Parameters
    ----------
    centers : float64 array (k, n_columns)
    offsets : float64 array (k,), or None for 0
    terms : float64 array (k, n_columns), or None for 0; they may be negative as long as no sum is
    roots : float64 array (k, n), or None; roots of what offsets and terms are sums of, for those who
        ask how far one panel is from another; no kernel looks at them
    """

    def __cinit__(self, centers, offsets=None, terms=None, roots=None):
        centers = np.ascontiguousarray(centers, np.float64)
        if centers.ndim != 2 or not centers.size:
            raise ValueError(f"centers must be a table of at least one row, got shape {centers.shape}.")
        given = np.zeros(len(centers)) if offsets is None else np.ascontiguousarray(offsets, np.float64)
        if given.shape != (len(centers),) or (terms is not None and np.shape(terms) != centers.shape):
            raise ValueError("offsets and terms must be given for every center.")
        self.centers, self.offsets, self.terms, self.roots = centers, offsets, terms, roots
        self.k, self.n_columns = centers.shape
        self.stride, self.single_stride = (self.k + 3) // 4 * 4, (self.k + 7) // 8 * 8
        cdef const double[:, ::1] rows = centers
        cdef const double[::1] shifts = given
        cdef const double[:, ::1] by_entry = centers if terms is None else np.ascontiguousarray(terms, np.float64)
        cdef Py_ssize_t n = self.k * self.n_columns
        if any_nan(&rows[0, 0], n) or any_nan(&shifts[0], self.k) or any_nan(&by_entry[0, 0], n):
            raise ValueError("centers, offsets and terms must not be NaN.")
        cdef size_t p = self.n_columns, doubles = whole_lines(self.stride * sizeof(double))
        cdef size_t singles = whole_lines(self.single_stride * sizeof(float))
        cdef size_t wide = whole_lines(p * self.stride * sizeof(double))
        cdef size_t narrow = whole_lines(p * self.single_stride * sizeof(float))
        cdef size_t n_tables = 1 if terms is None else 2, size = doubles + 2 * singles + n_tables * (wide + narrow)
        # Few centers are compared side by side, with their terms; and a large table would cost more than it saves.
        cdef size_t n_groups = 2 * GAP_BYTES(p), n_patterns = n_groups * GAP_PATTERNS
        self.gap_stride = (self.k + GAP_LANES - 1) // GAP_LANES * GAP_LANES
        cdef size_t means = whole_lines(n_patterns * sizeof(float))
        cdef size_t gap_bytes = means + n_patterns * self.gap_stride * sizeof(int16_t)
        self.by_gaps = terms is not None and self.k > FEW_CENTERS and gap_bytes <= MOST_GAP_BYTES
        if self.by_gaps:
            size += gap_bytes
        self.memory = allocate_lines(size)
        if not self.memory:
            raise MemoryError
        memset(self.memory, 0, size)
        cdef char* at = <char*> self.memory
        self.by_row = &rows[0, 0]
        self.double_offsets = <double*> at
        self.single_offsets = <float*> (at + doubles)
        self.complete = <float*> (at + doubles + singles)
        at += doubles + 2 * singles
        self.doubles = <double*> at
        self.singles = <float*> (at + wide)
        at += wide + narrow
        if terms is not None:
            self.double_terms = <double*> at
            self.single_terms = <float*> (at + wide)
        if self.by_gaps:
            self.room_for_means = <float*> (at + wide + narrow)
            self.room_for_gaps = <int16_t*> (at + wide + narrow + means)
        self.move_to(&rows[0, 0])
        self.set_terms(&shifts[0], NULL if terms is None else &by_entry[0, 0])

    cdef void move_to(self, const double* centers) noexcept nogil:
        """Other centers, in place: by whoever made the panel and has given it to nobody."""
        cdef double* by_row = <double*> self.by_row
        cdef Py_ssize_t c, j, p = self.n_columns
        cdef double squares
        if by_row != centers:
            memcpy(by_row, centers, self.k * p * sizeof(double))
        self.longest = 0
        for c in range(self.k):
            squares = 0
            for j in range(p):
                self.doubles[j * self.stride + c] = centers[c * p + j]
                self.singles[j * self.single_stride + c] = <float> centers[c * p + j]
                squares += centers[c * p + j] * centers[c * p + j]
            self.longest = max(self.longest, sqrt(squares))

    cdef void set_terms(self, const double* offsets, const double* terms) noexcept nogil:
        """Other offsets, and other terms of a panel that has some, in place, by the same; `roots` are left alone."""
        cdef Py_ssize_t c, j, p = self.n_columns
        cdef double sizes, added, term
        self.largest_term = self.largest_terms = self.largest_offset = 0
        for c in range(self.k):
            sizes, added = 0, 0
            if terms != NULL:
                for j in range(p):
                    term = terms[c * p + j]
                    self.double_terms[j * self.stride + c] = term
                    self.single_terms[j * self.single_stride + c] = <float> term
                    added += term
                    sizes += fabs(term)
                    self.largest_term = max(self.largest_term, fabs(term))
            self.double_offsets[c], self.single_offsets[c] = offsets[c], <float> offsets[c]
            self.complete[c] = <float> (offsets[c] + added)
            self.largest_terms = max(self.largest_terms, sizes)
            self.largest_offset = max(self.largest_offset, fabs(offsets[c]))
        # What is no center is never the nearest.
        for c in range(self.k, self.single_stride):
            self.single_offsets[c] = self.complete[c] = <float> INFINITY
        for c in range(self.k, self.stride):
            self.double_offsets[c] = INFINITY
        self.gap_means, self.gap_table, self.gap_error = NULL, NULL, 0
        if self.by_gaps and self.largest_terms < LARGEST_TERMS:
            self.gap_means, self.gap_table = self.room_for_means, self.room_for_gaps
            self.gap_unit = make_gap_table(
                self.single_terms, p, self.k, self.single_stride, self.gap_stride, self.gap_means, self.gap_table
            )
            self.gap_error = GAP_BYTES(p) * self.gap_unit

    def __dealloc__(self):
        free_lines(self.memory)

    def __reduce__(self):
        return Panel, (self.centers, self.offsets, self.terms, self.roots)
