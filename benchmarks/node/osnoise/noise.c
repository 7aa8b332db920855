/* SPDX-License-Identifier: Apache-2.0 */
#include "noise.h"

#include "stats.h"

#include <stdlib.h>

/* The fastest quanta may have had a higher clock for a moment: one in a hundred
 * is passed over. */
static const double NOISE_BASE_PERCENT = 1.0;
/* A detour is longer than both: parts of a quantum, and times the usual loss.
 */
static const double NOISE_DETOUR_PART = 0.02;
static const double NOISE_DETOUR_TIMES = 4.0;

/* Begin and loss of every quantum, and a sorted copy of the losses. */
struct quanta {
    double *begin_us;
    double *lost_us;
    double *sorted;
};

static double noise_length_us(const struct work *work, size_t i)
{
    return (work->end_ns[i] - (i == 0 ? 0.0 : work->end_ns[i - 1])) / 1e3;
}

/* Compute what each quantum lost; the base comes from all of them. */
static void noise_losses(const struct work *work, const struct quanta *quanta,
                         struct noise *noise)
{
    size_t n = work->count;
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        quanta->sorted[i] = noise_length_us(work, i);
    }
    stats_sort(quanta->sorted, n);
    noise->base_us = stats_percentile(quanta->sorted, n, NOISE_BASE_PERCENT);
    for (size_t i = 0; i < n; i++) {
        double lost = noise_length_us(work, i) - noise->base_us;

        quanta->lost_us[i] = lost > 0.0 ? lost : 0.0;
        quanta->begin_us[i] = i == 0 ? 0.0 : work->end_ns[i - 1] / 1e3;
        quanta->sorted[i] = quanta->lost_us[i];
        sum += quanta->lost_us[i];
    }
    stats_sort(quanta->sorted, n);
    noise->seconds = work->end_ns[n - 1] / 1e9;
    noise->lost_percent = 100.0 * sum / (work->end_ns[n - 1] / 1e3);
    noise->p50_us = stats_percentile(quanta->sorted, n, 50.0);
    noise->p99_9_us = stats_percentile(quanta->sorted, n, 99.9);
    noise->max_us = quanta->sorted[n - 1];
    noise->n = n;
}

/* Keep the quanta that are detours, in place. */
static void noise_detours(const struct quanta *quanta, struct noise *noise)
{
    double part = NOISE_DETOUR_PART * noise->base_us;
    double usual = NOISE_DETOUR_TIMES * noise->p50_us;

    noise->threshold_us = part > usual ? part : usual;
    noise->detours = 0;
    for (size_t i = 0; i < noise->n; i++) {
        if (quanta->lost_us[i] > noise->threshold_us) {
            quanta->begin_us[noise->detours] = quanta->begin_us[i];
            quanta->lost_us[noise->detours] = quanta->lost_us[i];
            noise->detours++;
        }
    }
}

bool noise_analyse(const struct work *work, double odds, struct noise *noise)
{
    size_t size = work->count * sizeof(double);
    struct quanta quanta = {malloc(size), malloc(size), malloc(size)};
    bool done = quanta.begin_us != NULL && quanta.lost_us != NULL &&
                quanta.sorted != NULL;

    if (done) {
        noise_losses(work, &quanta, noise);
        noise_detours(&quanta, noise);
        const struct detours detours = {
            .begin_us = quanta.begin_us,
            .lost_us = quanta.lost_us,
            .count = noise->detours,
            .threshold_us = noise->threshold_us,
            .length_us = noise->seconds * 1e6,
            .quantum_us = noise->base_us,
        };
        done = period_find(&detours, odds, &noise->period);
    }
    free(quanta.begin_us);
    free(quanta.lost_us);
    free(quanta.sorted);
    return done;
}
