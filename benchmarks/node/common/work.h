/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_WORK_H
#define SEATRIAL_WORK_H

#include <stddef.h>
#include <stdint.h>

enum {
    WORK_LANES = 8,          /* independent chains of operations */
    WORK_FLOPS_PER_LANE = 3, /* of one iteration */
};

/** One core's run: quanta of the same work, one after the other. */
struct work {
    long iterations;  /* of a quantum */
    int64_t limit_ns; /* no quantum begins later than this after the first */
    size_t capacity;  /* of both arrays, in quanta */
    double *end_ns;  /* when each quantum ended, after the start of the first */
    double *results; /* the number that each quantum computed */
    size_t count;    /* quanta that were done, at least one */
    double cpu_ns;   /* processor time of the thread in all of them */
};

/**
 * Compute for `iterations`, and return a number that any wrong operation on the
 * way changes: the logistic map is chaotic, and the same in every IEEE 754
 * arithmetic.
 */
double work_quantum(long iterations);

/** Do quanta until the limit is over or the arrays are full. */
void work_run(struct work *work);

/**
 * Quanta per second that ended in one of `parts` equal parts of the run; part 0
 * is the first. The quantum that goes on over its end counts with its share.
 */
double work_rate(const struct work *work, int part, int parts);

#endif
