/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"
#include "unit.h"

#include <math.h>
#include <stdint.h>

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
    EXPECT(summary.mean == 3.5);
}

static void test_even_count_interpolates(void)
{
    double samples[] = {4.0, 1.0, 3.0, 2.0};
    struct stats_summary summary = stats_summarise(samples, 4);

    EXPECT(summary.n == 4);
    EXPECT(summary.min == 1.0 && summary.max == 4.0);
    EXPECT(is_close(summary.p50, 2.5));
    EXPECT(is_close(summary.p99, 3.97));
    EXPECT(is_close(summary.mean, 2.5));
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
    EXPECT(is_close(summary.mean, 0.50 * (double)(n - 1)));
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
    EXPECT(is_close(summary.mean, 3350.0)); /* n (n - 1) (2 n - 1) / 6 n */
}

static void test_line_through_its_own_points(void)
{
    const double x[] = {-3.0, 0.0, 1.0, 1000.0};
    double y[4];

    for (int i = 0; i < 4; i++) {
        y[i] = 7.0 - 0.25 * x[i];
    }
    for (size_t n = 2; n <= 4; n++) {
        struct stats_line line = stats_fit_line(x, y, n);

        EXPECT(is_close(line.intercept, 7.0) && is_close(line.slope, -0.25));
    }
}

/*
 * Through the squares of offset, offset + 1, ... by least squares: about their
 * mean m the slope is 2 m for any offset, and y is m^2 + (n^2 - 1) / 12.
 */
static void test_line_through_squares(double offset)
{
    enum { N = 1001 };
    double x[N];
    double y[N];
    double middle = offset + (N - 1) / 2.0;

    for (int i = 0; i < N; i++) {
        x[i] = offset + i;
        y[i] = x[i] * x[i];
    }
    struct stats_line line = stats_fit_line(x, y, N);
    double level = middle * middle + (N * N - 1) / 12.0;

    EXPECT(fabs(line.slope - 2.0 * middle) <= 1e-9 * middle);
    EXPECT(fabs(line.intercept + line.slope * middle - level) <= 1e-9 * level);
}

/* Printed tables have four to six digits; the last cases have closed forms. */
static void test_t_quantiles(void)
{
    static const struct {
        double probability;
        double degrees;
        double expected;
        double error;
    } CASES[] = {
        {0.75, 1, 1.000, 5e-4},
        {0.90, 3, 1.638, 5e-4},
        {0.95, 2, 2.920, 5e-4},
        {0.975, 1, 12.706, 5e-4},
        {0.975, 2, 4.303, 5e-4},
        {0.975, 5, 2.571, 5e-4},
        {0.975, 10, 2.228, 5e-4},
        {0.975, 29, 2.045, 5e-4},
        {0.975, 100, 1.984, 5e-4},
        {0.95, 30, 1.697, 5e-4},
        {0.995, 10, 3.169, 5e-4},
        {0.9995, 1, 636.62, 5e-3},
        {0.9995, 20, 3.850, 5e-4},
        {0.975, 1000, 1.962, 5e-4},
        {0.975, 1e7, 1.95996, 1e-5},
        {0.995, 1e7, 2.57583, 1e-5},
        {0.5, 7, 0.0, 1e-6},
        {0.975, 1, 12.70620473617471, 1e-9},
        {0.975, 2, 4.302652729749464, 1e-9},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        double found = stats_t_quantile(CASES[i].probability, CASES[i].degrees);

        EXPECT(fabs(found - CASES[i].expected) <= CASES[i].error);
    }
}

static void test_interval(void)
{
    const double samples[] = {1.0, 2.0, 3.0, 4.0, 5.0};
    struct stats_interval one = stats_mean_interval(samples, 1, 0.95);
    struct stats_interval five = stats_mean_interval(samples, 5, 0.95);

    EXPECT(one.mean == 1.0 && one.half == INFINITY);
    EXPECT(is_close(five.mean, 3.0));
    EXPECT(fabs(five.half - 2.776445 * sqrt(2.5 / 5.0)) < 1e-6);
}

/* Uniform from 0 to 1; the same on every machine (Knuth's MMIX generator). */
static double draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Of many intervals, as many hold the true mean as the confidence says. */
static void test_coverage(void)
{
    enum { RUNS = 4000, N = 12 };
    uint64_t state = 7;
    int held = 0;

    for (int i = 0; i < RUNS; i++) {
        double samples[N];

        for (int j = 0; j < N; j++) {
            samples[j] = draw(&state) + draw(&state) + draw(&state);
        }
        struct stats_interval interval = stats_mean_interval(samples, N, 0.9);
        held += fabs(interval.mean - 1.5) <= interval.half;
    }
    EXPECT(fabs((double)held / RUNS - 0.9) < 0.015);
}

static size_t samples_until_stop(const struct stats_rule *rule, double spread)
{
    double *samples = calloc(rule->most, sizeof(*samples));
    uint64_t state = 42;
    size_t n = 0;

    EXPECT(samples != NULL);
    for (size_t more = 0; (more = stats_more_samples(rule, samples, n)) > 0;) {
        EXPECT(n + more <= rule->most);
        for (size_t i = 0; i < more; i++) {
            samples[n++] = 10.0 + spread * (draw(&state) - 0.5);
        }
    }
    free(samples);
    return n;
}

/*
 * Half the interval of n uniform samples is 1.96 spread / sqrt(12 n): a spread
 * of 10 about a mean of 10 needs n = 356 for 3 %, which doubling meets at 480.
 */
static void test_stop_rule(void)
{
    const struct stats_rule rule = {30, 10000, 0.95, 0.03};
    const struct stats_rule few = {30, 100, 0.95, 0.03};
    const struct stats_rule fewer = {30, 7, 0.95, 0.03};
    const struct stats_rule sure = {30, 10000, 0.999, 0.03};

    EXPECT(samples_until_stop(&rule, 0.0) == 30);
    EXPECT(samples_until_stop(&rule, 10.0) == 480);
    EXPECT(samples_until_stop(&rule, 1000.0) == 10000);
    EXPECT(samples_until_stop(&few, 10.0) == 100);
    EXPECT(samples_until_stop(&fewer, 0.0) == 7);
    EXPECT(samples_until_stop(&sure, 10.0) == 1920);
}

static void test_jain(void)
{
    const double equal[] = {3.0, 3.0, 3.0, 3.0};
    const double alone[] = {0.0, 5.0, 0.0, 0.0};
    const double uneven[] = {1.0, 3.0};

    EXPECT(stats_jain(equal, 4) == 1.0);
    EXPECT(stats_jain(alone, 4) == 0.25);
    EXPECT(fabs(stats_jain(uneven, 2) - 0.8) < 1e-15); /* 16 / (2 x 10) */
}

int main(void)
{
    test_jain();
    test_t_quantiles();
    test_interval();
    test_coverage();
    test_stop_rule();
    test_one_sample();
    test_even_count_interpolates();
    test_ramp(2);
    test_ramp(1000);
    test_ramp(99991);
    test_squares();
    test_line_through_its_own_points();
    test_line_through_squares(0.0);
    test_line_through_squares(10000.0);
    return 0;
}
