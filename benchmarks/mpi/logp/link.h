/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_LOGP_LINK_H
#define SEATRIAL_LOGP_LINK_H

#include "p2p.h"
#include "settings.h"
#include "stats.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct logp_settings {
    struct settings_common common; /* iterations: the most samples */
    long least;                    /* samples */
    long eps_percent;
    long confidence_percent;
    long flood; /* the most messages of a flood */
    long inserts;
    long delay_us;
    long pretend_ppn;
    size_t send;    /* index into LOGP_SENDS */
    size_t receive; /* index into LOGP_RECEIVES */
};

/** Ways to send and receive messages, by name; the lists end with NULL. */
extern const char *const LOGP_SENDS[];
extern const char *const LOGP_RECEIVES[];

/** One of the two processes: rank 0 leads, rank 1 is its mirror. */
struct logp_link {
    const struct logp_settings *settings;
    struct stats_rule rule;
    struct p2p p2p; /* one slot, for messages and for verified ones */
    char *send;
    char *receive;
    MPI_Request *requests; /* of a flood */
    double *samples[2];    /* of the loop that runs, in us */
    double overhead_us;    /* of reading the clock */
    int64_t pause_ns;      /* from the empty message to receiving the answer */
    int64_t delay_ns;      /* before every answer of the mirror */
};

/**
 * A loop of count messages on one of the two sides. On rank 0 it leaves its
 * times from place first on.
 */
typedef void (*logp_loop)(const struct logp_link *link, int size, long count,
                          long first);

/** The actions of both sides for one kind of sample. */
struct logp_exchange {
    logp_loop lead;
    logp_loop mirror;
    int series; /* of samples that it leaves */
};

/** By index of the settings: os and RTT; or; a flood, which leaves none. */
extern const struct logp_exchange LOGP_SENDING[];
extern const struct logp_exchange LOGP_RECEIVING[];
extern const struct logp_exchange LOGP_FLOODING[];

enum { LOGP_PILOT = 3 }; /* exchanges that there is always room for */

/** The largest number of bytes that a process allocates. */
double logp_link_size_bytes(const struct logp_settings *settings);

/** Connect the ranks 0 and 1 of comm, which has no others. */
void logp_link_create(MPI_Comm comm, const struct logp_settings *settings,
                      struct logp_link *link);
void logp_link_free(struct logp_link *link);

/** Rank 0 decides, the mirror hears it. */
long logp_agree(const struct logp_link *link, long value);

/** Run exchanges, both sides at once. Return their time in us. */
double logp_run(const struct logp_link *link,
                const struct logp_exchange *exchange, int size, long count,
                long first);

#endif
