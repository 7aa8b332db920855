/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAIR_H
#define SEATRIAL_PAIR_H

#include "nodes.h"
#include "p2p.h"
#include "pairsweep.h"
#include "watchdog.h"

#include <mpi.h>
#include <stdbool.h>

/** Two nodes in a round of the schedule. */
struct pair_meeting {
    int source; /* -1: this rank has no pair and waits in the barriers */
    int destination;
    int rail;
    int round; /* from 1 */
    int at_once;
    bool quiet; /* no other rank measures or waits in barriers */
};

/** Four barriers cut the time of a pair into legs: no rank begins the next one
    before all pairs are here. */
enum { PAIR_LEGS = 5 };

/** The numbers of a pair; travels between ranks as bytes. */
struct pair_result {
    struct pair_meeting meeting;
    double start_time; /* UTC seconds */
    double start_spread_us;
    struct stats_summary latency_us;
    double bw_mb_per_s;
    double bw_back_mb_per_s;
    long windows; /* of the direction that made fewer */
    bool valid;
    double leg_us[PAIR_LEGS]; /* without waiting in the barriers */
};

/** One rank's end of the pairs, one after the other in the same buffers. */
struct pair_bench {
    const struct settings *settings;
    const struct nodes *nodes;
    struct settings_common latency; /* settings of p2p for each phase */
    struct settings_common bandwidth;
    struct p2p p2p;
    char *send;
    char *receive;
    /* Of the meeting: */
    bool quiet;
    enum watchdog_phase phase;
    double leg_us[PAIR_LEGS];
    int legs;         /* of these are over */
    int64_t leg_ns;   /* when this one began */
    int64_t start_ns; /* when it left the first barrier */
    double start_time;
};

/** Bytes that a rank takes. */
double pair_size_bytes(const struct settings *settings);

/** Ranks of comm are the nodes. */
void pair_create(struct pair_bench *bench, const struct settings *settings,
                 const struct nodes *nodes, MPI_Comm comm);
void pair_free(struct pair_bench *bench);

/**
 * Measure a pair; all ranks of comm must call, but only the pair in a quiet
 * meeting. The result is on the rank of the source.
 */
struct pair_result pair_measure(struct pair_bench *bench,
                                const struct pair_meeting *meeting);

#endif
