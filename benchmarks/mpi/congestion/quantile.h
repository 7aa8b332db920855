/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_QUANTILE_H
#define SEATRIAL_QUANTILE_H

#include <mpi.h>
#include <stddef.h>

/**
 * Return the least sample of all ranks that this share of all samples does not
 * exceed, as GPCNeT counts percentiles, but exactly: nothing is binned, and no
 * rank holds more than its own samples. They must be sorted, and 0 or more; all
 * ranks of comm must call, and some have a sample.
 */
double quantile_of_all(MPI_Comm comm, const double *sorted, size_t n,
                       double share);

/** Return the mean of the samples of all ranks. */
double quantile_mean(MPI_Comm comm, const double *samples, size_t n);

#endif
