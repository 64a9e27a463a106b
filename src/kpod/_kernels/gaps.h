/* What the gaps of dense rows take off the sum of all terms, looked up four columns at a time.
 *
 * A term for every center and observed column, added one by one, costs as much as half of the distances. Which of
 * four columns a row lacks is one of 16 patterns, and what each takes off is one row of a table. compact.h finds
 * the patterns. To list those that lack something and skip the others would cost more than it saves. */
#ifndef KPOD_GAPS_H
#define KPOD_GAPS_H

#include "vectors.h"

#define GAP_COLUMNS 4
#define GAP_PATTERNS 16
#define GAP_VECTORS 13

/* Fill the table (n_groups * GAP_PATTERNS, stride) from terms (p, stride). */
static void make_gap_table(const float *restrict terms, ptrdiff_t p, ptrdiff_t stride, float *restrict table)
{
    for (ptrdiff_t first = 0; first < p; first += GAP_COLUMNS) {
        float *group = table + first / GAP_COLUMNS * GAP_PATTERNS * stride;
        for (int pattern = 1; pattern < GAP_PATTERNS; pattern++) {
            const float *rest = group + (pattern & (pattern - 1)) * stride;
            int last = 0;
            while (!(pattern >> last & 1))
                last++;
            for (ptrdiff_t c = 0; c < stride; c++)
                group[pattern * stride + c] = rest[c] - (first + last < p ? terms[(first + last) * stride + c] : 0);
        }
    }
}

/* sum += what the patterns of a row take off. */
KPOD_INLINE void gap_strip(const uint8_t *restrict patterns, ptrdiff_t n_groups, const float *restrict table,
                           ptrdiff_t stride, vector_f32 *restrict sum, const int width)
{
    for (ptrdiff_t g = 0; g < n_groups; g++, table += GAP_PATTERNS * stride) {
        const vector_f32 *taken = (const vector_f32 *)(table + patterns[g] * stride);
        for (int v = 0; v < width; v++)
            sum[v] += taken[v];
    }
}

#define KPOD_GAPS(w)                                                                                                   \
    case w:                                                                                                            \
        for (ptrdiff_t r = 0; r < n_rows; r++) {                                                                       \
            vector_f32 sum[w];                                                                                         \
            for (int v = 0; v < w; v++)                                                                                \
                sum[v] = *(const vector_f32 *)(complete + c + 8 * v);                                                  \
            gap_strip(patterns + r * n_groups, n_groups, table + c, stride, sum, w);                                   \
            for (int v = 0; v < w; v++)                                                                                \
                *(vector_f32 *)(out + r * stride + c + 8 * v) = sum[v];                                                \
        }                                                                                                              \
        break;

/* out[r, c] = what row r has in common with all rows that lack what it lacks: `complete`, what a row without gaps
 * has, and what its gaps, patterns[r, g] of the columns of each group g, take off. Tables of floats are aligned to
 * 32 bytes. */
KPOD_DISPATCH
static void start_with_gaps(const uint8_t *restrict patterns, ptrdiff_t n_groups, ptrdiff_t n_rows,
                            const float *restrict table, const float *restrict complete, ptrdiff_t stride,
                            float *restrict out)
{
    const ptrdiff_t n_vectors = stride / 8, n_strips = (n_vectors + GAP_VECTORS - 1) / GAP_VECTORS;
    const ptrdiff_t strip = (n_vectors + n_strips - 1) / n_strips;
    for (ptrdiff_t done = 0; done < n_vectors; done += strip) {
        const ptrdiff_t left = n_vectors - done, c = 8 * done;
        switch (left < strip ? left : strip) {
            KPOD_GAPS(1)
            KPOD_GAPS(2)
            KPOD_GAPS(3)
            KPOD_GAPS(4)
            KPOD_GAPS(5)
            KPOD_GAPS(6)
            KPOD_GAPS(7)
            KPOD_GAPS(8)
            KPOD_GAPS(9)
            KPOD_GAPS(10)
            KPOD_GAPS(11)
            KPOD_GAPS(12)
            KPOD_GAPS(13)
        }
    }
}

#undef KPOD_GAPS
#endif
