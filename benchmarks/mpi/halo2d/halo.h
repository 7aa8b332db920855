/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_HALO_H
#define SEATRIAL_HALO_H

#include <mpi.h>
#include <stddef.h>

/** The periodic grid of processes; neighbours[1][1] is the rank itself. */
struct halo_grid {
    MPI_Comm comm;
    int np;
    int px; /* processes west to east */
    int py; /* processes north to south */
    int rank;
    int neighbours[3][3]; /* [north, own, south][west, own, east] */
};

/** One direction of a phase: an edge goes out, the opposite halo comes in. */
struct halo_transfer {
    double *source;
    int destination;
    double *target;
    int origin;
    int tag;
};

/** Two opposite directions, which may be under way at the same time. */
struct halo_phase {
    MPI_Datatype type; /* an edge: a row, or a column with its corners */
    int count;         /* 1, or 0 in an empty sub-domain */
    struct halo_transfer transfers[2];
};

enum { HALO_PHASES = 2, HALO_TRANSFERS = 2 };

struct halo_protocol;

/** A sub-domain of n x n doubles and its halo of one cell on every side. */
struct halo {
    const struct halo_grid *grid;
    int n;
    size_t stride; /* n + 2 */
    double *cells; /* row 0 and n + 1, column 0 and n + 1 are the halo */
    struct halo_phase phases[HALO_PHASES]; /* north-south, then east-west */
    const struct halo_protocol *protocol;
    void *state; /* what the protocol has set up */
};

/** A way to exchange all four edges and the corners. */
struct halo_protocol {
    void (*set_up)(struct halo *halo); /* all ranks; NULL: nothing to prepare */
    void (*exchange)(const struct halo *halo);
    void (*tear_down)(struct halo *halo); /* NULL if set_up is */
};

/** The protocols, and in the same order their names, ended with NULL. */
extern const struct halo_protocol HALO_PROTOCOLS[];
extern const char *const HALO_PROTOCOL_NAMES[];

/** Create the grid of all processes in comm, dimensions by MPI_Dims_create. */
void halo_grid_create(MPI_Comm comm, struct halo_grid *grid);
void halo_grid_free(struct halo_grid *grid);

/** Bytes that a sub-domain with its halo occupies. */
double halo_size_bytes(long n);

/** Create a sub-domain on every rank, ready for exchanges by the protocol. */
void halo_create(const struct halo_grid *grid, int n,
                 const struct halo_protocol *protocol, struct halo *halo);
void halo_free(struct halo *halo);

/**
 * Exchange contents that depend on rank, place and step, and compare every
 * halo cell, for some steps. Returns the number of wrong cells on all ranks; a
 * rank that finds one prints the first.
 */
long halo_validate(struct halo *halo);

#endif
