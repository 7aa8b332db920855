/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_RECORD_H
#define SEATRIAL_RECORD_H

/** The state of a pair in a file. */
enum record_kind {
    RECORD_WANTED,   /* measure it, on every rail */
    RECORD_DONE,     /* it has been measured, or was found to hang */
    RECORD_RETESTED, /* it has been measured alone */
};

struct record {
    int kind;
    int source; /* nodes */
    int destination;
    int rail;
    int round;        /* in which a file wants it, from 1; 0: no matter which */
    float latency_us; /* not a number: none */
    float bw_mb_per_s; /* of the worse direction */
};

/** The result of a reader of a file. */
enum record_found {
    RECORD_FOUND,
    RECORD_END,
    RECORD_ERROR, /* the reader holds the reason */
};

enum { RECORD_ERROR_SIZE = 512 };

#endif
