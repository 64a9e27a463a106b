/* The two nearest centers of dense rows, several rows side by side: see strips.inc and few.inc. */
#ifndef KPOD_FEW_H
#define KPOD_FEW_H

#include "lanes.h"

/* The centers that rows are compared with, in single precision: (p, stride), those of a column side by side. */
struct singles {
    const float *centers, *terms; /* terms or NULL */
    const float *offsets;
    ptrdiff_t p, k, stride;
};

#define LEVEL portable
#include "strips.inc"
#undef LEVEL
#if defined(KPOD_X86)
#define LEVEL avx2
#include "strips.inc"
#undef LEVEL
#define LEVEL avx512
#include "strips.inc"
#undef LEVEL
#endif

/* The most centers for which rows of p columns, so much of which is observed, are faster side by side. One row alone
 * costs more for itself and for each entry, but skips the gaps and needs no masks. (Both were timed for 8 to 100
 * columns, 4 to 64 centers and 5 % to 85 % missing, with AVX2; with AVX-512, at 50 and 100 of both.) */
static inline double most_side_by_side(ptrdiff_t p, double share)
{
    /* A column and a center cost so much; where rows are alone, .65 if the column is observed. */
    const double masked = kpod_level == AVX512 ? 0.3 : 1, more = masked - 0.65 * share;
    return more > 0 ? (540.0 / p + 6 * share - 1) / more : INFINITY;
}

static inline void few_nearest_f32(const float *const *rows, const float *shift, float scale, ptrdiff_t n,
                                   const struct singles *of, float *tile, float *best, float *second,
                                   int32_t *nearest)
{
    BY_LEVEL(few_nearest_f32, rows, shift, scale, n, of, tile, best, second, nearest);
}

static inline void few_nearest_f64(const double *const *rows, const double *shift, double scale, ptrdiff_t n,
                                   const struct singles *of, float *tile, float *best, float *second,
                                   int32_t *nearest)
{
    BY_LEVEL(few_nearest_f64, rows, shift, scale, n, of, tile, best, second, nearest);
}

#endif
