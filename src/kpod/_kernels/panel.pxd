from libc.stdint cimport int16_t


cdef class Panel:
    cdef readonly Py_ssize_t k, n_columns, stride, single_stride
    cdef readonly object centers, offsets, terms, roots
    cdef readonly double longest         # norm of the longest center
    cdef readonly double largest_offset  # of all centers, as are these:
    cdef readonly double largest_term, largest_terms  # one, and all of a center added up
    cdef void* memory
    cdef const double* by_row
    cdef double* doubles
    cdef double* double_offsets
    cdef double* double_terms
    cdef float* singles
    cdef float* single_offsets
    cdef float* single_terms
    cdef float* complete   # offset and all terms of each center: what a row without gaps begins with,
    cdef float* gap_means  # and what gaps take off, see gaps.h: of all centers,
    cdef int16_t* gap_table  # and of each beyond that; NULL: terms are added one by one
    cdef bint by_gaps      # whether there is room for these two:
    cdef float* room_for_means
    cdef int16_t* room_for_gaps
    cdef Py_ssize_t gap_stride  # of the second,
    cdef float gap_unit    # its unit, and
    cdef readonly double gap_error  # how far what gaps take off may be off

    cdef void move_to(self, const double* centers) noexcept nogil
    cdef void set_terms(self, const double* offsets, const double* terms) noexcept nogil


cdef inline double slack_of_terms(Panel panel, Py_ssize_t m, double unit) noexcept nogil:
    """How far offset and terms of m entries may be off when added up with roundings of `unit`.

    Squares add up without cancelling, and their sum is off by so many roundings of itself; what may
    be negative is off by roundings of its size.
    """
    return (m + 4) * unit * (panel.largest_offset + min(panel.largest_terms, m * panel.largest_term))
