from kpod._kernels.rows cimport Sums


cdef class GapLikelihood:
    cdef readonly Py_ssize_t k, n_columns
    cdef readonly Py_ssize_t n_informative  # columns that some rows observe and others do not
    cdef object arrays
    cdef const double* observed  # the share of each column that is observed
    cdef double weight, degrees, floor

    cdef int check(self, Sums totals) except -1
    cdef double variance_of(self, double loss) noexcept nogil
    cdef void rates_of(self, Sums totals, double* rates, double* shares) noexcept nogil
    cdef double value_of(self, Sums totals, double loss) noexcept nogil


cdef void terms_of(
    const double* rates, const double* shares, double variance, Py_ssize_t k, Py_ssize_t p,
    double* offsets, double* terms, double* roots
) noexcept nogil
cdef void roots_moved(
    const double* before, const double* after, Py_ssize_t k, Py_ssize_t p, double* moved
) noexcept nogil
