/* One pass over a row, dense or as a list of entries: see passes.inc. */
#ifndef KPOD_PASSES_H
#define KPOD_PASSES_H

#include "vectors.h"

#define MOST_LEVELS 3
#define MEASURES 8
#define MEASURED_ROWS 4 /* at a time: what is known of a column then stays in registers */

typedef double doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t longs __attribute__((vector_size(32), aligned(8), may_alias));

/* A value where another is a number, and 0 where that is NaN. */
#define SEEN4(z, value) ((doubles)((longs)((z) == (z)) & (longs)(value)))

KPOD_INLINE double seen(double z, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(int64_t)(z == z);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

KPOD_INLINE int64_t exponent_of(double z)
{
    int64_t bits;
    memcpy(&bits, &z, sizeof bits);
    return bits >> 52 & 0x7ff;
}

/* A value in parts that are multiples of fixed units, coarse to fine: sums of such parts are exact
 * in any order. Adding and taking off 1.5 * 2^52 units (the anchor) rounds to a multiple of one. */
KPOD_INLINE void split(double value, const double *anchors, ptrdiff_t step, int n_levels, double *parts)
{
    for (int l = 0; l < n_levels; l++) {
        parts[l] = (value + anchors[l * step]) - anchors[l * step];
        value -= parts[l];
    }
}

/* The sums a cluster keeps, and the units they are kept in: `sums` points to the first column of
 * the cluster's first level, whose other levels lie `step` further each. */
struct exact_sums {
    double *sums, *counts;
    ptrdiff_t step;
    const double *anchors; /* (n_levels, p) */
    int n_levels, n_count_levels;
};

/* Those of all k clusters, of which `first` points to the first, and the weights of their rows (n_count_levels, k). */
struct cluster_sums {
    struct exact_sums first;
    double *weights;
    const double *weight_units; /* anchors, (n_count_levels,) */
    ptrdiff_t k;
};

/* A row's weight joins a cluster, and leaves another unless that is -1; `parts` gets it in parts. */
KPOD_INLINE void join_weight(double weight, ptrdiff_t now, ptrdiff_t before, struct cluster_sums all, double *parts)
{
    parts[0] = weight;
    if (all.first.n_count_levels > 1)
        split(weight, all.weight_units, 1, all.first.n_count_levels, parts);
    for (int l = 0; l < all.first.n_count_levels; l++) {
        all.weights[l * all.k + now] += parts[l];
        if (before >= 0)
            all.weights[l * all.k + before] -= parts[l];
    }
}

#define SUFFIX f32
#define REAL float
#include "passes.inc"
#undef SUFFIX
#undef REAL

#define SUFFIX f64
#define REAL double
#include "passes.inc"
#undef SUFFIX
#undef REAL

#endif
