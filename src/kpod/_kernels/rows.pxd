# Rows of a table as the kernels see them, and what every kernel does with one.
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t

ctypedef fused real:
    float
    double

cdef extern from "vectors.h" nogil:
    int MOST_LANES
    Py_ssize_t GAP_BYTES(Py_ssize_t) noexcept

cdef extern from "compact.h" nogil:
    int COMPACT_SLACK
    Py_ssize_t compact_f32(const float*, const float*, float, Py_ssize_t, int32_t*, float*) noexcept
    Py_ssize_t compact_f64(const double*, const double*, double, Py_ssize_t, int32_t*, double*) noexcept
    Py_ssize_t compact_gaps_f32(
        const float*, const float*, float, Py_ssize_t, int32_t*, float*, uint8_t*
    ) noexcept
    Py_ssize_t compact_gaps_f64(
        const double*, const double*, double, Py_ssize_t, int32_t*, double*, uint8_t*
    ) noexcept

cdef extern from "passes.h" nogil:
    int MOST_LEVELS
    int MEASURES
    struct exact_sums:
        double* sums
        double* counts
        Py_ssize_t step
        const double* anchors
        int n_levels
        int n_count_levels
    struct cluster_sums:
        exact_sums first
        double* weights
        const double* weight_units
        Py_ssize_t k
    void join_weight(double, Py_ssize_t, Py_ssize_t, cluster_sums, double*) noexcept
    void join_rows_f32(
        const float**, const float*, float, Py_ssize_t, Py_ssize_t, const double*, const int32_t*, const int32_t*,
        cluster_sums, const double*, double*
    ) noexcept
    void join_rows_f64(
        const double**, const double*, double, Py_ssize_t, Py_ssize_t, const double*, const int32_t*,
        const int32_t*, cluster_sums, const double*, double*
    ) noexcept
    double join_list_f32(
        const int32_t*, const float*, Py_ssize_t, Py_ssize_t, double, const double*, exact_sums, exact_sums,
        const double*, const double*
    ) noexcept
    double join_list_f64(
        const int32_t*, const double*, Py_ssize_t, Py_ssize_t, double, const double*, exact_sums, exact_sums,
        const double*, const double*
    ) noexcept
    double row_loss_f32(const float*, const float*, float, Py_ssize_t, const double*) noexcept
    double row_loss_f64(const double*, const double*, double, Py_ssize_t, const double*) noexcept
    double list_loss_f32(const int32_t*, const float*, Py_ssize_t, const double*) noexcept
    double list_loss_f64(const int32_t*, const double*, Py_ssize_t, const double*) noexcept
    int MEASURED_ROWS
    void measure_rows_f32(
        const float**, const float*, float, Py_ssize_t, const double*, double*, int64_t*, int32_t*, Py_ssize_t
    ) noexcept
    void measure_rows_f64(
        const double**, const double*, double, Py_ssize_t, const double*, double*, int64_t*, int32_t*, Py_ssize_t
    ) noexcept
    void measure_list_f32(const int32_t*, const float*, Py_ssize_t, double, double*) noexcept
    void measure_list_f64(const int32_t*, const double*, Py_ssize_t, double, double*) noexcept


cdef class Rows:
    cdef readonly Py_ssize_t n_rows, n_columns, n_entries, longest_row
    cdef readonly bint is_sparse, is_double
    cdef readonly double scale
    cdef object arrays
    cdef const void* values
    cdef const void* shift
    cdef const double* weights
    cdef const int32_t* indices
    cdef const int64_t* indptr
    cdef const uint8_t* hidden
    cdef Py_ssize_t hidden_step
    cdef bint only_hidden

    cdef int check_csr(self) except -1
    cdef int check_span(self, Py_ssize_t start, Py_ssize_t stop) except -1


cdef class Workspace:
    cdef readonly Py_ssize_t chunk, stride, n_entries, n_copies, longest_row, n_columns
    cdef Py_ssize_t* index
    cdef int32_t* looked
    cdef int32_t* before
    cdef int32_t* doubtful
    cdef const void** pointers
    cdef Py_ssize_t* begin
    cdef Py_ssize_t* end
    cdef int32_t* columns
    cdef void* values
    cdef void* copies
    cdef float* singles
    cdef double* widened
    cdef void* distances
    cdef void* best
    cdef void* second
    cdef float* slack
    cdef float* absolute
    cdef int32_t* nearest
    cdef uint8_t* gaps
    cdef float* common

    cdef int check_fits(self, Rows rows, Py_ssize_t stride) except -1


cdef class Sums:
    cdef readonly Py_ssize_t k, n_columns
    cdef readonly object sums, counts, weights, anchors, weight_anchors
    cdef exact_sums kept
    cdef double* kept_weights
    cdef const double* weight_units


cdef inline void mean_of(
    Sums totals,
    Py_ssize_t at,                # cluster * p + column
    double prior_weight,
    double prior_sum,
    double fallback,
    double* center,               # OUT
    double* count,                # OUT
) noexcept nogil:
    """The mean of a cluster in a column, and the weight behind it, from their parts, fine to coarse."""
    cdef double total = 0
    cdef int level
    count[0] = 0
    for level in range(totals.kept.n_levels - 1, -1, -1):
        total += totals.kept.sums[level * totals.kept.step + at]
    for level in range(totals.kept.n_count_levels - 1, -1, -1):
        count[0] += totals.kept.counts[level * totals.kept.step + at]
    count[0] += prior_weight
    center[0] = (total + prior_sum) / count[0] if count[0] > 0 else fallback


cdef inline double weight_of(Rows rows, Py_ssize_t i) noexcept nogil:
    return 1.0 if rows.weights == NULL else rows.weights[i]


cdef inline bint is_shown(Rows rows, Py_ssize_t byte_start, Py_ssize_t bit) noexcept nogil:
    """Whether an entry is looked at: not hidden, or hidden where only those are looked at."""
    return (rows.hidden[byte_start + (bit >> 3)] >> (bit & 7) & 1) == rows.only_hidden


cdef inline const real* row_at(Rows rows, Py_ssize_t i, real* copy) noexcept nogil:
    """A dense row; a copy with NaN in their place where entries are hidden."""
    cdef const real* row = <const real*> rows.values + i * rows.n_columns
    cdef Py_ssize_t j
    if rows.hidden == NULL:
        return row
    for j in range(rows.n_columns):
        copy[j] = row[j] if is_shown(rows, i * rows.hidden_step, j) else <real> NAN
    return copy


cdef inline Py_ssize_t shown_entries(Rows rows, Py_ssize_t i, int32_t* columns, real* values) noexcept nogil:
    """Copy the entries of a sparse row that are not hidden; returns their number."""
    cdef Py_ssize_t e, m = 0
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        if is_shown(rows, 0, e):
            columns[m] = rows.indices[e]
            values[m] = (<const real*> rows.values)[e]
            m += 1
    return m


cdef inline Py_ssize_t squeeze(Rows rows, const real* row, int32_t* columns, real* values) noexcept nogil:
    """List the observed entries of a dense row; returns their number."""
    if real is float:
        return compact_f32(row, <const float*> rows.shift, <float> rows.scale, rows.n_columns, columns, values)
    else:
        return compact_f64(row, <const double*> rows.shift, rows.scale, rows.n_columns, columns, values)


cdef inline Py_ssize_t entries_of(
    Rows rows,
    Py_ssize_t i,
    Workspace space,
    const int32_t** columns,      # OUT where the observed columns of row i are listed
    const real** values,          # OUT and their values
) noexcept nogil:
    """List the observed entries of one row; returns their number."""
    columns[0] = space.columns
    values[0] = <const real*> space.values
    if not rows.is_sparse:
        return squeeze(rows, row_at(rows, i, <real*> space.copies), space.columns, <real*> space.values)
    if rows.hidden != NULL:
        return shown_entries(rows, i, space.columns, <real*> space.values)
    columns[0] = rows.indices + rows.indptr[i]
    values[0] = <const real*> rows.values + rows.indptr[i]
    return rows.indptr[i + 1] - rows.indptr[i]


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
    if rows.is_sparse and rows.hidden == NULL:
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
        if rows.is_sparse:
            at += shown_entries(rows, space.index[r], space.columns + at, listed + at)
        else:
            at += squeeze(rows, row_at(rows, space.index[r], <real*> space.copies), space.columns + at, listed + at)
        space.end[r] = at


cdef inline cluster_sums all_of(Sums to) noexcept nogil:
    cdef cluster_sums every
    every.first, every.weights, every.weight_units, every.k = to.kept, to.kept_weights, to.weight_units, to.k
    return every


cdef inline double join_entries(
    Sums to,
    Rows rows,
    Py_ssize_t i,
    Py_ssize_t now,               # the cluster that the row joins
    Py_ssize_t before,            # the one it leaves, -1 for none
    const double* centers,        # (k, p); NULL for a row that leaves no cluster: nothing is compared
    Workspace space,
    const real* like,             # chooses the precision
) noexcept nogil:
    """Add a sparse row to a cluster, take it out of another; returns what that takes off the loss."""
    cdef double weight = weight_of(rows, i)
    cdef double parts[3]
    cdef exact_sums joined = to.kept, left = to.kept
    cdef const double* center = NULL
    cdef const double* center_before = NULL
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t p = rows.n_columns, m = entries_of(rows, i, space, &columns, &values)
    join_weight(weight, now, before, all_of(to), parts)
    joined.sums += now * p
    joined.counts += now * p
    if before >= 0:
        left.sums += before * p
        left.counts += before * p
    else:
        left.sums = NULL
    if centers != NULL:
        center = centers + now * p
        center_before = centers + max(before, 0) * p
    if real is float:
        return weight * join_list_f32(columns, values, m, p, weight, parts, joined, left, center, center_before)
    else:
        return weight * join_list_f64(columns, values, m, p, weight, parts, joined, left, center, center_before)


cdef inline void join_rows(
    Sums to,
    Rows rows,
    const void** some,            # n dense rows
    Py_ssize_t n,
    const double* weights,        # of each
    const int32_t* now,           # the cluster that each joins
    const int32_t* before,        # the one it leaves, -1 for none
    const double* centers,        # (k, p); NULL if no row leaves a cluster: nothing is compared
    double* gains,                # OUT what each takes off the loss
) noexcept nogil:
    """Add dense rows to clusters, take them out of others."""
    if rows.is_double:
        join_rows_f64(<const double**> some, <const double*> rows.shift, rows.scale, rows.n_columns, n, weights,
                      now, before, all_of(to), centers, gains)
    else:
        join_rows_f32(<const float**> some, <const float*> rows.shift, <float> rows.scale, rows.n_columns, n, weights,
                      now, before, all_of(to), centers, gains)


cdef inline double join(
    Sums to,
    Rows rows,
    Py_ssize_t i,
    int32_t now,                  # the cluster that the row joins
    int32_t before,               # the one it leaves, -1 for none
    const double* centers,        # (k, p); NULL for a row that leaves no cluster: nothing is compared
    Workspace space,
    const real* like,             # chooses the precision
) noexcept nogil:
    """Add a row to a cluster, take it out of another; returns what that takes off the loss."""
    cdef double weight, gain
    cdef const void* row
    if rows.is_sparse:
        return join_entries(to, rows, i, now, before, centers, space, like)
    weight = weight_of(rows, i)
    row = row_at(rows, i, <real*> space.copies)
    join_rows(to, rows, &row, 1, &weight, &now, &before, centers, &gain)
    return gain


cdef inline double loss_of(
    Rows rows,
    Py_ssize_t i,
    const double* center,
    Workspace space,
    const real* like,             # chooses the precision
) noexcept nogil:
    """The squared partial distance of a row to a center, in double precision."""
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t m
    if rows.is_sparse:
        m = entries_of(rows, i, space, &columns, &values)
        if real is float:
            return list_loss_f32(columns, values, m, center)
        else:
            return list_loss_f64(columns, values, m, center)
    if real is float:
        return row_loss_f32(row_at(rows, i, <float*> space.copies), <const float*> rows.shift, <float> rows.scale,
                            rows.n_columns, center)
    else:
        return row_loss_f64(row_at(rows, i, <double*> space.copies), <const double*> rows.shift, rows.scale,
                            rows.n_columns, center)
