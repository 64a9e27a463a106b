/* The nearest of few centers, eight rows side by side: see few.inc. */
#ifndef KPOD_FEW_H
#define KPOD_FEW_H

#include "vectors.h"

/* Eight of the sixteen lanes of two vectors. */
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (mask_f32){__VA_ARGS__})
#endif

#define SELECT(mask, a, b) ((vector_f32)(((mask) & (mask_f32)(a)) | (~(mask) & (mask_f32)(b))))

/* Eight rows against `width` centers; what is missing is NaN in the tile, and adds nothing. */
KPOD_INLINE void few_strip(const vector_f32 *restrict tile, ptrdiff_t p, const float *restrict panel,
                           const float *restrict terms, const float *restrict offsets, ptrdiff_t stride,
                           vector_f32 *restrict out, const int width)
{
    vector_f32 sum[8];
    for (int c = 0; c < width; c++)
        sum[c] = offsets[c] + (vector_f32){0};
    for (ptrdiff_t j = 0; j < p; j++) {
        const vector_f32 z = tile[j];
        const mask_f32 observed = z == z;
        for (int c = 0; c < width; c++) {
            const vector_f32 d = z - panel[j * stride + c];
            if (terms) {
                const vector_f32 with_term = d * d + terms[j * stride + c];
                sum[c] += (vector_f32)((mask_f32)with_term & observed);
            } else {
                const vector_f32 known = (vector_f32)((mask_f32)d & observed);
                sum[c] += known * known;
            }
        }
    }
    for (int c = 0; c < width; c++)
        out[c] = sum[c];
}

#define KPOD_FEW(w)                                                                                                    \
    case w:                                                                                                            \
        few_strip(tile, p, panel + done, terms ? terms + done : 0, offsets + done, stride, sums + done, w);            \
        break;

KPOD_INLINE void few_distances(const vector_f32 *restrict tile, ptrdiff_t p, const float *restrict panel,
                               const float *restrict terms, const float *restrict offsets, ptrdiff_t stride,
                               ptrdiff_t k, vector_f32 *restrict sums)
{
    const ptrdiff_t n_strips = (k + 7) / 8, strip = (k + n_strips - 1) / n_strips;
    for (ptrdiff_t done = 0; done < k; done += strip) {
        switch (k - done < strip ? k - done : strip) {
            KPOD_FEW(1)
            KPOD_FEW(2)
            KPOD_FEW(3)
            KPOD_FEW(4)
            KPOD_FEW(5)
            KPOD_FEW(6)
            KPOD_FEW(7)
            KPOD_FEW(8)
        }
    }
}

#define SUFFIX f32
#define REAL float
#include "few.inc"
#undef SUFFIX
#undef REAL

#define SUFFIX f64
#define REAL double
#include "few.inc"
#undef SUFFIX
#undef REAL

#undef KPOD_FEW
#endif
