/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#include <math.h>

static const double HISTOGRAM_LEAST = 1e-3;
static const double HISTOGRAM_RATIO = 1.005; /* of the ends of a bin */

int histogram_bin(double value)
{
    double steps = log(value / HISTOGRAM_LEAST) / log(HISTOGRAM_RATIO);

    /* The first comparison holds for 0 (-inf) too. */
    return !(steps >= 0.0)           ? 0
           : steps >= HISTOGRAM_BINS ? HISTOGRAM_BINS - 1
                                     : (int)steps;
}

double histogram_value(int bin)
{
    return HISTOGRAM_LEAST * pow(HISTOGRAM_RATIO, bin + 0.5);
}

void histogram_add(struct histogram *histogram, double value)
{
    histogram->bins[histogram_bin(value)]++;
}

long long histogram_count(const struct histogram *histogram)
{
    long long count = 0;

    for (int bin = 0; bin < HISTOGRAM_BINS; bin++) {
        count += histogram->bins[bin];
    }
    return count;
}

/* The value that this many others are below or equal to. */
static double histogram_find(const struct histogram *histogram, long long below)
{
    int bin = 0;

    for (long long passed = histogram->bins[0]; passed <= below;
         passed += histogram->bins[bin]) {
        bin++;
    }
    return histogram_value(bin);
}

double histogram_median(const struct histogram *histogram)
{
    long long count = histogram_count(histogram);

    if (count == 0) {
        return NAN;
    }
    return (histogram_find(histogram, (count - 1) / 2) +
            histogram_find(histogram, count / 2)) /
           2.0;
}
