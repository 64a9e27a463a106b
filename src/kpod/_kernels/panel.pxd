cdef class Panel:
    cdef readonly Py_ssize_t k, n_columns, stride, single_stride
    cdef readonly object centers, offsets, terms
    cdef readonly double longest, slack, single_slack
    cdef void* memory
    cdef const double* by_row
    cdef double* doubles
    cdef double* double_offsets
    cdef double* double_terms
    cdef float* singles
    cdef float* single_offsets
    cdef float* single_terms
