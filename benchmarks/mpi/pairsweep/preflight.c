/* SPDX-License-Identifier: Apache-2.0 */
#include "preflight.h"

#include "launcher.h"
#include "output.h"
#include "placement.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One write, so that lines of several ranks do not mix. */
static bool preflight_say(const char *stage, int rank, long pretend_ppn)
{
    char line[2 * PLACEMENT_HOST_SIZE] = "";
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char host[PLACEMENT_HOST_SIZE] = "";
    FILE *stream = fmemopen(line, sizeof(line), "w");
    struct output_writer writer = {.stream = stream, .json = true};

    if (stream == NULL || gethostname(name, sizeof(name) - 1) != 0) {
        check_print("preflight: %s", strerror(errno));
        return false;
    }
    placement_host(name, rank, pretend_ppn, host);
    const struct output_field fields[] = {
        output_text("type", NULL, "preflight"),
        output_text("stage", NULL, stage),
        output_text("host", NULL, host),
    };
    output_row(&writer, fields, sizeof(fields) / sizeof(fields[0]));
    (void)fclose(stream);
    if (write(STDOUT_FILENO, line, strlen(line)) != (ssize_t)strlen(line)) {
        check_print("output: write: %s", strerror(errno));
        return false;
    }
    return true;
}

void preflight_start(long pretend_ppn)
{
    long rank = launcher_rank();

    (void)preflight_say("start", rank < 0 ? 0 : (int)rank, pretend_ppn);
}

enum check_exit preflight_run(long pretend_ppn)
{
    int np = 0;
    int rank = 0;

    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &np), "preflight");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "preflight");
    int *ranks = check_allocate((size_t)np * sizeof(*ranks), "hellos");
    bool good = preflight_say("init", rank, pretend_ppn);

    CHECK_MPI(
        MPI_Allgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, MPI_COMM_WORLD),
        "hello of %d ranks", np);
    for (int r = 0; r < np; r++) {
        if (ranks[r] != r) {
            check_print("preflight: rank %d says it is rank %d", r, ranks[r]);
            good = false;
        }
    }
    free(ranks);
    good = good && preflight_say("hello", rank, pretend_ppn);
    return good ? CHECK_PASS : CHECK_FAILED;
}
