/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CHECK_H
#define SEATRIAL_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/** Exit status of every program. */
enum check_exit {
    CHECK_PASS = 0,
    CHECK_FAILED = 1, /* validation, MPI or output failed */
    CHECK_USAGE = 2,  /* wrong options, too few processes or memory */
};

/**
 * Call MPI; if it fails, name program, rank, host, call, what it worked on (a
 * printf format and values) and MPI's own text, and abort the job.
 */
#define CHECK_MPI(call, ...)                                                   \
    do {                                                                       \
        int check_status_ = (call);                                            \
        if (check_status_ != MPI_SUCCESS) {                                    \
            check_mpi_failed(check_status_, #call, __VA_ARGS__);               \
        }                                                                      \
    } while (0)

_Noreturn void check_mpi_failed(int status, const char *call,
                                const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Print an error with program, rank and host on stderr. */
void check_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Print an error as check_print does, and abort the job. */
_Noreturn void check_abort(enum check_exit code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Wait for a request without spinning: what is measured must not notice. */
void check_wait_quietly(MPI_Request *request, long poll_ns);

/** Call a function with the error before check_abort ends the job. */
void check_before_abort(void (*function)(const char *error));

/** Allocate zeroed memory aligned to pages, or abort. Free with free(). */
void *check_allocate(size_t size_bytes, const char *purpose);

/**
 * Return on all ranks alike whether every node has the memory that its ranks
 * want together; the first rank of a node that has not prints an error.
 */
bool check_memory(MPI_Comm comm, double size_bytes);

/**
 * Return whether this process is the one that prints before MPI_Init: rank 0 by
 * the variables of the usual launchers, or a process without a launcher.
 */
bool check_is_first_process(void);

#endif
