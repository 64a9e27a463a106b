# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Single-row moves: which rows one may pay for, and moving them one at a time.

With n the count of a cluster in a column and w the row's weight, taking the row out gains
w n / (n - w) (z - c)^2 in that column and putting it in elsewhere costs w n / (n + w) (z - c)^2,
exactly. Where gaps count (`Gaps`), what the row's gaps gain and cost comes on top.
"""

from libc.math cimport fabs, log, log1p
from libc.stdint cimport int32_t, int64_t

import numpy as np

from kpod._kernels.panel cimport Panel, slack_of_terms
from kpod._kernels.rows cimport Rows, Sums, Workspace, chunk_entries, entries_of, join, mean_of, real, weight_of

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

# A cluster's count in a column this close to the row's weight is that row alone; and a gain must
# be larger than a cost by this much, so that rounding moves nothing to and fro.
cdef double ROUNDING = 1e-9


cdef class Gaps:
    """What the gaps of a row gain when it leaves a cluster, and cost when it joins one.

    With M of the weight W of a cluster observed in a column of which a share q is observed, and
    h(u) = u ln u, the objective has in it

        -2 variance * (sum over columns of h(M + q) + h(W - M + 1 - q) - h(W + 1)  +  h(W + 1))

    and what it changes by is kept per unit of the row's weight, for an observed entry less that for
    a gap (`join`, `leave`), and for a row of gaps (`join_offsets`, `leave_offsets`).

    Parameters
    ----------
    totals : sums of the clusters, which moves keep up to date
    shares : float64 array (p,), the share q of each column that is observed; 0 or 1 where its gaps
        say nothing
    variance : what a unit of log-likelihood is worth
    weight : of the rows that `join` and `leave` are for
    """

    def __init__(self, Sums totals, shares, double variance, double weight=1):
        if np.shape(shares) != (totals.n_columns,):
            raise ValueError("a share for every column is needed")
        self.totals, self.shares, self.variance = totals, np.ascontiguousarray(shares, np.float64), variance
        self.join, self.leave = np.zeros((totals.k, totals.n_columns)), np.zeros((totals.k, totals.n_columns))
        self.join_offsets, self.leave_offsets = np.zeros(totals.k), np.zeros(totals.k)
        self.joins, self.leaves = self.join, self.leave
        self.join_all, self.leave_all = self.join_offsets, self.leave_offsets
        self.be_of_weight(weight)

    cdef void be_of_weight(self, double weight) noexcept nogil:
        """Make the tables those of rows of this weight."""
        cdef Py_ssize_t c
        self.weight = weight
        for c in range(self.totals.k):
            self.renew(c)

    cdef void renew(self, Py_ssize_t c) noexcept nogil:
        """Make the tables of a cluster that rows joined or left."""
        cdef Py_ssize_t j, at, p = self.totals.n_columns
        cdef double w = self.weight, total = 0, seen, gaps, observed, q, factor = 2 * self.variance / w
        cdef double join_gap, leave_gap, joins = 0, leaves = 0
        cdef int level, n_speak = 0
        for level in range(self.totals.kept.n_count_levels - 1, -1, -1):
            total += self.totals.kept_weights[level * self.totals.k + c]
        for j in range(p):
            q = self.shares[j]
            if not 0 < q < 1:
                continue
            n_speak += 1
            at, observed = c * p + j, 0
            for level in range(self.totals.kept.n_count_levels - 1, -1, -1):
                observed += self.totals.kept.counts[level * self.totals.kept.step + at]
            seen, gaps = observed + q, total - observed + 1 - q
            join_gap, leave_gap = -growth(gaps, w), -growth(gaps - w, w)
            self.joins[c, j] = factor * (-growth(seen, w) - join_gap)
            self.leaves[c, j] = factor * (-growth(seen - w, w) - leave_gap)
            joins += join_gap
            leaves += leave_gap
        self.join_all[c] = factor * (joins + (n_speak - 1) * growth(total + 1, w))
        self.leave_all[c] = factor * (leaves + (n_speak - 1) * growth(total + 1 - w, w))


cdef inline double growth(double u, double w) noexcept nogil:
    """(u + w) ln(u + w) - u ln(u), without cancelling."""
    if u <= 0:
        return (u + w) * log(u + w) if u + w > 0 else 0
    return w * log(u + w) + u * log1p(w / u)


cdef Py_ssize_t pick(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const real* panel,
    const real* factors,
    const real* terms,
    const real* offsets,
    Py_ssize_t stride,
    const int32_t* labels,
    const double* own,
    const double* own_terms,      # or NULL
    const double* own_offsets,
    Panel sizes,                  # of what may be negative
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
    cdef double gain, of_terms, d, epsilon
    chunk_entries(rows, n, space, &columns, &values)
    if real is float:
        epsilon = 2.0 ** -24
        distances_f32(columns, values, space.begin, space.end, n, panel, factors, terms, offsets, 0, stride, near)
        two_smallest_f32(near, n, stride, best, second, space.nearest)
    else:
        epsilon = 2.0 ** -53
        distances_f64(columns, values, space.begin, space.end, n, panel, factors, terms, offsets, 0, stride, near)
        two_smallest_f64(near, n, stride, best, second, space.nearest)
    for r in range(n):
        i = space.index[r]
        now = labels[i]
        at = space.begin[r]
        m = space.end[r] - at
        cost = second[r] if space.nearest[r] == now else best[r]
        gain, of_terms = 0, 0
        for e in range(at, at + m):
            d = values[e] - own[2 * (now * p + columns[e])]
            gain += own[2 * (now * p + columns[e]) + 1] * d * d
        if own_terms != NULL:
            of_terms = own_offsets[now]
            for e in range(at, at + m):
                of_terms += own_terms[now * p + columns[e]]
            of_terms += 2 * slack_of_terms(sizes, m, 2 * epsilon)
        if cost < gain * (1 + 2 * (m + 4) * epsilon) + of_terms:
            found[n_found] = i
            n_found += 1
    return n_found


cdef Py_ssize_t screen_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, Panel panel, const real* costs, const float* drift,
    const float* other_drift, const float* largest_gains, float smallest_cost, const int32_t* labels, float* upper,
    float* lower, const double* own, const double* own_terms, const double* own_offsets, Py_ssize_t* found,
    Workspace space
) noexcept nogil:
    """What `screen` does, of arguments that fit together."""
    cdef Py_ssize_t i, n = 0, stride, n_found = 0
    cdef int32_t now
    cdef const real* centers
    cdef const real* offsets
    cdef const real* terms
    if real is float:
        stride, centers, offsets, terms = panel.single_stride, panel.singles, panel.single_offsets, panel.single_terms
    else:
        stride, centers, offsets, terms = panel.stride, panel.doubles, panel.double_offsets, panel.double_terms
    for i in range(start, stop):
        now = labels[i]
        upper[i] = (upper[i] + drift[now]) * <float> 1.0000002
        lower[i] = (lower[i] - other_drift[now]) * <float> 0.9999998
        if upper[i] * largest_gains[now] < lower[i] * smallest_cost:
            continue
        if weight_of(rows, i) == 0:
            continue
        space.index[n] = i
        n += 1
        if n == space.chunk:
            n_found += pick(rows, n, centers, costs, terms, offsets, stride, labels, own, own_terms, own_offsets,
                            panel, &found[n_found], space)
            n = 0
    if n:
        n_found += pick(rows, n, centers, costs, terms, offsets, stride, labels, own, own_terms, own_offsets, panel,
                        &found[n_found], space)
    return n_found


cdef Py_ssize_t find_rows(
    Rows rows, Panel panel, const void* costs, const float* drift, const float* other_drift,
    const float* largest_gains, float smallest_cost, const int32_t* labels, float* upper, float* lower,
    const double* own, Gaps gaps, Py_ssize_t* found, Workspace space
) noexcept nogil:
    """All rows that a move may pay for; `costs` in the precision of the rows."""
    cdef const double* own_terms = NULL
    cdef const double* own_offsets = NULL
    if gaps is not None:
        own_terms, own_offsets = &gaps.leaves[0, 0], &gaps.leave_all[0]
    if rows.is_double:
        return screen_rows[double](rows, 0, rows.n_rows, panel, <const double*> costs, drift, other_drift,
                                   largest_gains, smallest_cost, labels, upper, lower, own, own_terms, own_offsets,
                                   found, space)
    return screen_rows[float](rows, 0, rows.n_rows, panel, <const float*> costs, drift, other_drift, largest_gains,
                              smallest_cost, labels, upper, lower, own, own_terms, own_offsets, found, space)


def screen(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Panel panel,
    const real[:, ::1] costs,     # IN (p, stride) what a squared difference costs on joining
    const float[::1] drift,       # IN (k,) as in `lloyd.assign`
    const float[::1] other_drift,  # IN (k,) as in `lloyd.assign`
    const float[::1] largest_gains,  # IN (k,) root of the largest leaving factor of a cluster
    float smallest_cost,          # IN root of the smallest joining factor of any cluster
    const int32_t[::1] labels,    # IN (n_rows,)
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    const double[:, :, ::1] own,  # IN (k, p, 2) a center, and what a squared difference gains on leaving
    Gaps gaps,                    # whose costs of joining are the panel's offsets and terms; or None
    Py_ssize_t[::1] found,        # OUT rows to try, as many as there are rows from start to stop
    Workspace space,
):
    """The rows between `start` and `stop` for which a single-row move may pay.

    It errs on the side of too many: `move` decides. Returns their number.
    """
    cdef Py_ssize_t i, n_found, p = rows.n_columns
    cdef Py_ssize_t stride = panel.single_stride if real is float else panel.stride
    cdef const double* own_terms = NULL
    cdef const double* own_offsets = NULL
    rows.check_span(start, stop)
    space.check_fits(rows, stride)
    if rows.is_double != (sizeof(real) == sizeof(double)):
        raise TypeError("costs must have the precision of the rows")
    if (
        panel.n_columns != p or costs.shape[0] != p or costs.shape[1] != stride
        or not (drift.shape[0] == other_drift.shape[0] == largest_gains.shape[0] == own.shape[0] == panel.k)
        or own.shape[1] != p or own.shape[2] != 2
        or not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows)
        or found.shape[0] < stop - start
    ):
        raise ValueError("rows, centers, labels and bounds do not fit together")
    if (panel.terms is None) != (gaps is None) or (gaps is not None and (gaps.totals.k != panel.k
                                                                         or gaps.totals.n_columns != p)):
        raise ValueError("terms and gaps do not fit together")
    if gaps is not None:
        own_terms, own_offsets = &gaps.leaves[0, 0], &gaps.leave_all[0]
    for i in range(start, stop):
        if not 0 <= labels[i] < panel.k:
            raise IndexError(f"label {labels[i]} of {panel.k} clusters")
    with nogil:
        n_found = screen_rows(rows, start, stop, panel, &costs[0, 0], &drift[0], &other_drift[0], &largest_gains[0],
                              smallest_cost, &labels[0], &upper[0], &lower[0], &own[0, 0, 0], own_terms, own_offsets,
                              &found[0], space)
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


cdef double of_gaps(
    const int32_t* columns, Py_ssize_t m, const double* by_entry, double of_all
) noexcept nogil:
    """What the gaps of a row come to, from what each observed entry adds to a row of gaps."""
    cdef Py_ssize_t e
    for e in range(m):
        of_all += by_entry[columns[e]]
    return of_all


cdef void renew(
    const int32_t* columns,
    Py_ssize_t m,
    Sums totals,
    Py_ssize_t label,
    const double* prior,          # IN (2, p) weight that never moves, and its sum
    const double* fallback,       # IN (p,) the center of a column without observations
    double* centers,
    double* counts,
) noexcept nogil:
    """The center and counts of a cluster in the columns of a row that came or went."""
    cdef Py_ssize_t e, j, p = totals.n_columns, at
    for e in range(m):
        j = columns[e]
        at = label * p + j
        mean_of(totals, at, prior[j], prior[p + j], fallback[j], &centers[at], &counts[at])


cdef Py_ssize_t move_rows(
    Rows rows, const Py_ssize_t* candidates, Py_ssize_t n, const double* prior, const double* fallback,
    int32_t* labels, double* centers, double* counts, Sums totals, int64_t* sizes, Gaps gaps, Workspace space,
    double* lowered, const real* like
) noexcept nogil:
    """What `move` does, of arguments that fit together; returns the number of moves, and adds to `lowered`."""
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t t, i, m, c, k = totals.k, p = rows.n_columns, to, n_moves = 0
    cdef int32_t now
    cdef double gain, cost, best, weight, extra = 0, limit, lowest_cost = 0
    for t in range(n):
        i = candidates[t]
        now = labels[i]
        if sizes[now] <= 1:
            continue
        weight = weight_of(rows, i)
        m = entries_of(rows, i, space, &columns, &values)
        gain = leaving_gain(columns, values, m, centers + now * p, counts + now * p, weight)
        best = gain * (1 - ROUNDING)
        if gaps is not None:
            if weight != gaps.weight:
                gaps.be_of_weight(weight)
            extra = of_gaps(columns, m, &gaps.leaves[now, 0], gaps.leave_all[now])
            best += extra - ROUNDING * (fabs(extra) + gaps.variance)
        to = now
        for c in range(k):
            if c != now:
                if gaps is not None:
                    extra = of_gaps(columns, m, &gaps.joins[c, 0], gaps.join_all[c])
                limit = best - extra
                cost = joining_cost(columns, values, m, centers + c * p, counts + c * p, weight, limit)
                if cost < limit:
                    best = cost + extra
                    lowest_cost = cost
                    to = c
        if to == now:
            continue
        join(totals, rows, i, to, now, centers, space, like)
        renew(columns, m, totals, now, prior, fallback, centers, counts)
        renew(columns, m, totals, to, prior, fallback, centers, counts)
        sizes[now] -= 1
        sizes[to] += 1
        labels[i] = <int32_t> to
        lowered[0] += weight * (gain - lowest_cost)
        n_moves += 1
        if gaps is not None:
            gaps.renew(now)
            gaps.renew(to)
    return n_moves


cdef Py_ssize_t move_found(
    Rows rows, const Py_ssize_t* candidates, Py_ssize_t n, const double* prior, const double* fallback,
    int32_t* labels, double* centers, double* counts, Sums totals, int64_t* sizes, Gaps gaps, Workspace space,
    double* lowered
) noexcept nogil:
    """Move rows one at a time."""
    if rows.is_double:
        return move_rows[double](rows, candidates, n, prior, fallback, labels, centers, counts, totals, sizes, gaps,
                                 space, lowered, NULL)
    return move_rows[float](rows, candidates, n, prior, fallback, labels, centers, counts, totals, sizes, gaps, space,
                            lowered, NULL)


def move(
    Rows rows,
    const Py_ssize_t[::1] candidates,  # IN rows to try, in this order
    const double[:, ::1] prior,   # IN (2, p) weight of each column that never moves, and its sum
    const double[::1] fallback,   # IN (p,) the center of a column without observations
    int32_t[::1] labels,          # INOUT (n_rows,)
    double[:, ::1] centers,       # INOUT (k, p)
    double[:, ::1] counts,        # INOUT (k, p) with what never moves
    Sums totals,                  # INOUT
    int64_t[::1] sizes,           # INOUT (k,) rows of positive weight that may move in each cluster
    Gaps gaps,                    # INOUT, or None where gaps do not count
    Workspace space,
):
    """Move rows one at a time, each if it lowers the objective; never a cluster's last row.

    Returns the number of moves and what they took off the loss (which gaps may make rise).
    """
    cdef Py_ssize_t t, k = centers.shape[0], p = rows.n_columns
    space.check_fits(rows, 0)
    if (
        prior.shape[0] != 2 or prior.shape[1] != p or fallback.shape[0] != p or labels.shape[0] != rows.n_rows
        or centers.shape[1] != p or counts.shape[0] != k or counts.shape[1] != p
        or totals.k != k or totals.n_columns != p or sizes.shape[0] != k
        or (gaps is not None and gaps.totals is not totals)
    ):
        raise ValueError("rows, labels, centers and totals do not fit together")
    for t in range(candidates.shape[0]):
        rows.check_span(candidates[t], candidates[t] + 1)
        if not 0 <= labels[candidates[t]] < k:
            raise IndexError(f"label {labels[candidates[t]]} of {k} clusters")
    cdef double lowered = 0
    cdef Py_ssize_t n_moves = 0
    if candidates.shape[0]:
        with nogil:
            n_moves = move_found(rows, &candidates[0], candidates.shape[0], &prior[0, 0], &fallback[0], &labels[0],
                                 &centers[0, 0], &counts[0, 0], totals, &sizes[0], gaps, space, &lowered)
    return n_moves, lowered
