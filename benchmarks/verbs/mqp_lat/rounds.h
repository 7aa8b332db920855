/* SPDX-License-Identifier: Apache-2.0 */
/* The timed loops of mqp_lat. */
#ifndef SEATRIAL_ROUNDS_H
#define SEATRIAL_ROUNDS_H

#include "link.h"

/** How a message goes, in the order of the rows. */
enum rounds_mode { ROUNDS_SEND, ROUNDS_WRITE, ROUNDS_MODES };

/** Messages over the first connections of a link; each has its own slots. */
struct rounds {
    const struct link *link;
    enum rounds_mode mode;
    bool is_first;
    int connections;
    int depth; /* messages on the way of a connection, for throughput */
    size_t size_bytes;
    size_t stride;  /* from a slot to the next */
    size_t receive; /* offset of the slots to receive; those to send are at 0 */
    struct link_request *requests; /* connections */
    int *outstanding;              /* connections */
};

/** Post all receives of a link with this many connections; once. */
void rounds_post_receives(const struct rounds *rounds, int connections);

/** Prepare the requests of all connections; before each of the loops. */
void rounds_prepare(const struct rounds *rounds);

/**
 * Make n rounds. In each, the first end posts a message on every connection,
 * one after the other, and waits for an answer on each; the other end answers.
 * stamps_ns gets start and end of each round, 2 n times, at the first end.
 */
void rounds_latency(const struct rounds *rounds, long n, int64_t *stamps_ns);

/**
 * Send over the connections in turn for a time, with up to `depth` messages on
 * the way of each, until the peer has ended too. Return the messages that
 * arrived; elapsed_us gets the time until the last of them.
 */
long rounds_throughput(const struct rounds *rounds, double time_us,
                       double *elapsed_us);

/** Verify contents both ways over every connection; both ends call. */
bool rounds_validate(const struct rounds *rounds);

#endif
