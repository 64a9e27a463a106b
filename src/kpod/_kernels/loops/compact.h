/* The observed entries of a dense row: their columns and values, as z = (x - shift) * scale; and on demand its gaps,
 * a byte for every eight columns.
 *
 * A branch per entry would be mispredicted at every third gap, so there is none. Where the
 * processor has AVX2, eight columns are done at a time: the mask of the observed ones looks
 * up the permutation that moves them to the front.
 *
 * All of these write up to COMPACT_SLACK places beyond the entries they return. */
#ifndef KPOD_COMPACT_H
#define KPOD_COMPACT_H

#include "vectors.h"

#define COMPACT_SLACK 8

/* The rest of a row, from a multiple of four on. */
#define COMPACT_REST(x, shift, scale, j, p, columns, values, m, gaps)                                                  \
    for (unsigned some = (gaps) && ((j) & 7) ? (gaps)[(j) / 8] : 0; j < p; j++) {                                      \
        values[m] = (x[j] - shift[j]) * scale;                                                                         \
        columns[m] = (int32_t)j;                                                                                       \
        some |= (unsigned)(values[m] != values[m]) << (j & 7);                                                         \
        m += values[m] == values[m];                                                                                   \
        if ((gaps) && ((j & 7) == 7 || j + 1 == p)) {                                                                  \
            (gaps)[j / 8] = (uint8_t)some;                                                                             \
            some = 0;                                                                                                  \
        }                                                                                                              \
    }

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* front[mask]: the set bits of mask, lowest first; built when the module is loaded. */
static uint8_t front[256][8];

__attribute__((constructor)) static void build_front(void)
{
    for (int mask = 0; mask < 256; mask++)
        for (int bit = 0, n = 0; bit < 8; bit++)
            if (mask >> bit & 1)
                front[mask][n++] = (uint8_t)bit;
}

#define COMPACT_AVX2 static inline __attribute__((always_inline, target("avx2,popcnt")))

COMPACT_AVX2 ptrdiff_t list_avx2_f32(const float *x, const float *shift, float scale, ptrdiff_t p, int32_t *columns,
                                     float *values, uint8_t *gaps)
{
    ptrdiff_t m = 0, j = 0;
    for (; j + 8 <= p; j += 8) {
        __m256 z = _mm256_sub_ps(_mm256_loadu_ps(x + j), _mm256_loadu_ps(shift + j)) * scale;
        unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(z, z, _CMP_ORD_Q));
        __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)front[mask]));
        _mm256_storeu_ps(values + m, _mm256_permutevar8x32_ps(z, order));
        _mm256_storeu_si256((__m256i *)(columns + m), _mm256_add_epi32(order, _mm256_set1_epi32((int)j)));
        m += _mm_popcnt_u32(mask);
        if (gaps)
            gaps[j / 8] = (uint8_t)~mask;
    }
    COMPACT_REST(x, shift, scale, j, p, columns, values, m, gaps)
    return m;
}

COMPACT_AVX2 ptrdiff_t list_avx2_f64(const double *x, const double *shift, double scale, ptrdiff_t p, int32_t *columns,
                                     double *values, uint8_t *gaps)
{
    const __m256i halves = _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1);
    ptrdiff_t m = 0, j = 0;
    for (; j + 4 <= p; j += 4) {
        __m256d z = _mm256_sub_pd(_mm256_loadu_pd(x + j), _mm256_loadu_pd(shift + j)) * scale;
        unsigned mask = (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(z, z, _CMP_ORD_Q));
        __m128i order = _mm_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)front[mask]));
        /* A double is two halves: half 2t and 2t + 1 of the source for each t in `order`. */
        __m256i twice = _mm256_slli_epi64(_mm256_cvtepu32_epi64(order), 1);
        __m256i lanes = _mm256_add_epi32(_mm256_or_si256(twice, _mm256_slli_epi64(twice, 32)), halves);
        _mm256_storeu_pd(values + m,
                         _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(_mm256_castpd_si256(z), lanes)));
        _mm_storeu_si128((__m128i *)(columns + m), _mm_add_epi32(order, _mm_set1_epi32((int)j)));
        m += _mm_popcnt_u32(mask);
        if (gaps)
            gaps[j / 8] = (uint8_t)(j & 4 ? gaps[j / 8] | (~mask & 15) << 4 : ~mask & 15);
    }
    COMPACT_REST(x, shift, scale, j, p, columns, values, m, gaps)
    return m;
}

#define COMPACT_WITH_AVX2(suffix, real)                                                                                \
    __attribute__((target("avx2,popcnt"))) static ptrdiff_t compact_avx2_##suffix(                                     \
        const real *x, const real *shift, real scale, ptrdiff_t p, int32_t *columns, real *values)                     \
    {                                                                                                                  \
        return list_avx2_##suffix(x, shift, scale, p, columns, values, 0);                                             \
    }                                                                                                                  \
    __attribute__((target("avx2,popcnt"))) static ptrdiff_t compact_gaps_avx2_##suffix(                                \
        const real *x, const real *shift, real scale, ptrdiff_t p, int32_t *columns, real *values, uint8_t *gaps)      \
    {                                                                                                                  \
        return list_avx2_##suffix(x, shift, scale, p, columns, values, gaps);                                          \
    }
COMPACT_WITH_AVX2(f32, float)
COMPACT_WITH_AVX2(f64, double)

#define COMPACT_TRY_AVX2(name, ...)                                                                                    \
    if (__builtin_cpu_supports("avx2"))                                                                                \
        return name(__VA_ARGS__);
#else
#define COMPACT_TRY_AVX2(name, ...)
#endif

#define COMPACT(suffix, real)                                                                                          \
    static inline ptrdiff_t compact_##suffix(const real *x, const real *shift, real scale, ptrdiff_t p,                \
                                             int32_t *columns, real *values)                                           \
    {                                                                                                                  \
        uint8_t *gaps = 0;                                                                                             \
        ptrdiff_t m = 0, j = 0;                                                                                        \
        COMPACT_TRY_AVX2(compact_avx2_##suffix, x, shift, scale, p, columns, values)                                   \
        COMPACT_REST(x, shift, scale, j, p, columns, values, m, gaps)                                                  \
        return m;                                                                                                      \
    }                                                                                                                  \
    static inline ptrdiff_t compact_gaps_##suffix(const real *x, const real *shift, real scale, ptrdiff_t p,           \
                                                  int32_t *columns, real *values, uint8_t *gaps)                       \
    {                                                                                                                  \
        ptrdiff_t m = 0, j = 0;                                                                                        \
        COMPACT_TRY_AVX2(compact_gaps_avx2_##suffix, x, shift, scale, p, columns, values, gaps)                        \
        COMPACT_REST(x, shift, scale, j, p, columns, values, m, gaps)                                                  \
        return m;                                                                                                      \
    }
COMPACT(f32, float)
COMPACT(f64, double)
#endif
