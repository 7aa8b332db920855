/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CLOCK_H
#define SEATRIAL_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * Time in nanoseconds since an unspecified start; never goes back. An integer,
 * as a double would lose nanoseconds on a machine that is up for months.
 */
static inline int64_t clock_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** The time from start to end in microseconds. */
static inline double clock_between_us(int64_t start_ns, int64_t end_ns)
{
    return (double)(end_ns - start_ns) / 1e3;
}

/** Return the cost of a reading of the clock in ns: the least of many. */
static inline double clock_overhead_ns(void)
{
    enum { ROUNDS = 20, READINGS = 100 };
    double least_ns = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_ns = clock_now_ns();
        int64_t end_ns = start_ns;

        for (int j = 0; j < READINGS; j++) {
            end_ns = clock_now_ns();
        }
        double cost_ns = (double)(end_ns - start_ns) / READINGS;
        least_ns = cost_ns < least_ns ? cost_ns : least_ns;
    }
    return least_ns;
}

#endif
