# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""The rows of one block, sums that are exact in any order, and the passes that need no centers.

Dense and CSR rows differ in how the list of a row's observed entries is made (`entries_of`,
`chunk_entries` in rows.pxd). Where one pass over a row will do, a dense row is not listed: its
gaps are masked out. Values are z = (x - shift) * scale.

Whatever is handed to a kernel is checked here, in `Rows`, `Workspace` and `Sums`, and by the
typed views of the kernels themselves; a mismatch is a TypeError or ValueError, never a misread.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

import numpy as np

cdef extern from "memory.h" nogil:
    void* allocate_lines(size_t) noexcept
    void free_lines(void*) noexcept

LEVELS = MOST_LEVELS

# Entries that fill the first cache with room to spare: longer chunks fetch their lists again.
CHUNK_ENTRIES = 1 << 12


cdef size_t address(array, str name, dtype, tuple shape) except? 0:
    """Where an array begins, if it is what it should be."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.dtype.isnative:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{name} must be an array of {np.dtype(dtype)}, got {found}.")
    if array.shape != shape or not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(
            f"{name} must be an aligned, contiguous array of shape {shape}, got shape {array.shape}."
        )
    return array.ctypes.data


cdef class Rows:
    """The entries of one block of rows; rows are numbered from 0.

    Parameters
    ----------
    values : float32 or float64 array (n_rows, n_columns) with NaN in the gaps, or the stored values
        of a CSR block: less the shift, scaled, and without NaN
    shift : array (n_columns,) of the same dtype, to take off dense values; NaN where the column is
        to be ignored
    scale : what dense values are multiplied by, a power of two
    weights : float64 array (n_rows,), or None where every row weighs 1
    indices, indptr : int32 and int64 arrays of a CSR block, None for a dense one
    hidden : bitmap of entries that are observed but not looked at, as `hide` makes it, or None
    only_hidden : whether the hidden entries are the ones to look at, and no others
    """

    def __cinit__(
        self, values, shift, double scale=1.0, weights=None, indices=None, indptr=None, hidden=None,
        bint only_hidden=False
    ):
        if not isinstance(values, np.ndarray) or values.dtype not in (np.float32, np.float64):
            raise TypeError(f"values must be an array of float32 or float64, got {values!r:.80}.")
        self.arrays = (values, shift, weights, indices, indptr, hidden)
        self.is_double = values.dtype == np.float64
        self.is_sparse = indptr is not None
        self.scale = scale
        self.n_columns = len(shift)
        self.shift = <const void*> address(shift, "shift", values.dtype, (self.n_columns,))
        if self.is_sparse:
            self.n_rows = len(indptr) - 1
            self.values = <const void*> address(values, "values", values.dtype, (len(values),))
            self.indices = <const int32_t*> address(indices, "indices", np.int32, (len(values),))
            self.indptr = <const int64_t*> address(indptr, "indptr", np.int64, (self.n_rows + 1,))
            self.check_csr()
            self.n_entries = len(values)
        else:
            self.n_rows = len(values)
            self.values = <const void*> address(values, "values", values.dtype, (self.n_rows, self.n_columns))
            self.n_entries = self.n_rows * self.n_columns
            self.longest_row = self.n_columns
        self.weights = NULL
        if weights is not None:
            self.weights = <const double*> address(weights, "weights", np.float64, (self.n_rows,))
        self.hidden = NULL
        self.only_hidden = only_hidden
        if hidden is not None:
            self.hidden_step = (self.n_columns + 7) // 8
            n_bytes = (self.n_entries + 7) // 8 if self.is_sparse else self.n_rows * self.hidden_step
            self.hidden = <const uint8_t*> address(hidden, "hidden", np.uint8, (n_bytes,))

    cdef int check_csr(self) except -1:
        """Row lengths and columns must stay within what there is."""
        cdef Py_ssize_t i, e, n = len(self.arrays[0]), longest = 0
        cdef bint good = self.n_rows >= 0 and self.indptr[0] == 0 and self.indptr[self.n_rows] == n
        for i in range(self.n_rows):
            good = good and self.indptr[i] <= self.indptr[i + 1] <= n
            longest = max(longest, self.indptr[i + 1] - self.indptr[i])
        if good:
            for e in range(n):
                good = good and 0 <= self.indices[e] < self.n_columns
        if not good:
            raise ValueError("indices and indptr do not fit together with values and columns.")
        self.longest_row = longest
        return 0

    cdef int check_span(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        if not 0 <= start <= stop <= self.n_rows:
            raise IndexError(f"rows {start} to {stop} of {self.n_rows}")
        return 0

    @property
    def chunk(self):
        """How many rows are compared with the centers at a time."""
        return min(max(CHUNK_ENTRIES // max(1, self.n_entries // max(1, self.n_rows)), 8), 128)


cdef class Workspace:
    """The buffers of one thread: the entries of a chunk of rows, and distances to `stride` centers."""

    def __cinit__(self, Rows rows, Py_ssize_t stride, Py_ssize_t chunk):
        cdef bint lists = not rows.is_sparse or rows.hidden != NULL
        self.chunk = chunk
        self.stride = stride
        self.n_columns = rows.n_columns
        self.n_entries = rows.longest_row * chunk if lists else 0
        self.n_copies = rows.n_columns * chunk if not rows.is_sparse and rows.hidden != NULL else 0
        cdef Py_ssize_t whole = chunk + MOST_LANES  # whole vectors are written to what is of each row
        self.index = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.looked = <int32_t*> malloc(whole * sizeof(int32_t))
        self.before = <int32_t*> malloc(whole * sizeof(int32_t))
        self.doubtful = <int32_t*> malloc(whole * sizeof(int32_t))
        self.pointers = <const void**> malloc(chunk * sizeof(void*))
        self.begin = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.end = <Py_ssize_t*> malloc(chunk * sizeof(Py_ssize_t))
        self.columns = <int32_t*> malloc((self.n_entries + COMPACT_SLACK) * sizeof(int32_t))
        self.values = malloc((self.n_entries + COMPACT_SLACK) * sizeof(double))
        self.copies = malloc((self.n_copies + 1) * sizeof(double))
        cdef Py_ssize_t n_singles = max(self.n_entries, MOST_LANES * rows.n_columns)
        self.singles = <float*> allocate_lines((n_singles * sizeof(float) // 64 + 1) * 64)
        self.widened = <double*> malloc((rows.longest_row + 1) * sizeof(double))
        self.longest_row = rows.longest_row
        self.distances = allocate_lines((chunk * stride * sizeof(double) // 64 + 1) * 64)
        self.best = malloc(whole * sizeof(double))
        self.second = malloc(whole * sizeof(double))
        self.slack = <float*> malloc(whole * sizeof(float))
        self.absolute = <float*> malloc(whole * sizeof(float))
        self.nearest = <int32_t*> malloc(whole * sizeof(int32_t))
        self.gaps = <uint8_t*> malloc(1 if rows.is_sparse else GAP_BYTES(rows.n_columns) * chunk)
        self.common = <float*> malloc(chunk * sizeof(float))
        if not (
            self.index and self.looked and self.before and self.doubtful and self.pointers and self.begin
            and self.end and self.slack and self.absolute
            and self.columns and self.values and self.copies and self.singles and self.widened
            and self.distances and self.best and self.second and self.nearest and self.gaps
            and self.common
        ):
            raise MemoryError

    def __dealloc__(self):
        free(self.index)
        free(self.looked)
        free(self.before)
        free(self.doubtful)
        free(self.pointers)
        free(self.begin)
        free(self.end)
        free(self.columns)
        free(self.values)
        free(self.copies)
        free_lines(self.singles)
        free(self.widened)
        free_lines(self.distances)
        free(self.best)
        free(self.second)
        free(self.slack)
        free(self.absolute)
        free(self.nearest)
        free(self.gaps)
        free(self.common)

    cdef int check_fits(self, Rows rows, Py_ssize_t stride) except -1:
        cdef bint lists = not rows.is_sparse or rows.hidden != NULL
        if (
            self.stride < stride
            or self.longest_row < rows.longest_row
            or self.n_columns < rows.n_columns
            or (lists and self.n_entries < rows.longest_row * self.chunk)
            or (not rows.is_sparse and rows.hidden != NULL and self.n_copies < rows.n_columns * self.chunk)
        ):
            raise ValueError("the workspace was made for other rows or fewer centers")
        return 0

    def fits(self, Rows rows, Py_ssize_t stride, Py_ssize_t chunk):
        """Whether it will do for these rows as well."""
        try:
            self.check_fits(rows, stride)
        except ValueError:
            return False
        return self.chunk == chunk


cdef class Sums:
    """Weighted sums and counts of the entries, and weights of the rows, of k clusters.

    All are kept in parts that are multiples of fixed units, so that adding them up is exact in
    any order, and taking a row out undoes adding it to the bit. `sums` is (n_levels, k, p),
    coarse to fine; `counts` and `weights` likewise, with one level where weights are whole
    multiples of a unit themselves.

    Parameters
    ----------
    k : int
    anchors : float64 array (n_levels, p), 1.5 * 2^52 units of the sums of each column
    weight_anchors : float64 array (n_count_levels,), likewise for weights
    """

    def __cinit__(self, Py_ssize_t k, anchors, weight_anchors):
        if anchors.ndim != 2 or not 1 <= len(anchors) <= MOST_LEVELS or not 1 <= len(weight_anchors) <= MOST_LEVELS:
            raise ValueError(f"there are 1 to {MOST_LEVELS} levels")
        self.k = k
        self.n_columns = anchors.shape[1]
        self.anchors, self.weight_anchors = anchors, weight_anchors
        self.sums = np.zeros((len(anchors), k, self.n_columns))
        self.counts = np.zeros((len(weight_anchors), k, self.n_columns))
        self.weights = np.zeros((len(weight_anchors), k))
        self.kept.n_levels = len(anchors)
        self.kept.n_count_levels = len(weight_anchors)
        self.kept.step = k * self.n_columns
        cdef const double[:, ::1] units = anchors
        cdef const double[::1] weight_units = weight_anchors
        cdef double[:, :, ::1] sums = self.sums, counts = self.counts
        cdef double[:, ::1] weights = self.weights
        if not k or not self.n_columns:
            raise ValueError("sums of no cluster or no column")
        self.kept.anchors, self.weight_units = &units[0, 0], &weight_units[0]
        self.kept.sums, self.kept.counts, self.kept_weights = &sums[0, 0, 0], &counts[0, 0, 0], &weights[0, 0]

    def __reduce__(self):
        return _sums_of, (self.k, self.anchors, self.weight_anchors, self.sums, self.counts, self.weights)

    def add(self, Sums other):
        """Add what another part of the table summed up, in the same units."""
        self.sums += other.sums
        self.counts += other.counts
        self.weights += other.weights

    def clear(self):
        """Back to nothing."""
        self.sums.fill(0)
        self.counts.fill(0)
        self.weights.fill(0)


def means(
    Sums totals,
    const double[:, ::1] prior,   # IN (2, p) weight of each column that never moves, and its sum
    const double[::1] fallback,   # IN (p,) the center of a column without observations
    double[:, ::1] centers,       # OUT (k, p)
    double[:, ::1] counts,        # OUT (k, p) with what never moves
):
    """The mean of what each cluster observed of each column, and the weight behind it."""
    cdef Py_ssize_t c, j, p = totals.n_columns
    if (
        prior.shape[0] != 2 or prior.shape[1] != p or fallback.shape[0] != p or centers.shape[0] != totals.k
        or centers.shape[1] != p or counts.shape[0] != totals.k or counts.shape[1] != p
    ):
        raise ValueError("totals, centers and columns do not fit together")
    with nogil:
        for c in range(totals.k):
            for j in range(p):
                mean_of(totals, c * p + j, prior[0, j], prior[1, j], fallback[j], &centers[c, j], &counts[c, j])


def _sums_of(k, anchors, weight_anchors, *parts):
    out = Sums(k, anchors, weight_anchors)
    for kept, part in zip((out.sums, out.counts, out.weights), parts, strict=True):
        kept[...] = part
    return out


def measure(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[:, ::1] about,         # INOUT (4, p) weight, sum and sum of squares of each column, largest |z|
    int64_t[:, ::1] exponents,    # INOUT (2, p) sum of the exponents of entries that are not 0, their number
    int32_t[::1] observed,        # OUT (n_rows,) number of observed columns
    Workspace space,
):
    """How much of each row is observed, and what the columns hold."""
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    if (
        about.shape[0] != 4 or about.shape[1] != rows.n_columns or exponents.shape[0] != 2
        or exponents.shape[1] != rows.n_columns or observed.shape[0] != rows.n_rows
    ):
        raise ValueError("statistics of another shape than the rows")
    cdef double[:, ::1] listed
    cdef Py_ssize_t j
    if not rows.is_sparse:
        if rows.is_double:
            measure_dense[double](rows, start, stop, &about[0, 0], &exponents[0, 0], &observed[0], space, NULL)
        else:
            measure_dense[float](rows, start, stop, &about[0, 0], &exponents[0, 0], &observed[0], space, NULL)
        return
    listed = np.zeros((rows.n_columns, MEASURES))
    for j in range(rows.n_columns):
        listed[j, 0], listed[j, 1], listed[j, 2], listed[j, 3] = about[0, j], about[1, j], about[2, j], about[3, j]
    if rows.is_double:
        measure_sparse[double](rows, start, stop, &listed[0, 0], &observed[0], space, NULL)
    else:
        measure_sparse[float](rows, start, stop, &listed[0, 0], &observed[0], space, NULL)
    for j in range(rows.n_columns):
        about[0, j], about[1, j], about[2, j], about[3, j] = listed[j, 0], listed[j, 1], listed[j, 2], listed[j, 3]
        exponents[0, j] += <int64_t> listed[j, 4]
        exponents[1, j] += <int64_t> listed[j, 5]


cdef void measure_dense(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, double* about, int64_t* exponents, int32_t* observed,
    Workspace space, const real* like
) noexcept:
    cdef Py_ssize_t i = start, r, n, p = rows.n_columns, most = min(space.chunk, MEASURED_ROWS)
    cdef real* copies = <real*> space.copies
    cdef const real** tile = <const real**> space.pointers
    cdef double* weight = <double*> space.best
    with nogil:
        while i < stop:
            n = min(most, stop - i)
            for r in range(n):
                tile[r] = row_at(rows, i + r, copies + r * p)
                weight[r] = weight_of(rows, i + r)
            if real is float:
                measure_rows_f32(tile, <const float*> rows.shift, <float> rows.scale, p, weight, about, exponents,
                                 observed + i, n)
            else:
                measure_rows_f64(tile, <const double*> rows.shift, rows.scale, p, weight, about, exponents,
                                 observed + i, n)
            i += n


cdef void measure_sparse(
    Rows rows, Py_ssize_t start, Py_ssize_t stop, double* listed, int32_t* observed, Workspace space, const real* like
) noexcept:
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t i, m
    with nogil:
        for i in range(start, stop):
            m = entries_of(rows, i, space, &columns, &values)
            if real is float:
                measure_list_f32(columns, values, m, weight_of(rows, i), listed)
            else:
                measure_list_f64(columns, values, m, weight_of(rows, i), listed)
            observed[i] = <int32_t> m


def add_up(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    Sums to,                      # INOUT
    Workspace space,
):
    """Add the rows to the sums of their clusters."""
    cdef Py_ssize_t i
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    if labels.shape[0] != rows.n_rows or to.n_columns != rows.n_columns:
        raise ValueError("labels or sums of another shape than the rows")
    for i in range(start, stop):
        if labels[i] >= to.k:
            raise IndexError(f"label {labels[i]} of {to.k} clusters")
    with nogil:
        for i in range(start, stop):
            if labels[i] >= 0:
                if rows.is_double:
                    join[double](to, rows, i, labels[i], -1, NULL, space, NULL)
                else:
                    join[float](to, rows, i, labels[i], -1, NULL, space, NULL)


def losses(
    Rows rows,
    Py_ssize_t start,
    Py_ssize_t stop,
    const int32_t[::1] labels,    # IN (n_rows,), -1 to leave a row out
    const double[:, ::1] centers,  # IN (k, p)
    double[::1] out,              # OUT (n_rows,) loss of each row, or (0,) if not wanted
    Workspace space,
):
    """Sum of weight * squared partial distance of the rows to their own centers."""
    cdef Py_ssize_t i
    cdef bint keep = out.shape[0] > 0
    cdef double total = 0, loss
    rows.check_span(start, stop)
    space.check_fits(rows, 0)
    if labels.shape[0] != rows.n_rows or centers.shape[1] != rows.n_columns or (keep and out.shape[0] != rows.n_rows):
        raise ValueError("labels or centers of another shape than the rows")
    for i in range(start, stop):
        if labels[i] >= centers.shape[0]:
            raise IndexError(f"label {labels[i]} of {centers.shape[0]} clusters")
    with nogil:
        for i in range(start, stop):
            loss = 0
            if labels[i] >= 0:
                if rows.is_double:
                    loss = loss_of[double](rows, i, &centers[labels[i], 0], space, NULL)
                else:
                    loss = loss_of[float](rows, i, &centers[labels[i], 0], space, NULL)
                loss *= weight_of(rows, i)
            if keep:
                out[i] = loss
            total += loss
    return total
