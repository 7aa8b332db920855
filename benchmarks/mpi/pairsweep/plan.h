/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PLAN_H
#define SEATRIAL_PLAN_H

#include "record.h"

#include <stdbool.h>
#include <stddef.h>

/**
 * What one node has to do with each other one on its rail, and what was found:
 * all that a rank keeps of the pairs.
 */
struct plan {
    int nodes;
    int own;
    int rail;
    unsigned char *flags; /* nodes, as the others */
    int *round;           /* of a list of pairs, from 1; 0: none */
    float *latency_us;
    float *bw_mb_per_s; /* of the worse direction */
};

/** Bytes of a plan. */
size_t plan_size_bytes(int nodes);

/** Create an empty plan in memory of plan_size_bytes. */
void plan_create(struct plan *plan, int nodes, int own, int rail, void *room);

/** Want all pairs, or no longer the one with this node. */
void plan_want_all(struct plan *plan);
void plan_unwant(struct plan *plan, int partner);

/** Keep what a record says, if it is about the own node and rail. */
void plan_keep(struct plan *plan, const struct record *record);

/** Return whether the pair with this node has a mark. */
bool plan_is(const struct plan *plan, int partner, enum record_kind kind);

/** Return whether it is still to be measured. */
bool plan_is_pending(const struct plan *plan, int partner);

/** Of every pair one node speaks: the one that comes first by name. */
bool plan_is_source(const struct plan *plan, int partner);

#endif
