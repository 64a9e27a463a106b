from libc.stdint cimport int32_t, int64_t

from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace


cdef Py_ssize_t find_rows(
    Rows rows, Panel panel, const void* costs, const float* drift, const float* other_drift,
    const float* largest_gains, float smallest_cost, const int32_t* labels, float* upper, float* lower,
    const double* own, Py_ssize_t* found, Workspace space
) noexcept nogil
cdef Py_ssize_t move_found(
    Rows rows, const Py_ssize_t* candidates, Py_ssize_t n, const double* prior, const double* fallback,
    int32_t* labels, double* centers, double* counts, Sums totals, int64_t* sizes, Workspace space, double* lowered
) noexcept nogil
