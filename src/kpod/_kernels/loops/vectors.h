/* What all loops share: one copy of each per instruction set, and vectors of 32 bytes.
 *
 * The loops are C rather than Cython so that the compiler can be asked for one copy per
 * instruction set, chosen when the library is loaded: what we ship runs on any
 * x86-64 and still uses wide vectors where there are any. */
#ifndef KPOD_VECTORS_H
#define KPOD_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#error "The loops are written with the vector extensions of GCC and Clang: on Windows, build with CC=clang-cl."
#endif

/* Levels of the architecture rather than models of processors: a model matches no other maker's. */
#if defined(KPOD_SANITIZE)
#define KPOD_DISPATCH
#elif defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12
#define KPOD_DISPATCH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(__x86_64__) && defined(__gnu_linux__) && (!defined(__clang__) || __clang_major__ >= 14)
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

/* So many centers are compared with rows side by side (few.h), more with one row at a time (distances.h). */
#define FEW_CENTERS 16

/* Rows side by side, at most (lanes.h): lists of rows are so much longer than the rows they are for. */
#define MOST_LANES 16

/* Bytes for the gaps of a row of p columns, one bit each: compact.h writes them, gaps.h reads them. */
#define GAP_BYTES(p) (((p) + 7) / 8)

#define KPOD_INLINE static inline __attribute__((always_inline))
#define KPOD_PASTE_(a, b) a##_##b
#define KPOD_PASTE(a, b) KPOD_PASTE_(a, b)
#define NAME(a) KPOD_PASTE(a, SUFFIX)

typedef float vector_f32 __attribute__((vector_size(32), aligned(32), may_alias));
typedef int32_t mask_f32 __attribute__((vector_size(32), aligned(32), may_alias));
typedef int16_t vector_i16 __attribute__((vector_size(32), aligned(32), may_alias));
typedef double vector_f64 __attribute__((vector_size(32), aligned(32), may_alias));
typedef int64_t mask_f64 __attribute__((vector_size(32), aligned(32), may_alias));

#endif
