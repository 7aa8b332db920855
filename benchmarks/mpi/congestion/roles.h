/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_ROLES_H
#define SEATRIAL_ROLES_H

#include "placement.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/** Kinds of aggressors, the first four in GPCNeT's order. */
enum aggressor {
    AGGRESSOR_ALLTOALL,
    AGGRESSOR_INCAST,
    AGGRESSOR_PUT,
    AGGRESSOR_GET,
    AGGRESSOR_KINDS,
    AGGRESSOR_MIXED = AGGRESSOR_KINDS, /* each kind on its share of the nodes */
    AGGRESSOR_NONE,                    /* idle nodes, to try the method */
};

enum { ROLES_LEAST_NODES = 4, ROLES_LEAST_OF_KIND = 2 };

/**
 * The part of a rank: a victim, or an aggressor of a kind. A slice has the
 * ranks with the same place on their nodes, of aggressors those of one kind.
 */
struct roles {
    int victim_nodes;
    int aggressor_nodes;
    int kinds;
    bool has_window; /* some aggressors put or get */
    bool is_victim;
    enum aggressor kind; /* of an aggressor; AGGRESSOR_NONE is idle */
    MPI_Comm side;       /* all victims, or all aggressors */
    MPI_Comm slice;
};

/** Put the numbers from 0 to count - 1 in an order that the seed decides. */
void roles_shuffle(int *order, int count, uint64_t seed);

/**
 * Divide the nodes: four fifths are aggressors, at least two are victims. False
 * on all ranks, after an error message, if there are too few nodes, or if they
 * have different numbers of ranks.
 */
bool roles_create(const struct placement *placement, enum aggressor aggressors,
                  uint64_t seed, struct roles *roles);
void roles_free(struct roles *roles);

#endif
