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

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define KPOD_DISPATCH __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define KPOD_DISPATCH
#endif

#define KPOD_PASTE_(a, b) a##_##b
#define KPOD_PASTE(a, b) KPOD_PASTE_(a, b)
#define NAME(a) KPOD_PASTE(a, SUFFIX)

#define SUFFIX f32
#define REAL float
#define INDEX int32_t
#include "loops.inc"
#undef SUFFIX
#undef REAL
#undef INDEX

#define SUFFIX f64
#define REAL double
#define INDEX int64_t
#include "loops.inc"
#undef SUFFIX
#undef REAL
#undef INDEX

#undef NAME

/* One row's partial distances to m seed candidates, rescaled from the shared columns to all
 * of them as `_seeding.Spread` defines it, and never above `nearest`. */
KPOD_DISPATCH
static void rescale_row(float *restrict distance, const float *restrict overlap, ptrdiff_t m, float n_columns,
                        float variance, float nearest)
{
    for (ptrdiff_t c = 0; c < m; c++) {
        float prior = 0.5f * (1.0f - overlap[c] / n_columns);
        float shared = distance[c] > 0.0f ? distance[c] : 0.0f;
        float d = n_columns * (shared + 2.0f * prior * variance) / (overlap[c] + prior);
        distance[c] = d < nearest ? d : nearest;
    }
}
#endif
