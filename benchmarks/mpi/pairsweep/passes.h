/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PASSES_H
#define SEATRIAL_PASSES_H

#include "sweep.h"

/** Measure what is pending in the plans, then the suspects again. */
void passes_run(struct sweep *sweep);

#endif
