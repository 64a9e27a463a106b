/* Bounds on the distances of rows to their own center and to the others. */
#ifndef KPOD_BOUNDS_H
#define KPOD_BOUNDS_H

#include "vectors.h"

/* More than squares too small for single precision can add up to. */
#define UNDERFLOW_SLACK 1e-17f

/* Carry the bounds of the rows from i on along as the centers move, and list those whose bounds
 * do not say that their own center is the one to have: up to `most` rows. `leaving` is a factor
 * on the distance to the own center. Returns the next row, `n` the number listed, or -1 for a
 * label beyond the k clusters.
 *
 * Which rows are listed is next to random, so a branch would often be mispredicted: there is none. */
static ptrdiff_t near_rows(ptrdiff_t i, ptrdiff_t stop, int32_t k, const int32_t *restrict labels,
                           float *restrict upper, float *restrict lower, const float *restrict drift,
                           const float *restrict other_drift, float leaving, ptrdiff_t most,
                           ptrdiff_t *restrict listed, ptrdiff_t *restrict n)
{
    ptrdiff_t found = 0;
    int beyond = 0;
    for (; i < stop && found < most; i++) {
        const int32_t label = labels[i];
        const int known = (uint32_t)label < (uint32_t)k, own = known ? label : 0;
        const float to_own = (upper[i] + drift[own]) * 1.0000002f;
        const float to_other = (lower[i] - other_drift[own]) * 0.9999998f;
        upper[i] = to_own;
        lower[i] = to_other;
        beyond |= label >= k;
        listed[found] = i;
        found += !known | !(to_own * leaving < to_other - UNDERFLOW_SLACK);
    }
    *n = found;
    return beyond ? -1 : i;
}

#endif
