/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_FEED_H
#define SEATRIAL_FEED_H

#include "plan.h"
#include "record.h"

#include <stdbool.h>

/** Read the next record from what it reads. */
typedef enum record_found (*feed_next)(void *reader, struct record *record);

/**
 * Copy the records that rank 0 reads to the plans of all ranks, a few thousand
 * records at a time. False on all ranks alike if reading failed.
 */
bool feed_plan(struct plan *plan, feed_next next, void *reader);

#endif
