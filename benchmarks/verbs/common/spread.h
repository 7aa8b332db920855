/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SPREAD_H
#define SEATRIAL_SPREAD_H

#include <stddef.h>
#include <stdint.h>

/**
 * Keep the samples of the operations whose ranks left the barrier within
 * limit_ns of each other; 0 keeps all. first_ns and last_ns are the times of n
 * operations at which the first and the last rank left; samples are those of
 * `pairs` pairs, n of each, pair by pair. What is kept moves to the front.
 * Return the number of operations kept.
 */
size_t spread_keep(const int64_t *first_ns, const int64_t *last_ns, size_t n,
                   int64_t limit_ns, double *samples, size_t pairs);

#endif
