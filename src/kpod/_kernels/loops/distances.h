/* Distances of rows to centers: see distances.inc and few.inc. */
#ifndef KPOD_DISTANCES_H
#define KPOD_DISTANCES_H

#include "vectors.h"

#define SUFFIX f32
#define REAL float
#define INTEGER int32_t
#include "distances.inc"
#undef SUFFIX
#undef REAL
#undef INTEGER

#define SUFFIX f64
#define REAL double
#define INTEGER int64_t
#include "distances.inc"
#undef SUFFIX
#undef REAL
#undef INTEGER

#endif
