/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_STATS_H
#define SEATRIAL_STATS_H

#include <stddef.h>

/** What is reported of raw samples, in their unit. */
struct stats_summary {
    double min;
    double p50;
    double p99;
    double max;
    double mean;
    size_t n;
};

/**
 * Summarise n >= 1 samples, which are sorted in place. Percentiles are
 * interpolated linearly between the two nearest samples (Hyndman and Fan 1996,
 * type 7, the default of NumPy and R).
 */
struct stats_summary stats_summarise(double *samples, size_t n);

/** A straight line y = intercept + slope x. */
struct stats_line {
    double intercept;
    double slope;
};

/** The line through n >= 2 points with least squares of the errors in y. */
struct stats_line stats_fit_line(const double *x, const double *y, size_t n);

#endif
