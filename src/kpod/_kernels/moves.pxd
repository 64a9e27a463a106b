from libc.stdint cimport int32_t, int64_t

from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace


cdef class Gaps:
    cdef readonly object join, leave, join_offsets, leave_offsets
    cdef Sums totals
    cdef const double[::1] shares
    cdef double variance, weight
    cdef double[:, ::1] joins, leaves
    cdef double[::1] join_all, leave_all

    cdef void be_of_weight(self, double weight) noexcept nogil
    cdef void renew(self, Py_ssize_t c) noexcept nogil


cdef Py_ssize_t find_rows(
    Rows rows, Panel panel, const void* costs, const float* drift, const float* other_drift,
    const float* largest_gains, float smallest_cost, const int32_t* labels, float* upper, float* lower,
    const double* own, Gaps gaps, Py_ssize_t* found, Workspace space
) noexcept nogil
cdef Py_ssize_t move_found(
    Rows rows, const Py_ssize_t* candidates, Py_ssize_t n, const double* prior, const double* fallback,
    int32_t* labels, double* centers, double* counts, Sums totals, int64_t* sizes, Gaps gaps, Workspace space,
    double* lowered
) noexcept nogil
