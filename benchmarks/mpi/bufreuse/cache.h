/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CACHE_H
#define SEATRIAL_CACHE_H

#include <stddef.h>

/** Memory to sweep the caches of this CPU with: twice its largest cache. */
struct cache {
    size_t size_bytes;
    unsigned char *memory;
};

void cache_create(struct cache *cache);
void cache_free(struct cache *cache);

/** Write to every line, so that nothing else is left in the caches. */
void cache_flush(const struct cache *cache);

#endif
