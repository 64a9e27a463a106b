/* Memory that begins on a cache line, on every system; C11's aligned_alloc is neither MSVC's nor an old macOS's. */
#ifndef KPOD_MEMORY_H
#define KPOD_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

#define CACHE_LINE 64

#if defined(_WIN32)
#include <malloc.h>

static inline void *allocate_lines(size_t size)
{
    return _aligned_malloc(size, CACHE_LINE);
}

static inline void free_lines(void *memory)
{
    _aligned_free(memory);
}
#else
static inline void *allocate_lines(size_t size)
{
    void *memory;
    return posix_memalign(&memory, CACHE_LINE, size) ? NULL : memory;
}

static inline void free_lines(void *memory)
{
    free(memory);
}
#endif
#endif
