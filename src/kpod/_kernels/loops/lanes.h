/* Rows side by side, one to a lane of a vector: what differs between instruction sets.
 *
 * Loops over rows (bounds.inc, few.inc) are written with the operators of vectors, and with what is here where those
 * have no word for it. They are compiled once for each level: `portable` for any machine, and `avx2` and `avx512`
 * where the processor has those. */
#ifndef KPOD_LANES_H
#define KPOD_LANES_H

#include "compact.h"
#include "vectors.h"

#define LANES_portable 4
#define LANES_avx2 8
#define LANES_avx512 16

/* Centers whose sums fit the registers. */
#define STRIP_portable 8
#define STRIP_avx2 8
#define STRIP_avx512 16

/* For the level that a loop is compiled for. */
#define AT(name) KPOD_PASTE(name, LEVEL)
#define N_LANES AT(LANES)
#define FLOATS AT(floats)
#define INTS AT(ints)
#define LOOSE_FLOATS AT(loose_floats)
#define LOOSE_INTS AT(loose_ints)

/* A vector where a mask says so, and another elsewhere. */
#define SELECT(mask, a, b) ((FLOATS)(((mask) & (INTS)(a)) | (~(mask) & (INTS)(b))))

#define VECTORS_OF(level, n)                                                                                           \
    typedef float floats_##level __attribute__((vector_size(4 * n), aligned(4 * n), may_alias));                       \
    typedef int32_t ints_##level __attribute__((vector_size(4 * n), aligned(4 * n), may_alias));                       \
    typedef float loose_floats_##level __attribute__((vector_size(4 * n), aligned(4), may_alias));                     \
    typedef int32_t loose_ints_##level __attribute__((vector_size(4 * n), aligned(4), may_alias));

VECTORS_OF(portable, 4)
#define INLINE_portable KPOD_INLINE
#define TARGET_portable static

/* Four of the eight lanes of two vectors. */
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ints_portable){__VA_ARGS__})
#endif

typedef ints_portable seen_portable; /* which lanes are numbers */

KPOD_INLINE void find_seen_portable(const floats_portable *z, seen_portable *out)
{
    *out = *z == *z;
}

/* One bit for each lane of a mask. */
KPOD_INLINE unsigned bits_of_portable(const ints_portable *mask)
{
    unsigned bits = 0;
    for (int t = 0; t < 4; t++)
        bits |= (unsigned)((*mask)[t] & 1) << t;
    return bits;
}

/* The lanes that have their bit, one after the other; what is written beyond them has no meaning. */
KPOD_INLINE void put_portable(int32_t *out, const ints_portable *values, unsigned bits)
{
    for (int t = 0; t < 4; t++) {
        *out = (*values)[t];
        out += bits >> t & 1;
    }
}

KPOD_INLINE void root_portable(floats_portable *v)
{
    for (int t = 0; t < 4; t++)
        (*v)[t] = sqrtf((*v)[t]);
}

/* out[t] = table[at[t]], of up to MOST_LANES numbers (the table is as long) or, if not `few`, of any number. */
KPOD_INLINE void look_up_portable(floats_portable *out, const float *table, const ints_portable *at, const int few)
{
    (void)few;
    for (int t = 0; t < 4; t++)
        (*out)[t] = table[(*at)[t]];
}

/* sum += (z - center)^2, and the term if there is one, in the lanes that are numbers. */
KPOD_INLINE void add_portable(floats_portable *sum, const floats_portable *z, const seen_portable *seen, float center,
                              const float *term)
{
    const floats_portable d = *z - center;
    if (term)
        *sum += (floats_portable)((ints_portable)(d * d + *term) & *seen);
    else {
        const floats_portable known = (floats_portable)((ints_portable)d & *seen);
        *sum += known * known;
    }
}

/* Four columns from j on of each row, as (x - shift) * scale, to a vector for each column. */
#define FOUR_COLUMNS_portable(suffix, real)                                                                            \
    KPOD_INLINE void four_columns_##suffix##_portable(const real *const *rows, const real *shift, real scale,          \
                                                      ptrdiff_t j, floats_portable *tile)                              \
    {                                                                                                                  \
        typedef real quad __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));            \
        floats_portable a[4], b[4];                                                                                    \
        for (int t = 0; t < 4; t++)                                                                                    \
            a[t] = __builtin_convertvector((*(const quad *)(rows[t] + j) - *(const quad *)(shift + j)) * scale,        \
                                           floats_portable);                                                           \
        b[0] = PICK(a[0], a[1], 0, 4, 1, 5), b[1] = PICK(a[0], a[1], 2, 6, 3, 7);                                      \
        b[2] = PICK(a[2], a[3], 0, 4, 1, 5), b[3] = PICK(a[2], a[3], 2, 6, 3, 7);                                      \
        for (int s = 0; s < 2; s++) {                                                                                  \
            tile[j + 2 * s] = PICK(b[s], b[s + 2], 0, 1, 4, 5);                                                        \
            tile[j + 2 * s + 1] = PICK(b[s], b[s + 2], 2, 3, 6, 7);                                                    \
        }                                                                                                              \
    }
FOUR_COLUMNS_portable(f32, float)
FOUR_COLUMNS_portable(f64, double)

/* Center c, `sum` away: the two smallest sums so far, and whose the smallest is (the first of equals). */
#define LEVEL portable
KPOD_INLINE void take_portable(const floats_portable *sum, int32_t c, floats_portable *low, floats_portable *next,
                               ints_portable *place)
{
    const ints_portable less = *sum < *low, nearer = *sum < *next;
    *next = SELECT(less, *low, SELECT(nearer, *sum, *next));
    *low = SELECT(less, *sum, *low);
    *place = (less & c) | (~less & *place);
}
#undef LEVEL

#if defined(__x86_64__) && defined(__GNUC__)
#define KPOD_X86

VECTORS_OF(avx2, 8)
#define TARGET_AVX2 target("avx2,fma,bmi,bmi2,popcnt")
#define TARGET_avx2 __attribute__((TARGET_AVX2)) static
#define INLINE_avx2 static inline __attribute__((always_inline, TARGET_AVX2))

typedef ints_avx2 seen_avx2;

INLINE_avx2 void find_seen_avx2(const floats_avx2 *z, seen_avx2 *out)
{
    *out = *z == *z;
}

INLINE_avx2 unsigned bits_of_avx2(const ints_avx2 *mask)
{
    return (unsigned)_mm256_movemask_ps((__m256)*mask);
}

INLINE_avx2 void put_avx2(int32_t *out, const ints_avx2 *values, unsigned bits)
{
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)front[bits]));
    _mm256_storeu_si256((__m256i *)out, _mm256_permutevar8x32_epi32((__m256i)*values, order));
}

INLINE_avx2 void root_avx2(floats_avx2 *v)
{
    *v = (floats_avx2)_mm256_sqrt_ps((__m256)*v);
}

INLINE_avx2 void look_up_avx2(floats_avx2 *out, const float *table, const ints_avx2 *at, const int few)
{
    if (!few) {
        *out = (floats_avx2)_mm256_i32gather_ps(table, (__m256i)*at, 4);
        return;
    }
    const __m256 first = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)*at);
    const __m256 last = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)*at);
    *out = (floats_avx2)_mm256_blendv_ps(first, last, (__m256)(*at > 7));
}

INLINE_avx2 void add_avx2(floats_avx2 *sum, const floats_avx2 *z, const seen_avx2 *seen, float center,
                          const float *term)
{
    const floats_avx2 d = *z - center;
    if (term)
        *sum += (floats_avx2)((ints_avx2)(d * d + *term) & *seen);
    else {
        const floats_avx2 known = (floats_avx2)((ints_avx2)d & *seen);
        *sum += known * known;
    }
}

INLINE_avx2 void take_avx2(const floats_avx2 *sum, int32_t c, floats_avx2 *low, floats_avx2 *next, ints_avx2 *place)
{
    const __m256 less = (__m256)(*sum < *low);
    *next = (floats_avx2)_mm256_min_ps((__m256)*next, _mm256_max_ps((__m256)*low, (__m256)*sum));
    *low = (floats_avx2)_mm256_min_ps((__m256)*sum, (__m256)*low);
    *place = (ints_avx2)_mm256_blendv_ps((__m256)*place, (__m256)_mm256_set1_epi32(c), less);
}

/* Four columns of a row, from j on, next to those of the row four places on. */
INLINE_avx2 __m256 two_rows_f32(const float *const *rows, const float *shift, float scale, ptrdiff_t j)
{
    const __m256 first = _mm256_castps128_ps256(_mm_loadu_ps(rows[0] + j));
    const __m256 x = _mm256_insertf128_ps(first, _mm_loadu_ps(rows[4] + j), 1);
    return (x - _mm256_broadcast_ps((const __m128 *)(shift + j))) * scale;
}

INLINE_avx2 __m256 two_rows_f64(const double *const *rows, const double *shift, double scale, ptrdiff_t j)
{
    const __m256d less = _mm256_loadu_pd(shift + j);
    const __m128 first = _mm256_cvtpd_ps((_mm256_loadu_pd(rows[0] + j) - less) * scale);
    const __m128 last = _mm256_cvtpd_ps((_mm256_loadu_pd(rows[4] + j) - less) * scale);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(first), last, 1);
}

#define FOUR_COLUMNS_avx2(suffix, real)                                                                                \
    INLINE_avx2 void four_columns_##suffix##_avx2(const real *const *rows, const real *shift, real scale, ptrdiff_t j, \
                                                  floats_avx2 *tile)                                                   \
    {                                                                                                                  \
        __m256 a[4];                                                                                                   \
        for (int t = 0; t < 4; t++)                                                                                    \
            a[t] = two_rows_##suffix(rows + t, shift, scale, j);                                                       \
        const __m256d b[4] = {(__m256d)_mm256_unpacklo_ps(a[0], a[1]), (__m256d)_mm256_unpackhi_ps(a[0], a[1]),        \
                              (__m256d)_mm256_unpacklo_ps(a[2], a[3]), (__m256d)_mm256_unpackhi_ps(a[2], a[3])};       \
        for (int s = 0; s < 2; s++) {                                                                                  \
            tile[j + 2 * s] = (floats_avx2)_mm256_unpacklo_pd(b[s], b[s + 2]);                                         \
            tile[j + 2 * s + 1] = (floats_avx2)_mm256_unpackhi_pd(b[s], b[s + 2]);                                     \
        }                                                                                                              \
    }
FOUR_COLUMNS_avx2(f32, float)
FOUR_COLUMNS_avx2(f64, double)

VECTORS_OF(avx512, 16)
#define TARGET_AVX512 target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2,popcnt")
#define TARGET_avx512 __attribute__((TARGET_AVX512)) static
#define INLINE_avx512 static inline __attribute__((always_inline, TARGET_AVX512))

typedef __mmask16 seen_avx512;

INLINE_avx512 void find_seen_avx512(const floats_avx512 *z, seen_avx512 *out)
{
    *out = _mm512_cmp_ps_mask((__m512)*z, (__m512)*z, _CMP_ORD_Q);
}

INLINE_avx512 unsigned bits_of_avx512(const ints_avx512 *mask)
{
    return _mm512_movepi32_mask((__m512i)*mask);
}

INLINE_avx512 void put_avx512(int32_t *out, const ints_avx512 *values, unsigned bits)
{
    /* Compressed in a register: some processors take hundreds of cycles to do so into memory. */
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32((__mmask16)bits, (__m512i)*values));
}

INLINE_avx512 void root_avx512(floats_avx512 *v)
{
    *v = (floats_avx512)_mm512_sqrt_ps((__m512)*v);
}

INLINE_avx512 void look_up_avx512(floats_avx512 *out, const float *table, const ints_avx512 *at, const int few)
{
    *out = (floats_avx512)(few ? _mm512_permutexvar_ps((__m512i)*at, _mm512_loadu_ps(table))
                               : _mm512_i32gather_ps((__m512i)*at, table, 4));
}

INLINE_avx512 void add_avx512(floats_avx512 *sum, const floats_avx512 *z, const seen_avx512 *seen, float center,
                              const float *term)
{
    const __m512 d = (__m512)(*z - center);
    if (term) {
        const __m512 with_term = _mm512_fmadd_ps(d, d, _mm512_set1_ps(*term));
        *sum = (floats_avx512)_mm512_mask_add_ps((__m512)*sum, *seen, (__m512)*sum, with_term);
    } else
        *sum = (floats_avx512)_mm512_mask3_fmadd_ps(d, d, (__m512)*sum, *seen);
}

INLINE_avx512 void take_avx512(const floats_avx512 *sum, int32_t c, floats_avx512 *low, floats_avx512 *next,
                               ints_avx512 *place)
{
    const __mmask16 less = _mm512_cmp_ps_mask((__m512)*sum, (__m512)*low, _CMP_LT_OQ);
    *next = (floats_avx512)_mm512_min_ps((__m512)*next, _mm512_max_ps((__m512)*low, (__m512)*sum));
    *low = (floats_avx512)_mm512_min_ps((__m512)*sum, (__m512)*low);
    *place = (ints_avx512)_mm512_mask_mov_epi32((__m512i)*place, less, _mm512_set1_epi32(c));
}

#define FOUR_COLUMNS_avx512(suffix, real)                                                                              \
    INLINE_avx512 void four_columns_##suffix##_avx512(const real *const *rows, const real *shift, real scale,          \
                                                      ptrdiff_t j, floats_avx512 *tile)                                \
    {                                                                                                                  \
        __m512 a[4];                                                                                                   \
        for (int t = 0; t < 4; t++)                                                                                    \
            a[t] = _mm512_insertf32x8(_mm512_castps256_ps512(two_rows_##suffix(rows + t, shift, scale, j)),            \
                                      two_rows_##suffix(rows + t + 8, shift, scale, j), 1);                            \
        const __m512d b[4] = {(__m512d)_mm512_unpacklo_ps(a[0], a[1]), (__m512d)_mm512_unpackhi_ps(a[0], a[1]),        \
                              (__m512d)_mm512_unpacklo_ps(a[2], a[3]), (__m512d)_mm512_unpackhi_ps(a[2], a[3])};       \
        for (int s = 0; s < 2; s++) {                                                                                  \
            tile[j + 2 * s] = (floats_avx512)_mm512_unpacklo_pd(b[s], b[s + 2]);                                       \
            tile[j + 2 * s + 1] = (floats_avx512)_mm512_unpackhi_pd(b[s], b[s + 2]);                                   \
        }                                                                                                              \
    }
FOUR_COLUMNS_avx512(f32, float)
FOUR_COLUMNS_avx512(f64, double)
#endif

/* The level in use: the highest that the processor has, unless another is asked for. */
enum { PORTABLE, AVX2, AVX512 };
static int kpod_level;

static int highest_level(void)
{
#if defined(KPOD_X86)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return avx2 && avx512 ? AVX512 : avx2 ? AVX2 : PORTABLE;
#else
    return PORTABLE;
#endif
}

#if defined(KPOD_X86)
#define BY_LEVEL(name, ...)                                                                                            \
    (kpod_level == AVX512 ? name##_avx512(__VA_ARGS__)                                                                 \
     : kpod_level == AVX2 ? name##_avx2(__VA_ARGS__)                                                                   \
                          : name##_portable(__VA_ARGS__))
#else
#define BY_LEVEL(name, ...) name##_portable(__VA_ARGS__)
#endif

#endif
