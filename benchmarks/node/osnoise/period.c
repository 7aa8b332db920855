/* SPDX-License-Identifier: Apache-2.0 */
#include "period.h"

#include "spectrum.h"

#include <math.h>
#include <stdlib.h>

enum {
    PERIOD_PHASES = 16,    /* parts of a period when times are folded */
    PERIOD_STEPS = 40,     /* frequencies tried between two of the spectrum */
    PERIOD_MOST = 8,       /* periods looked at, the strongest first */
    PERIOD_EVENTS = 16384, /* detours that decide about a frequency */
    PERIOD_MULTIPLES = 64, /* of a frequency that may be stronger than it */
};

/* A frequency whose multiple is a peak has this power, too, by one of two
 * weights: at random, one in 20,000 has the first; a part of the peak's as it
 * may be between two of the spectrum. */
static const double PERIOD_LEAST_POWER = 10.0;
static const double PERIOD_LEAST_PART = 0.2;

/* A weaker period must explain more by this part: what is left of a stronger
 * one explains the same. */
static const double PERIOD_MORE = 1.25;

/* The detours, the most time that one of them counts, and their spectrum. */
struct search {
    const struct detours *detours;
    double longest_us;
    double *power;
    size_t count;
};

typedef double period_weight(const struct search *search, size_t i);

/* By the logarithm of its time: many short ones do not hide long ones, and a
 * few very long ones do not hide others. */
static double period_by_logarithm(const struct search *search, size_t i)
{
    const struct detours *detours = search->detours;

    return 1.0 + log2(detours->lost_us[i] / detours->threshold_us);
}

/* By its time: of two periods, the costlier one decides what is common. */
static double period_by_time(const struct search *search, size_t i)
{
    return fmin(search->detours->lost_us[i], search->longest_us);
}

/* The time of the 20th longest detour. A period recurs as often: the longer
 * ones are none of it. */
static double period_longest(const struct detours *detours)
{
    double longest[SPECTRUM_LEAST_CYCLES] = {0.0}; /* in rising order */

    for (size_t i = 0; i < detours->count; i++) {
        double lost_us = detours->lost_us[i];
        size_t at = 0;

        if (lost_us <= longest[0]) {
            continue;
        }
        for (; at + 1 < SPECTRUM_LEAST_CYCLES && longest[at + 1] < lost_us;
             at++) {
            longest[at] = longest[at + 1];
        }
        longest[at] = lost_us;
    }
    return longest[0];
}

static int period_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Bins of a series: a power of two, none shorter than a quantum. */
static size_t period_bins(const struct detours *detours)
{
    size_t bins = 1;

    while ((double)bins * 2 * detours->quantum_us <= detours->length_us) {
        bins *= 2;
    }
    return bins;
}

/* The Rayleigh statistic: how well the detours follow a frequency. At random,
 * it is about exponential with mean 1. */
static double period_rayleigh(const struct search *search, double cycles,
                              period_weight *weight)
{
    const struct detours *detours = search->detours;
    size_t step = detours->count / PERIOD_EVENTS + 1;
    double x = 0.0;
    double y = 0.0;
    double squares = 0.0;

    for (size_t i = 0; i < detours->count; i += step) {
        double angle =
            2.0 * M_PI * cycles * detours->begin_us[i] / detours->length_us;
        double own = weight(search, i);

        x += own * cos(angle);
        y += own * sin(angle);
        squares += own * own;
    }
    return (x * x + y * y) / squares;
}

/* The frequency near a peak of the spectrum that the detours follow best. */
static double period_refine(const struct search *search, size_t peak)
{
    double best = (double)peak;
    double strongest = -1.0;

    for (int step = -PERIOD_STEPS; step <= PERIOD_STEPS; step++) {
        double cycles = (double)peak + (double)step / PERIOD_STEPS;
        double strength = period_rayleigh(search, cycles, period_by_logarithm);

        if (strength > strongest) {
            strongest = strength;
            best = cycles;
        }
    }
    return best;
}

/* The lowest frequency whose multiple a peak is, and that has power, too. The
 * power may be by the time of the detours only: where others come in bursts,
 * the spectrum is high at low frequencies. */
static double period_fundamental(const struct search *search, double cycles,
                                 double strength)
{
    double by_time = period_rayleigh(search, cycles, period_by_time);
    double least = fmax(PERIOD_LEAST_POWER, PERIOD_LEAST_PART * strength);
    double least_by_time =
        fmax(PERIOD_LEAST_POWER, PERIOD_LEAST_PART * by_time);

    for (int k = PERIOD_MULTIPLES; k > 1; k--) {
        double lower = cycles / k;
        const double *power = &search->power[(size_t)lower];

        if (lower >= SPECTRUM_LEAST_CYCLES &&
            (fmax(power[0], power[1]) >= least ||
             period_rayleigh(search, lower, period_by_time) >= least_by_time)) {
            return period_fundamental(search, lower, strength);
        }
    }
    return cycles;
}

/* Time lost in phase with a frequency: the phases above the median phase. */
static double period_lost(const struct detours *detours, double cycles)
{
    double phases[PERIOD_PHASES] = {0.0};
    double lost = 0.0;

    for (size_t i = 0; i < detours->count; i++) {
        double turns = cycles * detours->begin_us[i] / detours->length_us;
        size_t phase = (size_t)((turns - floor(turns)) * PERIOD_PHASES);

        phases[phase % PERIOD_PHASES] += detours->lost_us[i];
    }
    qsort(phases, PERIOD_PHASES, sizeof(phases[0]), period_compare);
    for (size_t i = PERIOD_PHASES / 2; i < PERIOD_PHASES; i++) {
        lost += phases[i] - phases[PERIOD_PHASES / 2];
    }
    return lost;
}

/* Remove a frequency and its multiples from the spectrum, each as far around as
 * the frequency may be wrong. */
static void period_remove(double *power, size_t count, double cycles)
{
    for (int k = 1; cycles * k < (double)count; k++) {
        double wrong = fmin(2.0 + 0.1 * k, cycles / 4.0);

        for (size_t i = (size_t)(cycles * k - wrong);
             i < count && (double)i <= cycles * k + wrong; i++) {
            power[i] = 0.0;
        }
    }
}

/* Choose the costliest of the strongest periods. */
static void period_choose(const struct search *search, double threshold,
                          struct period *period)
{
    double *power = search->power;

    for (int found = 0; found < PERIOD_MOST; found++) {
        size_t peak = 0;

        for (size_t i = 1; i + 1 < search->count; i++) {
            peak = power[i] > power[peak] ? i : peak;
        }
        if (power[peak] < threshold) {
            return;
        }
        double strength = power[peak];
        double cycles = period_refine(search, peak);

        cycles = period_fundamental(search, cycles, strength);
        double lost = period_lost(search->detours, cycles);

        if (!period->found || lost > PERIOD_MORE * period->lost_us) {
            *period = (struct period){true, search->detours->length_us / cycles,
                                      strength, lost};
        }
        period_remove(power, search->count, cycles);
        power[peak] = 0.0;
    }
}

bool period_find(const struct detours *detours, double odds,
                 struct period *period)
{
    size_t bins = period_bins(detours);

    *period = (struct period){.found = false};
    if (bins < SPECTRUM_LEAST_BINS || detours->count < SPECTRUM_LEAST_CYCLES) {
        return true;
    }
    double complex *train = calloc(bins, sizeof(*train));
    struct search search = {
        .detours = detours,
        .longest_us = period_longest(detours),
        .power = calloc(bins, sizeof(*search.power)),
        .count = bins / 2,
    };
    bool done = train != NULL && search.power != NULL;

    if (done) {
        for (size_t i = 0; i < detours->count; i++) {
            double part = detours->begin_us[i] / detours->length_us;
            size_t bin = (size_t)(part * (double)bins);

            train[bin < bins ? bin : bins - 1] +=
                period_by_logarithm(&search, i);
        }
        spectrum_power(train, bins, search.power);
        period_choose(&search, spectrum_threshold(bins, odds), period);
    }
    free(train);
    free(search.power);
    return done;
}
