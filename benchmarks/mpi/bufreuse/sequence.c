/* SPDX-License-Identifier: Apache-2.0 */
#include "sequence.h"

#include "check.h"

#include <stdlib.h>

/*
 * Multiples of the golden ratio modulo 1 fill the interval evenly and without
 * a period (Knuth, The Art of Computer Programming, volume 3, section 6.4).
 * Those below the share are re-use. In units of 2^-32.
 */
static bool sequence_reuses(size_t message, int reuse_percent)
{
    uint64_t share = ((uint64_t)reuse_percent << 32) / 100;
    uint32_t place = (uint32_t)message * UINT32_C(2654435769);

    return place < share;
}

/* Walk to the end; where there is room, write what each message uses. */
static size_t sequence_walk(size_t buffers, int reuse_percent, uint32_t *room)
{
    size_t next = 0;
    size_t length = 0;

    do {
        bool reuses = sequence_reuses(length, reuse_percent);

        if (room != NULL) {
            room[length] = reuses ? 0 : (uint32_t)next;
        }
        next += reuses ? 0 : 1;
        length++;
    } while (next < buffers && reuse_percent < 100);
    return length;
}

size_t sequence_length(size_t buffers, int reuse_percent)
{
    return sequence_walk(buffers, reuse_percent, NULL);
}

void sequence_create(size_t buffers, int reuse_percent,
                     struct sequence *sequence)
{
    sequence->length = sequence_length(buffers, reuse_percent);
    sequence->buffers =
        check_allocate(sequence->length * sizeof(uint32_t), "a sequence");
    (void)sequence_walk(buffers, reuse_percent, sequence->buffers);
}

void sequence_free(struct sequence *sequence)
{
    free(sequence->buffers);
}

size_t sequence_used(const struct sequence *sequence, size_t messages)
{
    size_t used = 0;

    for (size_t i = 0; i < sequence->length && i < messages; i++) {
        used = sequence->buffers[i] < used ? used : sequence->buffers[i] + 1;
    }
    return used;
}
