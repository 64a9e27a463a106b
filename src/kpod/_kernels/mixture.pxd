# The E step of a mixture with factors, for whoever takes many of them in one call.
from libc.stdint cimport int32_t

from kpod._kernels.rows cimport Rows, Workspace

cdef extern from "factors.h" nogil:
    int MOST_FACTORS
    int TRIANGLE(int) noexcept
    int FACTOR_TERMS(int) noexcept
    int FACTOR_SUMS(int) noexcept
    int CLUSTER_SUMS(int) noexcept
    struct factor_model:
        const double* terms
        const double* shares
        Py_ssize_t k
        Py_ssize_t lanes
        int q
    struct factor_result:
        double* sums
        double* cluster_sums
        double* posterior
        double* scores
        double* covariances
        double* room
    double factor_row(
        const int32_t*, const double*, Py_ssize_t, double, int, const factor_model*, const factor_result*
    ) noexcept

cdef void fill_terms(
    const double* means, const double* variances, const double* loadings, const double* offsets, Py_ssize_t k,
    Py_ssize_t p, int q, Py_ssize_t L, double* out
) noexcept nogil
cdef double add_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, const factor_model* model, const int32_t* labels, factor_result to,
    double* posterior, double* evidence, double* scores, double* covariances, Workspace space, double* widened
) noexcept nogil
