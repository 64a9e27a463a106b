"""Arithmetic on the rows of a table, one chunk at a time.

A chunk is a handful of rows that fits in cache. Its partial distances to every center are
one matrix product: packed rows ``[z | observed]`` against coefficients ``[-2 c | c^2]``,
where ``z = x - shift`` with zeros in the gaps. Two kinds of table are told apart in four
small functions (`multiply`, `add_to_totals`, `gather`, `distance_to`) and nowhere else.

Shapes are checked by the callers in `_blocks.py`; nothing here looks at them again.
"""
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, sgemm

from kpod._kernels.loops cimport (
    add_entry, add_row, pack_row, partial_distance, real, rescale_row, two_smallest
)

# A cluster's share of a column that is this small against the weight being moved is the
# rounding left over from weights that cancelled.
cdef double ROUNDING = 1e-9


cdef class Rows:
    """The entries of a table as the kernels see them.

    Parameters
    ----------
    values : array (n_rows, n_columns) with NaN in the gaps, or the stored values of a CSR table
    shift : array (n_columns,), of the same dtype; NaN where the column is to be ignored
    weights : float64 array (n_rows,), or None where every row weighs 1
    indices, indptr : int32 and int64 arrays of a CSR table, None for a dense one
    """

    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly bint is_sparse
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
    """The buffers of one thread, for chunks of a table and `k` clusters."""

    cdef readonly Py_ssize_t chunk
    cdef void* packed
    cdef void* product
    cdef void* best
    cdef void* second
    cdef void* which
    cdef Py_ssize_t* index
    cdef int32_t* columns
    cdef double* entries

    def __cinit__(self, Py_ssize_t n_columns, Py_ssize_t k, Py_ssize_t chunk):
        cdef Py_ssize_t size = sizeof(double)
        self.chunk = chunk
        self.packed = malloc(max(3 * n_columns * chunk, k) * size)
        self.product = malloc(k * chunk * size)
        self.best = malloc(chunk * size)
        self.second = malloc(chunk * size)
        self.which = malloc(chunk * size)
        self.index = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.columns = <int32_t*> malloc(n_columns * sizeof(int32_t))
        self.entries = <double*> malloc(n_columns * size)
        if not (
            self.packed and self.product and self.best and self.second and self.which
            and self.index and self.columns and self.entries
        ):
            raise MemoryError

    def __dealloc__(self):
        free(self.packed)
        free(self.product)
        free(self.best)
        free(self.second)
        free(self.which)
        free(self.index)
        free(self.columns)
        free(self.entries)


cdef inline double weight_of(Rows rows, Py_ssize_t i) noexcept nogil:
    return 1.0 if rows.weights == NULL else rows.weights[i]


cdef void multiply(
    Rows rows,
    const Py_ssize_t* index,      # IN (n,) the rows to multiply
    Py_ssize_t n,
    const real* coefficients,     # IN (k, moments * p), or (p, moments * k) for CSR
    int moments,
    Py_ssize_t k,
    real* packed,                 # OUT (n, moments * p), dense only
    real* product,                # OUT (k, stride), its first n columns
    Py_ssize_t stride,
) noexcept nogil:
    cdef const real* values = <const real*> rows.values
    cdef const real* shift = <const real*> rows.shift
    cdef Py_ssize_t p = rows.n_columns, r, c, e, j
    cdef int m = <int> n, width = <int> (moments * p), kk = <int> k, ld = <int> stride
    cdef real one = 1, zero = 0, z
    cdef char transposed = b"T", plain = b"N"
    if rows.is_sparse:
        for r in range(n):
            memset(packed, 0, k * sizeof(real))
            for e in range(rows.indptr[index[r]], rows.indptr[index[r] + 1]):
                j = rows.indices[e]
                z = values[e] - shift[j]
                if z == z:
                    add_entry(packed, coefficients + j * moments * k, z, moments, k)
            for c in range(k):
                product[c * stride + r] = packed[c]
        return
    for r in range(n):
        pack_row(values + index[r] * p, shift, p, moments, packed + r * width)
    if real is float:
        sgemm(&transposed, &plain, &m, &kk, &width, &one, packed, &width,
              <float*> coefficients, &width, &zero, product, &ld)
    else:
        dgemm(&transposed, &plain, &m, &kk, &width, &one, packed, &width,
              <double*> coefficients, &width, &zero, product, &ld)


cdef void add_to_totals(
    Rows rows,
    Py_ssize_t i,
    const real* packed,           # IN (2p,) row i packed, dense only
    double weight,
    double* sums,                 # INOUT (p,) of one cluster
    double* counts,               # INOUT (p,) of one cluster
) noexcept nogil:
    cdef const real* values = <const real*> rows.values
    cdef const real* shift = <const real*> rows.shift
    cdef Py_ssize_t e, j
    cdef real z
    if not rows.is_sparse:
        add_row(sums, packed, weight, rows.n_columns)
        add_row(counts, packed + rows.n_columns, weight, rows.n_columns)
        return
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[e]
        z = values[e] - shift[j]
        if z == z:
            sums[j] += weight * z
            counts[j] += weight


cdef Py_ssize_t gather(
    Rows rows,
    Py_ssize_t i,
    real* unused,
    int32_t* columns,             # OUT the observed columns of row i
    double* entries,              # OUT their values, less the shift
) noexcept nogil:
    cdef const real* values = <const real*> rows.values
    cdef const real* shift = <const real*> rows.shift
    cdef Py_ssize_t e, j, m = 0, p = rows.n_columns
    cdef real z
    if rows.is_sparse:
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[e]
            z = values[e] - shift[j]
            columns[m] = <int32_t> j
            entries[m] = z
            m += z == z
    else:
        for j in range(p):
            z = values[i * p + j] - shift[j]
            columns[m] = <int32_t> j
            entries[m] = z
            m += z == z
    return m


cdef double distance_to(
    Rows rows,
    Py_ssize_t i,
    const real* packed,           # IN (2p,) row i packed, dense only
    const double* center,         # IN (p,)
) noexcept nogil:
    cdef const real* values = <const real*> rows.values
    cdef const real* shift = <const real*> rows.shift
    cdef Py_ssize_t e, j
    cdef double total = 0, d
    if not rows.is_sparse:
        return partial_distance(packed, packed + rows.n_columns, center, rows.n_columns)
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[e]
        d = <double> (values[e] - shift[j]) - center[j]
        if d == d:
            total += d * d
    return total


cdef inline void pack(Rows rows, Py_ssize_t i, real* packed) noexcept nogil:
    cdef const real* values = <const real*> rows.values
    if not rows.is_sparse:
        pack_row(values + i * rows.n_columns, <const real*> rows.shift, rows.n_columns, 2, packed)


cdef inline Py_ssize_t n_entries(Rows rows, Py_ssize_t i) noexcept nogil:
    return rows.indptr[i + 1] - rows.indptr[i] if rows.is_sparse else rows.n_columns


def measure(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    real[::1] norms,              # OUT (n_rows,) sum of z^2 over the row's observed columns
    double[::1] squares,          # INOUT (p,) += weight * z^2
    int32_t[::1] observed,        # OUT (n_rows,) number of observed columns
    Workspace space,
):
    """The size of each row, and the weighted sum of squares of each column."""
    cdef real* packed = <real*> space.packed
    cdef Py_ssize_t i, t, m
    cdef double norm, weight
    with nogil:
        for i in range(start, stop):
            m = gather(rows, i, packed, space.columns, space.entries)
            weight = weight_of(rows, i)
            norm = 0
            for t in range(m):
                norm += space.entries[t] * space.entries[t]
                squares[space.columns[t]] += weight * space.entries[t] * space.entries[t]
            norms[i] = <real> norm
            observed[i] = <int32_t> m


def add_up(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    real[::1] like,               # (0,) chooses the precision
    double[:, ::1] sums,          # INOUT (k, p)
    double[:, ::1] counts,        # INOUT (k, p)
    Workspace space,
):
    """Add the rows to the sums and counts of their clusters."""
    cdef real* packed = <real*> space.packed
    cdef Py_ssize_t i
    with nogil:
        for i in range(start, stop):
            if labels[i] >= 0:
                pack(rows, i, packed)
                add_to_totals(rows, i, packed, weight_of(rows, i), &sums[labels[i], 0], &counts[labels[i], 0])


def losses(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    real[::1] like,               # (0,) chooses the precision
    const double[:, ::1] centers,  # IN (k, p), less the shift
    double[::1] out,              # OUT (n_rows,) loss of each row, or (0,) if not wanted
    Workspace space,
):
    """Sum of weight * squared partial distance of the rows to their own centers."""
    cdef real* packed = <real*> space.packed
    cdef Py_ssize_t i
    cdef bint keep = out.shape[0] > 0
    cdef double total = 0, loss
    with nogil:
        for i in range(start, stop):
            loss = 0
            if labels[i] >= 0:
                pack(rows, i, packed)
                loss = weight_of(rows, i) * distance_to(rows, i, packed, &centers[labels[i], 0])
            if keep:
                out[i] = loss
            total += loss
    return total


def distances(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    real[::1] like,               # (0,) chooses the precision
    const double[:, ::1] centers,  # IN (k, p), less the shift
    double[:, ::1] out,           # OUT (n_rows, k) squared partial distances
    Workspace space,
):
    """Squared partial distances by differences: slower than the product, exact near zero."""
    cdef real* packed = <real*> space.packed
    cdef Py_ssize_t i, c
    with nogil:
        for i in range(start, stop):
            pack(rows, i, packed)
            for c in range(centers.shape[0]):
                out[i, c] = distance_to(rows, i, packed, &centers[c, 0])


def rescale(
    float[:, ::1] distances,      # INOUT (n, m) over shared columns; OUT over all, or `nearest`
    const float[:, ::1] overlap,  # IN (n, m) number of shared columns
    float n_columns,
    float variance,
    const float[::1] nearest,     # IN (n,)
    const double[::1] weights,    # IN (n,)
    double[::1] potentials,       # INOUT (m,) += weighted sums of the new `distances`
):
    """Partial distances to seed candidates, rescaled to all columns, as `Spread` has it."""
    cdef Py_ssize_t i, m = distances.shape[1]
    with nogil:
        for i in range(distances.shape[0]):
            rescale_row(&distances[i, 0], &overlap[i, 0], m, n_columns, variance, nearest[i])
            add_row(&potentials[0], &distances[i, 0], weights[i], m)


cdef Py_ssize_t settle(
    Rows rows,
    Py_ssize_t n,                 # rows in the chunk: space.index[:n]
    const real* coefficients,
    const real* offsets,
    Py_ssize_t k,
    const real* norms,
    double epsilon,
    double largest_center,
    double largest_entry,
    int32_t* labels,
    float* upper,
    float* lower,
    double* sums,                 # INOUT (k, p), or NULL if not wanted
    double* counts,
    Workspace space,
) noexcept nogil:
    """Assign the rows of one chunk; returns how many changed their label."""
    cdef real* packed = <real*> space.packed
    cdef real* product = <real*> space.product
    cdef real* best = <real*> space.best
    cdef real* second = <real*> space.second
    cdef Py_ssize_t p = rows.n_columns, r, i, m, changed = 0
    cdef int32_t now, nearest
    cdef double own, other, norm, scale, margin, error, weight
    multiply(rows, space.index, n, coefficients, 2, k, packed, product, space.chunk)
    two_smallest(product, offsets, k, n, space.chunk, best, second, space.which)
    for r in range(n):
        i = space.index[r]
        now = labels[i]
        if real is float:
            nearest = (<int32_t*> space.which)[r]
        else:
            nearest = <int32_t> (<int64_t*> space.which)[r]
        norm = norms[i]
        m = n_entries(rows, i)
        # The product rounds by at most 2m epsilon * scale, by a few epsilon * scale in
        # practice: the first makes the bounds safe, the second keeps ties from flickering.
        scale = norm + 2 * min(largest_center, m * largest_entry)
        error = 2 * (m + 4) * epsilon * scale
        margin = 8 * epsilon * scale
        if now < 0:
            own = INFINITY
        else:
            own = product[now * space.chunk + r] + offsets[now]
        if best[r] < own - margin:
            other = second[r]
            own = best[r]
            weight = weight_of(rows, i)
            if sums != NULL:
                if now >= 0:
                    add_to_totals(rows, i, packed + r * 2 * p, -weight, sums + now * p, counts + now * p)
                add_to_totals(rows, i, packed + r * 2 * p, weight, sums + nearest * p, counts + nearest * p)
            labels[i] = nearest
            changed += 1
        else:
            other = second[r] if nearest == now else best[r]
        upper[i] = <float> (sqrt(max(own + norm + error, 0.0)) * (1 + 2e-7))
        lower[i] = <float> (sqrt(max(other + norm - error, 0.0)) * (1 - 2e-7))
    return changed


def assign(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const real[:, ::1] coefficients,  # IN as `multiply` has it, two moments
    const real[::1] offsets,      # IN (k,)
    const real[::1] norms,        # IN (n_rows,)
    double epsilon,               # IN unit roundoff of the products
    double largest_center,        # IN largest squared norm of a center
    double largest_entry,         # IN largest squared entry of a center
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

    Returns the number of rows that changed, and of rows looked at.
    """
    cdef Py_ssize_t i, n = 0, k = offsets.shape[0], changed = 0, looked = 0
    cdef int32_t now
    cdef float low, high
    cdef double* add_sums = &sums[0, 0] if sums.shape[0] else NULL
    cdef double* add_counts = &counts[0, 0] if sums.shape[0] else NULL
    with nogil:
        for i in range(start, stop):
            now = labels[i]
            if now >= 0:
                high = (upper[i] + drift[now]) * <float> 1.0000002
                low = (lower[i] - others[now]) * <float> 0.9999998
                upper[i] = high
                lower[i] = low
                if high < low:
                    continue
            elif lower[i] == INFINITY:
                continue
            space.index[n] = i
            n += 1
            if n == space.chunk:
                looked += n
                changed += settle(rows, n, &coefficients[0, 0], &offsets[0], k, &norms[0], epsilon,
                                  largest_center, largest_entry, &labels[0], &upper[0], &lower[0],
                                  add_sums, add_counts, space)
                n = 0
        if n:
            looked += n
            changed += settle(rows, n, &coefficients[0, 0], &offsets[0], k, &norms[0], epsilon,
                              largest_center, largest_entry, &labels[0], &upper[0], &lower[0],
                              add_sums, add_counts, space)
    return changed, looked


cdef double leaving_gain(
    const int32_t* columns,
    const double* entries,
    Py_ssize_t m,
    const double* center,
    const double* count,
    double weight,
) noexcept nogil:
    """What taking a row out of its cluster gains, per unit of its weight."""
    cdef Py_ssize_t t, j
    cdef double total = 0, d, n, alone = weight * (1 + ROUNDING)
    for t in range(m):
        j = columns[t]
        d = entries[t] - center[j]
        n = count[j]
        if n > alone:
            total += n / (n - weight) * d * d
    return total


cdef double joining_cost(
    const int32_t* columns,
    const double* entries,
    Py_ssize_t m,
    const double* center,
    const double* count,
    double weight,
    double limit,
) noexcept nogil:
    """What putting a row into a cluster costs, per unit of its weight; stops beyond `limit`."""
    cdef Py_ssize_t t, j
    cdef double total = 0, d, n
    for t in range(m):
        j = columns[t]
        d = entries[t] - center[j]
        n = count[j]
        total += n / (n + weight) * d * d
        if total >= limit:
            break
    return total


cdef Py_ssize_t pick(
    Rows rows,
    Py_ssize_t n,
    const real* coefficients,
    const real* offsets,
    Py_ssize_t k,
    const real* norms,
    double epsilon,
    const int32_t* labels,
    const double* centers,
    const double* counts,
    Py_ssize_t* found,
    Workspace space,
) noexcept nogil:
    """The rows of one chunk that a move may pay for; returns their number."""
    cdef real* best = <real*> space.best
    cdef real* second = <real*> space.second
    cdef Py_ssize_t p = rows.n_columns, r, i, m, n_found = 0
    cdef int32_t now, nearest
    cdef double gain, cost
    multiply(rows, space.index, n, coefficients, 3, k, <real*> space.packed, <real*> space.product, space.chunk)
    two_smallest(<real*> space.product, offsets, k, n, space.chunk, best, second, space.which)
    for r in range(n):
        i = space.index[r]
        now = labels[i]
        if real is float:
            nearest = (<int32_t*> space.which)[r]
        else:
            nearest = <int32_t> (<int64_t*> space.which)[r]
        cost = second[r] if nearest == now else best[r]
        m = gather(rows, i, <real*> space.packed, space.columns, space.entries)
        gain = leaving_gain(space.columns, space.entries, m, centers + now * p, counts + now * p, weight_of(rows, i))
        if cost < gain + 32 * epsilon * (norms[i] + gain):
            found[n_found] = i
            n_found += 1
    return n_found


def screen(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const real[:, ::1] coefficients,  # IN as `multiply` has it, three moments: joining costs
    const real[::1] offsets,      # IN (k,)
    const real[::1] norms,        # IN (n_rows,)
    double epsilon,               # IN unit roundoff of the products
    const float[::1] drift,       # IN (k,) as in `assign`
    const float[::1] others,      # IN (k,) as in `assign`
    const float[::1] leaving,     # IN (k,) root of the largest leaving factor of a cluster
    float joining,                # IN root of the smallest joining factor of any cluster
    const int32_t[::1] labels,    # IN (n_rows,)
    float[::1] upper,             # INOUT (n_rows,)
    float[::1] lower,             # INOUT (n_rows,)
    const double[:, ::1] centers,  # IN (k, p), less the shift
    const double[:, ::1] counts,  # IN (k, p)
    Py_ssize_t[::1] found,        # OUT (stop - start,) rows to try
    Workspace space,
):
    """The rows between `start` and `stop` for which a single-row move may pay.

    It errs on the side of too many: `move` decides. Returns their number.
    """
    cdef Py_ssize_t i, n = 0, k = offsets.shape[0], n_found = 0
    cdef int32_t now
    cdef float low, high
    with nogil:
        for i in range(start, stop):
            now = labels[i]
            if now < 0:
                continue
            high = (upper[i] + drift[now]) * <float> 1.0000002
            low = (lower[i] - others[now]) * <float> 0.9999998
            upper[i] = high
            lower[i] = low
            if high * leaving[now] < low * joining or weight_of(rows, i) == 0:
                continue
            space.index[n] = i
            n += 1
            if n == space.chunk:
                n_found += pick(rows, n, &coefficients[0, 0], &offsets[0], k, &norms[0], epsilon, &labels[0],
                                &centers[0, 0], &counts[0, 0], &found[n_found], space)
                n = 0
        if n:
            n_found += pick(rows, n, &coefficients[0, 0], &offsets[0], k, &norms[0], epsilon, &labels[0],
                            &centers[0, 0], &counts[0, 0], &found[n_found], space)
    return n_found


cdef void transfer(
    const int32_t* columns,
    const double* entries,
    Py_ssize_t m,
    double weight,                # > 0 to put in, < 0 to take out
    const double* fallback,       # IN (p,) the center of a column nobody supports
    double* center,               # INOUT (p,)
    double* sums,                 # INOUT (p,)
    double* count,                # INOUT (p,)
) noexcept nogil:
    cdef Py_ssize_t t, j
    for t in range(m):
        j = columns[t]
        count[j] += weight
        sums[j] += weight * entries[t]
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
            m = gather(rows, i, <real*> space.packed, space.columns, space.entries)
            gain = leaving_gain(space.columns, space.entries, m, &centers[now, 0], &counts[now, 0], weight)
            best = gain * (1 - ROUNDING)
            to = now
            for c in range(k):
                if c != now:
                    cost = joining_cost(space.columns, space.entries, m, &centers[c, 0], &counts[c, 0], weight, best)
                    if cost < best:
                        best = cost
                        to = c
            if to == now:
                continue
            transfer(space.columns, space.entries, m, -weight, &fallback[0],
                     &centers[now, 0], &sums[now, 0], &counts[now, 0])
            transfer(space.columns, space.entries, m, weight, &fallback[0],
                     &centers[to, 0], &sums[to, 0], &counts[to, 0])
            sizes[now] -= 1
            sizes[to] += 1
            labels[i] = <int32_t> to
            lowered += weight * (gain - best)
            n_moves += 1
    return n_moves, lowered
