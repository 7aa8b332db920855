/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"
#include "unit.h"

#include <math.h>

static int is_close(double found, double expected)
{
    return fabs(found - expected) <= 1e-12 * fabs(expected);
}

static void test_one_sample(void)
{
    double samples[] = {3.5};
    struct stats_summary summary = stats_summarise(samples, 1);

    EXPECT(summary.n == 1);
    EXPECT(summary.min == 3.5 && summary.max == 3.5);
    EXPECT(summary.p50 == 3.5 && summary.p99 == 3.5);
}

static void test_even_count_interpolates(void)
{
    double samples[] = {4.0, 1.0, 3.0, 2.0};
    struct stats_summary summary = stats_summarise(samples, 4);

    EXPECT(summary.n == 4);
    EXPECT(summary.min == 1.0 && summary.max == 4.0);
    EXPECT(is_close(summary.p50, 2.5));
    EXPECT(is_close(summary.p99, 3.97));
}

/* Of 0, 1, ..., n - 1 in any order the p-th percentile is p (n - 1) / 100. */
static void test_ramp(size_t n)
{
    double *samples = calloc(n, sizeof(*samples));

    EXPECT(samples != NULL);
    for (size_t i = 0; i < n; i++) {
        samples[(i * 7) % n] = (double)i;
    }
    struct stats_summary summary = stats_summarise(samples, n);
    EXPECT(summary.n == n);
    EXPECT(summary.min == 0.0);
    EXPECT(summary.max == (double)(n - 1));
    EXPECT(is_close(summary.p50, 0.50 * (double)(n - 1)));
    EXPECT(is_close(summary.p99, 0.99 * (double)(n - 1)));
    free(samples);
}

/* Squares of 0 ... 100: percentiles of n = 101 are samples, not between. */
static void test_squares(void)
{
    double samples[101];

    for (int i = 0; i <= 100; i++) {
        samples[100 - i] = (double)(i * i);
    }
    struct stats_summary summary = stats_summarise(samples, 101);
    EXPECT(summary.p50 == 2500.0);
    EXPECT(summary.p99 == 9801.0);
    EXPECT(summary.max == 10000.0);
}

int main(void)
{
    test_one_sample();
    test_even_count_interpolates();
    test_ramp(2);
    test_ramp(1000);
    test_ramp(99991);
    test_squares();
    return 0;
}
