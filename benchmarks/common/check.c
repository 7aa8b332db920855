/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "launcher.h"
#include "machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHECK_PAGE = 4096, CHECK_TEXT_SIZE = 1024, CHECK_READ_NS = 200000000 };

static void check_vprint(const char *format, va_list arguments)
{
    char text[CHECK_TEXT_SIZE];
    char host[256] = "unknown host";
    int has_rank = 0;
    int rank = -1;

    (void)vsnprintf(text, sizeof(text), format, arguments);
    (void)gethostname(host, sizeof(host) - 1);
    (void)MPI_Initialized(&has_rank);
    if (has_rank) {
        (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    /* One call, so that lines of several ranks do not mix. */
    (void)fprintf(stderr, "%s: rank %d on %s: %s\n",
                  program_invocation_short_name, rank, host, text);
}

void check_print(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    check_vprint(format, arguments);
    va_end(arguments);
}

void check_wait_quietly(MPI_Request *request, long poll_ns)
{
    const struct timespec poll = {.tv_nsec = poll_ns};
    int done = 0;

    for (;;) {
        CHECK_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE), "waiting");
        if (done) {
            return;
        }
        (void)nanosleep(&poll, NULL);
    }
}

static void (*check_last_word)(const char *error);

void check_before_abort(void (*function)(const char *error))
{
    check_last_word = function;
}

void check_abort(enum check_exit code, const char *format, ...)
{
    char text[CHECK_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    check_print("%s", text);
    if (check_last_word != NULL) {
        check_last_word(text);
    }
    /* Hydra, MPICH's launcher, loses what it has not read before an abort. */
    (void)nanosleep(&(struct timespec){.tv_nsec = CHECK_READ_NS}, NULL);
    (void)MPI_Abort(MPI_COMM_WORLD, (int)code);
    abort();
}

void check_mpi_failed(int status, const char *call, const char *format, ...)
{
    char argument[CHECK_TEXT_SIZE / 4];
    char reason[MPI_MAX_ERROR_STRING] = "unknown MPI error";
    int length = 0;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(argument, sizeof(argument), format, arguments);
    va_end(arguments);
    (void)MPI_Error_string(status, reason, &length);
    check_abort(CHECK_FAILED, "%.*s: %s: %s", (int)strcspn(call, "("), call,
                argument, reason);
}

void *check_allocate(size_t size_bytes, const char *purpose)
{
    size_t pages = size_bytes / CHECK_PAGE + 1;
    void *memory = aligned_alloc(CHECK_PAGE, pages * CHECK_PAGE);

    if (memory == NULL) {
        check_abort(CHECK_USAGE, "aligned_alloc: %zu bytes for %s: %s",
                    pages * CHECK_PAGE, purpose, strerror(errno));
    }
    memset(memory, 0, pages * CHECK_PAGE);
    return memory;
}

bool check_memory(MPI_Comm comm, double size_bytes)
{
    MPI_Comm node;
    int node_rank = 0;
    double wanted = 0.0;
    int enough = 1;

    CHECK_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                                  &node),
              "ranks of a node");
    CHECK_MPI(MPI_Comm_rank(node, &node_rank), "ranks of a node");
    CHECK_MPI(MPI_Reduce(&size_bytes, &wanted, 1, MPI_DOUBLE, MPI_SUM, 0, node),
              "memory of a node");
    CHECK_MPI(MPI_Comm_free(&node), "ranks of a node");
    if (node_rank == 0) {
        double available = machine_available_bytes();

        enough = wanted <= available;
        if (!enough) {
            check_print("the ranks of this node need %.0f MiB of memory, "
                        "available are %.0f MiB: choose a smaller size",
                        wanted / 0x1p20, available / 0x1p20);
        }
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &enough, 1, MPI_INT, MPI_MIN, comm),
              "memory of all nodes");
    return enough != 0;
}

bool check_is_first_process(void)
{
    return launcher_rank() <= 0;
}
