/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES_HUGE = 1 << 21, PAGES_LINE = 512 };

bool pages_reserve(struct pages *pages, enum pages_kind kind, size_t size_bytes)
{
    int reserved = kind == PAGES_RESERVED ? MAP_HUGETLB : 0;
    size_t whole = (size_bytes + PAGES_HUGE - 1) / PAGES_HUGE * PAGES_HUGE;

    pages->size_bytes = size_bytes;
    pages->mapping_bytes = whole + (reserved ? 0 : PAGES_HUGE);
    pages->mapping = mmap(NULL, pages->mapping_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | reserved, -1, 0);
    if (pages->mapping == MAP_FAILED) {
        return false;
    }
    size_t beyond = (uintptr_t)pages->mapping % PAGES_HUGE;
    pages->memory = pages->mapping + (beyond ? PAGES_HUGE - beyond : 0);
    if (!reserved) {
        /* A kernel without huge pages refuses both; then none are used. */
        (void)madvise(pages->mapping, pages->mapping_bytes,
                      kind == PAGES_TRANSPARENT ? MADV_HUGEPAGE
                                                : MADV_NOHUGEPAGE);
    }
    return true;
}

bool pages_map(struct pages *pages, enum pages_kind kind, size_t size_bytes)
{
    if (!pages_reserve(pages, kind, size_bytes)) {
        return false;
    }
    memset(pages->memory, 0, size_bytes);
    return true;
}

size_t pages_huge_bytes(const struct pages *pages, enum pages_kind kind)
{
    FILE *stream = fopen("/proc/self/smaps", "re");
    char line[PAGES_LINE];
    bool inside = false;
    size_t kib = 0;

    if (kind == PAGES_RESERVED) {
        kib = pages->mapping_bytes / 1024;
    }
    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        char *end = NULL;
        uintptr_t from = strtoull(line, &end, 16);

        if (*end == '-') { /* 7f00-7f80 rw-p ...: the next mapping begins */
            uintptr_t to = strtoull(end + 1, NULL, 16);
            uintptr_t memory = (uintptr_t)pages->memory;

            inside = from <= memory && memory < to;
        } else if (inside && strncmp(line, "AnonHugePages:", 14) == 0) {
            kib += strtoull(line + 14, NULL, 10);
        }
    }
    if (stream != NULL) {
        (void)fclose(stream);
    }
    size_t found = kib * 1024;
    return found < pages->size_bytes ? found : pages->size_bytes;
}

void pages_unmap(struct pages *pages)
{
    (void)munmap(pages->mapping, pages->mapping_bytes);
}
