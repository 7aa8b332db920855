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
    assert(n >= 1);
    qsort(samples, n, sizeof(*samples), stats_compare);
    return (struct stats_summary){
        .min = samples[0],
        .p50 = stats_percentile(samples, n, 50.0),
        .p99 = stats_percentile(samples, n, 99.0),
        .max = samples[n - 1],
        .n = n,
    };
}
