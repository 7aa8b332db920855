/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_BUDGET_H
#define SEATRIAL_BUDGET_H

#include "settings.h"

#include <mpi.h>

/** As many of the wanted iterations as there is time for, at least one. */
long budget_fit(double iteration_us, long wanted, double budget_us);

/**
 * As many of the wanted iterations as there is time for, at least one; the same
 * on all ranks of comm, after the slowest of their iteration_us.
 */
long budget_iterations(MPI_Comm comm, double iteration_us, long wanted,
                       double budget_us);

/** Warm-up shrinks with the iterations, so that its share of the time stays. */
long budget_warmup(const struct settings_common *common, long iterations);

/** Settings of a loop over a number of windows; warm-up keeps its share. */
struct settings_common budget_windows(const struct settings_common *common,
                                      long windows);

/** Settings that have the larger loop of both, to allocate for. */
struct settings_common budget_longest(const struct settings_common *common,
                                      long windows);

#endif
