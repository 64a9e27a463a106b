/* Bounds on the distances of rows to their own center and to the others, and what they say: see bounds.inc.
 *
 * Rows of a call are numbered from its first one on, in 32 bits. Lists of rows are MOST_LANES longer than the rows
 * they are for, since whole vectors are written. */
#ifndef KPOD_BOUNDS_H
#define KPOD_BOUNDS_H

#include "lanes.h"

/* More than squares too small for single precision can add up to. */
#define UNDERFLOW_SLACK 1e-17f

/* A distance that single precision holds: a lower bound must not be infinite, which is for good. */
#define LARGEST_BOUND 1e37f

/* The state of the rows, from the first of a call on, and how far the k centers moved. */
struct bounds {
    int32_t *labels;
    float *upper, *lower;
    const float *drift, *other_drift; /* (k,) of each center, and of the farthest-moving other one */
    int32_t k;
    float leaving; /* a factor on the distance to the own center */
};

/* What a chunk of rows was compared with its centers by, and how far that may be off. */
struct first_look {
    const float *best, *second;    /* of each row */
    const float *slack, *absolute; /* of each row: relative to a distance, and of its square */
    float roundoff, of_centers;    /* what rounding a row and a center changes: relative to a distance, and at most */
};

#define LEVEL portable
#include "bounds.inc"
#undef LEVEL
#if defined(KPOD_X86)
#define LEVEL avx2
#include "bounds.inc"
#undef LEVEL
#define LEVEL avx512
#include "bounds.inc"
#undef LEVEL
#endif

static inline ptrdiff_t near_rows(const struct bounds *of, ptrdiff_t i, ptrdiff_t stop, ptrdiff_t most,
                                  int32_t *listed, int32_t *before, ptrdiff_t *n)
{
    return BY_LEVEL(near_rows, of, i, stop, most, listed, before, n);
}

static inline ptrdiff_t settle(const struct bounds *of, const struct first_look *look, ptrdiff_t n,
                               const int32_t *rows, const int32_t *nearest, int32_t *doubtful)
{
    return BY_LEVEL(settle, of, look, n, rows, nearest, doubtful);
}

static inline ptrdiff_t keep_changed(ptrdiff_t n, int32_t *rows, int32_t *now, int32_t *before)
{
    return BY_LEVEL(keep_changed, n, rows, now, before);
}

#endif
