/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"
#include "payload.h"
#include "stats.h"
#include "suspects.h"
#include "unit.h"

#include <math.h>
#include <stdint.h>

static struct histogram histogram;

static void clear(void)
{
    histogram = (struct histogram){.bins = {0}};
}

static void test_bins(void)
{
    EXPECT(histogram_bin(0.0) == 0 && histogram_bin(1e-9) == 0);
    EXPECT(histogram_bin(INFINITY) == HISTOGRAM_BINS - 1);
    for (int bin = 0; bin < HISTOGRAM_BINS; bin++) {
        EXPECT(histogram_bin(histogram_value(bin)) == bin);
    }
    for (int i = 0; i < 900; i++) {
        double value = 2e-3 * pow(1.03, i);
        double found = histogram_value(histogram_bin(value));

        EXPECT(fabs(found - value) < 0.0026 * value);
    }
}

/* Values over several orders of magnitude, against the exact median. */
static void test_median(size_t n)
{
    double *values = calloc(n, sizeof(*values));

    EXPECT(values != NULL);
    clear();
    for (size_t i = 0; i < n; i++) {
        double uniform = (double)(payload_mix(i + n) >> 11) / 0x1p53;

        values[i] = pow(10.0, 4.0 * uniform);
        histogram_add(&histogram, values[i]);
    }
    double exact = stats_summarise(values, n).p50;
    EXPECT(fabs(histogram_median(&histogram) - exact) < 0.0026 * exact);
    EXPECT(histogram_count(&histogram) == (long long)n);
    free(values);
}

static void test_no_values(void)
{
    clear();
    EXPECT(isnan(histogram_median(&histogram)));
}

static void test_severity(void)
{
    const struct suspects_usual usual = {10.0, 1000.0, 20.0};
    static const struct {
        double latency_us;
        double bw_mb_per_s;
        double severity;
    } CASES[] = {
        {10.0, 1000.0, 0.0},  {12.0, 800.0, 0.0},
        {12.1, 1000.0, 1.21}, {1.0, 790.0, 1000.0 / 790.0},
        {20.0, 100.0, 10.0},  {50.0, 500.0, 5.0},
        {NAN, NAN, 0.0},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        double found = suspects_severity(&usual, CASES[i].latency_us,
                                         CASES[i].bw_mb_per_s);

        EXPECT(fabs(found - CASES[i].severity) < 1e-12);
    }
}

/* Without medians there is nothing to be worse than. */
static void test_severity_of_nothing(void)
{
    const struct suspects_usual usual = {NAN, NAN, 20.0};

    EXPECT(suspects_severity(&usual, 10.0, 10.0) == 0.0);
}

/* Choose the worst of 2, 2, 2, 3, 5 on two ranks, most of them at once. */
static void test_worst(long long most, int expected)
{
    static const double SEVERITIES[] = {2.0, 5.0, 2.0, 3.0, 2.0};
    enum { COUNT = 5, FIRST_RANK = 2 };
    long long before = 0;
    long long before_second = 1; /* the first rank has one of the 2.0 */
    int chosen = 0;
    double least = INFINITY;
    double best_left_out = 0.0;

    clear();
    for (int i = 0; i < COUNT; i++) {
        histogram_add(&histogram, SEVERITIES[i]);
    }
    struct suspects_limit limit = suspects_find_limit(&histogram, most);
    for (int i = 0; i < COUNT; i++) {
        if (suspects_is_worst(&limit, SEVERITIES[i],
                              i < FIRST_RANK ? &before : &before_second)) {
            chosen++;
            least = fmin(least, SEVERITIES[i]);
        } else {
            best_left_out = fmax(best_left_out, SEVERITIES[i]);
        }
    }
    EXPECT(chosen == expected);
    EXPECT(least >= best_left_out);
}

int main(void)
{
    test_bins();
    for (size_t n = 1; n < 50; n++) {
        test_median(n);
    }
    test_median(100000);
    test_median(99999);
    test_no_values();
    test_severity();
    test_severity_of_nothing();
    for (int most = 0; most < 8; most++) {
        test_worst(most, most < 5 ? most : 5);
    }
    return 0;
}
