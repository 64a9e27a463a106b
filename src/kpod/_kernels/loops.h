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

#undef NAME

#endif
