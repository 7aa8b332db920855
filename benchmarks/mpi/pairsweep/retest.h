/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_RETEST_H
#define SEATRIAL_RETEST_H

#include "sweep.h"

/**
 * Measure the pairs that are much worse than the median of all a second time,
 * one after the other, while no other rank sends: is it the pair, or was
 * it the crowd? The worst come first.
 */
void retest_run(struct sweep *sweep);

#endif
