# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Assign rows to their nearest centers, skipping those whose bounds prove that nothing changes.

Distances run over a row's entries and, in vector registers, over the centers side by side: only
what was observed costs time, nothing cancels, and no copy of the table is filled in. With few
centers, or few gaps, dense rows are compared side by side instead, their gaps masked out.
(A matrix product of packed rows ``[z | observed]`` against ``[-2 c | c^2]`` was built first; see
docs/speed-engineering.md.)

A label is a function of the row and the panel alone: the first of the nearest centers, by
distances in double precision. Bounds and the first look, in single precision, pass over nothing
that could come out otherwise.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, uint8_t

from kpod._kernels.panel cimport Panel, slack_of_terms
from kpod._kernels.rows cimport (
    GAP_BYTES, MOST_LANES, Rows, Sums, Workspace, chunk_entries, compact_gaps_f32, compact_gaps_f64, entries_of,
    join_entries, join_rows, real, row_at, weight_of
)

# Unit roundoff of single and double precision.
cdef double SINGLE = 2.0 ** -24
cdef double DOUBLE = 2.0 ** -53

# The instruction sets that rows are compared side by side with (lanes.h) on this machine, slowest first.
LEVELS = ("portable", "avx2", "avx512")[:highest_level() + 1]
kpod_level = len(LEVELS) - 1

# Rows from which the observed share of a block is estimated.
cdef Py_ssize_t SHARE_ROWS = 32

# Rows of one call, which are numbered in 32 bits.
MOST_ROWS = 2 ** 31 - 1 - MOST_LANES


cdef int check(Rows rows, Panel panel, Workspace space) except -1:
    if rows.n_columns != panel.n_columns:
        raise ValueError(f"the panel has {panel.n_columns} columns, the rows have {rows.n_columns}")
    space.check_fits(rows, max(panel.stride, panel.single_stride))
    return 0


def use_level(str level):
    """Compare rows with the loops for one of `LEVELS`; the last one is used unless another is asked for."""
    global kpod_level
    kpod_level = LEVELS.index(level)


cdef bint is_side_by_side(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, Panel panel, Workspace space, const real* like
) noexcept nogil:
    """Whether rows are compared side by side, rather than one at a time; nothing but time depends on it."""
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t r, m = 0, p = rows.n_columns, n = min(stop - start, SHARE_ROWS)
    if rows.is_sparse:
        return False
    if panel.single_terms != NULL:  # of more centers, what gaps take off is looked up
        return panel.k <= FEW_CENTERS
    if panel.k <= most_side_by_side(p, 0) or n == 0:
        return True
    if panel.k > most_side_by_side(p, 1):
        return False
    for r in range(n):
        m += entries_of(rows, start + r * ((stop - start) // n), space, &columns, &values)
    return panel.k <= most_side_by_side(p, <double> m / (n * p))


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


cdef inline void open_rows(Rows rows, Py_ssize_t start, Py_ssize_t n, Workspace space) noexcept nogil:
    """space.pointers[:n] = the dense rows space.looked[:n], counted from `start` on."""
    cdef Py_ssize_t r, p = rows.n_columns, size = p * (sizeof(double) if rows.is_double else sizeof(float))
    cdef const char* first = <const char*> rows.values + start * size
    cdef const int32_t* looked = space.looked
    cdef const void** pointers = space.pointers
    if rows.hidden == NULL:
        for r in range(n):
            pointers[r] = first + looked[r] * size
        return
    for r in range(n):
        if rows.is_double:
            pointers[r] = row_at(rows, start + looked[r], (<double*> space.copies) + r * p)
        else:
            pointers[r] = row_at(rows, start + looked[r], (<float*> space.copies) + r * p)


cdef void nearest_in_single(
    Rows rows, Py_ssize_t start, Py_ssize_t n, Panel panel, bint few, Workspace space
) noexcept nogil:
    """Each row's nearest center, and the distances to that and to the next, in single precision."""
    cdef Py_ssize_t r
    cdef float* best = <float*> space.best
    cdef float* second = <float*> space.second
    cdef singles of
    if not few:
        for r in range(n):
            space.index[r] = start + space.looked[r]
        single_distances(rows, n, panel, space)
        two_smallest_f32(<float*> space.distances, n, panel.single_stride, best, second, space.nearest)
        return
    of.centers, of.terms, of.offsets = panel.singles, panel.single_terms, panel.single_offsets
    of.p, of.k, of.stride = rows.n_columns, panel.k, panel.single_stride
    open_rows(rows, start, n, space)
    if rows.is_double:
        few_nearest_f64(<const double**> space.pointers, <const double*> rows.shift, rows.scale, n, &of,
                        space.singles, best, second, space.nearest)
    else:
        few_nearest_f32(<const float**> space.pointers, <const float*> rows.shift, <float> rows.scale, n, &of,
                        space.singles, best, second, space.nearest)


cdef inline void set_slack(Panel panel, Py_ssize_t m, double gap_error, Py_ssize_t r, Workspace space) noexcept nogil:
    """How far what row r of a chunk, of m entries, is compared by may be off in single precision."""
    space.slack[r] = slack_of(m, SINGLE)
    space.absolute[r] = <float> (slack_of_terms(panel, m, 2 * SINGLE) + gap_error)


cdef Py_ssize_t assign_in_single(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t n,                 # rows in the chunk: space.looked[:n]
    Panel panel,
    bint few,                     # whether rows are compared side by side
    const bounds* of,
    Workspace space,
) noexcept nogil:
    """Assign those rows for which single precision leaves no doubt; returns how many are left in space.doubtful."""
    cdef first_look look
    cdef Py_ssize_t r
    look.best, look.second = <float*> space.best, <float*> space.second
    look.slack, look.absolute = space.slack, space.absolute
    look.roundoff = <float> (2 * SINGLE)
    look.of_centers = <float> (4 * SINGLE * panel.longest) + UNDERFLOW_SLACK
    nearest_in_single(rows, start, n, panel, few, space)
    if rows.is_sparse:
        for r in range(n):
            set_slack(panel, space.end[r] - space.begin[r], 0, r, space)
    return settle(of, &look, n, space.looked, space.nearest, space.doubtful)


cdef void assign_in_double(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t n,                 # rows in the chunk: those at space.doubtful[:n] of space.looked
    Panel panel,
    const bounds* of,
    Workspace space,
) noexcept nogil:
    """Assign the rows of one chunk."""
    cdef double best, second
    cdef Py_ssize_t d, r
    cdef int32_t i
    cdef float slack = slack_of(rows.n_columns, DOUBLE)
    cdef double absolute = slack_of_terms(panel, rows.n_columns, 2 * DOUBLE)
    for d in range(n):
        r = space.doubtful[d]
        i = space.looked[r]
        double_distances(rows, start + i, panel, space)
        two_smallest_f64(<double*> space.distances, 1, panel.stride, &best, &second, &space.nearest[r])
        of.labels[i] = space.nearest[r]
        of.upper[i] = <float> (sqrt(best + absolute) * (1 + slack)) + UNDERFLOW_SLACK
        of.lower[i] = <float> min(sqrt(max(second - absolute, 0)) * (1 - slack), LARGEST_BOUND) - UNDERFLOW_SLACK


cdef void carry_over(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t n,                 # rows space.looked[:n], with labels space.nearest[:n], space.before[:n] until now
    const double* centers,        # (k, p)
    Sums to,                      # INOUT
    double* gain,                 # INOUT
    Workspace space,
    const real* like,             # chooses the precision
) noexcept nogil:
    """Take rows that changed their label from one cluster to the other."""
    cdef double* weights = <double*> space.best
    cdef double* gains = <double*> space.second
    cdef const int32_t* looked = space.looked
    cdef double total = gain[0]
    cdef Py_ssize_t r
    if rows.is_sparse:
        for r in range(n):
            gains[r] = join_entries(to, rows, start + looked[r], space.nearest[r], space.before[r], centers, space,
                                    like)
    else:
        open_rows(rows, start, n, space)
        for r in range(n):
            weights[r] = weight_of(rows, start + looked[r])
        join_rows(to, rows, space.pointers, n, weights, space.nearest, space.before, centers, gains)
    for r in range(n):  # in the order of the rows: the same sum however many are looked at
        total += gains[r]
    gain[0] = total


cdef Py_ssize_t assign_rows(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, Panel panel, const bounds* of, Sums to, double* gain,
    Workspace space
) noexcept nogil:
    """Assign the rows between `start` and `stop`; returns how many changed, or -1 for a label beyond the clusters."""
    cdef Py_ssize_t i = 0, r, n, n_left, changed = 0
    cdef bint looks = not (rows.is_sparse and rows.is_double)  # whether there is a first look in single precision
    cdef bint clear = looks                                    # and whether it settles most rows
    cdef bint few
    if rows.is_double:
        few = is_side_by_side[double](rows, start, stop, panel, space, NULL)
    else:
        few = is_side_by_side[float](rows, start, stop, panel, space, NULL)
    for r in range(space.chunk):
        set_slack(panel, rows.n_columns, panel.gap_error, r, space)
    while i < stop - start:
        i = near_rows(of, i, stop - start, space.chunk, space.looked, space.before, &n)
        if i < 0:
            return -1
        if n == 0:  # bounds settle all that were left
            break
        if clear:
            n_left = assign_in_single(rows, start, n, panel, few, of, space)
            clear = 2 * n_left < n
        else:
            n_left = n
            for r in range(n):
                space.doubtful[r] = <int32_t> r
            clear = looks  # it may settle the next ones
        assign_in_double(rows, start, n_left, panel, of, space)
        n = keep_changed(n, space.looked, space.nearest, space.before)
        changed += n
        if to is None:
            continue
        if rows.is_double:
            carry_over[double](rows, start, n, panel.by_row, to, gain, space, NULL)
        else:
            carry_over[float](rows, start, n, panel.by_row, to, gain, space, NULL)
    return changed


cdef bounds bounds_of(
    int32_t* labels, float* upper, float* lower, const float* drift, const float* other_drift, Panel panel
) noexcept nogil:
    cdef bounds of
    of.labels, of.upper, of.lower = labels, upper, lower
    of.drift, of.other_drift, of.k = drift, other_drift, <int32_t> panel.k
    of.leaving = 1 + 2 * slack_of(panel.n_columns, DOUBLE)
    return of


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
    cdef bounds of
    rows.check_span(start, stop)
    check(rows, panel, space)
    if not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows):
        raise ValueError("labels and bounds of another length than the rows")
    if not (drift.shape[0] == other_drift.shape[0] == panel.k):
        raise ValueError("drifts for another number of centers")
    if to is not None and (to.k != panel.k or to.n_columns != panel.n_columns):
        raise ValueError("sums of another shape than the centers")
    if stop - start > MOST_ROWS:
        raise ValueError(f"at most {MOST_ROWS} rows are assigned at a time")
    of = bounds_of(&labels[0] + start, &upper[0] + start, &lower[0] + start, &drift[0], &other_drift[0], panel)
    with nogil:
        changed = assign_rows(rows, start, stop, panel, &of, to, &gain, space)
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
    cdef Py_ssize_t k = before.shape[0]
    if (
        after.shape[0] != k or after.shape[1] != before.shape[1]
        or own.shape[0] != k or other.shape[0] != k or (more is not None and more.shape[0] != k)
    ):
        raise ValueError("centers and drifts do not fit together")
    drift_of(&before[0, 0], &after[0, 0], NULL if more is None else &more[0], k, before.shape[1], &own[0], &other[0])


cdef void drift_of(
    const double* before, const double* after, const double* more, Py_ssize_t k, Py_ssize_t p, float* own, float* other
) noexcept nogil:
    cdef Py_ssize_t c, j
    cdef double squares, d
    cdef float first = 0, second = 0
    for c in range(k):
        squares = 0 if more == NULL else more[c]
        for j in range(p):
            d = after[c * p + j] - before[c * p + j]
            squares += d * d
        own[c] = <float> min(sqrt(squares) * (1 + 1e-6), LARGEST_BOUND)
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
