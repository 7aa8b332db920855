/* SPDX-License-Identifier: Apache-2.0 */
#include "spectrum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPECTRUM_LEAST_BLOCK = 128,
    SPECTRUM_MOST_BLOCK = 1024,
    SPECTRUM_MOST_POWER = 1000, /* of the mean of a block, over its level */
};

static int spectrum_compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Put every value at the place whose bits are those of its own, reversed. */
static void spectrum_reverse(double complex *values, size_t n)
{
    size_t to = 0;

    for (size_t from = 1; from < n; from++) {
        size_t bit = n >> 1;

        for (; (to & bit) != 0; bit >>= 1) {
            to ^= bit;
        }
        to ^= bit;
        if (from < to) {
            double complex kept = values[from];

            values[from] = values[to];
            values[to] = kept;
        }
    }
}

void spectrum_transform(double complex *values, size_t n)
{
    spectrum_reverse(values, n);
    for (size_t half = 1; half < n; half *= 2) {
        for (size_t k = 0; k < half; k++) {
            double angle = -M_PI * (double)k / (double)half;
            double complex factor = cos(angle) + sin(angle) * I;

            for (size_t at = k; at < n; at += 2 * half) {
                double complex odd = factor * values[at + half];

                values[at + half] = values[at] - odd;
                values[at] += odd;
            }
        }
    }
}

/*
 * Divide a block by its mean, as its median tells: a peak does not move that.
 * The median of an exponential distribution is ln 2 of its mean. Where nothing
 * but a period is there, most frequencies have no power at all.
 */
static void spectrum_level(double *power, size_t n, double *sorted)
{
    double whole = 0.0;

    for (size_t i = 0; i < n; i++) {
        whole += power[i] / (double)n;
    }
    memcpy(sorted, power, n * sizeof(*power));
    qsort(sorted, n, sizeof(*sorted), spectrum_compare);
    double mean = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) / M_LN2;

    mean = fmax(mean, whole / SPECTRUM_MOST_POWER);
    for (size_t i = 0; i < n; i++) {
        power[i] = mean > 0.0 ? power[i] / mean : 0.0;
    }
}

void spectrum_power(double complex *values, size_t n, double *power)
{
    size_t count = n / 2;
    double mean = 0.0;

    for (size_t i = 0; i < n; i++) {
        mean += creal(values[i]) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] -= mean;
    }
    spectrum_transform(values, n);
    for (size_t i = 0; i < count; i++) {
        power[i] = creal(values[i] * conj(values[i]));
    }
    memset(power, 0, SPECTRUM_LEAST_CYCLES * sizeof(*power));
    for (size_t low = SPECTRUM_LEAST_CYCLES; low < count;) {
        size_t width = low < SPECTRUM_LEAST_BLOCK  ? SPECTRUM_LEAST_BLOCK
                       : low < SPECTRUM_MOST_BLOCK ? low
                                                   : SPECTRUM_MOST_BLOCK;

        if (low + 2 * width > count) {
            width = count - low; /* no block is shorter than its neighbour */
        }
        spectrum_level(power + low, width, power + count);
        low += width;
    }
}

double spectrum_threshold(size_t n, double odds)
{
    return log((double)(n / 2 - SPECTRUM_LEAST_CYCLES) * odds);
}
