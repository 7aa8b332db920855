/* SPDX-License-Identifier: Apache-2.0 */
/* The timed loop of winbw. */
#ifndef SEATRIAL_WINDOW_H
#define SEATRIAL_WINDOW_H

#include "stripes.h"
#include "team.h"

/** What came and is not yet used; a fast peer is a window ahead at times. */
struct window_tally {
    long sent;
    long data;
    long replies;
};

/** One end of a pair of ranks that exchange windows. */
struct window {
    const struct link *links; /* one for each rail */
    int rails;
    size_t send; /* offsets in the links' memory */
    size_t receive;
    long messages; /* of a window */
    bool sends;
    bool receives;
    struct stripes own;  /* the pieces of the messages it sends */
    struct stripes peer; /* and receives */
    struct window_tally *tally;
};

/** Post all receives that the rails can hold; once, before the first window. */
void window_post_receives(const struct link *links, int rails);

/**
 * Exchange n windows. A window is messages posted back to back, by RDMA write;
 * the last one tells the receiver, which replies by an empty message. Where a
 * message is cut, an empty message follows each piece. stamps_ns[0] is the
 * start, the others are the ends.
 */
void window_loop(const struct window *window, long n, int64_t *stamps_ns);

#endif
