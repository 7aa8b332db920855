/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_FILES_H
#define SEATRIAL_FILES_H

#include "nodes.h"
#include "pairsweep.h"
#include "plan.h"
#include "rows.h"

#include <stdbool.h>
#include <stdio.h>

/**
 * Open what the rows go to: a file, or stdout. All ranks get the same answer;
 * rank 0 gets the stream, or prints what is wrong.
 */
bool files_open_output(const struct settings *settings, FILE **stream_p);

/** Want the pairs of --pairs, or all; of them only those of --rounds. */
bool files_read_pairs(const struct settings *settings,
                      const struct nodes *nodes, struct plan *plan);

/** Keep what the file of --resume has; rows are rank 0's, NULL elsewhere. */
bool files_read_resume(const struct settings *settings,
                       const struct nodes *nodes, struct rows *rows,
                       struct plan *plan);

#endif
