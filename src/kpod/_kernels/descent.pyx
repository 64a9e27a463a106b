# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Iterations over the rows of one block in one call: what `Descent.lloyd` and `Moves` do, to the bit.

For tables so small that a call from Python takes longer than what it calls for. It stops where more is
needed than assignments and means: when a cluster is empty.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from kpod._kernels.gap_likelihood cimport GapLikelihood, roots_moved, terms_of
from kpod._kernels.lloyd cimport assign_rows, bounds, bounds_of, drift_of
from kpod._kernels.moves cimport Gaps, find_rows, move_found
from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace, mean_of, weight_of

cdef extern from "memory.h" nogil:
    void* allocate_lines(size_t) noexcept
    void free_lines(void*) noexcept

# What a row gains at most by leaving, where it alone may support a column.
cdef double ANY_GAIN = 1e30

# Why it stopped.
GOING, UNCHANGED, LITTLE, EMPTY = range(4)
cdef enum:
    _GOING = 0
    _UNCHANGED = 1
    _LITTLE = 2
    _EMPTY = 3


cdef double excess_of(
    const double* counts, const double* centers, const double* means, Py_ssize_t n
) noexcept nogil:
    cdef double total = 0, d
    cdef Py_ssize_t i
    for i in range(n):
        d = centers[i] - means[i]
        total += counts[i] * (d * d)
    return total


def excess(const double[:, ::1] counts, const double[:, ::1] centers, const double[:, ::1] means):
    """The sum of count * squared difference."""
    if not (counts.shape[0] == centers.shape[0] == means.shape[0]
            and counts.shape[1] == centers.shape[1] == means.shape[1]):
        raise ValueError("counts and centers do not fit together")
    return excess_of(&counts[0, 0], &centers[0, 0], &means[0, 0], counts.shape[0] * counts.shape[1])


cdef double squared_distance_of(const double* one, const double* other, Py_ssize_t n) noexcept nogil:
    cdef double total = 0, d
    cdef Py_ssize_t i
    for i in range(n):
        d = one[i] - other[i]
        total += d * d
    return total


def squared_distance(const double[:, ::1] one, const double[:, ::1] other):
    """The sum of squared differences."""
    if one.shape[0] != other.shape[0] or one.shape[1] != other.shape[1]:
        raise ValueError("centers do not fit together")
    return squared_distance_of(&one[0, 0], &other[0, 0], one.shape[0] * one.shape[1])


cdef double along_of(const double* to, const double* start, const double* step, Py_ssize_t n) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(n):
        total += (to[i] - start[i]) * step[i]
    return total


cdef void go_beyond_of(double* out, const double* at, const double* step, Py_ssize_t run, Py_ssize_t n) noexcept nogil:
    cdef double share = <double> (run - 1) / <double> (run + 2)
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = at[i] + share * step[i]


def along(const double[:, ::1] to, const double[:, ::1] start, const double[:, ::1] step):
    """The product of the way from `start` and a step: negative where centers turn round."""
    if not (to.shape[0] == start.shape[0] == step.shape[0] and to.shape[1] == start.shape[1] == step.shape[1]):
        raise ValueError("centers do not fit together")
    return along_of(&to[0, 0], &start[0, 0], &step[0, 0], to.shape[0] * to.shape[1])


def go_beyond(double[:, ::1] out, const double[:, ::1] at, const double[:, ::1] step, Py_ssize_t run):
    """Momentum: centers go on by (run - 1) / (run + 2) of their last step, the `run`-th in one direction."""
    if not (out.shape[0] == at.shape[0] == step.shape[0] and out.shape[1] == at.shape[1] == step.shape[1]):
        raise ValueError("centers do not fit together")
    go_beyond_of(&out[0, 0], &at[0, 0], &step[0, 0], run, at.shape[0] * at.shape[1])


cdef bint any_empty(Sums totals, bint gaps) noexcept nogil:
    """Whether there is a cluster of which nothing was observed; where gaps count, one without rows."""
    cdef Py_ssize_t c, j, p = totals.n_columns
    cdef int level
    cdef bint empty
    for c in range(totals.k):
        empty = True
        for level in range(totals.kept.n_count_levels):
            if gaps:
                if totals.kept_weights[level * totals.k + c] > 0:
                    empty = False
                continue
            for j in range(p):
                if totals.kept.counts[level * totals.kept.step + c * p + j] > 0:
                    empty = False
                    break
            if not empty:
                break
        if empty:
            return True
    return False


cdef int check_gaps(GapLikelihood gaps, Panel panel) except -1:
    """Whether there are offsets and terms if gaps count, and only then."""
    if gaps is None:
        if panel.offsets is not None or panel.terms is not None:
            raise ValueError("a panel with offsets or terms")
    elif gaps.k != panel.k or gaps.n_columns != panel.n_columns or panel.offsets is None or panel.terms is None:
        raise ValueError("panel and likelihood of gaps do not fit together")
    return 0


cdef void follow_gaps(
    GapLikelihood gaps, Sums totals, double loss, Panel panel, double* offsets, double* terms, double* roots,
    double* moved,                # OUT (k,) squares of how far roots moved
    double* room,                 # for 4 k p + k numbers
) noexcept nogil:
    """Make offsets and terms of a panel, and their roots, the best for the totals."""
    cdef Py_ssize_t k = panel.k, p = panel.n_columns, n = k * p
    cdef double* rates = room
    cdef double* now = room + n
    cdef double* shares = room + 4 * n
    gaps.rates_of(totals, rates, shares)
    terms_of(rates, shares, gaps.variance_of(loss), k, p, offsets, terms, now)
    roots_moved(roots, now, k, p, moved)
    memcpy(roots, now, 3 * n * sizeof(double))
    panel.set_terms(offsets, terms)


def descend(
    Rows rows,
    Panel panel,                  # INOUT nobody else's: that of the last assignment; with offsets, terms and roots
    GapLikelihood gaps,           # where there is one, or None
    Sums totals,                  # INOUT
    const double[:, ::1] prior,   # IN (2, p) as in `rows.means`
    const double[::1] fallback,   # IN (p,) as in `rows.means`
    double[:, ::1] centers,       # INOUT (k, p) to assign rows to
    double[:, ::1] means,         # INOUT (k, p) the best centers of the labels
    double[:, ::1] counts,        # INOUT (k, p) the weight behind them
    int32_t[::1] labels,          # INOUT (n_rows,) as in `lloyd.assign`
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    double loss,                  # at the means; infinite before the first assignment
    double lowest,                # the objective after the last iteration
    double penalty,               # what the objective adds to the loss at the centers of the first assignment
    double little,                # squared distance: centers that move no farther have converged,
    double little_fall,           # where gaps count, if the objective does not fall by more than this, either
    double[:, ::1] path,          # INOUT (k, p) the means after the last iteration, which momentum follows
    Py_ssize_t run,               # how many steps centers have gone one way
    Py_ssize_t iteration,         # how many iterations there were before
    Py_ssize_t creep_start,       # the iterations after which centers may go beyond the means:
    Py_ssize_t creep_stop,        # from one of them up to another
    double[::1] falls,            # OUT (n,) what each iteration took off the objective
    double[::1] losses,           # OUT (n,) the loss after each
    Workspace space,
):
    """Up to n iterations of assignment and update, as in `Descent.lloyd`.

    Returns why it stopped, the number of iterations, the rows that the last assignment changed, the loss after it,
    `lowest` and `run`. When a cluster is empty, the last assignment is not followed by an update, and not counted.
    """
    cdef Py_ssize_t k = panel.k, p = panel.n_columns, n = k * p, t = 0, c, j, changed = 0
    cdef double* before
    cdef double* step
    cdef double* more = NULL
    cdef bint first = loss == float("inf")
    cdef double gain, at, moved, fall, value
    cdef int why = _GOING
    cdef bounds of
    cdef float* drift
    cdef double[::1] offsets
    cdef double[:, ::1] terms
    cdef double[:, :, ::1] roots
    if (
        rows.n_columns != p or totals.k != k or totals.n_columns != p or prior.shape[0] != 2 or prior.shape[1] != p
        or fallback.shape[0] != p or losses.shape[0] != falls.shape[0]
        or not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows)
        or not (centers.shape[0] == means.shape[0] == counts.shape[0] == path.shape[0] == k)
        or not (centers.shape[1] == means.shape[1] == counts.shape[1] == path.shape[1] == p)
    ):
        raise ValueError("rows, centers, labels and totals do not fit together")
    check_gaps(gaps, panel)
    if gaps is not None:
        offsets, terms, roots = panel.offsets, panel.terms, panel.roots
        if roots.shape[0] != 3 or roots.shape[1] != k or roots.shape[2] != p:
            raise ValueError("a panel without the roots of its terms")
    rows.check_span(0, rows.n_rows)
    space.check_fits(rows, max(panel.stride, panel.single_stride))
    drift = <float*> malloc(2 * k * sizeof(float))
    before = <double*> malloc((2 * n if gaps is None else 6 * n + 2 * k) * sizeof(double))
    try:
        if drift == NULL or before == NULL:
            raise MemoryError
        step = before + n
        with nogil:
            of = bounds_of(&labels[0], &upper[0], &lower[0], drift, drift + k, panel)
            while t < falls.shape[0] and why == _GOING:
                if gaps is not None and not first:
                    more = step + n
                    follow_gaps(gaps, totals, loss, panel, &offsets[0], &terms[0, 0], &roots[0, 0, 0], more, more + k)
                drift_of(panel.by_row, &centers[0, 0], more, k, p, drift, drift + k)
                if first:
                    for c in range(2 * k):
                        drift[c] = 0
                panel.move_to(&centers[0, 0])
                gain = 0
                changed = assign_rows(rows, 0, rows.n_rows, panel, &of, totals, &gain, space)
                if changed < 0:
                    break
                at = -gain
                at += penalty if first else loss + excess_of(&counts[0, 0], &centers[0, 0], &means[0, 0], n)
                if changed or first:
                    for c in range(k):
                        for j in range(p):
                            mean_of(totals, c * p + j, prior[0, j], prior[1, j], fallback[j], &means[c, j],
                                    &counts[c, j])
                loss = at - excess_of(&counts[0, 0], &centers[0, 0], &means[0, 0], n)
                first = False
                if any_empty(totals, gaps is not None):
                    why = _EMPTY
                    break
                moved = squared_distance_of(&means[0, 0], &centers[0, 0], n)
                memcpy(before, &centers[0, 0], n * sizeof(double))
                memcpy(&centers[0, 0], &means[0, 0], n * sizeof(double))
                value = loss if gaps is None else gaps.value_of(totals, loss)
                fall = lowest - value
                falls[t] = max(fall, 0.0)
                losses[t] = max(loss, 0.0)
                t += 1
                iteration += 1
                if run > 1 and fall < 0:  # the step is taken back
                    memcpy(&centers[0, 0], &path[0, 0], n * sizeof(double))
                    run = 0
                    continue
                lowest = value
                if run <= 1 and (changed == 0 or fall <= 0):
                    why = _UNCHANGED
                elif moved <= little and (gaps is None or fall <= little_fall):
                    why = _LITTLE
                else:
                    for c in range(n):
                        step[c] = (&centers[0, 0])[c] - (&path[0, 0])[c]
                    memcpy(&path[0, 0], &centers[0, 0], n * sizeof(double))
                    if not creep_start <= iteration < creep_stop or along_of(&path[0, 0], before, step, n) < 0:
                        run = 0
                    run += 1
                    if run > 1:
                        go_beyond_of(&centers[0, 0], &path[0, 0], step, run, n)
    finally:
        free(drift)
        free(before)
    if changed < 0:
        raise IndexError(f"a label beyond the {k} clusters")
    return why, t, changed, loss, lowest, run


cdef float factors_of(
    const double* means, const double* counts, Py_ssize_t k, Py_ssize_t p, double weight, bint weighted,
    const uint8_t* live, bint is_double, Py_ssize_t stride, void* costs, double* own, float* largest_gains
) noexcept nogil:
    """What moves cost and gain, as `Objective.move_factors` has it; returns the root of the smallest cost."""
    cdef Py_ssize_t c, j, at
    cdef double n, joining, leaving, largest, smallest = INFINITY
    for c in range(k):
        largest = 1
        for j in range(p):
            at = c * p + j
            n = counts[at]
            joining = n / (n + weight)
            leaving = n / (n - weight) if n > weight else 0
            if weighted and 0 < n <= weight * (1 + 1e-9):
                leaving = ANY_GAIN
            own[2 * at], own[2 * at + 1] = means[at], leaving
            if is_double:
                (<double*> costs)[j * stride + c] = joining
            else:
                (<float*> costs)[j * stride + c] = <float> joining
            largest = max(largest, leaving)
            if live[j]:
                smallest = min(smallest, joining)
        largest_gains[c] = <float> sqrt(largest * (1 + 1e-6))
    return <float> sqrt(smallest * (1 - 1e-6))


cdef void forget_bounds(Py_ssize_t n, float* upper, float* lower) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        upper[i], lower[i] = <float> INFINITY, 0


def sweep(
    Rows rows,
    Panel panel,                  # INOUT nobody else's: what bounds refer to; with the offsets and terms of
    Gaps moving,                  # INOUT what the gaps of a row gain and cost, where they count, or None; in
    GapLikelihood gaps,           # the objective, or None
    Sums totals,                  # INOUT
    const double[:, ::1] prior,   # IN (2, p) as in `rows.means`
    const double[::1] fallback,   # IN (p,) as in `rows.means`
    double[:, ::1] means,         # INOUT (k, p) the best centers of the labels
    double[:, ::1] counts,        # INOUT (k, p) the weight behind them
    int32_t[::1] labels,          # INOUT (n_rows,)
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    int64_t[::1] sizes,           # INOUT (k,) as in `moves.move`
    double weight,                # of the heaviest row
    bint weighted,                # whether others have another
    const uint8_t[::1] live,      # IN (p,) columns of which something was observed
    double loss,                  # at the means
    double share,                 # of the loss: a sweep that lowers it by no more is the last; where gaps count, one
    double little_fall,           # that lowers the objective by no more than this
    double[::1] falls,            # OUT (n,) what each sweep took off the objective
    double[::1] losses,           # OUT (n,) the loss after each
    Workspace space,
):
    """Up to n sweeps of single-row moves.

    Returns why it stopped, the number of sweeps that moved rows, and the loss after them.
    """
    cdef Py_ssize_t k = panel.k, p = panel.n_columns, n = k * p, t = 0, c, j, r, i, n_found, n_moves
    cdef Py_ssize_t stride = panel.stride if rows.is_double else panel.single_stride
    cdef size_t cost_bytes = p * stride * (sizeof(double) if rows.is_double else sizeof(float))
    cdef int why = _GOING
    cdef double lowered, value, fall, lowest = loss
    cdef float smallest
    if (
        rows.n_columns != p or totals.k != k or totals.n_columns != p or prior.shape[0] != 2 or prior.shape[1] != p
        or fallback.shape[0] != p or live.shape[0] != p or losses.shape[0] != falls.shape[0] or sizes.shape[0] != k
        or not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows)
        or not (means.shape[0] == counts.shape[0] == k) or not (means.shape[1] == counts.shape[1] == p)
    ):
        raise ValueError("rows, centers, labels and totals do not fit together")
    check_gaps(gaps, panel)
    if (gaps is None) != (moving is None) or (moving is not None and moving.totals is not totals):
        raise ValueError("totals and gaps do not fit together")
    rows.check_span(0, rows.n_rows)
    space.check_fits(rows, max(panel.stride, panel.single_stride))
    for i in range(rows.n_rows):
        if not 0 <= labels[i] < k:
            raise IndexError(f"label {labels[i]} of {k} clusters")
    if gaps is not None:
        lowest = gaps.value_of(totals, loss)
    cdef void* costs = allocate_lines(cost_bytes)
    cdef double* own = <double*> malloc(4 * n * sizeof(double))
    cdef float* drift = <float*> malloc(3 * k * sizeof(float))
    cdef Py_ssize_t* found = <Py_ssize_t*> malloc(rows.n_rows * sizeof(Py_ssize_t))
    cdef int32_t* before = <int32_t*> malloc(rows.n_rows * sizeof(int32_t))
    try:
        if costs == NULL or own == NULL or drift == NULL or found == NULL or before == NULL:
            raise MemoryError
        with nogil:
            memset(costs, 0, cost_bytes)
            while t < falls.shape[0] and why == _GOING:
                smallest = factors_of(&means[0, 0], &counts[0, 0], k, p, weight, weighted, &live[0], rows.is_double,
                                      stride, costs, own, drift + 2 * k)
                drift_of(panel.by_row, &means[0, 0], NULL, k, p, drift, drift + k)
                panel.move_to(&means[0, 0])
                n_found = 0
                if gaps is not None:  # there are no bounds; and what gaps gain and cost depends on the weight
                    forget_bounds(rows.n_rows, &upper[0], &lower[0])
                    moving.variance = gaps.variance_of(loss)
                    moving.be_of_weight(1)
                    panel.set_terms(&moving.join_all[0], &moving.joins[0, 0])
                if gaps is not None and rows.weights != NULL:
                    for i in range(rows.n_rows):
                        if weight_of(rows, i) > 0:
                            found[n_found] = i
                            n_found += 1
                else:
                    n_found = find_rows(rows, panel, costs, drift, drift + k, drift + 2 * k, smallest, &labels[0],
                                        &upper[0], &lower[0], own, moving, found, space)
                for r in range(n_found):
                    before[r] = labels[found[r]]
                memcpy(own + 2 * n, &means[0, 0], n * sizeof(double))
                memcpy(own + 3 * n, &counts[0, 0], n * sizeof(double))
                lowered = 0
                n_moves = move_found(rows, found, n_found, &prior[0, 0], &fallback[0], &labels[0], own + 2 * n,
                                     own + 3 * n, totals, &sizes[0], moving, space, &lowered)
                for r in range(n_found):
                    if labels[found[r]] != before[r]:
                        upper[found[r]], lower[found[r]] = <float> INFINITY, 0
                for c in range(k):
                    for j in range(p):
                        mean_of(totals, c * p + j, prior[0, j], prior[1, j], fallback[j], &means[c, j], &counts[c, j])
                if gaps is not None:
                    forget_bounds(rows.n_rows, &upper[0], &lower[0])
                if n_moves == 0:
                    why = _UNCHANGED
                    break
                loss -= lowered
                fall = lowered
                if gaps is not None:
                    value = gaps.value_of(totals, loss)
                    fall, lowest = max(lowest - value, 0.0), value
                falls[t] = fall
                losses[t] = max(loss, 0.0)
                t += 1
                if fall <= (share * loss if gaps is None else little_fall):
                    why = _LITTLE
    finally:
        free_lines(costs)
        free(own)
        free(drift)
        free(found)
        free(before)
    return why, t, loss
