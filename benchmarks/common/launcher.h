/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_LAUNCHER_H
#define SEATRIAL_LAUNCHER_H

/**
 * The rank that the launcher gave this process, known before MPI_Init by the
 * variables that the usual launchers set; -1 if none did.
 */
long launcher_rank(void);

/** In the same way, its place among the processes of its node, from 0. */
long launcher_local_rank(void);

#endif
