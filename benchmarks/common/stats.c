/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <assert.h>
#include <stdlib.h>

static int stats_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double stats_percentile(const double *sorted, size_t n, double percent)
{
    double position = percent / 100.0 * (double)(n - 1);
    size_t below = (size_t)position;
    size_t above = below + 1 < n ? below + 1 : below;
    double fraction = position - (double)below;

    return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

struct stats_summary stats_summarise(double *samples, size_t n)
{
    double sum = 0.0;

    assert(n >= 1);
    for (size_t i = 0; i < n; i++) {
        sum += samples[i];
    }
    qsort(samples, n, sizeof(*samples), stats_compare);
    return (struct stats_summary){
        .min = samples[0],
        .p50 = stats_percentile(samples, n, 50.0),
        .p99 = stats_percentile(samples, n, 99.0),
        .max = samples[n - 1],
        .mean = sum / (double)n,
        .n = n,
    };
}

struct stats_line stats_fit_line(const double *x, const double *y, size_t n)
{
    double mean_x = 0.0;
    double mean_y = 0.0;
    double covariance = 0.0;
    double variance = 0.0;

    assert(n >= 2);
    for (size_t i = 0; i < n; i++) {
        mean_x += x[i] / (double)n;
        mean_y += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        covariance += (x[i] - mean_x) * (y[i] - mean_y);
        variance += (x[i] - mean_x) * (x[i] - mean_x);
    }
    assert(variance > 0.0);
    double slope = covariance / variance;

    return (struct stats_line){mean_y - slope * mean_x, slope};
}
