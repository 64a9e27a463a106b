/* Columns of a batch become rows of a table, and rows are standardised: what files are decoded into. */
#ifndef KPOD_COLUMNS_H
#define KPOD_COLUMNS_H

#include "vectors.h"

/* Rows of all columns that are turned at a time, in the first cache, and the distance of columns there, which
 * no power of two divides; looked at eight side by side. */
#define TURNED_ROWS 256
#define TILE_STRIDE (TURNED_ROWS + 16)
#define SIDE_BY_SIDE 8

/* Lane by lane, `a` where the mask is set, else `b`. */
#define CHOOSE(mask, a, b)                                                                                             \
    ({                                                                                                                 \
        const NAME(bits) chosen = (mask);                                                                              \
        (NAME(side))((chosen & (NAME(bits))(a)) | (~chosen & (NAME(bits))(b)));                                        \
    })

/* The bits of eight rows from bit number `at` on, of a bitmap as Arrow has it, set where there is a value. */
KPOD_INLINE unsigned eight_bits(const uint8_t *bits, ptrdiff_t at)
{
    const unsigned shift = at & 7;
    return shift ? (bits[at >> 3] >> shift | bits[(at >> 3) + 1] << (8 - shift)) & 255 : bits[at >> 3];
}

#define REAL float
#define WHOLE int32_t
#define SUFFIX f32
#define FLOOR floorf
#include "columns.inc"
#undef REAL
#undef WHOLE
#undef SUFFIX
#undef FLOOR

#define REAL double
#define WHOLE int64_t
#define SUFFIX f64
#define FLOOR floor
#include "columns.inc"
#undef REAL
#undef WHOLE
#undef SUFFIX
#undef FLOOR

#endif
