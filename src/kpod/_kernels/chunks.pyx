# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True
"""Arithmetic on the rows of a table, one chunk at a time.

A chunk is a handful of rows as lists of their observed entries: columns, and values less the
shift. Dense and CSR tables differ in how such a list is made (`entries_of`, `chunk_entries`).
Where one pass over a row will do, and with few centers, a dense row is not listed: its gaps are
masked out.
Distances run over a row's entries and, in vector registers, over the centers side by side:
only what was observed costs time, nothing cancels, and no copy of the table is filled in.
(A matrix product of packed rows ``[z | observed]`` against ``[-2 c | c^2]`` was built first; see
docs/speed.md.)

Shapes are checked by the callers in `_blocks.py`; nothing here looks at them again.
"""

from libc.math cimport INFINITY, fabs, sqrt, sqrtf
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from kpod._kernels.loops cimport (
    COMPACT_SLACK, FEW_CENTERS, add_row, build_front, compact, distances_to, few_nearest_f32,
    few_nearest_f64, measure_row, real, row_loss, scaled_distances_to, seed_distances, two_smallest
)

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t, size_t)

build_front()

# A cluster's share of a column that is this small against the weight being moved is the
# rounding left over from weights that cancelled.
cdef double ROUNDING = 1e-9

# Unit roundoff of single precision.
cdef double SINGLE = 2.0 ** -24

# A square that single precision holds: a lower bound must not be infinite, which is for good.
cdef float LARGEST = 1e38

# The most centers that rows can be compared with side by side.
MOST_FEW = FEW_CENTERS

# More than squares too small for single precision can add up to.
cdef float TINY = 1e-17


cdef class Rows:
    """The entries of a table as the kernels see them.

    Parameters
    ----------
    values : array (n_rows, n_columns) with NaN in the gaps, or the stored values of a CSR table,
        less the shift and without NaN
    shift : array (n_columns,), of the same dtype, to take off a dense table; NaN where the column
        is to be ignored
    weights : float64 array (n_rows,), or None where every row weighs 1
    indices, indptr : int32 and int64 arrays of a CSR table, None for a dense one
    """

    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly bint is_sparse
    cdef bint is_double
    cdef object arrays
    cdef const void* values
    cdef const void* shift
    cdef const double* weights
    cdef const int32_t* indices
    cdef const int64_t* indptr

    def __cinit__(self, values, shift, weights=None, indices=None, indptr=None):
        self.arrays = (values, shift, weights, indices, indptr)
        self.n_columns = shift.shape[0]
        self.is_sparse = indptr is not None
        self.is_double = values.dtype.itemsize == sizeof(double)
        self.n_rows = indptr.shape[0] - 1 if self.is_sparse else values.shape[0]
        self.values = <const void*> <size_t> values.ctypes.data
        self.shift = <const void*> <size_t> shift.ctypes.data
        self.weights = NULL
        if weights is not None:
            self.weights = <const double*> <size_t> weights.ctypes.data
        if self.is_sparse:
            self.indices = <const int32_t*> <size_t> indices.ctypes.data
            self.indptr = <const int64_t*> <size_t> indptr.ctypes.data


cdef class Workspace:
    """The buffers of one thread: a chunk's entries and its distances to `stride` centers."""

    cdef readonly Py_ssize_t chunk
    cdef Py_ssize_t* index
    cdef Py_ssize_t* looked
    cdef int32_t* before
    cdef Py_ssize_t* begin
    cdef Py_ssize_t* end
    cdef int32_t* columns
    cdef void* values
    cdef float* singles
    cdef void* distances
    cdef void* best
    cdef void* second
    cdef void* own
    cdef int32_t* nearest

    def __cinit__(self, Py_ssize_t longest_row, Py_ssize_t stride, Py_ssize_t chunk):
        cdef Py_ssize_t n_entries = longest_row * chunk + COMPACT_SLACK
        self.chunk = chunk
        self.index = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.looked = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.before = <int32_t*> malloc(chunk * sizeof(int32_t))
        self.begin = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.end = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.columns = <int32_t*> malloc(n_entries * sizeof(int32_t))
        self.values = malloc(n_entries * sizeof(double))
        self.singles = <float*> aligned_alloc(64, (n_entries * sizeof(float) // 64 + 1) * 64)
        self.distances = aligned_alloc(64, (chunk * stride * sizeof(double) // 64 + 1) * 64)
        self.best = malloc(chunk * sizeof(double))
        self.second = malloc(chunk * sizeof(double))
        self.own = malloc(chunk * sizeof(double))
        self.nearest = <int32_t*> malloc(chunk * sizeof(int32_t))
        if not (
            self.index and self.looked and self.before and self.begin and self.end
            and self.columns and self.values and self.singles
            and self.distances and self.best and self.second and self.own and self.nearest
        ):
            raise MemoryError

    def __dealloc__(self):
        free(self.index)
        free(self.looked)
        free(self.before)
        free(self.begin)
        free(self.end)
        free(self.columns)
        free(self.values)
        free(self.singles)
        free(self.distances)
        free(self.best)
        free(self.second)
        free(self.own)
        free(self.nearest)


cdef inline double weight_of(Rows rows, Py_ssize_t i) noexcept nogil:
    return 1.0 if rows.weights == NULL else rows.weights[i]


cdef inline Py_ssize_t entries_of(
    Rows rows,
    Py_ssize_t i,
    Workspace space,
    const int32_t** columns,      # OUT where the observed columns of row i are listed
    const real** values,          # OUT and their values, less the shift
) noexcept nogil:
    """List the observed entries of one row; returns their number."""
    if rows.is_sparse:
        columns[0] = rows.indices + rows.indptr[i]
        values[0] = <const real*> rows.values + rows.indptr[i]
        return rows.indptr[i + 1] - rows.indptr[i]
    columns[0] = space.columns
    values[0] = <const real*> space.values
    return compact(<const real*> rows.values + i * rows.n_columns, <const real*> rows.shift,
                   rows.n_columns, space.columns, <real*> space.values)


cdef inline void chunk_entries(
    Rows rows,
    Py_ssize_t n,
    Workspace space,
    const int32_t** columns,      # OUT what space.begin and space.end count from
    const real** values,
) noexcept nogil:
    """List the entries of the rows space.index[:n]."""
    cdef Py_ssize_t r, at = 0
    cdef real* listed = <real*> space.values
    if rows.is_sparse:
        columns[0] = rows.indices
        values[0] = <const real*> rows.values
        for r in range(n):
            space.begin[r] = rows.indptr[space.index[r]]
            space.end[r] = rows.indptr[space.index[r] + 1]
        return
    columns[0] = space.columns
    values[0] = listed
    for r in range(n):
        space.begin[r] = at
        at += compact(<const real*> rows.values + space.index[r] * rows.n_columns, <const real*> rows.shift,
                      rows.n_columns, space.columns + at, listed + at)
        space.end[r] = at


cdef inline void add_entries(
    Rows rows,
    const real* like,             # chooses the precision
    Py_ssize_t i,
    double weight,
    double* sums,                 # INOUT (p,) of one cluster
    double* counts,               # INOUT (p,) of one cluster
) noexcept nogil:
    """Add row i to a cluster, or take it out with a weight below 0."""
    cdef const real* values = <const real*> rows.values
    cdef Py_ssize_t e
    if not rows.is_sparse:
        add_row(values + i * rows.n_columns, <const real*> rows.shift, rows.n_columns, weight, sums, counts)
        return
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        sums[rows.indices[e]] += weight * values[e]
        counts[rows.indices[e]] += weight


def measure(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    real[::1] like,               # (0,) chooses the precision
    double[::1] squares,          # INOUT (p,) += weight * z^2
    double[::1] counts,           # INOUT (p,) += weight
    int32_t[::1] observed,        # OUT (n_rows,) number of observed columns
):
    """How much of each row is observed, and the weighted sum of squares of each column."""
    cdef const real* values = <const real*> rows.values
    cdef Py_ssize_t i, e, p = rows.n_columns
    cdef double weight
    with nogil:
        for i in range(start, stop):
            weight = weight_of(rows, i)
            if rows.is_sparse:
                for e in range(rows.indptr[i], rows.indptr[i + 1]):
                    squares[rows.indices[e]] += weight * values[e] * values[e]
                    counts[rows.indices[e]] += weight
                observed[i] = <int32_t> (rows.indptr[i + 1] - rows.indptr[i])
            else:
                observed[i] = <int32_t> measure_row(values + i * p, <const real*> rows.shift, p, weight,
                                                    &squares[0], &counts[0])


def add_up(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    real[::1] like,               # (0,) chooses the precision
    double[:, ::1] sums,          # INOUT (k, p)
    double[:, ::1] counts,        # INOUT (k, p)
):
    """Add the rows to the sums and counts of their clusters."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(start, stop):
            if labels[i] >= 0:
                add_entries(rows, &like[0], i, weight_of(rows, i), &sums[labels[i], 0], &counts[labels[i], 0])


def losses(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    real[::1] like,               # (0,) chooses the precision
    const double[:, ::1] centers,  # IN (k, p), less the shift
    double[::1] out,              # OUT (n_rows,) loss of each row, or (0,) if not wanted
):
    """Sum of weight * squared partial distance of the rows to their own centers."""
    cdef const real* values = <const real*> rows.values
    cdef const double* center
    cdef Py_ssize_t i, e
    cdef bint keep = out.shape[0] > 0
    cdef double total = 0, loss, d
    with nogil:
        for i in range(start, stop):
            loss = 0
            if labels[i] >= 0:
                center = &centers[labels[i], 0]
                if rows.is_sparse:
                    for e in range(rows.indptr[i], rows.indptr[i + 1]):
                        d = values[e] - center[rows.indices[e]]
                        loss += d * d
                else:
                    loss = row_loss(values + i * rows.n_columns, <const real*> rows.shift, rows.n_columns, center)
                loss *= weight_of(rows, i)
            if keep:
                out[i] = loss
            total += loss
    return total


def distances(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const real[:, ::1] panel,     # IN (p, stride) centers transposed, less the shift
    const real[::1] offsets,      # IN (stride,)
    real[:, ::1] out,             # OUT (n_rows, k) squared partial distances
    Workspace space,
):
    """Squared partial distances of the rows to all centers."""
    cdef const int32_t* columns
    cdef const real* values
    cdef real* near = <real*> space.distances
    cdef Py_ssize_t i, c
    with nogil:
        for i in range(start, stop):
            space.index[0] = i
            chunk_entries(rows, 1, space, &columns, &values)
            distances_to(columns, values, space.begin, space.end, 1,
                         &panel[0, 0], &offsets[0], panel.shape[1], near)
            for c in range(out.shape[1]):
                out[i, c] = near[c]


def list_entries(
    Rows rows,
    const Py_ssize_t[::1] index,  # IN (n,) the rows in question
    real[::1] like,               # (0,) chooses the precision
    const Py_ssize_t[::1] start,  # IN (n + 1,) where the entries of each begin
    int32_t[::1] columns,         # OUT their columns
    float[::1] values,            # OUT their values, less the shift
    Workspace space,
):
    """The observed entries of some rows, in single precision."""
    cdef const int32_t* row_columns
    cdef const real* row_values
    cdef Py_ssize_t r, e, m
    with nogil:
        for r in range(index.shape[0]):
            m = entries_of(rows, index[r], space, &row_columns, &row_values)
            for e in range(m):
                columns[start[r] + e] = row_columns[e]
                values[start[r] + e] = <float> row_values[e]


def draw_seed(
    const Py_ssize_t[::1] start,  # IN (n + 1,) as `list_entries` has it
    const int32_t[::1] columns,   # IN
    const float[::1] values,      # IN
    const double[::1] weights,    # IN (n,)
    double variance,              # IN mean variance of a column
    const double[::1] uniform,    # IN (m,) one number from 0 to 1 per candidate
    float[::1] nearest,           # INOUT (n,) distance to the nearest seed; all inf: there is none yet
    double[::1] mass,             # buffer (n,)
    float[:, ::1] panel,          # buffer (p, stride), stride >= m; 32-byte aligned
    float[:, ::1] observed,       # buffer (p, stride), likewise
    float[:, ::1] distances,      # buffer (n, stride)
    double[::1] potentials,       # buffer (stride,)
):
    """Draw candidates as likely as their distance from the seeds so far, and keep the best.

    Returns the row that became a seed.
    """
    cdef Py_ssize_t n = weights.shape[0], m = uniform.shape[0], stride = panel.shape[1]
    cdef Py_ssize_t i, c, e, low, high, middle, best = 0
    cdef bint first = nearest[0] == INFINITY
    cdef double total = 0, target
    cdef Py_ssize_t candidate[64]
    if m > min(64, stride):
        raise ValueError("more candidates than places")
    with nogil:
        for i in range(n):
            total += weights[i] if first else weights[i] * nearest[i]
            mass[i] = total
        if total <= 0:  # every row coincides with a seed
            for i in range(n):
                total += weights[i]
                mass[i] = total
        panel[:, :] = 0
        observed[:, :] = 0
        potentials[:] = 0
        for c in range(m):
            target = uniform[c] * total
            low = 0
            high = n - 1
            while low < high:
                middle = (low + high) // 2
                if mass[middle] > target:
                    high = middle
                else:
                    low = middle + 1
            candidate[c] = low
            for e in range(start[low], start[low + 1]):
                panel[columns[e], c] = values[e]
                observed[columns[e], c] = 1
        for i in range(n):
            seed_distances(&columns[0] + start[i], &values[0] + start[i], start[i + 1] - start[i], &panel[0, 0],
                           &observed[0, 0], stride, <float> panel.shape[0], <float> variance, nearest[i],
                           weights[i], &distances[i, 0], &potentials[0])
        for c in range(1, m):
            if potentials[c] < potentials[best]:
                best = c
        for i in range(n):
            nearest[i] = distances[i, best]
        nearest[candidate[best]] = 0
    return candidate[best]


cdef inline float slack_of(Py_ssize_t m, double epsilon) noexcept nogil:
    """How far the root of a sum of m squares of differences may be off, relatively.

    The sum is off by at most m + 3 roundings; bounds are kept in single precision, hence the rest.
    """
    return <float> ((m + 3) * epsilon + 3e-7)


cdef void compare(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const real* panel,            # single precision will do for a table of doubles, too
    const real* offsets,
    Py_ssize_t stride,
    Py_ssize_t few,               # how many centers, if they are few and the table dense; or 0
    const int32_t* labels,
    Workspace space,
) noexcept nogil:
    """Each row's nearest center, and its distances to that, to the next and to its own."""
    cdef const int32_t* columns
    cdef const real* values
    cdef const double* doubles
    cdef real* near = <real*> space.distances
    cdef real* own = <real*> space.own
    cdef Py_ssize_t r, e
    cdef int32_t now
    if real is float:
        if few:
            if rows.is_double:
                few_nearest_f64(<const double*> rows.values, <const double*> rows.shift, rows.n_columns,
                                space.index, n, panel, stride, few, labels, space.singles,
                                <float*> space.best, <float*> space.second, space.nearest, own)
            else:
                few_nearest_f32(<const float*> rows.values, <const float*> rows.shift, rows.n_columns,
                                space.index, n, panel, stride, few, labels, space.singles,
                                <float*> space.best, <float*> space.second, space.nearest, own)
            return
        if rows.is_double:
            chunk_entries(rows, n, space, &columns, &doubles)
            for e in range(space.begin[0], space.end[n - 1]):
                space.singles[e] = <float> doubles[e]
            values = space.singles
        else:
            chunk_entries(rows, n, space, &columns, &values)
    else:
        chunk_entries(rows, n, space, &columns, &values)
    distances_to(columns, values, space.begin, space.end, n, panel, offsets, stride, near)
    two_smallest(near, n, stride, <real*> space.best, <real*> space.second, space.nearest)
    for r in range(n):
        now = labels[space.index[r]]
        own[r] = <real> INFINITY if now < 0 else near[r * stride + now]


cdef void settle(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const real* panel,
    const real* offsets,
    Py_ssize_t stride,
    Py_ssize_t few,
    double epsilon,
    double tie,
    int32_t* labels,
    float* upper,
    float* lower,
    Workspace space,
) noexcept nogil:
    """Assign the rows of one chunk."""
    cdef real* best = <real*> space.best
    cdef real* second = <real*> space.second
    cdef Py_ssize_t r, i
    cdef real own, other
    cdef float slack = slack_of(rows.n_columns, epsilon)
    compare(rows, n, panel, offsets, stride, few, labels, space)
    for r in range(n):
        i = space.index[r]
        own = (<real*> space.own)[r]
        other = second[r] if space.nearest[r] == labels[i] else best[r]
        # A near tie must not flicker with the rounding of the centers.
        if best[r] < own and sqrt(best[r]) + tie < sqrt(own) * (1 - 2 * epsilon):
            own = best[r]
            other = second[r]
            labels[i] = space.nearest[r]
        upper[i] = sqrtf(<float> own) * (1 + slack) + TINY
        lower[i] = sqrtf(<float> min(other, <real> LARGEST)) * (1 - slack) - TINY


cdef Py_ssize_t settle_clear(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const float* panel,
    const float* offsets,
    Py_ssize_t stride,
    Py_ssize_t few,
    float longest,                # IN norm of the longest center
    int32_t* labels,
    float* upper,
    float* lower,
    Workspace space,
) noexcept nogil:
    """Assign those rows of a chunk of doubles for which single precision leaves no doubt.

    Rounding a row and a center changes their distance by at most the norms of what was rounded
    off, a unit roundoff of their own norms; and a row is no longer than a center and its distance
    from it together. Returns how many rows are left: the first in space.index.
    """
    cdef float* best = <float*> space.best
    cdef float* second = <float*> space.second
    cdef Py_ssize_t r, i, n_left = 0
    cdef float slack = slack_of(rows.n_columns, SINGLE), margin, own, other
    compare(rows, n, panel, offsets, stride, few, labels, space)
    for r in range(n):
        i = space.index[r]
        own = sqrtf(best[r])
        other = sqrtf(second[r])
        margin = <float> (2 * SINGLE) * (own + 2 * longest) + TINY
        own = own * (1 + slack) + margin
        other = other * (1 - slack) - margin
        if own < other < INFINITY:
            labels[i] = space.nearest[r]
            upper[i] = own
            lower[i] = other
        else:
            space.index[n_left] = i
            n_left += 1
    return n_left


cdef Py_ssize_t carry_over(
    Rows rows,
    const real* like,             # chooses the precision
    Py_ssize_t n,                 # rows in the chunk: space.looked[:n], with labels space.before[:n] until now
    const int32_t* labels,
    double* sums,                 # INOUT (k, p), or NULL if not wanted
    double* counts,
    Workspace space,
) noexcept nogil:
    """Take the rows that changed their label from one cluster to the other, in order.

    However rows came to share a chunk, they are added up in the order of the table, so bounds
    make no difference to the last bit. Returns how many changed.
    """
    cdef Py_ssize_t r, i, p = rows.n_columns, changed = 0
    cdef int32_t now, before
    cdef double weight
    for r in range(n):
        i = space.looked[r]
        now = labels[i]
        before = space.before[r]
        if now == before:
            continue
        changed += 1
        if sums != NULL:
            weight = weight_of(rows, i)
            if before >= 0:
                add_entries(rows, like, i, -weight, sums + before * p, counts + before * p)
            add_entries(rows, like, i, weight, sums + now * p, counts + now * p)
    return changed


cdef inline bint far_apart(
    float* upper,                 # INOUT bound on the distance to the own center
    float* lower,                 # INOUT bound on the distance to the others
    float drift,                  # IN how far the own center moved
    float others,                 # IN how far any other did
    float leaving,                # IN factors on the two distances
    float joining,
) noexcept nogil:
    """Carry a row's bounds along; whether they say that its own center is the one to have."""
    upper[0] = (upper[0] + drift) * <float> 1.0000002
    lower[0] = (lower[0] - others) * <float> 0.9999998
    return upper[0] * leaving < lower[0] * joining


def assign(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const real[:, ::1] panel,     # IN (p, stride) centers transposed, less the shift
    const real[::1] offsets,      # IN (stride,) added to the squared distances
    const float[:, ::1] single_panel,  # IN panel and offsets in single precision, for a first look
    const float[::1] single_offsets,
    float longest,                # IN norm of the longest center
    Py_ssize_t few,               # IN number of centers, if it is at most MOST_FEW and rows are dense; or 0
    double epsilon,               # IN unit roundoff of the distances
    double tie,                   # IN how far the rounding of a center may move it
    const float[::1] drift,       # IN (k,) how far each center moved since the last call
    const float[::1] others,      # IN (k,) how far the farthest-moving other center did
    int32_t[::1] labels,          # INOUT (n_rows,), -1 before the first call
    float[::1] upper,             # INOUT (n_rows,) at least the distance to the own center
    float[::1] lower,             # INOUT (n_rows,) at most that to any other; inf: never look
    double[:, ::1] sums,          # INOUT (k, p) += what the changes of label add; (0, p): not wanted
    double[:, ::1] counts,        # INOUT (k, p) likewise
    Workspace space,
):
    """One Lloyd assignment; rows whose bounds prove that nothing changes are passed over.

    Returns the number of rows that changed.
    """
    cdef Py_ssize_t i, n = 0, n_left, stride = panel.shape[1], changed = 0
    cdef int32_t now
    cdef bint clear = not rows.is_sparse  # whether most rows are settled in single precision
    cdef double* add_sums = &sums[0, 0] if sums.shape[0] else NULL
    cdef double* add_counts = &counts[0, 0] if sums.shape[0] else NULL
    with nogil:
        for i in range(start, stop):
            now = max(labels[i], 0)
            if lower[i] != INFINITY and not far_apart(&upper[i], &lower[i], drift[now], others[now], 1, 1):
                space.index[n] = i
                space.looked[n] = i
                space.before[n] = labels[i]
                n += 1
            if n == space.chunk or (n and i == stop - 1):
                n_left = n
                if real is double and clear:
                    n_left = settle_clear(rows, n, &single_panel[0, 0], &single_offsets[0], single_panel.shape[1],
                                          few, longest, &labels[0], &upper[0], &lower[0], space)
                    clear = 2 * n_left < n
                settle(rows, n_left, &panel[0, 0], &offsets[0], stride, few, epsilon, tie,
                       &labels[0], &upper[0], &lower[0], space)
                changed += carry_over(rows, &panel[0, 0], n, &labels[0], add_sums, add_counts, space)
                n = 0
    return changed


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


cdef Py_ssize_t pick(
    Rows rows,
    Py_ssize_t n,
    const real* panel,
    const real* factors,
    const real* offsets,
    Py_ssize_t stride,
    double epsilon,
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
    cdef double gain, d
    chunk_entries(rows, n, space, &columns, &values)
    scaled_distances_to(columns, values, space.begin, space.end, n, panel, factors, offsets, stride, near)
    two_smallest(near, n, stride, best, second, space.nearest)
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
    const real[:, ::1] panel,     # IN (p, stride) centers transposed, less the shift
    const real[:, ::1] factors,   # IN (p, stride) what a squared difference costs on joining
    const real[::1] offsets,      # IN (stride,)
    double epsilon,               # IN unit roundoff of the distances
    const float[::1] drift,       # IN (k,) as in `assign`
    const float[::1] others,      # IN (k,) as in `assign`
    const float[::1] leaving,     # IN (k,) root of the largest leaving factor of a cluster
    float joining,                # IN root of the smallest joining factor of any cluster
    const int32_t[::1] labels,    # IN (n_rows,)
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    const double[:, :, ::1] own,  # IN (k, p, 2) a center, and what a squared difference gains on leaving
    Py_ssize_t[::1] found,        # OUT rows to try
    Workspace space,
):
    """The rows between `start` and `stop` for which a single-row move may pay.

    It errs on the side of too many: `move` decides. Returns their number.
    """
    cdef Py_ssize_t i, n = 0, stride = panel.shape[1], n_found = 0
    cdef int32_t now
    with nogil:
        for i in range(start, stop):
            now = labels[i]
            if now < 0:
                continue
            if far_apart(&upper[i], &lower[i], drift[now], others[now], leaving[now], joining):
                continue
            if weight_of(rows, i) == 0:
                continue
            space.index[n] = i
            n += 1
            if n == space.chunk:
                n_found += pick(rows, n, &panel[0, 0], &factors[0, 0], &offsets[0], stride, epsilon, &labels[0],
                                &own[0, 0, 0], &found[n_found], space)
                n = 0
        if n:
            n_found += pick(rows, n, &panel[0, 0], &factors[0, 0], &offsets[0], stride, epsilon, &labels[0],
                            &own[0, 0, 0], &found[n_found], space)
    return n_found


cdef void transfer(
    const int32_t* columns,
    const real* values,
    Py_ssize_t m,
    double weight,                # > 0 to put in, < 0 to take out
    const double* fallback,       # IN (p,) the center of a column nobody supports
    double* center,               # INOUT (p,)
    double* sums,                 # INOUT (p,)
    double* count,                # INOUT (p,)
) noexcept nogil:
    cdef Py_ssize_t e, j
    for e in range(m):
        j = columns[e]
        count[j] += weight
        sums[j] += weight * values[e]
        if count[j] > ROUNDING * fabs(weight):
            center[j] = sums[j] / count[j]
        else:
            count[j] = 0
            sums[j] = 0
            center[j] = fallback[j]


def move(
    Rows rows,
    const Py_ssize_t[::1] candidates,  # IN rows to try, in this order
    real[::1] like,               # (0,) chooses the precision
    const double[::1] fallback,   # IN (p,) the center of a column nobody supports
    int32_t[::1] labels,          # INOUT (n_rows,)
    double[:, ::1] centers,       # INOUT (k, p), less the shift
    double[:, ::1] sums,          # INOUT (k, p)
    double[:, ::1] counts,        # INOUT (k, p)
    int64_t[::1] sizes,           # INOUT (k,) rows of positive weight in each cluster
    Workspace space,
):
    """Move rows one at a time, each if it lowers the loss; never a cluster's last row.

    Returns the number of moves and what they took off the loss.
    """
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
            transfer(columns, values, m, -weight, &fallback[0], &centers[now, 0], &sums[now, 0], &counts[now, 0])
            transfer(columns, values, m, weight, &fallback[0], &centers[to, 0], &sums[to, 0], &counts[to, 0])
            sizes[now] -= 1
            sizes[to] += 1
            labels[i] = <int32_t> to
            lowered += weight * (gain - best)
            n_moves += 1
    return n_moves, lowered
