/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_LOGP_REFINE_H
#define SEATRIAL_LOGP_REFINE_H

#include "measure.h"

#include <stdbool.h>

/**
 * Return whether, of three points in the order of their sizes, the last one has
 * an os, or, or g more than 20 % off the line through the other two; not
 * counted is what their intervals leave open.
 */
bool refine_has_jump(const struct logp_point points[3]);

/** The size between two, or 0 if they are too near each other to matter. */
int refine_middle(int below, int above);

#endif
