/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include "check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CACHE_LINE = 64, CACHE_UNKNOWN_MIB = 64, CACHE_INDICES = 8 };

/* As the kernel writes it, 32768K; 0 where there is no such cache. */
static size_t cache_index_bytes(int cpu, int index)
{
    char path[96];
    unsigned long kib = 0;

    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu,
                   index);
    FILE *stream = fopen(path, "r");
    if (stream == NULL) {
        return 0;
    }
    if (fscanf(stream, "%luK", &kib) != 1) {
        kib = 0;
    }
    (void)fclose(stream);
    return kib * 1024;
}

/*
 * sysconf counts all last-level caches of a processor that has several, of
 * which a CPU uses one only: it is asked where the kernel lists none.
 */
size_t cache_largest_bytes(void)
{
    int cpu = sched_getcpu();
    size_t largest = 0;

    for (int i = 0; i < CACHE_INDICES; i++) {
        size_t found = cache_index_bytes(cpu < 0 ? 0 : cpu, i);

        largest = found > largest ? found : largest;
    }
    if (largest == 0) {
        long found = sysconf(_SC_LEVEL3_CACHE_SIZE);

        largest =
            found > 0 ? (size_t)found : (size_t)CACHE_UNKNOWN_MIB * 0x100000;
    }
    return largest;
}

void cache_create(struct cache *cache)
{
    cache->size_bytes = 2 * cache_largest_bytes();
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
