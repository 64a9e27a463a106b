# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Assign rows to their nearest centers, passing over those whose bounds say that nothing changes.

Distances run over a row's entries and, in vector registers, over the centers side by side: only
what was observed costs time, nothing cancels, and no copy of the table is filled in. With few
centers, eight dense rows are compared side by side instead, their gaps masked out.
(A matrix product of packed rows ``[z | observed]`` against ``[-2 c | c^2]`` was built first; see
docs/speed.md.)

A label is a function of the row and the panel alone: the first of the nearest centers, by
distances in double precision. Bounds and the first look, in single precision, pass over nothing
that could come out otherwise.
"""

from libc.math cimport INFINITY, sqrt, sqrtf
from libc.stdint cimport int16_t, int32_t, uint8_t

from kpod._kernels.panel cimport Panel, slack_of_terms
from kpod._kernels.rows cimport (
    GAP_BYTES, Rows, Sums, Workspace, chunk_entries, entries_of, join, compact_gaps_f32, compact_gaps_f64, real,
    row_at
)

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
    float UNDERFLOW_SLACK
    Py_ssize_t near_rows(
        Py_ssize_t, Py_ssize_t, int32_t, const int32_t*, float*, float*, const float*, const float*, float,
        Py_ssize_t, Py_ssize_t*, Py_ssize_t*
    ) noexcept

cdef extern from "gaps.h" nogil:
    void start_with_gaps(
        const uint8_t*, Py_ssize_t, Py_ssize_t, const float*, const int16_t*, float, Py_ssize_t, const float*,
        Py_ssize_t, float*, float*
    ) noexcept

cdef extern from "few.h" nogil:
    int FEW_CENTERS
    void few_nearest_f32(
        const float**, const float*, float, Py_ssize_t, Py_ssize_t, const float*, const float*, const float*,
        Py_ssize_t, Py_ssize_t, float*, float*, float*, int32_t*
    ) noexcept
    void few_nearest_f64(
        const double**, const double*, double, Py_ssize_t, Py_ssize_t, const float*, const float*, const float*,
        Py_ssize_t, Py_ssize_t, float*, float*, float*, int32_t*
    ) noexcept

# Unit roundoff of single and double precision.
cdef double SINGLE = 2.0 ** -24
cdef double DOUBLE = 2.0 ** -53

# A distance that single precision holds: a lower bound must not be infinite, which is for good.
cdef float LARGEST = 1e37

# The most centers that rows are compared with side by side.
SIDE_BY_SIDE = FEW_CENTERS


cdef int check(Rows rows, Panel panel, Workspace space) except -1:
    if rows.n_columns != panel.n_columns:
        raise ValueError(f"the panel has {panel.n_columns} columns, the rows have {rows.n_columns}")
    space.check_fits(rows, max(panel.stride, panel.single_stride))
    return 0


cdef inline float slack_of(Py_ssize_t m, double epsilon) noexcept nogil:
    """How far the root of a sum of m squares of differences may be off, relatively.

    The sum is off by at most m + 3 roundings; bounds are kept in single precision, hence the rest.
    """
    return <float> ((m + 3) * epsilon + 3e-7)


cdef void single_distances(Rows rows, Py_ssize_t n, Panel panel, Workspace space) noexcept nogil:
    """What the rows space.index[:n] are compared with each center by, in single precision."""
    cdef const int32_t* columns
    cdef const float* values
    cdef const double* doubles
    cdef const float* terms = panel.single_terms
    cdef const float* begin_with = panel.single_offsets
    cdef Py_ssize_t e, step = 0
    # A sparse row lacks nearly all columns, so there is nothing to be had from its gaps.
    cdef bint by_gaps = panel.gap_table != NULL and not rows.is_sparse
    if rows.is_double:  # dense: sparse doubles have no first look
        list_entries(rows, n, by_gaps, space, &columns, &doubles)
        for e in range(space.end[n - 1]):
            space.singles[e] = <float> doubles[e]
        values = space.singles
    else:
        list_entries(rows, n, by_gaps, space, &columns, &values)
    if by_gaps:
        start_with_gaps(space.gaps, GAP_BYTES(rows.n_columns), n, panel.gap_means, panel.gap_table, panel.gap_unit,
                        panel.gap_stride, panel.complete, panel.single_stride, space.common, <float*> space.distances)
        terms, begin_with, step = NULL, <float*> space.distances, panel.single_stride
    distances_f32(columns, values, space.begin, space.end, n, panel.singles, NULL, terms, begin_with, step,
                  panel.single_stride, <float*> space.distances)


cdef inline void list_entries(
    Rows rows,
    Py_ssize_t n,
    bint with_gaps,               # of dense rows only
    Workspace space,
    const int32_t** columns,      # OUT what space.begin and space.end count from
    const real** values,
) noexcept nogil:
    """List the entries of the rows space.index[:n], and the gaps of each if asked for."""
    cdef Py_ssize_t r, at = 0, p = rows.n_columns
    cdef real* listed = <real*> space.values
    cdef const real* row
    cdef uint8_t* gaps
    if not with_gaps:
        chunk_entries(rows, n, space, columns, values)
        return
    columns[0] = space.columns
    values[0] = listed
    for r in range(n):
        row = row_at(rows, space.index[r], <real*> space.copies)
        gaps = space.gaps + r * GAP_BYTES(p)
        space.begin[r] = at
        if real is float:
            at += compact_gaps_f32(row, <const float*> rows.shift, <float> rows.scale, p, space.columns + at,
                                   listed + at, gaps)
        else:
            at += compact_gaps_f64(row, <const double*> rows.shift, rows.scale, p, space.columns + at,
                                   listed + at, gaps)
        space.end[r] = at


cdef void double_distances(Rows rows, Py_ssize_t i, Panel panel, Workspace space) noexcept nogil:
    """What row i is compared with each center by, in double precision."""
    cdef const int32_t* columns
    cdef const float* singles
    cdef const double* values
    cdef Py_ssize_t e
    space.begin[0] = 0
    if rows.is_double:
        space.end[0] = entries_of(rows, i, space, &columns, &values)
    else:
        space.end[0] = entries_of(rows, i, space, &columns, &singles)
        for e in range(space.end[0]):
            space.widened[e] = singles[e]
        values = space.widened
    distances_f64(columns, values, space.begin, space.end, 1, panel.doubles, NULL, panel.double_terms,
                  panel.double_offsets, 0, panel.stride, <double*> space.distances)


cdef void nearest_in_single(Rows rows, Py_ssize_t n, Panel panel, Workspace space) noexcept nogil:
    """Each row's nearest center, and the distances to that and to the next, in single precision."""
    cdef Py_ssize_t r, p = rows.n_columns
    if rows.is_sparse or panel.k > FEW_CENTERS:
        single_distances(rows, n, panel, space)
        two_smallest_f32(<float*> space.distances, n, panel.single_stride, <float*> space.best, <float*> space.second,
                         space.nearest)
        return
    for r in range(n):
        if rows.is_double:
            space.pointers[r] = row_at(rows, space.index[r], (<double*> space.copies) + r * p)
        else:
            space.pointers[r] = row_at(rows, space.index[r], (<float*> space.copies) + r * p)
    if rows.is_double:
        few_nearest_f64(<const double**> space.pointers, <const double*> rows.shift, rows.scale, p, n, panel.singles,
                        panel.single_terms, panel.single_offsets, panel.single_stride, panel.k, space.singles,
                        <float*> space.best, <float*> space.second, space.nearest)
    else:
        few_nearest_f32(<const float**> space.pointers, <const float*> rows.shift, <float> rows.scale, p, n,
                        panel.singles, panel.single_terms, panel.single_offsets, panel.single_stride, panel.k,
                        space.singles, <float*> space.best, <float*> space.second, space.nearest)


cdef Py_ssize_t assign_in_single(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    Panel panel,
    int32_t* labels,
    float* upper,
    float* lower,
    Workspace space,
) noexcept nogil:
    """Assign those rows for which single precision leaves no doubt.

    Rounding a row and a center changes their distance by at most the norms of what was rounded
    off, a unit roundoff of their own norms; and a row is no longer than a center and its distance
    from it together. Returns how many rows are left: the first in space.index.
    """
    cdef float* best = <float*> space.best
    cdef float* second = <float*> space.second
    cdef Py_ssize_t r, i, n_left = 0
    cdef float slack = slack_of(rows.n_columns, SINGLE), margin, own, other
    cdef float absolute = <float> (slack_of_terms(panel, rows.n_columns, 2 * SINGLE) + panel.gap_error)
    cdef float roundoff = <float> (2 * SINGLE), of_centers = <float> (4 * SINGLE * panel.longest) + UNDERFLOW_SLACK
    nearest_in_single(rows, n, panel, space)
    for r in range(n):
        i = space.index[r]
        if rows.is_sparse:
            slack = slack_of(space.end[r] - space.begin[r], SINGLE)
            absolute = <float> slack_of_terms(panel, space.end[r] - space.begin[r], 2 * SINGLE)
        own = sqrtf(best[r] + absolute)
        other = sqrtf(max(second[r] - absolute, 0))
        margin = roundoff * own + of_centers
        own = own * (1 + slack) + margin
        other = other * (1 - slack) - margin
        # A little more, so that double precision says the same. A single center has no second.
        if own * (1 + slack) < other and (other < INFINITY or panel.k == 1) and own < INFINITY:
            labels[i] = space.nearest[r]
            upper[i] = own
            lower[i] = min(other, LARGEST)
        else:
            space.index[n_left] = i
            n_left += 1
    return n_left


cdef void assign_in_double(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    Panel panel,
    int32_t* labels,
    float* upper,
    float* lower,
    Workspace space,
) noexcept nogil:
    """Assign the rows of one chunk."""
    cdef double best, second
    cdef int32_t nearest
    cdef Py_ssize_t r, i
    cdef float slack = slack_of(rows.n_columns, DOUBLE)
    cdef double absolute = slack_of_terms(panel, rows.n_columns, 2 * DOUBLE)
    for r in range(n):
        i = space.index[r]
        double_distances(rows, i, panel, space)
        two_smallest_f64(<double*> space.distances, 1, panel.stride, &best, &second, &nearest)
        labels[i] = nearest
        upper[i] = <float> (sqrt(best + absolute) * (1 + slack)) + UNDERFLOW_SLACK
        lower[i] = <float> min(sqrt(max(second - absolute, 0)) * (1 - slack), LARGEST) - UNDERFLOW_SLACK


cdef Py_ssize_t carry_over(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.looked[:n], with labels space.before[:n] until now
    Panel panel,
    const int32_t* labels,
    Sums to,                      # INOUT, or None
    double* gain,                 # INOUT
    Workspace space,
    const real* like,             # chooses the precision
) noexcept nogil:
    """Take the rows that changed their label from one cluster to the other; returns how many did."""
    cdef Py_ssize_t r, i, changed = 0
    cdef int32_t now, before
    for r in range(n):
        i = space.looked[r]
        now = labels[i]
        before = space.before[r]
        if now == before:
            continue
        changed += 1
        if to is not None:
            gain[0] += join(to, rows, i, now, before, panel.by_row, space, like)
    return changed


cdef Py_ssize_t assign_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, Panel panel, const float* drift, const float* other_drift,
    int32_t* labels, float* upper, float* lower, Sums to, double* gain, Workspace space
) noexcept:
    cdef Py_ssize_t i = start, r, n, n_left, changed = 0
    cdef bint looks = not (rows.is_sparse and rows.is_double)  # whether there is a first look in single precision
    cdef bint clear = looks                                    # and whether it settles most rows
    cdef float leaving = 1 + 2 * slack_of(rows.n_columns, DOUBLE)
    with nogil:
        while i < stop:
            i = near_rows(i, stop, <int32_t> panel.k, labels, upper, lower, drift, other_drift, leaving,
                          space.chunk, space.looked, &n)
            if i < 0:
                return -1
            if n == 0:
                break
            for r in range(n):
                space.index[r] = space.looked[r]
                space.before[r] = labels[space.looked[r]]
            n_left = n
            if clear:
                n_left = assign_in_single(rows, n, panel, labels, upper, lower, space)
                clear = 2 * n_left < n
            else:
                clear = looks  # it may settle the next ones
            assign_in_double(rows, n_left, panel, labels, upper, lower, space)
            if rows.is_double:
                changed += carry_over[double](rows, n, panel, labels, to, gain, space, NULL)
            else:
                changed += carry_over[float](rows, n, panel, labels, to, gain, space, NULL)
    return changed


def assign(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Panel panel,
    const float[::1] drift,       # IN (k,) how far each center moved since the last call
    const float[::1] other_drift,  # IN (k,) how far the farthest-moving other center did
    int32_t[::1] labels,          # INOUT (n_rows,), -1 before the first call
    float[::1] upper,             # INOUT (n_rows,) at least the distance to the own center
    float[::1] lower,             # INOUT (n_rows,) at most that to any other
    Sums to,                      # INOUT += what the changes of label add; None: not wanted
    Workspace space,
):
    """One Lloyd assignment.

    Returns the number of rows that changed, and by how much that lowered the loss with the panel's
    centers (a row without a label before adds its loss).
    """
    cdef Py_ssize_t changed
    cdef double gain = 0
    rows.check_span(start, stop)
    check(rows, panel, space)
    if not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows):
        raise ValueError("labels and bounds of another length than the rows")
    if not (drift.shape[0] == other_drift.shape[0] == panel.k):
        raise ValueError("drifts for another number of centers")
    if to is not None and (to.k != panel.k or to.n_columns != panel.n_columns):
        raise ValueError("sums of another shape than the centers")
    changed = assign_rows(rows, start, stop, panel, &drift[0], &other_drift[0], &labels[0], &upper[0], &lower[0],
                          to, &gain, space)
    if changed < 0:
        raise IndexError(f"a label beyond the {panel.k} clusters")
    return changed, gain


def drift(
    const double[:, ::1] before,  # IN (k, p)
    const double[:, ::1] after,   # IN (k, p)
    const double[::1] more,       # IN (k,) squares of how far what else they are compared by moved, or None
    float[::1] own,               # OUT (k,) how far each center moved
    float[::1] other,             # OUT (k,) how far the farthest-moving other one did
):
    """How far centers moved, rounded up."""
    cdef Py_ssize_t c, j, k = before.shape[0]
    cdef double squares, d
    cdef float first = 0, second = 0
    if (
        after.shape[0] != k or after.shape[1] != before.shape[1]
        or own.shape[0] != k or other.shape[0] != k or (more is not None and more.shape[0] != k)
    ):
        raise ValueError("centers and drifts do not fit together")
    for c in range(k):
        squares = 0 if more is None else more[c]
        for j in range(before.shape[1]):
            d = after[c, j] - before[c, j]
            squares += d * d
        own[c] = <float> min(sqrt(squares) * (1 + 1e-6), LARGEST)
        second = max(second, min(first, own[c]))
        first = max(first, own[c])
    for c in range(k):
        other[c] = second if own[c] == first else first


def distances(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    Panel panel,
    real[:, ::1] out,             # OUT (n_rows, k) what rows are compared with each center by
    Workspace space,
):
    """Squared partial distances of the rows to all centers, with the panel's offsets and terms."""
    cdef Py_ssize_t i, c, k = panel.k
    rows.check_span(start, stop)
    check(rows, panel, space)
    if rows.is_double != (sizeof(real) == sizeof(double)):
        raise TypeError("distances must have the precision of the rows")
    if out.shape[0] != rows.n_rows or out.shape[1] != k:
        raise ValueError("distances of another shape than rows and centers")
    with nogil:
        for i in range(start, stop):
            double_distances(rows, i, panel, space)
            for c in range(k):
                out[i, c] = <real> (<double*> space.distances)[c]
