/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_MACHINE_H
#define SEATRIAL_MACHINE_H

#include <stddef.h>

/** Bytes that can be had without swapping, as the kernel estimates them. */
double machine_available_bytes(void);

/** The size of the largest cache that this CPU uses. */
size_t machine_largest_cache_bytes(void);

#endif
