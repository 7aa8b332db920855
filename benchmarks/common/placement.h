/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PLACEMENT_H
#define SEATRIAL_PLACEMENT_H

#include "settings.h"

#include <mpi.h>

enum { PLACEMENT_HOST_SIZE = 128, PLACEMENT_MAX_PPN = 65536 };

/** The node of each rank of a communicator. O(np) memory per rank. */
struct placement {
    int np;
    int rank;
    int nodes;       /* distinct hosts, numbered by their first ranks */
    int node;        /* of this rank */
    int local_rank;  /* place of this rank on its node, by rank */
    int local_size;  /* ranks on this node */
    int *node_of;    /* np: the node of every rank */
    int *local_of;   /* np: the place of every rank on its node */
    int *first_rank; /* nodes: the first rank of every node */
    char (*hosts)[PLACEMENT_HOST_SIZE]; /* nodes: short host names */
};

/**
 * The name of a rank's node: the processor's short name, or a pretended one
 * (see placement_create).
 */
void placement_host(const char *processor, int rank, long pretend_ppn,
                    char host[PLACEMENT_HOST_SIZE]);

/**
 * Find the placement of all ranks in comm. With pretend_ppn > 0 that many
 * ranks count as a node named HOST/0, HOST/1 ..., on any host: to try
 * on one machine what needs several.
 */
void placement_create(MPI_Comm comm, long pretend_ppn,
                      struct placement *placement);
void placement_free(struct placement *placement);

/** The row of the option, for settings with a member pretend_ppn. */
#define PLACEMENT_OPTION_ROW(type)                                             \
    SETTINGS_ROW("pretend-ppn", 0, OPTIONS_INTEGER,                            \
                 offsetof(type, pretend_ppn), 0, PLACEMENT_MAX_PPN, NULL,      \
                 "COUNT",                                                      \
                 "count every COUNT ranks as a node, to try it on one; 0: no")

#endif
