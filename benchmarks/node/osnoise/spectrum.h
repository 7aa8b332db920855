/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SPECTRUM_H
#define SEATRIAL_SPECTRUM_H

#include <complex.h>
#include <stddef.h>

enum {
    SPECTRUM_LEAST_CYCLES = 20, /* of a period within the series */
    SPECTRUM_LEAST_BINS = 1024, /* of a series that is looked at */
};

/** Transform n values in place; n is a power of two (Cooley and Tukey 1965). */
void spectrum_transform(double complex *values, size_t n);

/**
 * Compute the power of a series at the frequencies 0 .. n / 2 - 1 over its
 * length, each over the mean power around it. Values and power have room for n.
 * Frequencies below SPECTRUM_LEAST_CYCLES have none. Without a period, each is
 * about exponential with mean 1, whatever the spectrum of the noise is, as long
 * as that is smooth.
 */
void spectrum_power(double complex *values, size_t n, double *power);

/** The power that one of n / 2 frequencies reaches in one of `odds` series. */
double spectrum_threshold(size_t n, double odds);

#endif
