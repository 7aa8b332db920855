/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of mqp_lat: the program, and how it measures a row. */
#ifndef SEATRIAL_MQP_LAT_H
#define SEATRIAL_MQP_LAT_H

#include "placement.h"
#include "program.h"
#include "rounds.h"
#include "stats.h"
#include "team.h"

/** What a row measures, in the order of the rows. */
enum mqp_test { MQP_LATENCY, MQP_THROUGHPUT, MQP_TESTS };

struct settings {
    struct settings_common common;
    struct verbs_settings verbs;
    struct options_span connections;
    size_t mode; /* enum rounds_mode, or all */
    size_t test; /* enum mqp_test, or all */
    long depth;
    long duration_ms;
    long pretend_ppn;
};

/** A run on one rank. */
struct run {
    const struct program *program;
    const struct settings *settings;
    const struct placement *placement;
    struct team team;
    struct link link;
    struct rounds rounds; /* without mode, size and connections */
    int64_t *stamps_ns;
    double *samples;
    double clock_us; /* what one reading of the clock costs */
};

/** The numbers of a row, on rank 0. */
struct result {
    struct stats_summary times; /* us, normalised; n 0: throughput */
    double mb_per_s;            /* both ways; NAN: latency */
    double msg_per_s;
};

/** Measure a row; both ranks call, rank 0 has the result. */
struct result mqp_measure(const struct run *run, const struct rounds *rounds,
                          enum mqp_test test);

/** Verify contents; both ranks call and are told. */
bool mqp_validate(const struct rounds *rounds);

#endif
