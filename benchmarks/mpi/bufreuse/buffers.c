/* SPDX-License-Identifier: Apache-2.0 */
#include "buffers.h"

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From one buffer to the next. */
static size_t buffers_stride(size_t size_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return ((size_bytes + page - 1) / page + 1) * page;
}

double buffers_size_bytes(size_t count, size_t size_bytes)
{
    double each = (double)(buffers_stride(size_bytes) + sizeof(char *));

    return 2.0 * (double)count * each;
}

void buffers_create(size_t count, size_t size_bytes, struct buffers *buffers)
{
    size_t stride = buffers_stride(size_bytes);
    size_t memory_bytes = 2 * count * stride;
    char *memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED) {
        check_abort(CHECK_USAGE, "mmap: 2 x %zu buffers of %zu bytes: %s",
                    count, size_bytes, strerror(errno));
    }
    *buffers = (struct buffers){
        .count = count,
        .send = check_allocate(count * sizeof(char *), "pointers"),
        .receive = check_allocate(count * sizeof(char *), "pointers"),
        .memory = memory,
        .memory_bytes = memory_bytes,
    };
    for (size_t i = 0; i < count; i++) {
        buffers->send[i] = memory + i * stride;
        buffers->receive[i] = memory + (count + i) * stride;
    }
}

void buffers_free(struct buffers *buffers)
{
    (void)munmap(buffers->memory, buffers->memory_bytes);
    free(buffers->send);
    free(buffers->receive);
}
