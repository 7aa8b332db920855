/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CHASE_H
#define SEATRIAL_CHASE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Slots in memory, `stride` bytes apart; each slot holds the address of the
 * next: one cycle through all of them in random order.
 */
struct chase {
    char *memory;
    size_t stride;
    size_t slots;
};

/** Loads of a walk are a multiple of this. */
enum { CHASE_UNROLL = 16 };

/**
 * Link the slots; the same order on every machine. Takes at least two of them,
 * fewer than 2^32.
 */
void chase_link(const struct chase *chase);

/** Follow the links, and give the slot that is reached. */
void *chase_walk(void *start, size_t loads);

/**
 * Walk the cycle on and on, and fill in what one load takes in ns, the mean of
 * each of `count` walks, less what the clock takes.
 */
void chase_time(const struct chase *chase, size_t loads, double samples_ns[],
                size_t count);

/** Count the loads from the first slot back to it; 0 if they lead astray. */
size_t chase_cycle(const struct chase *chase);

#endif
