/* The inner loops of the kernels, once for float and once for double.
 *
 * They are C rather than Cython so that the compiler can be asked for one copy per
 * instruction set, chosen when the library is loaded: what we ship runs on any
 * x86-64 and still uses wide vectors where there are any. */
#ifndef KPOD_LOOPS_H
#define KPOD_LOOPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Levels of the architecture rather than models of processors: a model matches no other maker's. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12
#define KPOD_DISPATCH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && defined(__GNUC__)
#define KPOD_DISPATCH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KPOD_DISPATCH
#endif

/* Lanes of a vector in another order; clang has no variable one, but folds this. */
#if defined(__clang__)
#define SHUFFLE(v, order)                                                                                              \
    ({                                                                                                                 \
        __typeof__(v) turned;                                                                                          \
        for (int t = 0; t < LANES; t++)                                                                                \
            turned[t] = (v)[(order)[t]];                                                                               \
        turned;                                                                                                        \
    })
#else
#define SHUFFLE(v, order) __builtin_shuffle(v, order)
#endif

#define KPOD_INLINE static inline __attribute__((always_inline))
#define KPOD_PASTE_(a, b) a##_##b
#define KPOD_PASTE(a, b) KPOD_PASTE_(a, b)
#define NAME(a) KPOD_PASTE(a, SUFFIX)

#include "compact.h"

#define SUFFIX f32
#define REAL float
#define INTEGER int32_t
#include "loops.inc"
#undef SUFFIX
#undef REAL
#undef INTEGER

#define SUFFIX f64
#define REAL double
#define INTEGER int64_t
#include "loops.inc"
#undef SUFFIX
#undef REAL
#undef INTEGER

#include "few.h"
#include "passes.h"

#define SUFFIX f32
#define REAL float
#include "few.inc"
#include "passes.inc"
#undef SUFFIX
#undef REAL

#define SUFFIX f64
#define REAL double
#include "few.inc"
#include "passes.inc"
#undef SUFFIX
#undef REAL

#undef NAME

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
 * rescaled from those to all of them as `_seeding.Spread` defines it, and never above `nearest`.
 * `observed` is 1 where a candidate observes a column and 0 elsewhere. */
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
