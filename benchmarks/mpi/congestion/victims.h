/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_VICTIMS_H
#define SEATRIAL_VICTIMS_H

#include "settings.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What victims do, as GPCNeT's network_load_test. */
enum victim {
    VICTIM_LATENCY,   /* RR two-sided latency */
    VICTIM_BANDWIDTH, /* RR two-sided bandwidth and a barrier */
    VICTIM_ALLREDUCE, /* multiple allreduce */
    VICTIM_KINDS,
};

/** The work of all victims. */
struct victims_work {
    const struct settings_common *common;
    long rings;
    long window;  /* messages to each neighbour of a window */
    long windows; /* timed windows of a ring */
    uint64_t seed;
};

/** A victim's neighbours, buffers and samples. */
struct victims {
    const struct victims_work *work;
    MPI_Comm side;  /* all victims */
    MPI_Comm slice; /* the ranks of a ring, one of each node */
    int rank;       /* in the slice */
    int ranks;
    int left;
    int right;
    char *send[2];    /* to the left, to the right */
    char *receive[2]; /* from the left, from the right */
    MPI_Request *requests;
    int64_t *stamps_ns; /* of a ring */
    double *samples_us; /* of all rings */
    size_t n;
    double rates; /* sum of the mean rates of all rings, in 1/us */
    long rings;
};

/** Mean and 99th percentile of all victims: us, or MB/s of a rank. */
struct victims_result {
    double mean;
    double p99;
    long long n;
};

/** Return the bytes that the buffers of a rank take. */
double victims_bytes(const struct victims_work *work);

void victims_create(const struct victims_work *work, MPI_Comm side,
                    MPI_Comm slice, struct victims *victims);
void victims_free(struct victims *victims);

/** Return the bytes of one message of a victim. */
int victims_size_bytes(enum victim victim);

/** Take the samples of a victim; all victims must call. */
void victims_measure(struct victims *victims, enum victim victim);

/** Summarise the samples; all victims must call, and get the same. */
struct victims_result victims_summarise(struct victims *victims,
                                        enum victim victim);

/** Exchange known contents; false, after an error message, if some are wrong.
 */
bool victims_validate(struct victims *victims, enum victim victim);

#endif
