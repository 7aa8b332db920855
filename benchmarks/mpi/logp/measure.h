/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_LOGP_MEASURE_H
#define SEATRIAL_LOGP_MEASURE_H

#include "link.h"

#include <stdbool.h>
#include <stddef.h>

/** A time with its uncertainty, in us. */
struct logp_estimate {
    double p50;
    double mean;
    double half; /* of the interval of the mean; INFINITY of a single sample */
    size_t n;
};

/** The parameters at one message size. */
struct logp_point {
    int size_bytes;
    bool is_inserted;
    struct logp_estimate os;  /* the sender is busy */
    struct logp_estimate or ; /* the receiver is busy */
    struct logp_estimate rtt; /* the message, and an empty one back */
    struct logp_estimate g;   /* logp_gap, left to the caller */
    double g_flood_us;        /* measured by saturation */
    double g_flood_change; /* in the last doubling, a part; NAN: no doubling */
    long g_flood_n;        /* messages of the last flood */
    bool is_precise;       /* os, or and rtt, as settings ask */
    bool is_valid;
};

/** On rank 0: measure a size. empty is the point of size 0, or this point. */
void logp_measure(struct logp_link *link, int size_bytes,
                  const struct logp_point *empty, struct logp_point *point);

/** On rank 0: let the mirror go. */
void logp_finish(struct logp_link *link);

/** On rank 1: mirror what rank 0 measures. False if contents were wrong. */
bool logp_mirror(struct logp_link *link);

/** The gap from round trips; that of size 0 is the one of the flood. */
struct logp_estimate logp_gap(const struct logp_point *empty,
                              const struct logp_point *point);

/** The network's latency RTT(0) / 2 - g(0) in us, by medians; may be below 0.
 */
double logp_latency_us(const struct logp_point *empty);

#endif
