# cython: language_level=3, embedsignature=True
"""What rows are compared with: centers, an offset for each, and optional terms for each entry."""

import math

import numpy as np

ALIGNMENT = 64
VECTOR_BYTES = 32
SINGLE = np.dtype(np.float32)


def aligned_zeros(shape, dtype):
    """Zeros that start on a cache line, so that no vector straddles two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)


def side_by_side(by_center, dtype):
    """An array (k, n_columns) transposed and padded to whole vectors."""
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    out = aligned_zeros((by_center.shape[1], -(-len(by_center) // lanes) * lanes), dtype)
    with np.errstate(over="ignore"):
        out[:, : len(by_center)] = by_center.T
    return out


def padded(offsets, dtype):
    """Offsets padded with infinity, so that what is no center is never the nearest."""
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    out = aligned_zeros((-(-len(offsets) // lanes) * lanes,), dtype)
    out[len(offsets) :] = np.inf
    with np.errstate(over="ignore"):
        out[: len(offsets)] = offsets
    return out


cdef class Panel:
    """Centers as rows are compared with them, in the precision of the rows and in single precision.

    A row is compared with center l by

        offsets[l] + sum over its observed columns j of (z_j - centers[l, j])^2 + terms[l, j]

    and every kernel takes all of it.

    Parameters
    ----------
    centers : float64 array (k, n_columns)
    dtype : float32 or float64, the precision of the rows
    offsets : float64 array (k,), or None for 0
    terms : float64 array (k, n_columns), or None for 0; they may be negative as long as no sum is
    """

    def __cinit__(self, centers, dtype, offsets=None, terms=None):
        dtype = np.dtype(dtype)
        centers = np.ascontiguousarray(centers, np.float64)
        if centers.ndim != 2 or not len(centers):
            raise ValueError(f"centers must be a table of at least one row, got shape {centers.shape}.")
        if dtype not in (np.float32, np.float64):
            raise TypeError(f"rows are float32 or float64, not {dtype}.")
        self.k, self.n_columns = centers.shape
        given = np.zeros(self.k) if offsets is None else np.asarray(offsets, np.float64)
        if given.shape != (self.k,) or (terms is not None and np.shape(terms) != centers.shape):
            raise ValueError("offsets and terms must be given for every center.")
        self.centers, self.offsets, self.terms = centers, offsets, terms
        self.is_double = dtype == np.float64
        native = side_by_side(centers, dtype)
        native_offsets = padded(given, dtype)
        native_terms = None if terms is None else side_by_side(terms, dtype)
        single, single_offsets, single_terms = native, native_offsets, native_terms
        if self.is_double:
            single, single_offsets = side_by_side(centers, SINGLE), padded(given, SINGLE)
            single_terms = None if terms is None else side_by_side(terms, SINGLE)
        self.arrays = (centers, native, native_offsets, native_terms, single, single_offsets, single_terms)
        self.stride, self.single_stride = native.shape[1], single.shape[1]
        self.exact = <const double*> <size_t> centers.ctypes.data
        self.native = <const void*> <size_t> native.ctypes.data
        self.native_offsets = <const void*> <size_t> native_offsets.ctypes.data
        self.single = <const float*> <size_t> single.ctypes.data
        self.single_offsets = <const float*> <size_t> single_offsets.ctypes.data
        self.native_terms = NULL
        self.single_terms = NULL
        if terms is not None:
            self.native_terms = <const void*> <size_t> native_terms.ctypes.data
            self.single_terms = <const float*> <size_t> single_terms.ctypes.data
        with np.errstate(over="ignore"):
            self.longest = np.sqrt((centers**2).sum(axis=1).max())
        # Squares add up without cancelling, and their sum is off by so many roundings of itself;
        # what may be negative is off by roundings of its size.
        size = np.abs(given).max() + (0 if terms is None else np.abs(terms).sum(axis=1).max())
        self.slack = (self.n_columns + 4) * np.finfo(dtype).eps * size
        self.single_slack = (self.n_columns + 4) * np.finfo(SINGLE).eps * size

    @property
    def dtype(self):
        """The precision of the rows it is for."""
        return np.dtype(np.float64 if self.is_double else np.float32)

    def __reduce__(self):
        return Panel, (self.centers, self.dtype, self.offsets, self.terms)
