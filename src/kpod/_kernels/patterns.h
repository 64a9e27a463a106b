/* What the observed columns of rows add to each center, looked up six columns at a time.
 *
 * With a term for every center and observed column, adding them one by one costs as much as half of
 * the distances. Which of six columns a row observes is one of 64 patterns, and what each adds is
 * one row of a table. */
#ifndef KPOD_PATTERNS_H
#define KPOD_PATTERNS_H

#include "vectors.h"

#define PATTERN_COLUMNS 6
#define PATTERNS 64
/* Columns whose bits are gathered in one word. */
#define WORD_COLUMNS 60

/* Fill the table (n_groups, PATTERNS, stride) from terms (p, stride). */
static void make_patterns(const float *restrict terms, ptrdiff_t p, ptrdiff_t stride, float *restrict table)
{
    for (ptrdiff_t first = 0; first < p; first += PATTERN_COLUMNS) {
        float *group = table + first / PATTERN_COLUMNS * PATTERNS * stride;
        memset(group, 0, stride * sizeof(float));
        for (int pattern = 1; pattern < PATTERNS; pattern++) {
            const float *rest = group + (pattern & (pattern - 1)) * stride;
            int last = 0;
            while (!(pattern >> last & 1))
                last++;
            for (ptrdiff_t c = 0; c < stride; c++)
                group[pattern * stride + c] = rest[c] + (first + last < p ? terms[(first + last) * stride + c] : 0);
        }
    }
}

KPOD_INLINE void pattern_strip(const uint8_t *restrict seen, ptrdiff_t n_groups, const float *restrict table,
                               ptrdiff_t stride, float *restrict out, const int width)
{
    vector_f32 sum[8];
    for (int v = 0; v < width; v++)
        sum[v] = *(const vector_f32 *)(out + 8 * v);
    for (ptrdiff_t g = 0; g < n_groups; g++) {
        const float *row = table + (g * PATTERNS + seen[g]) * stride;
        for (int v = 0; v < width; v++)
            sum[v] += *(const vector_f32 *)(row + 8 * v);
    }
    for (int v = 0; v < width; v++)
        *(vector_f32 *)(out + 8 * v) = sum[v];
}

#define KPOD_PATTERN(w)                                                                                                \
    case w:                                                                                                            \
        pattern_strip(seen, n_groups, table + c, stride, out + r * stride + c, w);                                     \
        break;

/* out[r, c] += what the listed columns of row r add to center c. `seen` is a buffer of n_groups. */
KPOD_DISPATCH
static void add_patterns(const int32_t *restrict columns, const ptrdiff_t *restrict begin,
                         const ptrdiff_t *restrict end, ptrdiff_t n_rows, ptrdiff_t n_groups,
                         const float *restrict table, ptrdiff_t stride, uint8_t *restrict seen, float *restrict out)
{
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        ptrdiff_t e = begin[r];
        for (ptrdiff_t g = 0; g < n_groups; g += WORD_COLUMNS / PATTERN_COLUMNS) {
            const int32_t first = (int32_t)(g * PATTERN_COLUMNS);
            uint64_t bits = 0;
            for (; e < end[r] && columns[e] < first + WORD_COLUMNS; e++)
                bits |= (uint64_t)1 << (columns[e] - first);
            for (ptrdiff_t t = g; t < n_groups && t < g + WORD_COLUMNS / PATTERN_COLUMNS; t++, bits >>= PATTERN_COLUMNS)
                seen[t] = bits & (PATTERNS - 1);
        }
        for (ptrdiff_t c = 0; c < stride; c += 64) {
            switch (stride - c < 64 ? (stride - c) / 8 : 8) {
                KPOD_PATTERN(1)
                KPOD_PATTERN(2)
                KPOD_PATTERN(3)
                KPOD_PATTERN(4)
                KPOD_PATTERN(5)
                KPOD_PATTERN(6)
                KPOD_PATTERN(7)
                KPOD_PATTERN(8)
            }
        }
    }
}

#undef KPOD_PATTERN
#endif
