# The M step of a mixture with factors.

cdef void maximise(
    const double[:, :, ::1] sums, const double[:, ::1] old_means, const double[:, ::1] old_variances,
    bint own_loadings, bint own_variances, bint is_round, double prior_rows, const double[::1] prior,
    const double[::1] floor, const double[::1] fallback, const unsigned char[::1] silent, double[:, ::1] means,
    double[:, ::1] variances, double[:, :, ::1] loadings, double* room
) noexcept nogil
cdef void rescale(
    const double[:, ::1] cluster_sums, Py_ssize_t k, bint own, double[:, :, ::1] loadings, double* room
) noexcept nogil
cdef Py_ssize_t room_of(Py_ssize_t k, int q) noexcept nogil
