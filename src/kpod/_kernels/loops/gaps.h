/* What the gaps of dense rows take off the sum of all terms, looked up four columns at a time.
 *
 * A term for every center and observed column, added one by one, costs as much as half of the distances. Which of
 * four columns a row lacks is one of 16 patterns, and what each takes off is one row of a table. compact.h finds
 * the gaps. To list those that lack something and skip the others would cost more than it saves.
 *
 * What counts is how much has to be loaded, so what is taken off is in 16 bits, as a whole number of units: how much
 * more than the mean of all centers, which a table of its own has. That leaves digits enough for a first look, and
 * panel.pyx knows how far it may be off. Groups of five columns would be fewer, but more of their table is loaded
 * from farther away. */
#ifndef KPOD_GAPS_H
#define KPOD_GAPS_H

#include "vectors.h"

#define GAP_COLUMNS 4
#define GAP_PATTERNS 16
#define GAP_VECTORS 13
#define GAP_LANES 16

/* Fill the tables of means (n_groups, GAP_PATTERNS) and of what k centers take off beyond them (n_groups,
 * GAP_PATTERNS, wide), from terms (p, stride); there are two groups of columns for each byte of gaps. All are 0 before.
 * Returns the unit of the second. */
KPOD_DISPATCH
static float make_gap_table(const float *restrict terms, ptrdiff_t p, ptrdiff_t k, ptrdiff_t stride, ptrdiff_t wide,
                            float *restrict means, int16_t *restrict table)
{
    const ptrdiff_t n_groups = 2 * GAP_BYTES(p);
    for (ptrdiff_t j = 0; j < p; j++) {
        double total = 0;
        for (ptrdiff_t c = 0; c < k; c++)
            total += terms[j * stride + c];
        means[j / GAP_COLUMNS * GAP_PATTERNS + (1 << j % GAP_COLUMNS)] = (float)(-total / k);
    }
    /* Whatever a row lacks, what it takes off is at most all that is above the mean, or all that is below. */
    double largest = 0;
    for (ptrdiff_t c = 0; c < k; c++) {
        double above = 0, below = 0;
        for (ptrdiff_t j = 0; j < p; j++) {
            const float mean = means[j / GAP_COLUMNS * GAP_PATTERNS + (1 << j % GAP_COLUMNS)];
            const double taken = -terms[j * stride + c] - (double)mean;
            *(taken > 0 ? &above : &below) += taken;
        }
        largest = fmax(largest, fmax(above, -below));
    }
    /* Half a unit a group is lost to rounding, and no sum may exceed 16 bits. Terms that are all the same have a unit,
     * too, so that its inverse is a number. */
    const float unit = (float)fmax(largest / (32000 - n_groups), 1e-30), units = 1 / unit;
    for (ptrdiff_t g = 0; g < n_groups; g++, means += GAP_PATTERNS)
        for (int pattern = 1; pattern < GAP_PATTERNS; pattern++) {
            int16_t *out = table + (g * GAP_PATTERNS + pattern) * wide;
            const float *of_column[GAP_COLUMNS];
            float mean = 0;
            int n = 0;
            for (int bit = 0; bit < GAP_COLUMNS; bit++)
                if (pattern >> bit & 1 && g * GAP_COLUMNS + bit < p) {
                    of_column[n++] = terms + (g * GAP_COLUMNS + bit) * stride;
                    mean += means[1 << bit];
                }
            means[pattern] = mean;
            for (ptrdiff_t c = 0; c < k; c++) {
                float taken = -mean;
                for (int i = 0; i < n; i++)
                    taken -= of_column[i][c];
                out[c] = (int16_t)rintf(taken * units);
            }
        }
    return unit;
}

#define KPOD_GAPS(w)                                                                                                   \
    case w:                                                                                                            \
        for (ptrdiff_t r = 0; r < n_rows; r++) {                                                                       \
            const int16_t *group = table + c;                                                                          \
            vector_i16 sum[w];                                                                                         \
            for (int v = 0; v < w; v++)                                                                                \
                sum[v] = (vector_i16){0};                                                                              \
            for (ptrdiff_t b = 0; b < n_bytes; b++, group += 2 * GAP_PATTERNS * wide) {                                \
                const int gap = gaps[r * n_bytes + b];                                                                 \
                const vector_i16 *first = (const vector_i16 *)(group + (gap & 15) * wide);                             \
                const vector_i16 *last = (const vector_i16 *)(group + (GAP_PATTERNS + (gap >> 4)) * wide);             \
                for (int v = 0; v < w; v++)                                                                            \
                    sum[v] += first[v];                                                                                \
                for (int v = 0; v < w; v++)                                                                            \
                    sum[v] += last[v];                                                                                 \
            }                                                                                                          \
            const int16_t *taken = (const int16_t *)sum;                                                               \
            const ptrdiff_t n = stride - c < w * GAP_LANES ? stride - c : w * GAP_LANES;                               \
            for (ptrdiff_t l = 0; l < n; l++)                                                                          \
                out[r * stride + c + l] = complete[c + l] + (common[r] + unit * taken[l]);                             \
        }                                                                                                              \
        break;

/* What the gaps of a row take off in the mean of all centers. Two sums, because one would wait for its own last
 * addition. */
KPOD_INLINE float mean_of_gaps(const uint8_t *restrict gaps, ptrdiff_t n_bytes, const float *restrict means)
{
    float first = 0, last = 0;
    for (ptrdiff_t b = 0; b < n_bytes; b++, means += 2 * GAP_PATTERNS) {
        first += means[gaps[b] & 15];
        last += means[GAP_PATTERNS + (gaps[b] >> 4)];
    }
    return first + last;
}

/* out[r, c] = what row r has in common with all rows that lack what it lacks: `complete`, what a row without gaps
 * has, and what its gaps, n_bytes of them, take off. The table is aligned to 32 bytes; `common` is room for n_rows. */
KPOD_DISPATCH
static void start_with_gaps(const uint8_t *restrict gaps, ptrdiff_t n_bytes, ptrdiff_t n_rows,
                            const float *restrict means, const int16_t *restrict table, float unit, ptrdiff_t wide,
                            const float *restrict complete, ptrdiff_t stride, float *restrict common,
                            float *restrict out)
{
    for (ptrdiff_t r = 0; r < n_rows; r++)
        common[r] = mean_of_gaps(gaps + r * n_bytes, n_bytes, means);
    const ptrdiff_t n_vectors = wide / GAP_LANES, n_strips = (n_vectors + GAP_VECTORS - 1) / GAP_VECTORS;
    const ptrdiff_t strip = (n_vectors + n_strips - 1) / n_strips;
    for (ptrdiff_t done = 0; done < n_vectors; done += strip) {
        const ptrdiff_t left = n_vectors - done, c = GAP_LANES * done;
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
