/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PERIOD_H
#define SEATRIAL_PERIOD_H

#include <stdbool.h>
#include <stddef.h>

/** Detours of a core: when each began, in us, and the time that it took. */
struct detours {
    const double *begin_us;
    const double *lost_us;
    size_t count;
    double threshold_us; /* all lost more */
    double length_us;    /* of the run */
    double quantum_us;   /* resolution of the times */
};

/** A periodic part of the detours. */
struct period {
    bool found;
    double period_us;
    double power;   /* over the mean power of other frequencies */
    double lost_us; /* time lost in phase, beyond that in other phases */
};

/**
 * Find the periodic part of the detours that takes most time, if there is one.
 * Among detours at random, one run in `odds` has a false one. False, if there
 * is no memory.
 */
bool period_find(const struct detours *detours, double odds,
                 struct period *period);

#endif
