/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_P2P_H
#define SEATRIAL_P2P_H

#include "settings.h"
#include "stats.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct p2p;

/** One timed loop: stamps_ns[0] is its start, the others the ends. */
typedef void (*p2p_loop)(const struct p2p *p2p, long window, int size,
                         long iterations);

/**
 * One end of a pair of ranks. Messages use the slots in turn: with one slot it
 * is always the same buffer.
 */
struct p2p {
    MPI_Comm comm; /* all ranks that measure at once, paired or not */
    int peer;      /* in comm; MPI_PROC_NULL: no pair, waits in barriers only */
    bool is_first; /* sends first, times, and has the result */
    char *const *send; /* slots pointers */
    char *const *receive;
    size_t slots;
    MPI_Request *requests; /* 2 x window, for bandwidth */
    MPI_Status *statuses;  /* window */
    int64_t *stamps_ns;    /* start and ends of the longest loop */
    double *samples;       /* as many */
    /** Instead of MPI_Barrier(comm) before a timed loop; NULL: that. */
    void (*barrier)(void *barrier_context);
    void *barrier_context;
    /** Other messages than MPI's: loops by enum p2p_test; NULL: MPI's. */
    const p2p_loop *loops;
    bool (*validate)(const struct p2p *p2p, int size_bytes);
    void *transport; /* of both */
    bool own_budget; /* the pair's time limits it, not the slowest of comm */
};

enum { P2P_PILOT = 3 };

/** Bandwidth in MB/s (10^6 B/s) of one pair. */
struct p2p_bandwidth {
    double mb_per_s;              /* all bytes over the whole time */
    struct stats_summary windows; /* of single windows */
};

/**
 * Pair the two ranks of comm; rank 0 is the first. False, after an
 * error message, if they are not exactly two.
 */
bool p2p_pair(MPI_Comm comm, struct p2p *p2p);

/** Room for stamps, samples and requests; the slots are the caller's. */
void p2p_create(struct p2p *p2p, const struct settings_common *common,
                long window);
void p2p_free(struct p2p *p2p);

/** The largest number of bytes that p2p_create and these slots take per rank.
 */
double p2p_size_bytes(const struct settings_common *common, long window,
                      double slots);

enum p2p_test {
    P2P_LATENCY,        /* a message and its answer, as osu_latency */
    P2P_LATENCY_POSTED, /* the same, receives posted before their messages */
    P2P_STREAM,         /* a window and a short reply, as osu_bw */
    P2P_BIDIRECTIONAL,  /* a window in both directions, as osu_bibw */
};

/** The operation of all pairs at once. */
struct p2p_work {
    enum p2p_test test;
    int size_bytes;
    long window; /* messages; of no meaning to the latency */
    /* Start every operation, not only the first one, together: after barriers
     * of comm, as osu_multi_lat and osu_mbw_mr do. Each begins at slot 0. */
    bool sync_each;
};

/**
 * Time single operations: whole round trips, or windows. Warm-up, then a
 * barrier of comm, then the timed loop; all ranks of comm must call and get the
 * number of operations. The first rank of a pair has their times in us in
 * samples, in their order, and in stamps_ns[0] when the loop (with sync_each
 * the last operation) began. They contain one reading of the clock.
 */
long p2p_times(const struct p2p *p2p, const struct settings_common *common,
               const struct p2p_work *work);

/**
 * Half the round trip of single messages in us, less the cost of reading the
 * clock, of blocking MPI_Send and MPI_Recv. All ranks of comm must call. The
 * result is on the first rank of each pair (n is 0 elsewhere).
 */
struct stats_summary p2p_latency(const struct p2p *p2p,
                                 const struct settings_common *common,
                                 int size_bytes);

/**
 * The same, but every receive is posted before its message is sent: what it
 * costs to post one, and to find it when the message comes, is all in the time.
 */
struct stats_summary p2p_latency_posted(const struct p2p *p2p,
                                        const struct settings_common *common,
                                        int size_bytes);

/**
 * Bandwidth from the first rank to the second as osu_bw measures it: a window
 * of MPI_Isend, MPI_Waitall, and a reply of one byte once the window is
 * received.
 */
struct p2p_bandwidth p2p_stream(const struct p2p *p2p,
                                const struct settings_common *common,
                                long window, int size_bytes);

/** Both directions at once, summed, as osu_bibw measures it. */
struct p2p_bandwidth p2p_bidirectional(const struct p2p *p2p,
                                       const struct settings_common *common,
                                       long window, int size_bytes);

/**
 * Exchange verified contents through every slot once. All ranks of comm get the
 * same answer; a rank that finds a wrong byte prints it.
 */
bool p2p_validate(const struct p2p *p2p, int size_bytes);

/** The same without the others of comm; tells what this rank received. */
bool p2p_validate_own(const struct p2p *p2p, int size_bytes);

#endif
