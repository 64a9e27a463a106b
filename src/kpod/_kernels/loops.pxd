# The C loops of loops.h under one name for both floating point types.
from libc.stdint cimport int32_t, int64_t

ctypedef fused real:
    float
    double

cdef extern from "loops.h" nogil:
    void rescale_row(float*, const float*, Py_ssize_t, float, float, float) noexcept
    void pack_row_f32(const float*, const float*, Py_ssize_t, int, float*) noexcept
    void pack_row_f64(const double*, const double*, Py_ssize_t, int, double*) noexcept
    void add_entry_f32(float*, const float*, float, int, Py_ssize_t) noexcept
    void add_entry_f64(double*, const double*, double, int, Py_ssize_t) noexcept
    void add_row_f32(double*, const float*, double, Py_ssize_t) noexcept
    void add_row_f64(double*, const double*, double, Py_ssize_t) noexcept
    double partial_distance_f32(const float*, const float*, const double*, Py_ssize_t) noexcept
    double partial_distance_f64(const double*, const double*, const double*, Py_ssize_t) noexcept
    void two_smallest_f32(
        const float*, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*, float*, int32_t*
    ) noexcept
    void two_smallest_f64(
        const double*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*, double*, int64_t*
    ) noexcept


cdef inline void pack_row(
    const real* x, const real* shift, Py_ssize_t p, int moments, real* out
) noexcept nogil:
    if real is float:
        pack_row_f32(x, shift, p, moments, out)
    else:
        pack_row_f64(x, shift, p, moments, out)


cdef inline void add_entry(
    real* out, const real* a, real z, int moments, Py_ssize_t k
) noexcept nogil:
    if real is float:
        add_entry_f32(out, a, z, moments, k)
    else:
        add_entry_f64(out, a, z, moments, k)


cdef inline void add_row(
    double* total, const real* row, double weight, Py_ssize_t p
) noexcept nogil:
    if real is float:
        add_row_f32(total, row, weight, p)
    else:
        add_row_f64(total, row, weight, p)


cdef inline double partial_distance(
    const real* z, const real* observed, const double* center, Py_ssize_t p
) noexcept nogil:
    if real is float:
        return partial_distance_f32(z, observed, center, p)
    else:
        return partial_distance_f64(z, observed, center, p)


cdef inline void two_smallest(
    const real* product, const real* offset, Py_ssize_t k, Py_ssize_t n_rows,
    Py_ssize_t stride, real* best, real* second, void* which
) noexcept nogil:
    if real is float:
        two_smallest_f32(product, offset, k, n_rows, stride, best, second, <int32_t*> which)
    else:
        two_smallest_f64(product, offset, k, n_rows, stride, best, second, <int64_t*> which)
