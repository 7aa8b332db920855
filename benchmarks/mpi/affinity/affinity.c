/* SPDX-License-Identifier: Apache-2.0 */
/* Show where ranks and their threads may run, and where they do. */
#include "check.h"
#include "clock.h"
#include "node_map.h"
#include "options.h"
#include "output.h"
#include "placement.h"
#include "report.h"
#include "threads.h"
#include "version.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const char NAME[] = "affinity";
static const char PURPOSE[] =
    "Placement of ranks and threads, seen from inside: the CPUs that each "
    "thread of\neach rank may use, those it runs on while it computes and "
    "sleeps, their NUMA nodes,\nand the adapters there. OMP_NUM_THREADS is the "
    "number of threads of a rank.";

enum { MAX_TIME_MS = 600000, HEAD_FIELDS = 9 };

struct settings {
    long time_ms;
    bool ready;
    bool json;
};

static const struct settings DEFAULTS = {.time_ms = 200};

static const struct options_row OPTIONS[] = {
    {"time", 't', OPTIONS_INTEGER, offsetof(struct settings, time_ms), 1,
     MAX_TIME_MS, NULL, "MS", "time for which threads run"},
    {"ready", 0, OPTIONS_FLAG, offsetof(struct settings, ready), 0, 0, NULL,
     NULL, "end when all ranks are past MPI_Init; show the time of day"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct settings, json), 0, 0, NULL, NULL,
     "write JSON Lines instead of a table"},
    {.name = NULL},
};

/** The lines of a rank, which rank 0 prints. */
struct lines {
    char *text;
    size_t size;
    struct output_writer writer;
};

static double seconds_of_day(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report_run(struct output_writer *writer,
                       const struct settings *settings,
                       const struct placement *placement, double ready_s)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";

    report_describe_mpi(mpi);
    const struct output_field fields[HEAD_FIELDS] = {
        output_text("type", NULL, "run"),
        output_text("program", NULL, NAME),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_text("mpi", NULL, mpi),
        output_integer("np", NULL, placement->np),
        output_integer("nodes", NULL, placement->nodes),
        output_integer("time_ms", NULL, settings->time_ms),
        output_real("ready_s", NULL, ready_s),
    };

    if (settings->json) {
        output_row(writer, fields, HEAD_FIELDS);
    }
    output_comment(writer, "Seatrial %s %s (%s), %s", NAME, VERSION, COMMIT,
                   mpi);
    output_comment(writer, "[ processes: %d ] [ nodes: %d ] [ ready: %.6f ]",
                   placement->np, placement->nodes, ready_s);
}

static void report_node(struct output_writer *writer, const char *host,
                        const struct node_map *map)
{
    const struct output_field fields[] = {
        output_text("type", NULL, "node"),
        output_text("node", NULL, host),
        output_text("cores", NULL, map->cores),
        output_text("sockets", NULL, map->sockets),
        output_text("numa", NULL, map->numa),
        output_text("hcas", NULL, map->hcas),
    };

    output_row(writer, fields, sizeof(fields) / sizeof(fields[0]));
}

static void report_thread(struct output_writer *writer,
                          const struct placement *placement, int thread,
                          const char *process, const struct node_map *map,
                          const struct threads_view *view)
{
    char allowed[CPUS_TEXT_SIZE];
    char seen[CPUS_TEXT_SIZE];
    char numa[CPUS_TEXT_SIZE];
    char hcas[CPUS_TEXT_SIZE];

    cpus_format(view->allowed, allowed);
    cpus_format(view->seen, seen);
    node_map_numa_of(map, view->seen, numa);
    node_map_hcas_of(map, numa, hcas);
    const struct output_field fields[] = {
        output_text("type", NULL, "thread"),
        output_text("node", "Node", placement->hosts[placement->node]),
        output_integer("rank", "Rank", placement->rank),
        output_integer("thread", "Thread", thread),
        output_text("process", "Of rank", process),
        output_text("allowed", "Allowed", allowed),
        output_text("seen", "Seen", seen),
        output_integer("moves", "Moves", view->moves),
        output_text("numa", "NUMA", numa),
        output_text("hcas", "Adapters", hcas[0] == '\0' ? NULL : hcas),
    };

    output_row(writer, fields, sizeof(fields) / sizeof(fields[0]));
}

/* Watch the threads of this rank, and write its lines. */
static void watch(const struct settings *settings,
                  const struct placement *placement, struct lines *lines)
{
    static struct node_map map;
    static bool process[CPUS_MAX];
    char text[CPUS_TEXT_SIZE];
    int wanted = threads_count();
    struct threads_view *views =
        check_allocate((size_t)wanted * sizeof(*views), "views of threads");

    node_map_read("", &map);
    if (!threads_process_cpus(process)) {
        check_abort(CHECK_FAILED, "CPUs of the process: %s", strerror(errno));
    }
    int count = threads_watch(settings->time_ms, views, wanted);

    if (count == 0) {
        check_abort(CHECK_FAILED, "CPUs of a thread: %s", strerror(errno));
    }
    cpus_format(process, text);
    if (settings->json && placement->local_rank == 0) {
        report_node(&lines->writer, placement->hosts[placement->node], &map);
    }
    for (int thread = 0; thread < count; thread++) {
        report_thread(&lines->writer, placement, thread, text, &map,
                      &views[thread]);
    }
    free(views);
}

/* Print the lines of all ranks on rank 0, in their order. */
static void print_lines(const struct placement *placement,
                        const struct lines *lines)
{
    const int tag = 1;

    if (placement->rank > 0) {
        CHECK_MPI(MPI_Send(lines->text, (int)lines->size, MPI_CHAR, 0, tag,
                           MPI_COMM_WORLD),
                  "lines to rank 0");
        return;
    }
    (void)fwrite(lines->text, 1, lines->size, stdout);
    for (int rank = 1; rank < placement->np; rank++) {
        MPI_Status status;
        int size = 0;

        CHECK_MPI(MPI_Probe(rank, tag, MPI_COMM_WORLD, &status),
                  "lines of rank %d", rank);
        CHECK_MPI(MPI_Get_count(&status, MPI_CHAR, &size), "lines of rank %d",
                  rank);
        char *text = check_allocate((size_t)size, "lines");

        CHECK_MPI(MPI_Recv(text, size, MPI_CHAR, rank, tag, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
                  "lines of rank %d", rank);
        (void)fwrite(text, 1, (size_t)size, stdout);
        free(text);
    }
}

static enum check_exit run(const struct settings *settings)
{
    struct placement placement;
    struct lines lines = {.text = NULL};

    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD), "all ranks");
    double ready_s = seconds_of_day();

    placement_create(MPI_COMM_WORLD, 0, &placement);
    FILE *stream = open_memstream(&lines.text, &lines.size);

    if (stream == NULL) {
        check_abort(CHECK_FAILED, "open_memstream: %s", strerror(errno));
    }
    /* The header of the table is that of rank 0. */
    lines.writer = (struct output_writer){.stream = stream,
                                          .json = settings->json,
                                          .has_header = placement.rank > 0};
    if (placement.rank == 0) {
        report_run(&lines.writer, settings, &placement, ready_s);
    }
    if (!settings->ready) {
        watch(settings, &placement, &lines);
    }
    (void)fclose(stream);
    print_lines(&placement, &lines);
    free(lines.text);
    placement_free(&placement);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        check_print("output: fflush: %s", strerror(errno));
        return CHECK_FAILED;
    }
    return CHECK_PASS;
}

static enum check_exit describe(enum options_outcome outcome)
{
    if (!check_is_first_process()) {
        return CHECK_PASS;
    }
    if (outcome == OPTIONS_HELP) {
        options_help(stdout, NAME, PURPOSE, OPTIONS, &DEFAULTS);
    } else {
        (void)printf("%s %s (%s)\n", NAME, VERSION, COMMIT);
    }
    return fflush(stdout) == 0 ? CHECK_PASS : CHECK_FAILED;
}

int main(int argc, char **argv)
{
    struct settings settings = DEFAULTS;
    char error[OPTIONS_ERROR_SIZE] = "";
    enum check_exit code = CHECK_USAGE;
    enum options_outcome outcome =
        options_parse(OPTIONS, &settings, argc, argv, error);
    int provided = 0;
    int rank = 0;

    if (outcome == OPTIONS_HELP || outcome == OPTIONS_VERSION) {
        return (int)describe(outcome);
    }
    CHECK_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided),
              "start");
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "all ranks");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
    if (outcome == OPTIONS_RUN) {
        code = run(&settings);
    } else if (rank == 0) {
        check_print("%s (see --help)", error);
    }
    CHECK_MPI(MPI_Finalize(), "end");
    return (int)code;
}
