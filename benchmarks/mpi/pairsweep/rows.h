/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_ROWS_H
#define SEATRIAL_ROWS_H

#include "nodes.h"
#include "pair.h"
#include "report.h"

/** The written rows; rank 0 alone has one. */
struct rows {
    struct report report;
    const struct settings *settings;
    const struct nodes *nodes;
    double start_time;
    int64_t start_ns;
};

/** Counts of a run, for its last row. */
struct rows_counts {
    long measured;
    long suspects;
    long retested;
    long rounds;
};

/** Be ready to write of a run; program and settings are for all its rows. */
void rows_open(struct rows *rows, FILE *stream, const struct program *program,
               const struct settings *settings, const struct nodes *nodes,
               int np, bool is_json);

/** Add the settings of the run's row that all runs in a file have. */
void rows_add_settings(const struct rows *rows, struct report_row *row);

/** Begin the data: how many pairs are to measure, how many were before. */
void rows_run(struct rows *rows, int rounds, long pairs, long resumed);

/** Write a pair. */
void rows_pair(struct rows *rows, const struct pair_result *result);

/** Write the end; the overhead of a round may be missing (NaN). */
void rows_end(struct rows *rows, const struct rows_counts *counts,
              double round_overhead_us);

#endif
