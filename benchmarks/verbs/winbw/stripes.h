/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_STRIPES_H
#define SEATRIAL_STRIPES_H

#include <stddef.h>

enum { STRIPES_MOST = 2 };

/** How messages use the rails, in the order of their rows. */
enum stripes_policy {
    STRIPES_SINGLE,  /* all by the first rail */
    STRIPES_STRIPED, /* equal pieces by all rails, above a threshold */
    STRIPES_BOUND,   /* each sender has a rail of its own */
    STRIPES_POLICIES,
};

/** One piece of a message. */
struct stripe {
    int rail;
    size_t offset;
    size_t size_bytes;
};

/** The pieces of a message. */
struct stripes {
    int count;
    struct stripe pieces[STRIPES_MOST];
};

/** A sender: its node (0, 1), its pair, and how many pairs there are. */
struct stripes_sender {
    int side;
    int pair;
    int pairs;
};

/**
 * Cut a message. Bound with one pair, node 0 sends by rail 0 and node 1 by the
 * last one; with more, pair k uses rail k, both ways.
 */
struct stripes stripes_cut(enum stripes_policy policy, int rails,
                           size_t threshold_bytes, size_t size_bytes,
                           struct stripes_sender sender);

#endif
