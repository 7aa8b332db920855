/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PREFLIGHT_H
#define SEATRIAL_PREFLIGHT_H

#include "check.h"

/**
 * Which nodes can take part in a job at all? Every rank says where it is in a
 * line of its own: "start" before MPI_Init, ...
 */
void preflight_start(long pretend_ppn);

/** ... "init" after it, "hello" when it has heard of all the others. */
enum check_exit preflight_run(long pretend_ppn);

#endif
