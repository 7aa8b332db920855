/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of winbw: the program, and how it measures a row. */
#ifndef SEATRIAL_WINBW_H
#define SEATRIAL_WINBW_H

#include "program.h"
#include "stats.h"
#include "window.h"

/** Directions of the data, in the order of their rows. */
enum direction { ONE_WAY, BOTH_WAYS, DIRECTIONS };

/** The options of winbw. */
struct settings {
    struct settings_common common;
    struct verbs_settings verbs;
    long window;
    size_t direction;
    size_t policy;
    long threshold;
    long pretend_ppn;
};

/** A run on one rank. */
struct run {
    const struct program *program;
    const struct settings *settings;
    const struct placement *placement;
    struct team team;
    struct link links[PORT_MAX_RAILS];
    struct window_tally tally;
    size_t receive; /* offset of what is received; sent is from 0 */
    MPI_Comm firsts;
    int64_t *stamps_ns;
    double *samples; /* of all pairs, on rank 0 */
};

/** What a row measures. */
struct work {
    enum stripes_policy policy;
    enum direction direction;
    size_t size_bytes;
};

/** The numbers of a row, on rank 0. */
struct result {
    struct stats_summary times;
    double interval_us;
};

/** Return the end of the windows of a row that this rank is. */
struct window winbw_window(struct run *run, const struct work *work);

/** Measure a row; all ranks call, rank 0 has the result. */
struct result winbw_measure(const struct run *run, const struct window *window);

/** Send a window with known contents in the way that was measured. All ranks
 * call and are told. */
bool winbw_validate(const struct run *run, const struct window *window,
                    const struct work *work);

#endif
