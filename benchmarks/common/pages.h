/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAGES_H
#define SEATRIAL_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/** Kinds of memory pages. */
enum pages_kind {
    PAGES_SMALL,       /* of the usual size, always */
    PAGES_TRANSPARENT, /* huge ones where the kernel has some */
    PAGES_RESERVED,    /* huge ones that the administrator has set aside */
};

/** Memory that begins on a huge page. */
struct pages {
    char *memory;
    size_t size_bytes;
    char *mapping;
    size_t mapping_bytes;
};

/**
 * Map memory without touching it: its pages come with their first use. False,
 * with errno set, if there is none of this kind.
 */
bool pages_reserve(struct pages *pages, enum pages_kind kind,
                   size_t size_bytes);

/** Map zeroed memory with all its pages; false as in pages_reserve. */
bool pages_map(struct pages *pages, enum pages_kind kind, size_t size_bytes);

/** Return the bytes on huge pages; call it after first use. */
size_t pages_huge_bytes(const struct pages *pages, enum pages_kind kind);

void pages_unmap(struct pages *pages);

#endif
