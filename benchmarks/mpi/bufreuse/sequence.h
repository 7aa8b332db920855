/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SEQUENCE_H
#define SEATRIAL_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

/**
 * The buffer of each message, of `buffers`: buffer 0 with a share of
 * reuse_percent, spread evenly, else the next one of all. It ends when every
 * buffer had its turn, and is then walked again.
 */
struct sequence {
    size_t length;
    uint32_t *buffers;
};

/** The length of a sequence; all re-use takes one message. */
size_t sequence_length(size_t buffers, int reuse_percent);

void sequence_create(size_t buffers, int reuse_percent,
                     struct sequence *sequence);
void sequence_free(struct sequence *sequence);

/** The number of different buffers that the first messages use. */
size_t sequence_used(const struct sequence *sequence, size_t messages);

#endif
