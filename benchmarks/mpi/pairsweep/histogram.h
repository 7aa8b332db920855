/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_HISTOGRAM_H
#define SEATRIAL_HISTOGRAM_H

enum { HISTOGRAM_BINS = 6144 };

/**
 * Number of values of each size: bins of half a percent, from 1e-3 to
 * 2e10, what is beyond in the first and the last one. Histograms of many ranks
 * are added bin by bin, so the median of 50 million values needs 48 KiB.
 */
struct histogram {
    long long bins[HISTOGRAM_BINS];
};

/** The bin of a value, and the value in the middle of a bin. */
int histogram_bin(double value);
double histogram_value(int bin);

void histogram_add(struct histogram *histogram, double value);

/** The number of values. */
long long histogram_count(const struct histogram *histogram);

/** The median, within half a percent; not a number if there are no values. */
double histogram_median(const struct histogram *histogram);

#endif
