# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Lloyd's iterations over the rows of one block, in one call: what `Descent.lloyd` does, to the bit.

For tables so small that a call from Python takes longer than what it calls for. It stops where more is
needed than assignments and means: when a cluster is empty, or momentum begins.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from kpod._kernels.lloyd cimport assign_rows, bounds, bounds_of, drift_of
from kpod._kernels.panel cimport Panel
from kpod._kernels.rows cimport Rows, Sums, Workspace, mean_of

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


cdef bint any_empty(Sums totals) noexcept nogil:
    """Whether there is a cluster of which nothing was observed."""
    cdef Py_ssize_t c, j, p = totals.n_columns
    cdef int level
    cdef bint empty
    for c in range(totals.k):
        empty = True
        for level in range(totals.kept.n_count_levels):
            for j in range(p):
                if totals.kept.counts[level * totals.kept.step + c * p + j] > 0:
                    empty = False
                    break
            if not empty:
                break
        if empty:
            return True
    return False


def descend(
    Rows rows,
    Panel panel,                  # INOUT nobody else's, without offsets and terms: that of the last assignment
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
    double lowest,                # after the last iteration
    double penalty,               # what the objective adds to the loss at the centers of the first assignment
    double little,                # squared distance: centers that move no farther have converged
    double[::1] falls,            # OUT (n,) what each iteration took off the loss
    double[::1] losses,           # OUT (n,) the loss after each
    Workspace space,
):
    """Up to n iterations of assignment and update.

    Returns why it stopped, the number of iterations, the rows that the last assignment changed, the loss after it,
    and `lowest`. When a cluster is empty, the last assignment is not followed by an update, and not counted.
    """
    cdef Py_ssize_t k = panel.k, p = panel.n_columns, n = k * p, t = 0, c, j, changed = 0
    cdef bint first = loss == float("inf")
    cdef double gain, at, moved, fall
    cdef int why = _GOING
    cdef bounds of
    cdef float* drift
    if (
        rows.n_columns != p or totals.k != k or totals.n_columns != p or prior.shape[0] != 2 or prior.shape[1] != p
        or fallback.shape[0] != p or losses.shape[0] != falls.shape[0]
        or not (labels.shape[0] == upper.shape[0] == lower.shape[0] == rows.n_rows)
        or not (centers.shape[0] == means.shape[0] == counts.shape[0] == k)
        or not (centers.shape[1] == means.shape[1] == counts.shape[1] == p)
    ):
        raise ValueError("rows, centers, labels and totals do not fit together")
    if panel.offsets is not None or panel.terms is not None:
        raise ValueError("a panel with offsets or terms")
    rows.check_span(0, rows.n_rows)
    space.check_fits(rows, max(panel.stride, panel.single_stride))
    drift = <float*> malloc(2 * k * sizeof(float))
    if drift == NULL:
        raise MemoryError
    try:
        with nogil:
            of = bounds_of(&labels[0], &upper[0], &lower[0], drift, drift + k, panel)
            while t < falls.shape[0] and why == _GOING:
                drift_of(panel.by_row, &centers[0, 0], NULL, k, p, drift, drift + k)
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
                if any_empty(totals):
                    why = _EMPTY
                    break
                moved = squared_distance_of(&means[0, 0], &centers[0, 0], n)
                memcpy(&centers[0, 0], &means[0, 0], n * sizeof(double))
                fall = lowest - loss
                falls[t] = max(fall, 0.0)
                losses[t] = max(loss, 0.0)
                lowest = loss
                t += 1
                if changed == 0 or fall <= 0:
                    why = _UNCHANGED
                elif moved <= little:
                    why = _LITTLE
    finally:
        free(drift)
    if changed < 0:
        raise IndexError(f"a label beyond the {k} clusters")
    return why, t, changed, loss, lowest
