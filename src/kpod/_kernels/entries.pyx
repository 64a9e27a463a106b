# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""Entries of some rows, copied out; and entries hidden by a hash, the same ones wherever a row is."""

from libc.math cimport NAN
from libc.stdint cimport int32_t, uint8_t, uint64_t

from kpod._kernels.rows cimport Rows, Workspace, entries_of, real


def list_entries(
    Rows rows,
    const Py_ssize_t[::1] index,  # IN (n,) the rows in question
    const Py_ssize_t[::1] start,  # IN (n + 1,) where the entries of each begin
    int32_t[::1] columns,         # OUT their columns
    float[::1] values,            # OUT their values, none beyond what single precision can square
    Workspace space,
):
    """The observed entries of some rows, in single precision."""
    cdef Py_ssize_t r
    space.check_fits(rows, 0)
    if start.shape[0] != index.shape[0] + 1 or columns.shape[0] != values.shape[0]:
        raise ValueError("rows, their beginnings, columns and values do not fit together")
    for r in range(index.shape[0]):
        rows.check_span(index[r], index[r] + 1)
        if not 0 <= start[r] <= start[r + 1] <= columns.shape[0]:
            raise IndexError("entries beyond the list")
    if rows.is_double:
        copy_entries[double](rows, index, start, columns, values, space, NULL)
    else:
        copy_entries[float](rows, index, start, columns, values, space, NULL)


cdef void copy_entries(
    Rows rows, const Py_ssize_t[::1] index, const Py_ssize_t[::1] start, int32_t[::1] columns, float[::1] values,
    Workspace space, const real* like
) noexcept:
    cdef const int32_t* row_columns
    cdef const real* row_values
    cdef Py_ssize_t r, e, m
    cdef double value
    with nogil:
        for r in range(index.shape[0]):
            m = entries_of(rows, index[r], space, &row_columns, &row_values)
            for e in range(min(m, start[r + 1] - start[r])):
                columns[start[r] + e] = row_columns[e]
                value = row_values[e]
                values[start[r] + e] = <float> min(max(value, -1e15), 1e15)


def gather(
    Rows rows,
    const Py_ssize_t[::1] index,  # IN (n,) the rows in question
    double[:, ::1] out,           # OUT (n, p), NaN in the gaps
    Workspace space,
):
    """Some rows as a dense array."""
    cdef Py_ssize_t r
    space.check_fits(rows, 0)
    if out.shape[0] != index.shape[0] or out.shape[1] != rows.n_columns:
        raise ValueError("a table of another shape than the rows")
    for r in range(index.shape[0]):
        rows.check_span(index[r], index[r] + 1)
    out[:, :] = NAN
    if rows.is_double:
        scatter_entries[double](rows, index, out, space, NULL)
    else:
        scatter_entries[float](rows, index, out, space, NULL)


cdef void scatter_entries(
    Rows rows, const Py_ssize_t[::1] index, double[:, ::1] out, Workspace space, const real* like
) noexcept:
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t r, e, m
    with nogil:
        for r in range(index.shape[0]):
            m = entries_of(rows, index[r], space, &columns, &values)
            for e in range(m):
                out[r, columns[e]] = values[e]


cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014): every bit of z moves every bit."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


def hide(
    Rows rows,
    Py_ssize_t first,             # IN number of the block's first row in the table
    uint64_t seed,
    double low,                   # IN hidden are the entries whose hash, as a number from 0 to 1,
    double high,                  # lies from `low` up to `high`
    uint8_t[::1] bitmap,          # OUT zeros before: as `Rows` takes it, flat
    Workspace space,
    const int32_t[::1] sources=None,  # IN (p,) columns with the same number are hidden together
):
    """Hide entries by a hash of row, column and seed; of a row that would lose all, the highest stays.

    The same entries are hidden wherever the row is and however it is stored.
    """
    space.check_fits(rows, 0)
    cdef const int32_t* source = NULL
    if sources is not None:
        if sources.shape[0] != rows.n_columns:
            raise ValueError("a source for every column is needed")
        source = &sources[0]
    cdef Py_ssize_t step = (rows.n_columns + 7) // 8
    if bitmap.shape[0] != ((rows.n_entries + 7) // 8 if rows.is_sparse else rows.n_rows * step):
        raise ValueError("a bitmap of another size than the rows")
    if rows.hidden != NULL:
        raise ValueError("some entries are hidden already")
    if rows.is_double:
        hide_entries[double](rows, first, seed, low, high, &bitmap[0], step, space, source, NULL)
    else:
        hide_entries[float](rows, first, seed, low, high, &bitmap[0], step, space, source, NULL)


cdef inline double hash_of(uint64_t key, int32_t column) noexcept nogil:
    return (mix(key + <uint64_t> column * <uint64_t> 0xD1B54A32D192ED03) >> 11) * 2.0 ** -53


cdef void hide_entries(
    Rows rows, Py_ssize_t first, uint64_t seed, double low, double high, uint8_t* bitmap, Py_ssize_t step,
    Workspace space, const int32_t* source, const real* like
) noexcept:
    cdef const int32_t* columns
    cdef const real* values
    cdef Py_ssize_t i, e, m, at, n_hidden
    cdef double u, highest
    cdef uint64_t key
    with nogil:
        for i in range(rows.n_rows):
            m = entries_of(rows, i, space, &columns, &values)
            key = mix(seed + <uint64_t> (first + i) * <uint64_t> 0x9E3779B97F4A7C15)
            highest = -1
            n_hidden = 0
            for e in range(m):
                u = hash_of(key, columns[e] if source == NULL else source[columns[e]])
                n_hidden += low <= u < high
                highest = max(highest, u)
            for e in range(m):
                u = hash_of(key, columns[e] if source == NULL else source[columns[e]])
                if low <= u < high and not (n_hidden == m and u == highest):
                    at = rows.indptr[i] + e if rows.is_sparse else columns[e]
                    bitmap[(0 if rows.is_sparse else i * step) + (at >> 3)] |= <uint8_t> (1 << (at & 7))
