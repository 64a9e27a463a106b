# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True
"""Single-row moves: which rows one may pay for, and moving them one at a time.

With n the count of a cluster in a column and w the row's weight, taking the row out gains
w n / (n - w) (z - c)^2 in that column and putting it in elsewhere costs w n / (n + w) (z - c)^2,
exactly.
"""

from libc.stdint cimport int32_t, int64_t

from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace, chunk_entries, entries_of, join, mean_of, real, weight_of

cdef extern from "distances.h" nogil:
    void distances_f32(
        const int32_t*, const float*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const float*, const float*, const float*, const float*, Py_ssize_t, float*
    ) noexcept
    void distances_f64(
        const int32_t*, const double*, const Py_ssize_t*, const Py_ssize_t*, Py_ssize_t,
        const double*, const double*, const double*, const double*, Py_ssize_t, double*
    ) noexcept
    void two_smallest_f32(const float*, Py_ssize_t, Py_ssize_t, float*, float*, int32_t*) noexcept
    void two_smallest_f64(const double*, Py_ssize_t, Py_ssize_t, double*, double*, int32_t*) noexcept

# A cluster's count in a column this close to the row's weight is that row alone; and a gain must
# be larger than a cost by this much, so that rounding moves nothing to and fro.
cdef double ROUNDING = 1e-9


cdef Py_ssize_t pick(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const real* panel,
    const real* factors,
    const real* offsets,
    Py_ssize_t stride,
    const int32_t* labels,
    const double* own,
    Py_ssize_t* found,
    Workspace space,
) noexcept nogil:
    """The rows of one chunk that a move may pay for; returns their number."""
    cdef const int32_t* columns
    cdef const real* values
    cdef real* near = <real*> space.distances
    cdef Py_ssize_t p = rows.n_columns, r, i, e, at, m, n_found = 0
    cdef int32_t now
    cdef real* best = <real*> space.best
    cdef real* second = <real*> space.second
    cdef real cost
    cdef double gain, d, epsilon
    chunk_entries(rows, n, space, &columns, &values)
    if real is float:
        epsilon = 2.0 ** -24
        distances_f32(columns, values, space.begin, space.end, n, panel, factors, NULL, offsets, stride, near)
        two_smallest_f32(near, n, stride, best, second, space.nearest)
    else:
        epsilon = 2.0 ** -53
        distances_f64(columns, values, space.begin, space.end, n, panel, factors, NULL, offsets, stride, near)
        two_smallest_f64(near, n, stride, best, second, space.nearest)
    for r in range(n):
        i = space.index[r]
        now = labels[i]
        at = space.begin[r]
        m = space.end[r] - at
        cost = second[r] if space.nearest[r] == now else best[r]
        gain = 0
        for e in range(at, at + m):
            d = values[e] - own[2 * (now * p + columns[e])]
            gain += own[2 * (now * p + columns[e]) + 1] * d * d
        if cost < gain * (1 + 2 * (m + 4) * epsilon):
            found[n_found] = i
            n_found += 1
    return n_found


def screen(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Panel panel,
    const real[:, ::1] factors,   # IN (p, stride) what a squared difference costs on joining
    const float[::1] drift,       # IN (k,) as in `lloyd.assign`
    const float[::1] other_drift,  # IN (k,) as in `lloyd.assign`
    const float[::1] leaving,     # IN (k,) root of the largest leaving factor of a cluster
    float joining,                # IN root of the smallest joining factor of any cluster
    const int32_t[::1] labels,    # IN (n_rows,)
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    const double[:, :, ::1] own,  # IN (k, p, 2) a center, and what a squared difference gains on leaving
    Py_ssize_t[::1] found,        # OUT rows to try, as many as there are rows from start to stop
    Workspace space,
):
    """The rows between `start` and `stop` for which a single-row move may pay.

    It errs on the side of too many: `move` decides. Returns their number.
    """
    cdef Py_ssize_t i, n = 0, stride, n_found = 0, p = rows.n_columns
    cdef int32_t now
    cdef const real* centers
    cdef const real* offsets
    if real is float:
        stride, centers, offsets = panel.single_stride, panel.singles, panel.single_offsets
    else:
        stride, centers, offsets = panel.stride, panel.doubles, panel.double_offsets
    rows.check_span(start, stop)
    space.check_fits(rows, stride)
    if rows.is_double != (sizeof(real) == sizeof(double)):
        raise TypeError("factors must have the precision of the rows")
    if (
        panel.n_columns != p or factors.shape[0] != p or factors.shape[1] != stride
        or not (drift.shape[0] == other_drift.shape[0] == leaving.shape[0] == own.shape[0] == panel.k)
        or own.shape[1] != p or own.shape[2] != 2
        or not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows)
        or found.shape[0] < stop - start
    ):
        raise ValueError("rows, centers, labels and bounds do not fit together")
    if panel.terms is not None:
        raise ValueError("moves know of no terms")
    for i in range(start, stop):
        if not 0 <= labels[i] < panel.k:
            raise IndexError(f"label {labels[i]} of {panel.k} clusters")
    with nogil:
        for i in range(start, stop):
            now = labels[i]
            upper[i] = (upper[i] + drift[now]) * <float> 1.0000002
            lower[i] = (lower[i] - other_drift[now]) * <float> 0.9999998
            if upper[i] * leaving[now] < lower[i] * joining:
                continue
            if weight_of(rows, i) == 0:
                continue
            space.index[n] = i
            n += 1
            if n == space.chunk:
                n_found += pick(rows, n, centers, &factors[0, 0], offsets, stride, &labels[0],
                                &own[0, 0, 0], &found[n_found], space)
                n = 0
        if n:
            n_found += pick(rows, n, centers, &factors[0, 0], offsets, stride, &labels[0],
                            &own[0, 0, 0], &found[n_found], space)
    return n_found


cdef double leaving_gain(
    const int32_t* columns,
    const real* values,
    Py_ssize_t m,
    const double* center,
    const double* count,
    double weight,
) noexcept nogil:
    """What taking a row out of its cluster gains, per unit of its weight."""
    cdef Py_ssize_t e, j
    cdef double total = 0, d, n, alone = weight * (1 + ROUNDING)
    for e in range(m):
        j = columns[e]
        d = values[e] - center[j]
        n = count[j]
        if n > alone:
            total += n / (n - weight) * d * d
    return total


cdef double joining_cost(
    const int32_t* columns,
    const real* values,
    Py_ssize_t m,
    const double* center,
    const double* count,
    double weight,
    double limit,
) noexcept nogil:
    """What putting a row into a cluster costs, per unit of its weight; stops beyond `limit`."""
    cdef Py_ssize_t e, j
    cdef double total = 0, d, n
    for e in range(m):
        j = columns[e]
        d = values[e] - center[j]
        n = count[j]
        total += n / (n + weight) * d * d
        if total >= limit:
            break
    return total


cdef void renew(
    const int32_t* columns,
    Py_ssize_t m,
    Sums totals,
    Py_ssize_t label,
    const double* prior,          # IN (2, p) weight that never moves, and its sum
    const double* fallback,       # IN (p,) the center of a column nobody supports
    double* centers,
    double* counts,
) noexcept nogil:
    """The center and counts of a cluster in the columns of a row that came or went."""
    cdef Py_ssize_t e, j, p = totals.n_columns, at
    for e in range(m):
        j = columns[e]
        at = label * p + j
        mean_of(totals, at, prior[j], prior[p + j], fallback[j], &centers[at], &counts[at])


cdef tuple move_rows(
    Rows rows, const Py_ssize_t[::1] candidates, const double* prior, const double* fallback, int32_t* labels,
    double[:, ::1] centers, double[:, ::1] counts, Sums totals, int64_t* sizes, Workspace space, const real* like
):
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t t, i, m, c, k = centers.shape[0], to, n_moves = 0
    cdef int32_t now
    cdef double gain, cost, best, weight, lowered = 0
    with nogil:
        for t in range(candidates.shape[0]):
            i = candidates[t]
            now = labels[i]
            if sizes[now] <= 1:
                continue
            weight = weight_of(rows, i)
            m = entries_of(rows, i, space, &columns, &values)
            gain = leaving_gain(columns, values, m, &centers[now, 0], &counts[now, 0], weight)
            best = gain * (1 - ROUNDING)
            to = now
            for c in range(k):
                if c != now:
                    cost = joining_cost(columns, values, m, &centers[c, 0], &counts[c, 0], weight, best)
                    if cost < best:
                        best = cost
                        to = c
            if to == now:
                continue
            join(totals, rows, i, to, now, NULL, space, like)
            renew(columns, m, totals, now, prior, fallback, &centers[0, 0], &counts[0, 0])
            renew(columns, m, totals, to, prior, fallback, &centers[0, 0], &counts[0, 0])
            sizes[now] -= 1
            sizes[to] += 1
            labels[i] = <int32_t> to
            lowered += weight * (gain - best)
            n_moves += 1
    return n_moves, lowered


def move(
    Rows rows,
    const Py_ssize_t[::1] candidates,  # IN rows to try, in this order
    const double[:, ::1] prior,   # IN (2, p) weight of each column that never moves, and its sum
    const double[::1] fallback,   # IN (p,) the center of a column nobody supports
    int32_t[::1] labels,          # INOUT (n_rows,)
    double[:, ::1] centers,       # INOUT (k, p)
    double[:, ::1] counts,        # INOUT (k, p) with what never moves
    Sums totals,                  # INOUT
    int64_t[::1] sizes,           # INOUT (k,) rows of positive weight with an entry in each cluster
    Workspace space,
):
    """Move rows one at a time, each if it lowers the loss; never a cluster's last row.

    Returns the number of moves and what they took off the loss.
    """
    cdef Py_ssize_t t, k = centers.shape[0], p = rows.n_columns
    space.check_fits(rows, 0)
    if (
        prior.shape[0] != 2 or prior.shape[1] != p or fallback.shape[0] != p or labels.shape[0] != rows.n_rows
        or centers.shape[1] != p or counts.shape[0] != k or counts.shape[1] != p
        or totals.k != k or totals.n_columns != p or sizes.shape[0] != k
    ):
        raise ValueError("rows, labels, centers and totals do not fit together")
    for t in range(candidates.shape[0]):
        rows.check_span(candidates[t], candidates[t] + 1)
        if not 0 <= labels[candidates[t]] < k:
            raise IndexError(f"label {labels[candidates[t]]} of {k} clusters")
    if rows.is_double:
        return move_rows[double](rows, candidates, &prior[0, 0], &fallback[0], &labels[0], centers, counts, totals,
                                 &sizes[0], space, NULL)
    return move_rows[float](rows, candidates, &prior[0, 0], &fallback[0], &labels[0], centers, counts, totals,
                            &sizes[0], space, NULL)
