/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include "check.h"
#include "machine.h"

#include <stdlib.h>

enum { CACHE_LINE = 64 };

void cache_create(struct cache *cache)
{
    cache->size_bytes = 2 * machine_largest_cache_bytes();
    cache->memory = check_allocate(cache->size_bytes, "a sweep of the caches");
}

void cache_free(struct cache *cache)
{
    free(cache->memory);
}

void cache_flush(const struct cache *cache)
{
    volatile unsigned char *memory = cache->memory;

    for (size_t i = 0; i < cache->size_bytes; i += CACHE_LINE) {
        memory[i]++;
    }
}
