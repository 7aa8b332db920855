/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SUSPECTS_H
#define SEATRIAL_SUSPECTS_H

#include "histogram.h"

#include <stdbool.h>

/** The medians of all pairs, with which a pair is compared. */
struct suspects_usual {
    double latency_us;
    double bw_mb_per_s;
    double percent; /* by how much a pair must be worse to be suspect */
};

/**
 * Factor by which a suspect is worse than usual, in the worse of latency
 * and bandwidth; 0 for a pair that is none. Numbers that are missing (NaN) are
 * not suspect.
 */
double suspects_severity(const struct suspects_usual *usual, double latency_us,
                         double bw_mb_per_s);

/** The worst suspects: all above a bin, and some of those in it. */
struct suspects_limit {
    int bin;
    long long left; /* number of those in the bin */
};

/** Find the limit of the `most` worst ones in the severities of all. */
struct suspects_limit suspects_find_limit(const struct histogram *severities,
                                          long long most);

/**
 * Return whether a suspect is among the worst. Those in the bin of the limit
 * are counted in *before, which begins with the number of those of earlier
 * ranks.
 */
bool suspects_is_worst(const struct suspects_limit *limit, double severity,
                       long long *before);

#endif
