/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static int stats_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

void stats_sort(double *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), stats_compare);
}

double stats_percentile(const double *sorted, size_t n, double percent)
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
    stats_sort(samples, n);
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

double stats_jain(const double *shares, size_t n)
{
    double sum = 0.0;
    double squares = 0.0;

    assert(n >= 1);
    for (size_t i = 0; i < n; i++) {
        sum += shares[i];
        squares += shares[i] * shares[i];
    }
    return sum * sum / ((double)n * squares);
}

/*
 * The continued fraction of the incomplete beta function with parameters a and
 * b, by the method of Lentz; DLMF 8.17.22. It converges where x is below
 * (a + 1) / (a + b + 2).
 */
static double stats_beta_fraction(double a, double b, double x)
{
    double numerator = 1.0;
    double denominator = 1.0 / (1.0 - (a + b) * x / (a + 1.0));
    double fraction = denominator;
    double change = 0.0;

    for (double m = 1.0; fabs(change - 1.0) > DBL_EPSILON; m++) {
        double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        double odd =
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));

        numerator = 1.0 + even / numerator;
        denominator = 1.0 / (1.0 + even * denominator);
        fraction *= numerator * denominator;
        numerator = 1.0 + odd / numerator;
        denominator = 1.0 / (1.0 + odd * denominator);
        change = numerator * denominator;
        fraction *= change;
    }
    return fraction;
}

/* The probability of Student's t above t >= 0; DLMF 8.17.4 and 8.17.22. */
static double stats_t_tail(double t, double degrees)
{
    double a = degrees / 2.0;
    double b = 0.5;
    double x = degrees / (degrees + t * t);
    double y = t * t / (degrees + t * t);
    double factor =
        exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));

    if (y == 0.0) {
        return 0.5;
    }
    if (x < (a + 1.0) / (a + b + 2.0)) {
        return factor * stats_beta_fraction(a, b, x) / a / 2.0;
    }
    return (1.0 - factor * stats_beta_fraction(b, a, y) / b) / 2.0;
}

double stats_t_quantile(double probability, double degrees)
{
    double tail = 1.0 - probability;
    double low = 0.0;
    double high = 1.0;

    assert(probability >= 0.5 && probability < 1.0 && degrees > 0.0);
    while (stats_t_tail(high, degrees) > tail) {
        high *= 2.0;
    }
    while (high - low > 1e-12 * high) {
        double middle = (low + high) / 2.0;

        if (stats_t_tail(middle, degrees) > tail) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

struct stats_interval stats_mean_interval(const double *samples, size_t n,
                                          double confidence)
{
    struct stats_interval interval = {.half = INFINITY};
    double squares = 0.0;

    assert(n >= 1);
    for (size_t i = 0; i < n; i++) {
        interval.mean += samples[i] / (double)n;
    }
    if (n > 1) {
        for (size_t i = 0; i < n; i++) {
            squares +=
                (samples[i] - interval.mean) * (samples[i] - interval.mean);
        }
        interval.half =
            stats_t_quantile((1.0 + confidence) / 2.0, (double)(n - 1)) *
            sqrt(squares / (double)(n - 1) / (double)n);
    }
    return interval;
}

bool stats_is_precise(const struct stats_rule *rule,
                      struct stats_interval interval)
{
    return interval.half <= rule->precision * fabs(interval.mean);
}

size_t stats_more_samples(const struct stats_rule *rule, const double *samples,
                          size_t n)
{
    if (n >= rule->most) {
        return 0;
    }
    if (n >= rule->least &&
        stats_is_precise(rule,
                         stats_mean_interval(samples, n, rule->confidence))) {
        return 0;
    }
    size_t next = n < rule->least ? rule->least : 2 * n;

    return (next < rule->most ? next : rule->most) - n;
}
