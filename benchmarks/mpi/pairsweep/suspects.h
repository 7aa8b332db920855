/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SUSPECTS_H
#define SEATRIAL_SUSPECTS_H

#include "histogram.h"

#include <stdbool.h>

/** What a pair is compared with: the medians of all pairs. */
struct suspects_usual {
    double latency_us;
    double bw_mb_per_s;
    double percent; /* by how much a pair must be worse to be suspect */
};

/**
 * How many times worse than usual a suspect is, in what is worse of latency
 * and bandwidth; 0 for a pair that is none. Numbers that are missing (NaN) are
 * not suspect.
 */
double suspects_severity(const struct suspects_usual *usual, double latency_us,
                         double bw_mb_per_s);

/** Which suspects are the worst: all above a bin, and some of those in it. */
struct suspects_limit {
    int bin;
    long long left; /* how many of those in the bin */
};

/** Find the limit of the `most` worst ones in the severities of all. */
struct suspects_limit suspects_find_limit(const struct histogram *severities,
                                          long long most);

/**
 * Tell whether a suspect is among the worst. Those in the bin of the limit are
 * counted in *before, which begins with how many other ranks before this one
 * have there.
 */
bool suspects_is_worst(const struct suspects_limit *limit, double severity,
                       long long *before);

#endif
