/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SWEEP_H
#define SEATRIAL_SWEEP_H

#include "histogram.h"
#include "pair.h"
#include "plan.h"
#include "rows.h"
#include "tournament.h"

#include <stdbool.h>

enum { SWEEP_POLL_NS = 1000000 }; /* of ranks that wait for others */

/**
 * One rank's part in the measurement of all pairs. Rails are measured one after
 * the other: each pass is made by one rank of every node, while the others
 * wait.
 */
struct sweep {
    const struct settings *settings;
    const struct nodes *nodes;
    const struct tournament *tournament;
    struct plan *plan;
    struct rows *rows; /* of rank 0; NULL elsewhere */
    MPI_Comm comm;     /* of the pass: rank n is on node n */
    struct pair_bench bench;
    struct rows_counts counts;    /* of the pass, on its leader */
    struct histogram overhead_us; /* of its rounds */
    bool valid;
    int listed_rounds; /* of a list of pairs; 0: those of the tournament */
};

/** The number of rounds, that of a list of pairs or of the tournament. */
int sweep_rounds(const struct sweep *sweep);

/** The partner of this node in a round (from 0); -1: none. */
int sweep_partner(const struct sweep *sweep, int round);

/** The round (from 0) in which this node meets another. */
int sweep_round(const struct sweep *sweep, int partner);

/**
 * The leader of a pass is the rank on the node of rank 0; it collects what the
 * others found, and hands it to rank 0, which alone writes.
 */
bool sweep_is_leader(const struct sweep *sweep);

/** Collect a result: from the leader itself, or from the source's rank. */
void sweep_emit(struct sweep *sweep, const struct pair_result *result);

/** After its last result the leader sends rank 0 one of no node. */
void sweep_end_relay(const struct sweep *sweep);

/** Rank 0 writes what the leader of another pass sends. */
void sweep_relay(struct sweep *sweep);

#endif
