/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_BUFFERS_H
#define SEATRIAL_BUFFERS_H

#include <stddef.h>

/**
 * Separate buffers to send and to receive, each at the start of a page and
 * with a page between it and the next.
 */
struct buffers {
    size_t count; /* of each kind */
    char **send;
    char **receive;
    void *memory;
    size_t memory_bytes;
};

/**
 * Map buffers with all their pages present, or abort. Fresh memory from the
 * kernel, unlike malloc's: no MPI library has registered it before.
 */
void buffers_create(size_t count, size_t size_bytes, struct buffers *buffers);

/** Return the memory to the kernel: registrations of it end. */
void buffers_free(struct buffers *buffers);

/** The number of bytes that buffers_create takes. */
double buffers_size_bytes(size_t count, size_t size_bytes);

#endif
