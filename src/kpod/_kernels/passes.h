/* One pass over a dense row: see passes.inc. */
#ifndef KPOD_PASSES_H
#define KPOD_PASSES_H

typedef double doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t longs __attribute__((vector_size(32), aligned(8), may_alias));

/* A value where another is a number, and 0 where that is NaN. */
#define SEEN4(z, value) ((doubles)((longs)((z) == (z)) & (longs)(value)))

KPOD_INLINE double seen(double z, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(int64_t)(z == z);
    memcpy(&value, &bits, sizeof bits);
    return value;
}
#endif
