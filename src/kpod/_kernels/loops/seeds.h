/* Rows against seed candidates: see `seed_distances`. */
#ifndef KPOD_SEEDS_H
#define KPOD_SEEDS_H

#include "vectors.h"

/* One row against `width` vectors of seed candidates, as `seed_distances` has it. */
KPOD_INLINE void strip_seed_distances(const int32_t *restrict columns, const float *restrict values, ptrdiff_t m,
                                      const float *restrict panel, const float *restrict observed, ptrdiff_t stride,
                                      float n_columns, float variance, float nearest, float *restrict out,
                                      const int width)
{
    vector_f32 sum[4], shared[4];
    for (int v = 0; v < width; v++)
        sum[v] = shared[v] = (vector_f32){0};
    for (ptrdiff_t e = 0; e < m; e++) {
        const ptrdiff_t at = columns[e] * stride;
        for (int v = 0; v < width; v++) {
            const vector_f32 both = *(const vector_f32 *)(observed + at + 8 * v);
            const vector_f32 d = values[e] - *(const vector_f32 *)(panel + at + 8 * v);
            sum[v] += both * d * d;
            shared[v] += both;
        }
    }
    for (int v = 0; v < width; v++) {
        const vector_f32 prior = 0.5f * (1.0f - shared[v] / n_columns);
        const vector_f32 d = n_columns * (sum[v] + 2.0f * prior * variance) / (shared[v] + prior);
        for (int t = 0; t < 8; t++)
            out[8 * v + t] = d[t] < nearest ? d[t] : nearest;
    }
}

/* One row against seed candidates: the squared distance over the columns that both observe,
 * rescaled from those to all of them as `seeding.KMeansPlusPlus` defines it, and never above `nearest`.
 * `observed` is what a column counts for (1, as a rule) where a candidate observes it and 0 elsewhere; values
 * are divided by the root of that. */
KPOD_DISPATCH
static void seed_distances(const int32_t *restrict columns, const float *restrict values, ptrdiff_t m,
                           const float *restrict panel, const float *restrict observed, ptrdiff_t stride,
                           float n_columns, float variance, float nearest, double weight, float *restrict out,
                           double *restrict potential)
{
    ptrdiff_t c = 0;
    for (; c + 16 <= stride; c += 16)
        strip_seed_distances(columns, values, m, panel + c, observed + c, stride, n_columns, variance, nearest,
                             out + c, 2);
    if (c < stride)
        strip_seed_distances(columns, values, m, panel + c, observed + c, stride, n_columns, variance, nearest,
                             out + c, 1);
    for (c = 0; c < stride; c++)
        potential[c] += weight * (double)out[c];
}

#endif
