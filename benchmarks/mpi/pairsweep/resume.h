/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_RESUME_H
#define SEATRIAL_RESUME_H

#include "nodes.h"
#include "output.h"
#include "record.h"

#include <stdbool.h>
#include <stdio.h>

/** Reads what an earlier sweep has written, to go on in the same file. */
struct resume {
    const char *path;
    FILE *stream; /* to read and to append; written to from RECORD_END on */
    const struct nodes *nodes;
    const struct output_field *settings; /* that all its runs must have */
    size_t settings_count;
    int rails;
    /* The reader's own, from zero: */
    char *line;
    size_t size;
    long number;
    long long offset; /* of the line's end */
    bool has_run;
    bool has_pairs;
    bool has_own_host;
    long passed_over;
    char error[RECORD_ERROR_SIZE];
};

/**
 * Read up to the next pair of this run's nodes that has been measured. Pairs
 * with other nodes are counted in passed_over. At the end a last line that is
 * only half written is cut off. An error is: a line that pairsweep does not
 * write, a run with other settings, pairs of nodes none of which is in this
 * run.
 */
enum record_found resume_next(struct resume *resume, struct record *record);

void resume_free(struct resume *resume);

#endif
