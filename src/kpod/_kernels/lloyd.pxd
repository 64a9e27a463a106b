# An assignment, and the vector loops that it is made of.
from libc.stdint cimport int16_t, int32_t, uint8_t

from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace

cdef extern from "distances.h" nogil:
    void distances_f32(
        const int32_t*, const float*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const float*, const float*, const float*, const float*, Py_ssize_t, Py_ssize_t, float*
    ) noexcept
    void distances_f64(
        const int32_t*, const double*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const double*, const double*, const double*, const double*, Py_ssize_t, Py_ssize_t, double*
    ) noexcept
    void two_smallest_f32(const float*, Py_ssize_t, Py_ssize_t, float*, float*, int32_t*) noexcept
    void two_smallest_f64(const double*, Py_ssize_t, Py_ssize_t, double*, double*, int32_t*) noexcept

cdef extern from "bounds.h" nogil:
    float UNDERFLOW_SLACK, LARGEST_BOUND
    struct bounds:
        int32_t* labels
        float* upper
        float* lower
        const float* drift
        const float* other_drift
        int32_t k
        float leaving
    struct first_look:
        const float* best
        const float* second
        const float* slack
        const float* absolute
        float roundoff, of_centers
    Py_ssize_t near_rows(
        const bounds*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int32_t*, int32_t*, Py_ssize_t*
    ) noexcept
    Py_ssize_t settle(
        const bounds*, const first_look*, Py_ssize_t, const int32_t*, const int32_t*, int32_t*
    ) noexcept
    Py_ssize_t keep_changed(Py_ssize_t, int32_t*, int32_t*, int32_t*) noexcept

cdef extern from "gaps.h" nogil:
    void start_with_gaps(
        const uint8_t*, Py_ssize_t, Py_ssize_t, const float*, const int16_t*, float, Py_ssize_t, const float*,
        Py_ssize_t, float*, float*
    ) noexcept

cdef extern from "few.h" nogil:
    int FEW_CENTERS, kpod_level
    int highest_level() noexcept
    double most_side_by_side(Py_ssize_t, double) noexcept
    struct singles:
        const float* centers
        const float* terms
        const float* offsets
        Py_ssize_t p, k, stride
    void few_nearest_f32(
        const float**, const float*, float, Py_ssize_t, const singles*, float*, float*, float*, int32_t*
    ) noexcept
    void few_nearest_f64(
        const double**, const double*, double, Py_ssize_t, const singles*, float*, float*, float*, int32_t*
    ) noexcept


cdef Py_ssize_t assign_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, Panel panel, const bounds* of, Sums to, double* gain,
    Workspace space
) noexcept nogil
cdef bounds bounds_of(
    int32_t* labels, float* upper, float* lower, const float* drift, const float* other_drift, Panel panel
) noexcept nogil
cdef void drift_of(
    const double* before, const double* after, const double* more, Py_ssize_t k, Py_ssize_t p, float* own, float* other
) noexcept nogil
