# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""The M step of a Gaussian mixture with factors: a weighted regression of each column on them.

With d the deviations from the means before, r the posteriors and z the factors, a column has the sums s = sum r,
t = sum r d, sum r d^2, sum r z, sum r d z and sum r z z' of each cluster, as `expect_factors` adds them up.
"""

from libc.math cimport fmax, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "factors.h" nogil:
    int TRIANGLE(int) noexcept
    int FACTOR_SUMS(int) noexcept
    int CLUSTER_SUMS(int) noexcept

cdef double RIDGE = 1e-6  # of a row, behind every loading, so that no equation is singular
NOTHING = 1e-8  # rows: a mean that rests on less is the column's
cdef double LEAST = NOTHING


cdef int factorise(double* a, int q) noexcept nogil:
    """Cholesky factor of the lower triangle of a matrix (q, q), in place; 0 if there is none."""
    cdef int i, j, c
    cdef double sum
    for i in range(q):
        for j in range(i + 1):
            sum = a[i * q + j]
            for c in range(j):
                sum -= a[i * q + c] * a[j * q + c]
            if i > j:
                a[i * q + j] = sum / a[j * q + j]
            elif sum > 0:
                a[i * q + i] = sqrt(sum)
            else:
                return 0
    return 1


cdef void solve(double* a, double* b, int q) noexcept nogil:
    """b becomes a^-1 b, a symmetric; 0 where a has no inverse."""
    cdef int i, c
    if not factorise(a, q):
        memset(b, 0, q * sizeof(double))
        return
    for i in range(q):
        for c in range(i):
            b[i] -= a[i * q + c] * b[c]
        b[i] /= a[i * q + i]
    for i in range(q - 1, -1, -1):
        for c in range(i + 1, q):
            b[i] -= a[c * q + i] * b[c]
        b[i] /= a[i * q + i]


cdef inline void add_equation(
    const double* zz, const double* z, const double* dz, double s, double t, double weight, Py_ssize_t L, int q,
    double* left, double* right
) noexcept nogil:
    """Add the normal equations of the slopes of one cluster, its mean taken out; sums lie L apart."""
    cdef int i, j
    for i in range(q):
        right[i] += weight * (dz[i * L] - z[i * L] * t / s)
        for j in range(i + 1):
            left[i * q + j] += weight * (zz[(TRIANGLE(i) + j) * L] - z[i * L] * z[j * L] / s)


def maximise_factors(
    const double[:, :, ::1] sums,        # IN (p, 3 + 2 q + q (q + 1) / 2, lanes) of each column
    const double[:, ::1] cluster_sums,   # IN (1 + q (q + 1) / 2, lanes)
    const double[:, ::1] old_means,      # IN (k, p)
    const double[:, ::1] old_variances,  # IN (k, p)
    bint own_loadings,
    bint own_variances,
    bint is_round,                       # IN whether columns have one variance
    double prior_rows,
    const double[::1] prior,             # IN (p,) variances that own ones are pulled to by so many rows
    const double[::1] floor,             # IN (p,) the least variances
    const double[::1] fallback,          # IN (p,) the mean of a column that a cluster has nothing of
    const unsigned char[::1] silent,     # IN (p,) whether a column has the same mean and variance in all clusters
    double[:, ::1] means,                # OUT (k, p)
    double[:, ::1] variances,            # OUT (k, p)
    double[:, :, ::1] loadings,          # OUT (k, p, q)
):
    """New means, variances and loadings from the sums of an E step."""
    cdef Py_ssize_t p = sums.shape[0], L = sums.shape[2], k = old_means.shape[0]
    cdef int q = loadings.shape[2]
    if (
        sums.shape[1] != FACTOR_SUMS(q) or cluster_sums.shape[0] != CLUSTER_SUMS(q) or cluster_sums.shape[1] != L
        or L < k or old_means.shape[1] != p or old_variances.shape[0] != k or old_variances.shape[1] != p
        or prior.shape[0] != p or floor.shape[0] != p or fallback.shape[0] != p or silent.shape[0] != p
        or means.shape[0] != k or means.shape[1] != p or variances.shape[0] != k or variances.shape[1] != p
        or loadings.shape[0] != k or loadings.shape[1] != p or not k or not p
    ):
        raise ValueError("sums, parameters and constraints do not fit together")
    cdef double* room = <double*> malloc(room_of(k, q) * sizeof(double))
    if room == NULL:
        raise MemoryError
    with nogil:
        maximise(sums, old_means, old_variances, own_loadings, own_variances, is_round, prior_rows, prior, floor,
                 fallback, silent, means, variances, loadings, room)
        if q:
            rescale(cluster_sums, k, own_loadings, loadings, room)
    free(room)


cdef Py_ssize_t room_of(Py_ssize_t k, int q) noexcept nogil:
    """Room for a matrix, and of each cluster slopes, residual and weight; in all, if columns have one variance."""
    return 2 * q * q + 2 * q + (q + 4) * k


cdef void maximise(
    const double[:, :, ::1] sums, const double[:, ::1] old_means, const double[:, ::1] old_variances,
    bint own_loadings, bint own_variances, bint is_round, double prior_rows, const double[::1] prior,
    const double[::1] floor, const double[::1] fallback, const unsigned char[::1] silent, double[:, ::1] means,
    double[:, ::1] variances, double[:, :, ::1] loadings, double* room
) noexcept nogil:
    cdef Py_ssize_t p = sums.shape[0], L = sums.shape[2], k = old_means.shape[0], j, cluster
    cdef int q = loadings.shape[2], i, c
    cdef double* left = room
    cdef double* right = left + q * q
    cdef double* slopes = right + q
    cdef double* residual = slopes + q * k
    cdef double* weight = residual + k
    cdef double* all_residual = weight + k
    cdef double* all_weight = all_residual + k
    cdef const double* s
    cdef const double* t
    cdef const double* squares
    cdef const double* z
    cdef const double* dz
    cdef const double* zz
    cdef double some, shift, common, curve, explained, total, mean_floor = 0, value
    memset(all_residual, 0, 2 * k * sizeof(double))
    for j in range(p):
        s, t, squares = &sums[j, 0, 0], &sums[j, 1, 0], &sums[j, 2, 0]
        z = dz = zz = s
        if q:
            z, dz, zz = &sums[j, 3, 0], &sums[j, 3 + q, 0], &sums[j, 3 + 2 * q, 0]
            if own_loadings:
                for cluster in range(k):
                    memset(left, 0, q * q * sizeof(double))
                    memset(slopes + cluster * q, 0, q * sizeof(double))
                    some = fmax(s[cluster], LEAST)
                    add_equation(
                        zz + cluster, z + cluster, dz + cluster, some, t[cluster], 1, L, q, left, slopes + cluster * q
                    )
                    for i in range(q):
                        left[i * q + i] += RIDGE
                    solve(left, slopes + cluster * q, q)
            else:
                memset(left, 0, q * q * sizeof(double))
                memset(right, 0, q * sizeof(double))
                common_equation(zz, z, dz, s, t, old_variances, j, silent[j], L, q, left, right, slopes)
                solve(left, right, q)
                for cluster in range(k):
                    for i in range(q):
                        slopes[cluster * q + i] = right[i]
        common, total = 0, 0
        if silent[j]:
            for cluster in range(k):
                explained = 0
                for i in range(q):
                    explained += z[i * L + cluster] * slopes[cluster * q + i]
                common += (t[cluster] - explained) / old_variances[cluster, j]
                total += s[cluster] / old_variances[cluster, j]
            common = common / total if total > 0 else 0
        for cluster in range(k):
            explained, curve = 0, 0
            for i in range(q):
                explained += z[i * L + cluster] * slopes[cluster * q + i]
                curve -= 2 * dz[i * L + cluster] * slopes[cluster * q + i]
                for c in range(q):
                    value = zz[(TRIANGLE(max(i, c)) + min(i, c)) * L + cluster]
                    curve += value * slopes[cluster * q + i] * slopes[cluster * q + c]
                loadings[cluster, j, i] = slopes[cluster * q + i]
            shift = common if silent[j] else (t[cluster] - explained) / fmax(s[cluster], LEAST)
            means[cluster, j] = old_means[cluster, j] + shift
            if s[cluster] < LEAST and not silent[j]:
                means[cluster, j] = fallback[j]
            value = squares[cluster] - 2 * shift * (t[cluster] - explained) + shift * shift * s[cluster]
            residual[cluster] = fmax(value + curve, 0)
            weight[cluster] = s[cluster]
            if own_variances:
                residual[cluster] += prior_rows * prior[j]
                weight[cluster] += prior_rows
        if not own_variances or (silent[j] and not is_round):
            pool(residual, weight, k)
        for cluster in range(k):
            all_residual[cluster] += residual[cluster]
            all_weight[cluster] += weight[cluster]
            variances[cluster, j] = fmax(residual[cluster] / fmax(weight[cluster], LEAST), floor[j])
        mean_floor += floor[j] / p
    if is_round:
        for cluster in range(k):
            for j in range(p):
                variances[cluster, j] = fmax(all_residual[cluster] / fmax(all_weight[cluster], LEAST), mean_floor)


cdef void common_equation(
    const double* zz, const double* z, const double* dz, const double* s, const double* t,
    const double[:, ::1] variances, Py_ssize_t j, bint one_mean, Py_ssize_t L, int q, double* left, double* right,
    double* first
) noexcept nogil:
    """The normal equations of slopes that all clusters share, with a mean of each cluster's own or `one_mean`."""
    cdef Py_ssize_t k = variances.shape[0], cluster
    cdef double w, ridge = 0, all_s = 0, all_t = 0
    cdef int i, c
    memset(first, 0, q * sizeof(double))
    for cluster in range(k):
        w = 1 / variances[cluster, j]
        ridge += RIDGE * w / k
        if not one_mean:
            add_equation(
                zz + cluster, z + cluster, dz + cluster, fmax(s[cluster], LEAST), t[cluster], w, L, q, left, right
            )
            continue
        all_s += w * s[cluster]
        all_t += w * t[cluster]
        for i in range(q):
            first[i] += w * z[i * L + cluster]
            right[i] += w * dz[i * L + cluster]
            for c in range(i + 1):
                left[i * q + c] += w * zz[(TRIANGLE(i) + c) * L + cluster]
    for i in range(q):
        left[i * q + i] += ridge
        if one_mean and all_s > 0:
            right[i] -= first[i] * all_t / all_s
            for c in range(i + 1):
                left[i * q + c] -= first[i] * first[c] / all_s


cdef void pool(double* residual, double* weight, Py_ssize_t k) noexcept nogil:
    """What all clusters share, in each."""
    cdef double residuals = 0, weights = 0
    cdef Py_ssize_t cluster
    for cluster in range(k):
        residuals += residual[cluster]
        weights += weight[cluster]
    for cluster in range(k):
        residual[cluster], weight[cluster] = residuals, weights


cdef void rescale(
    const double[:, ::1] cluster_sums, Py_ssize_t k, bint own, double[:, :, ::1] loadings, double* room
) noexcept nogil:
    """Loadings of factors that have the scale of the standard normal again (Liu, Rubin & Wu 1998)."""
    cdef Py_ssize_t cluster, j, p = loadings.shape[1], first, last
    cdef int q = loadings.shape[2], i, c
    cdef double* scale = room
    cdef double* row = scale + q * q
    cdef double weight
    for cluster in range(k):
        if own or cluster == 0:
            first = cluster if own else 0
            last = cluster + 1 if own else k
            weight = 0
            memset(scale, 0, q * q * sizeof(double))
            for j in range(first, last):
                weight += cluster_sums[0, j]
                for i in range(q):
                    for c in range(i + 1):
                        scale[i * q + c] += cluster_sums[1 + TRIANGLE(i) + c, j]
            for i in range(q):
                for c in range(i + 1):
                    scale[i * q + c] /= fmax(weight, LEAST)
            if weight < 2 * q or not factorise(scale, q):
                memset(scale, 0, q * q * sizeof(double))
                for i in range(q):
                    scale[i * q + i] = 1
        for j in range(p):
            for c in range(q):
                row[c] = 0
                for i in range(c, q):
                    row[c] += loadings[cluster, j, i] * scale[i * q + c]
            for c in range(q):
                loadings[cluster, j, c] = row[c]
