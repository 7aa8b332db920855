/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_AGGRESSORS_H
#define SEATRIAL_AGGRESSORS_H

#include "roles.h"

#include <mpi.h>
#include <stdbool.h>

/** An aggressor: its slice, buffers and window. */
struct aggressors {
    enum aggressor kind;
    MPI_Comm slice;
    int rank; /* in the slice; 0 is the target of incast, put and get */
    int ranks;
    int size_bytes; /* of a message */
    char *send;     /* a message for each rank */
    char *receive;  /* a message from each rank */
    MPI_Request *requests;
    MPI_Win window; /* of put and get; MPI_WIN_NULL: the run has neither */
    int target;     /* rank 0 of the slice, in the window */
};

/** The work of an aggressor while victims measured. */
struct aggressors_load {
    long long operations;
    double mb_per_s; /* that it sent or got; 0 of a target */
};

/** Return the bytes that a rank takes for its messages. */
double aggressors_bytes(const struct placement *placement, int size_bytes);

/** Make buffers; all aggressors must call. */
void aggressors_create(const struct roles *roles, int size_bytes,
                       struct aggressors *aggressors);
void aggressors_free(struct aggressors *aggressors);

/**
 * Load the network until the victims are done. Victims begin and end by one
 * MPI_Ibarrier of all ranks each.
 */
struct aggressors_load aggressors_run(struct aggressors *aggressors);

/** Exchange known contents; false, after an error message, if some are wrong.
 */
bool aggressors_validate(struct aggressors *aggressors);

#endif
