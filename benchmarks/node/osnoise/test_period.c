/* SPDX-License-Identifier: Apache-2.0 */
#include "noise.h"
#include "period.h"
#include "spectrum.h"
#include "unit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MOST = 60000, SERIES = 200, NAMED = 50, STEPS = 100000 };

static const double LENGTH_US = 1e6;
static const double QUANTUM_US = 100.0;

/** A series while it is drawn. */
struct series {
    uint64_t state;
    double begin_us[MOST];
    double lost_us[MOST];
    size_t count;
};

/* A number from 0 to 1: SplitMix64. */
static double draw(struct series *series)
{
    uint64_t x = series->state += 0x9E3779B97F4A7C15U;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static void add(struct series *series, double begin_us, double lost_us)
{
    if (begin_us >= 0.0 && begin_us < LENGTH_US && series->count < MOST) {
        series->begin_us[series->count] = begin_us;
        series->lost_us[series->count++] = lost_us;
    }
}

/* Detours at random, `mean_us` apart, in bursts of this many. */
static void add_random(struct series *series, double mean_us, int burst)
{
    for (double at = 0.0; at < LENGTH_US;) {
        at -= mean_us * log(1.0 - draw(series));
        for (int i = 0; i < burst; i++) {
            add(series, at + i * 3.0 * QUANTUM_US * draw(series),
                2.0 - 5.0 * log(1.0 - draw(series)));
        }
    }
}

/* More and more of them: the rate rises to twice its mean. */
static void add_rising(struct series *series, double mean_us)
{
    for (double at = 0.0; at < LENGTH_US;) {
        at -= mean_us / 2.0 * log(1.0 - draw(series));
        if (draw(series) < at / LENGTH_US) {
            add(series, at, 5.0);
        }
    }
}

/* One every `period_us`, late by up to `late_us`. */
static void add_periodic(struct series *series, double period_us,
                         double late_us, double lost_us)
{
    for (double at = period_us * draw(series); at < LENGTH_US;
         at += period_us) {
        add(series, at + late_us * draw(series), lost_us);
    }
}

static struct period find(const struct series *series, double odds)
{
    const struct detours detours = {series->begin_us, series->lost_us,
                                    series->count,    2.0,
                                    LENGTH_US,        QUANTUM_US};
    struct period period;

    EXPECT(period_find(&detours, odds, &period));
    return period;
}

static void test_transform(void)
{
    enum { N = 16 };
    double complex values[N];

    for (int i = 0; i < N; i++) {
        values[i] = cos(2.0 * M_PI * 3.0 * i / N);
    }
    spectrum_transform(values, N);
    for (int i = 0; i < N; i++) {
        double expected = i == 3 || i == N - 3 ? N / 2.0 : 0.0;

        EXPECT(cabs(values[i] - expected) < 1e-12);
    }
}

/* One in ten series at random may have a period, if the odds are 10; without
 * such odds none of them has. */
static void test_noise_at_random_has_no_period(void)
{
    static struct series series;
    static const char *const KINDS[] = {"random", "bursts", "rising"};

    for (int kind = 0; kind < 3; kind++) {
        int falsely = 0;

        for (uint64_t seed = 0; seed < SERIES; seed++) {
            series.state = 1000 * (uint64_t)kind + seed;
            series.count = 0;
            if (kind == 0) {
                add_random(&series, 1000.0, 1);
            } else if (kind == 1) {
                add_random(&series, 5000.0, 5);
            } else {
                add_rising(&series, 1000.0);
            }
            falsely += find(&series, 10.0).found;
            EXPECT(!find(&series, 1e6).found);
        }
        (void)printf("%s: %d of %d series with a period, odds 1 in 10\n",
                     KINDS[kind], falsely, SERIES);
        /* 20 are expected; 41 and more have a probability below 1e-5. */
        EXPECT(falsely < 41);
    }
}

static void test_periods_are_found(void)
{
    static struct series series;
    static const struct {
        double period_us;
        double late_us;
        double random_us; /* others at random, this far apart */
    } CASES[] = {
        {10000.0, 0.0, 2000.0},  {10000.0, 1000.0, 2000.0},
        {4000.0, 200.0, 1000.0}, {1000.0, 0.0, 500.0},
        {20000.0, 500.0, 1e9},   {3333.0, 0.0, 1e9},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            series.state = seed;
            series.count = 0;
            add_periodic(&series, CASES[i].period_us, CASES[i].late_us, 50.0);
            add_random(&series, CASES[i].random_us, 1);
            struct period period = find(&series, 1e6);

            EXPECT(period.found);
            EXPECT(fabs(period.period_us / CASES[i].period_us - 1.0) < 0.005);
            EXPECT(period.lost_us >
                   0.7 * 50.0 * floor(LENGTH_US / CASES[i].period_us));
        }
    }
}

/* Of two, the one that takes more time, whichever is shorter. */
static void test_costly_period_is_chosen(void)
{
    static struct series series;
    static const double PERIODS[][2] = {{10000.0, 4000.0}, {4000.0, 10000.0}};

    for (size_t i = 0; i < 2; i++) {
        series.state = i;
        series.count = 0;
        add_periodic(&series, PERIODS[i][0], 0.0, 500.0);
        add_periodic(&series, PERIODS[i][1], 0.0, 3.0);
        add_random(&series, 3000.0, 1);
        struct period period = find(&series, 1e6);

        EXPECT(period.found);
        EXPECT(fabs(period.period_us / PERIODS[i][0] - 1.0) < 0.005);
    }
}

static void test_too_little_has_no_period(void)
{
    static struct series series;

    add_periodic(&series, LENGTH_US / 15.0, 0.0, 50.0);
    EXPECT(!find(&series, 1e6).found);
    series.count = 0;
    EXPECT(!find(&series, 1e6).found);
}

/* Find the period of a core whose quanta these detours lengthen. Two in one
 * quantum are one detour, as on a real core. */
static struct period find_by_quanta(const struct series *series)
{
    static double end_ns[MOST];
    static double at_us[STEPS]; /* what begins in each step takes */
    struct work work = {.end_ns = end_ns, .count = 0};
    struct noise noise;
    size_t step = 0;

    memset(at_us, 0, sizeof(at_us));
    for (size_t i = 0; i < series->count; i++) {
        at_us[(size_t)(series->begin_us[i] / LENGTH_US * STEPS)] +=
            series->lost_us[i];
    }
    for (double now_us = 0.0; now_us < LENGTH_US;) {
        now_us += QUANTUM_US;
        for (; step < STEPS && LENGTH_US * (double)step < now_us * STEPS;
             step++) {
            now_us += at_us[step];
        }
        end_ns[work.count++] = 1e3 * now_us;
    }
    EXPECT(noise_analyse(&work, 1e6, &noise));
    return noise.period;
}

/* Neither a multiple of the frequency is named, nor what it has in common with
 * the kernel's tick. */
static void test_fundamental_is_named(void)
{
    static struct series series;
    static const struct {
        const char *name;
        double period_us;
        double lost_us;
        double tick_us;
        double tick_lost_us;
        double random_us; /* mean distance of others */
        int burst;
    } CASES[] = {
        {"1 ms every 10 ms, tick of 4 ms", 1e4, 1e3, 4e3, 4.0, 1e9, 1},
        {"the same, others at random", 1e4, 1e3, 4e3, 4.0, 2e3, 1},
        {"the same, others in bursts", 1e4, 1e3, 4e3, 4.0, 2e4, 10},
        {"1 ms every 10 ms, tick of 1 ms", 1e4, 1e3, 1e3, 4.0, 2e3, 1},
        {"0.3 ms every 20 ms, tick of 4 ms", 2e4, 300.0, 4e3, 4.0, 2e3, 1},
        {"as costly as a tick of 2.5 ms", 1e4, 40.0, 2.5e3, 10.0, 2e3, 1},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        int named = 0;

        for (uint64_t seed = 0; seed < NAMED; seed++) {
            series.state = 1000 * (uint64_t)i + seed;
            series.count = 0;
            add_periodic(&series, CASES[i].period_us, 30.0, CASES[i].lost_us);
            add_periodic(&series, CASES[i].tick_us, 3.0, CASES[i].tick_lost_us);
            add_random(&series, CASES[i].random_us, CASES[i].burst);
            struct period period = find_by_quanta(&series);

            named += period.found &&
                     fabs(period.period_us / CASES[i].period_us - 1.0) < 0.005;
        }
        (void)printf("%s: %d of %d are named so\n", CASES[i].name, named,
                     NAMED);
        EXPECT(named == NAMED);
    }
}

/* 10,000 quanta of 100 us, each 100th of which takes 400 us more. */
static void test_noise_of_a_core(void)
{
    enum { QUANTA = 10000 };
    static double end_ns[QUANTA];
    struct work work = {.end_ns = end_ns, .count = QUANTA};
    struct noise noise;
    double now_ns = 0.0;

    for (int i = 0; i < QUANTA; i++) {
        now_ns += i % 100 == 50 ? 500e3 : 100e3;
        end_ns[i] = now_ns;
    }
    EXPECT(noise_analyse(&work, 1e6, &noise));
    EXPECT(fabs(noise.base_us - 100.0) < 1e-9 && noise.n == QUANTA);
    EXPECT(fabs(noise.lost_percent - 100.0 * 400.0 / 10400.0) < 1e-9);
    EXPECT(noise.p50_us == 0.0 && noise.detours == 100);
    EXPECT(fabs(noise.p99_9_us - 400.0) < 1e-9);
    EXPECT(fabs(noise.max_us - 400.0) < 1e-9);
    EXPECT(noise.period.found);
    EXPECT(fabs(noise.period.period_us - 10400.0) < 20.0);
}

int main(void)
{
    test_transform();
    test_noise_at_random_has_no_period();
    test_periods_are_found();
    test_costly_period_is_chosen();
    test_fundamental_is_named();
    test_too_little_has_no_period();
    test_noise_of_a_core();
    return 0;
}
