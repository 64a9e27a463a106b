cdef class Panel:
    cdef readonly Py_ssize_t k, n_columns, stride, single_stride
    cdef readonly bint is_double
    cdef readonly object centers, offsets, terms
    cdef readonly double longest, slack, single_slack
    cdef object arrays
    cdef const double* exact
    cdef const void* native
    cdef const void* native_offsets
    cdef const void* native_terms
    cdef const float* single
    cdef const float* single_offsets
    cdef const float* single_terms
