/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_NOISE_H
#define SEATRIAL_NOISE_H

#include "period.h"
#include "work.h"

#include <stdbool.h>
#include <stddef.h>

/** The noise on one core; times in us. */
struct noise {
    double seconds;      /* of the run */
    double base_us;      /* a quantum without noise */
    double lost_percent; /* of the time, beyond that of quanta without noise */
    double p50_us;       /* of the time that a quantum lost */
    double p99_9_us;
    double max_us;
    double threshold_us; /* a quantum that loses more is a detour */
    size_t detours;
    size_t n; /* quanta */
    struct period period;
};

/** Analyse the quanta of a core; false, if there is no memory. */
bool noise_analyse(const struct work *work, double odds, struct noise *noise);

#endif
