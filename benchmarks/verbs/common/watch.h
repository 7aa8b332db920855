/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_WATCH_H
#define SEATRIAL_WATCH_H

#include "clock.h"

#include <sched.h>
#include <stdbool.h>

/**
 * End the process with an error message and status 1 if watch_stop is not
 * called within this many seconds: where MPI waits for other ranks.
 */
void watch_start(long timeout_s);
void watch_stop(void);

/** A wait without system calls that must end in time. */
struct watch_spin {
    unsigned turns;
    int64_t deadline_ns;
};

enum { WATCH_TURNS = 1024 };

/**
 * Return false once the time is over. Every 1024 turns, which no short wait
 * reaches, it reads the clock and lets other processes have the core. There is
 * no pause instruction: it takes up to 140 cycles, which a latency would show.
 */
static inline bool watch_spin(struct watch_spin *spin, long timeout_s)
{
    if (++spin->turns % WATCH_TURNS != 0) {
        return true;
    }
    int64_t now_ns = clock_now_ns();
    if (spin->deadline_ns == 0) {
        spin->deadline_ns = now_ns + timeout_s * 1000000000;
    }
    (void)sched_yield();
    return now_ns < spin->deadline_ns;
}

#endif
