/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_STATS_H
#define SEATRIAL_STATS_H

#include <stdbool.h>
#include <stddef.h>

/** The summary of raw samples, in their unit. */
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

/** Sort n samples, the least first. */
void stats_sort(double *samples, size_t n);

/** A percentile of n >= 1 sorted samples, interpolated as in a summary. */
double stats_percentile(const double *sorted, size_t n, double percent);

/** A straight line y = intercept + slope x. */
struct stats_line {
    double intercept;
    double slope;
};

/** The line through n >= 2 points with least squares of the errors in y. */
struct stats_line stats_fit_line(const double *x, const double *y, size_t n);

/**
 * Jain's index of fairness of n >= 1 shares (Jain, Chiu and Hawe 1984): 1 where
 * all are equal, 1/n where one has everything; NAN where all are 0.
 */
double stats_jain(const double *shares, size_t n);

/** A mean, and how far on both sides of it the true one may be. */
struct stats_interval {
    double mean;
    double half; /* half the width; INFINITY of a single sample */
};

/** When to stop taking samples. */
struct stats_rule {
    size_t least; /* samples before precision counts, at least 2 */
    size_t most;
    double confidence; /* of the interval, as 0.95 */
    double precision;  /* half the interval, as a part of the mean: 0.03 */
};

/**
 * The value that Student's t stays below with this probability, for more than
 * no degrees of freedom; probability is from 0.5 to less than 1.
 */
double stats_t_quantile(double probability, double degrees);

/**
 * The interval that holds the mean of what n >= 1 samples were drawn from with
 * this confidence, if they are independent and their mean is about normal.
 */
struct stats_interval stats_mean_interval(const double *samples, size_t n,
                                          double confidence);

/** Return whether an interval is as narrow as the rule asks. */
bool stats_is_precise(const struct stats_rule *rule,
                      struct stats_interval interval);

/**
 * Return the further samples to take after n: as many again, until the rule's
 * precision or its most samples are reached, 0 then. Doubling asks so seldom
 * that a narrow interval is hardly ever met by luck.
 */
size_t stats_more_samples(const struct stats_rule *rule, const double *samples,
                          size_t n);

#endif
