# The C loops of loops.h under one name for both floating point types.
from libc.stdint cimport int32_t

ctypedef fused real:
    float
    double

cdef extern from "loops.h" nogil:
    int COMPACT_SLACK, FEW_CENTERS
    void build_front() noexcept
    Py_ssize_t compact_f32(const float*, const float*, Py_ssize_t, int32_t*, float*) noexcept
    Py_ssize_t compact_f64(const double*, const double*, Py_ssize_t, int32_t*, double*) noexcept
    void distances_f32(
        const int32_t*, const float*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const float*, const float*, Py_ssize_t, float*
    ) noexcept
    void distances_f64(
        const int32_t*, const double*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const double*, const double*, Py_ssize_t, double*
    ) noexcept
    void few_nearest_f32(
        const float*, const float*, Py_ssize_t, const Py_ssize_t*, Py_ssize_t, const float*, Py_ssize_t, Py_ssize_t,
        const int32_t*, float*, float*, float*, int32_t*, float*
    ) noexcept
    void few_nearest_f64(
        const double*, const double*, Py_ssize_t, const Py_ssize_t*, Py_ssize_t, const float*, Py_ssize_t, Py_ssize_t,
        const int32_t*, float*, float*, float*, int32_t*, float*
    ) noexcept
    void scaled_distances_f32(
        const int32_t*, const float*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const float*, const float*, const float*, Py_ssize_t, float*
    ) noexcept
    void scaled_distances_f64(
        const int32_t*, const double*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const double*, const double*, const double*, Py_ssize_t, double*
    ) noexcept
    void seed_distances(
        const int32_t*, const float*, Py_ssize_t, const float*, const float*, Py_ssize_t,
        float, float, float, double, float*, double*
    ) noexcept
    void add_row_f32(const float*, const float*, Py_ssize_t, double, double*, double*) noexcept
    void add_row_f64(const double*, const double*, Py_ssize_t, double, double*, double*) noexcept
    double row_loss_f32(const float*, const float*, Py_ssize_t, const double*) noexcept
    double row_loss_f64(const double*, const double*, Py_ssize_t, const double*) noexcept
    Py_ssize_t measure_row_f32(const float*, const float*, Py_ssize_t, double, double*, double*) noexcept
    Py_ssize_t measure_row_f64(const double*, const double*, Py_ssize_t, double, double*, double*) noexcept
    void two_smallest_f32(const float*, Py_ssize_t, Py_ssize_t, float*, float*, int32_t*) noexcept
    void two_smallest_f64(const double*, Py_ssize_t, Py_ssize_t, double*, double*, int32_t*) noexcept


cdef inline Py_ssize_t compact(
    const real* x, const real* shift, Py_ssize_t p, int32_t* columns, real* values
) noexcept nogil:
    if real is float:
        return compact_f32(x, shift, p, columns, values)
    else:
        return compact_f64(x, shift, p, columns, values)


cdef inline void distances_to(
    const int32_t* columns, const real* values, const Py_ssize_t* begin, const Py_ssize_t* end, Py_ssize_t n_rows,
    const real* panel, const real* offsets, Py_ssize_t stride, real* out
) noexcept nogil:
    if real is float:
        distances_f32(columns, values, begin, end, n_rows, panel, offsets, stride, out)
    else:
        distances_f64(columns, values, begin, end, n_rows, panel, offsets, stride, out)


cdef inline void scaled_distances_to(
    const int32_t* columns, const real* values, const Py_ssize_t* begin, const Py_ssize_t* end, Py_ssize_t n_rows,
    const real* panel, const real* factors, const real* offsets, Py_ssize_t stride, real* out
) noexcept nogil:
    if real is float:
        scaled_distances_f32(columns, values, begin, end, n_rows, panel, factors, offsets, stride, out)
    else:
        scaled_distances_f64(columns, values, begin, end, n_rows, panel, factors, offsets, stride, out)


cdef inline void two_smallest(
    const real* distance, Py_ssize_t n_rows, Py_ssize_t stride, real* best, real* second, int32_t* which
) noexcept nogil:
    if real is float:
        two_smallest_f32(distance, n_rows, stride, best, second, which)
    else:
        two_smallest_f64(distance, n_rows, stride, best, second, which)


cdef inline void add_row(
    const real* x, const real* shift, Py_ssize_t p, double weight, double* sums, double* counts
) noexcept nogil:
    if real is float:
        add_row_f32(x, shift, p, weight, sums, counts)
    else:
        add_row_f64(x, shift, p, weight, sums, counts)


cdef inline double row_loss(const real* x, const real* shift, Py_ssize_t p, const double* center) noexcept nogil:
    if real is float:
        return row_loss_f32(x, shift, p, center)
    else:
        return row_loss_f64(x, shift, p, center)


cdef inline Py_ssize_t measure_row(
    const real* x, const real* shift, Py_ssize_t p, double weight, double* squares, double* counts
) noexcept nogil:
    if real is float:
        return measure_row_f32(x, shift, p, weight, squares, counts)
    else:
        return measure_row_f64(x, shift, p, weight, squares, counts)
