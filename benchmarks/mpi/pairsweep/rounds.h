/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_ROUNDS_H
#define SEATRIAL_ROUNDS_H

#include "sweep.h"

/** Measure the pairs that are pending in the plans, round by round. */
void rounds_run(struct sweep *sweep);

#endif
