/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_RAILS_H
#define SEATRIAL_RAILS_H

#include <stdbool.h>
#include <stddef.h>

enum { RAILS_NAME_SIZE = 128, RAILS_TEXT_SIZE = 512 };

/** The number of names in A,B,..; NULL has one rail without a name. */
int rails_count(const char *rails);

/** The name of a rail, in room; NULL if it has none. */
const char *rails_name(const char *rails, int rail, char room[RAILS_NAME_SIZE]);

/** Return whether every name is valid: not empty, and not too long. */
bool rails_are_good(const char *rails);

/**
 * The rail of this process, before MPI_Init: its place on the node as the
 * launcher tells it. Pretended nodes have places too. -1: no launcher tells.
 */
int rails_own(const char *rails);

#endif
