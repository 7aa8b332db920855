/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAIRS_H
#define SEATRIAL_PAIRS_H

#include "p2p.h"
#include "placement.h"
#include "settings.h"
#include "stats.h"

#include <mpi.h>
#include <stdbool.h>

/** Where the two ranks of a pair live. */
enum pairs_scope {
    PAIRS_WITHIN,  /* rank i of either half of the ranks of the first node */
    PAIRS_BETWEEN, /* rank i of the first node, rank i of the second */
    PAIRS_SCOPES,
};

/** Memory that all pairs of a run use, one after the other. */
struct pairs_room {
    struct p2p p2p; /* without communicator and peer */
    char *send;
    char *receive;
    double *samples; /* of all pairs, on rank 0 */
};

/** The repetitions of the operations of a size. */
struct pairs_loops {
    const struct settings_common *common; /* iterations: round trips */
    long windows;                         /* instead of them, for bandwidth */
};

/** Pairs that measure at once; most ranks may have no part in them. */
struct pairs {
    int count;
    bool is_root;    /* rank 0, the first of the first pair */
    struct p2p p2p;  /* its comm: the first ranks, then their peers, in order */
    MPI_Comm firsts; /* the first ranks of all pairs */
    double *samples;
};

/** The numbers of all pairs together, on rank 0. */
struct pairs_result {
    struct stats_summary times; /* us, of half round trips or of windows */
    double slowest_us;          /* their mean in the slowest pair */
    double start_spread_us;     /* from the first to the last pair to begin */
    double mb_per_s;            /* of all pairs; NAN for the latency */
    double msg_per_s;
};

/**
 * The number of pairs that there is room for: 0, after an error message on rank
 * 0, if the ranks are placed in another way. Pairs between nodes take two nodes
 * with as many ranks on each, the lower half of the ranks on the first; pairs
 * within take an even number of ranks on the first node.
 */
int pairs_available(const struct placement *placement, enum pairs_scope scope);

/** Bytes that pairs_room_create takes on a rank of MPI_COMM_WORLD. */
double pairs_room_bytes(const struct pairs_loops *loops, long window, int rank,
                        int most_pairs);
void pairs_room_create(struct pairs_room *room, const struct pairs_loops *loops,
                       long window, int rank, int most_pairs);
void pairs_room_free(struct pairs_room *room);

/** Join all ranks of MPI_COMM_WORLD that belong to the first count pairs. */
void pairs_create(const struct placement *placement, enum pairs_scope scope,
                  int count, const struct pairs_room *room,
                  struct pairs *pairs);
void pairs_free(struct pairs *pairs);

/**
 * Measure, all pairs at once, as osu_multi_lat and osu_mbw_mr do: bandwidth is
 * the bytes of all pairs over the mean time of a pair. Times are as OSU takes
 * them too, with one reading of the clock in each operation. All ranks of
 * MPI_COMM_WORLD must call.
 */
struct pairs_result pairs_measure(const struct pairs *pairs,
                                  const struct pairs_loops *loops,
                                  const struct p2p_work *work);

/** Verify contents; all ranks of MPI_COMM_WORLD must call and are told. */
bool pairs_validate(const struct pairs *pairs, int size_bytes);

#endif
