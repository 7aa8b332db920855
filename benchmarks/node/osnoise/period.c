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

/* Powers of a frequency whose multiple is a peak: at random, one in 10,000 has
 * the first; a part of the peak's as it may be between two of the spectrum. */
static const double PERIOD_LEAST_POWER = 10.0;
static const double PERIOD_LEAST_PART = 0.2;
/* Where the noise is stronger at low frequencies, a part is too much to ask. */
static const double PERIOD_SURE_POWER = 25.0;

/* A weaker period must explain more by this part: what is left of a stronger
 * one explains the same. */
static const double PERIOD_MORE = 1.25;

/* A detour counts by the logarithm of its time: many short ones do not hide
 * long ones, and a few very long ones do not hide others. */
static double period_weight(const struct detours *detours, size_t i)
{
    return 1.0 + log2(detours->lost_us[i] / detours->threshold_us);
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

/* How well the detours follow a frequency: the Rayleigh statistic. */
static double period_strength(const struct detours *detours, double cycles)
{
    size_t step = detours->count / PERIOD_EVENTS + 1;
    double x = 0.0;
    double y = 0.0;

    for (size_t i = 0; i < detours->count; i += step) {
        double angle =
            2.0 * M_PI * cycles * detours->begin_us[i] / detours->length_us;

        double weight = period_weight(detours, i);

        x += weight * cos(angle);
        y += weight * sin(angle);
    }
    return x * x + y * y;
}

/* The frequency near a peak of the spectrum that the detours follow best. */
static double period_refine(const struct detours *detours, size_t peak)
{
    double best = (double)peak;
    double strongest = -1.0;

    for (int step = -PERIOD_STEPS; step <= PERIOD_STEPS; step++) {
        double cycles = (double)peak + (double)step / PERIOD_STEPS;
        double strength = period_strength(detours, cycles);

        if (strength > strongest) {
            strongest = strength;
            best = cycles;
        }
    }
    return best;
}

/* The frequency whose multiple a peak is: it has power, too. */
static double period_fundamental(const double *power, double cycles,
                                 double strength)
{
    double least = fmin(PERIOD_SURE_POWER,
                        fmax(PERIOD_LEAST_POWER, PERIOD_LEAST_PART * strength));

    for (int k = PERIOD_MULTIPLES; k > 1; k--) {
        size_t below = (size_t)(cycles / k);

        if (cycles / k >= SPECTRUM_LEAST_CYCLES &&
            fmax(power[below], power[below + 1]) >= least) {
            return cycles / k;
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
static void period_choose(const struct detours *detours, double *power,
                          size_t count, double threshold, struct period *period)
{
    for (int found = 0; found < PERIOD_MOST; found++) {
        size_t peak = 0;

        for (size_t i = 1; i + 1 < count; i++) {
            peak = power[i] > power[peak] ? i : peak;
        }
        if (power[peak] < threshold) {
            return;
        }
        double strength = power[peak];
        double cycles = period_refine(detours, peak);

        cycles = period_fundamental(power, cycles, strength);
        double lost = period_lost(detours, cycles);

        if (!period->found || lost > PERIOD_MORE * period->lost_us) {
            *period = (struct period){true, detours->length_us / cycles,
                                      strength, lost};
        }
        period_remove(power, count, cycles);
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
    double *power = calloc(bins, sizeof(*power));

    if (train != NULL && power != NULL) {
        for (size_t i = 0; i < detours->count; i++) {
            double part = detours->begin_us[i] / detours->length_us;
            size_t bin = (size_t)(part * (double)bins);

            train[bin < bins ? bin : bins - 1] += period_weight(detours, i);
        }
        spectrum_power(train, bins, power);
        period_choose(detours, power, bins / 2, spectrum_threshold(bins, odds),
                      period);
    }
    bool done = train != NULL && power != NULL;

    free(train);
    free(power);
    return done;
}
