/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_FAULT_H
#define SEATRIAL_FAULT_H

#include "check.h"

#include <mpi.h>
#include <stdbool.h>

enum { FAULT_TEXT_SIZE = 512 };

/** The first error of this rank's set-up; no error: CHECK_PASS. */
struct fault {
    enum check_exit code;
    char text[FAULT_TEXT_SIZE]; /* CALL: ARGUMENT: REASON: REMEDY */
};

/** Keep an error, if it is the first one. Return false. */
bool fault_set(struct fault *fault, enum check_exit code, const char *format,
               ...) __attribute__((format(printf, 3, 4)));

/**
 * Return on all ranks of comm alike the exit status of the set-up. If ranks
 * have errors, the first of them prints its own.
 */
enum check_exit fault_agree(MPI_Comm comm, const struct fault *fault);

#endif
