/* SPDX-License-Identifier: Apache-2.0 */
/* Find slow pairs of nodes. */
#include "pairsweep.h"

#include "check.h"
#include "files.h"
#include "placement.h"
#include "preflight.h"
#include "program.h"
#include "rails.h"
#include "run_sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PAIRSWEEP_VERBS
#define NAME "pairsweep_verbs"
#define CARRIED                                                                \
    "\nMessages are RDMA writes (RC), without MPI; each rail is an adapter, "  \
    "NAME[:PORT]."
#define RAIL_VARIABLE NULL /* a rail is opened by its name */
#else
#define NAME "pairsweep"
#define CARRIED ""
#define RAIL_VARIABLE "UCX_NET_DEVICES"
#endif

static const char PURPOSE[] =
    "Latency and bandwidth between all pairs of nodes, with one rank on every "
    "node\n(with rails, one for each rail). In each round every node is in one "
    "pair, so that\nevery two meet exactly once. Pairs much worse than the "
    "median are measured again\nalone. Two sizes: --min-size for the latency, "
    "--max-size for the bandwidth.\nLatency is half a round trip; bandwidth is "
    "from source to destination, then back." CARRIED;

enum {
    MAX_ROUNDS = 1 << 24,
    MAX_RETESTS = 1000000,
    MAX_PERCENT = 99,
    MAX_LIMIT_S = 86400,
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 8, .max = 1 << 20},
               .iterations = 1000,
               .warmup = 20,
               .time_ms = 200},
    .window = 16,
    .windows = 10,
    .seed = 1,
    .rounds = {.min = 1, .max = MAX_ROUNDS},
    .retest = 1000,
    .suspect_percent = 20,
    .rail_variable = RAIL_VARIABLE,
    .pair_limit_s = 60,
    .gid_index = -1,
};

/* Rows of the table of options, by type of value. */
#define ROW_INTEGER(name, member, low, high, value, help)                      \
    SETTINGS_ROW(name, 0, OPTIONS_INTEGER, offsetof(struct settings, member),  \
                 low, high, NULL, value, help)
#define ROW_TEXT(name, member, value, help)                                    \
    SETTINGS_ROW(name, 0, OPTIONS_TEXT, offsetof(struct settings, member), 0,  \
                 0, NULL, value, help)

static const struct options_row OPTIONS[] = {
    ROW_INTEGER("min-size", common.sizes.min, 0, SETTINGS_MAX_SIZE, "BYTES",
                "message of the latency"),
    ROW_INTEGER("max-size", common.sizes.max, 1, SETTINGS_MAX_SIZE, "BYTES",
                "messages of the bandwidth"),
    SETTINGS_LOOP_ROWS(struct settings, "timed round trips of a pair",
                       "untimed ones before"),
    SETTINGS_WINDOW_ROW(struct settings),
    ROW_INTEGER("windows", windows, 1, SETTINGS_MAX_ITERATIONS, "COUNT",
                "windows in each direction"),
    ROW_INTEGER("seed", seed, 0, INT32_MAX, "NUMBER",
                "of the order in which nodes meet"),
    ROW_TEXT("output", output, "FILE", "write JSON Lines there"),
    ROW_TEXT("resume", resume, "FILE",
             "measure only what FILE lacks, and append to it"),
    ROW_TEXT("pairs", pairs, "FILE", "only these: lines HOST HOST [ROUND]"),
    SETTINGS_ROW("rounds", 0, OPTIONS_SPAN, offsetof(struct settings, rounds),
                 1, MAX_ROUNDS, NULL, "[FIRST:]LAST", "only these rounds"),
    ROW_INTEGER("quiet-pairs", quiet_pairs, 0, MAX_ROUNDS, "COUNT",
                "largest number of pairs at once; 0: all of a round"),
    ROW_INTEGER("retest", retest, 0, MAX_RETESTS, "COUNT",
                "largest number of suspects of a rail to measure again, alone"),
    ROW_INTEGER("suspect", suspect_percent, 1, MAX_PERCENT, "PERCENT",
                "suspect: so much worse than the median"),
    ROW_TEXT("rails", rails, "A,B,..",
             "one pass for each adapter, by that rank of every node"),
#ifdef PAIRSWEEP_VERBS
    ROW_INTEGER("gid-index", gid_index, -1, UINT16_MAX, "INDEX",
                "-1: RoCE v2 with IPv4 if there is one; LID on IB"),
    SETTINGS_ROW("rdma-cm", 'R', OPTIONS_FLAG,
                 offsetof(struct settings, rdma_cm), 0, 0, NULL, NULL,
                 "connect by rdma_cm and IP, as iWARP needs (untested)"),
#else
    ROW_TEXT("rail-variable", rail_variable, "NAME",
             "environment variable that chooses the adapter"),
#endif
    ROW_INTEGER("pair-limit", pair_limit_s, 1, MAX_LIMIT_S, "SECONDS",
                "give up when a pair takes longer in a phase"),
    SETTINGS_ROW("preflight", 0, OPTIONS_FLAG,
                 offsetof(struct settings, preflight), 0, 0, NULL, NULL,
                 "only tell which ranks can start and hear of all others"),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

static bool refuse(char error[OPTIONS_ERROR_SIZE], const char *reason)
{
    (void)snprintf(error, OPTIONS_ERROR_SIZE, "%s", reason);
    return false;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;

    if (settings->output != NULL && settings->resume != NULL) {
        return refuse(error, "--output and --resume both name a file");
    }
    if (settings->rounds.min > settings->rounds.max) {
        return refuse(error, "--rounds: the first is above the last");
    }
    if (settings->common.time_ms >= settings->pair_limit_s * 1000) {
        return refuse(error, "--time must be below --pair-limit");
    }
    if (settings->rails != NULL && !rails_are_good(settings->rails)) {
        return refuse(error, "--rails: expected names A,B,..");
    }
    if (settings->rails != NULL && rails_own(settings->rails) < 0) {
        return refuse(error, "--rails: no variable of a launcher tells the "
                             "place of a process on its node");
    }
#ifdef PAIRSWEEP_VERBS
    if (settings->common.sizes.min < 1) {
        return refuse(error, "--min-size 0: a message is awaited by its last "
                             "byte");
    }
    if (settings->rdma_cm && settings->gid_index >= 0) {
        return refuse(error, "--rdma-cm chooses the GID: leave out "
                             "--gid-index");
    }
#endif
    return true;
}

/* MPI reads the variable when it starts. */
static void prepare(const void *options)
{
    const struct settings *settings = options;
    char room[RAILS_NAME_SIZE];

    if (settings->rails != NULL && settings->rail_variable != NULL) {
        int rail = rails_own(settings->rails);

        if (setenv(settings->rail_variable,
                   rails_name(settings->rails, rail, room), 1) != 0) {
            check_print("setenv: %s: %s", settings->rail_variable,
                        strerror(errno));
            exit(CHECK_USAGE);
        }
    }
    if (settings->preflight) {
        preflight_start(settings->pretend_ppn);
    }
}

/* Check that every node has one rank per rail, in the order of ranks. */
static bool check_ranks(const struct settings *settings,
                        const struct placement *placement)
{
    int rails = rails_count(settings->rails);
    int good = settings->rails == NULL ||
               rails_own(settings->rails) == placement->local_rank;
    bool is_root = placement->rank == 0;

    if (placement->nodes < 2) {
        if (is_root) {
            check_print("%d node: pairs need at least 2", placement->nodes);
        }
        return false;
    }
    for (int r = 0; r < placement->np; r++) {
        if (placement->local_of[r] >= rails ||
            placement->np != rails * placement->nodes) {
            if (is_root) {
                check_print("%d ranks on %d nodes: expected %d on every node, "
                            "one for each rail",
                            placement->np, placement->nodes, rails);
            }
            return false;
        }
    }
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD),
        "places of ranks");
    if (!good && is_root) {
        check_print("the launcher's places of ranks on their nodes are not in "
                    "the order of ranks: rails cannot be told apart");
    }
    return good;
}

static bool check_rounds(const struct settings *settings,
                         const struct nodes *nodes, bool is_root)
{
    int rounds = tournament_rounds(nodes->count);

    if (settings->rounds.min > rounds && is_root) {
        check_print("--rounds begins with %ld, but %d nodes have %d rounds",
                    settings->rounds.min, nodes->count, rounds);
    }
    return settings->rounds.min <= rounds;
}

/* Open the output and allocate the memory of every rank. */
static enum check_exit run_on_nodes(const struct program *program,
                                    const struct settings *settings,
                                    const struct nodes *nodes,
                                    const struct placement *placement)
{
    struct tournament tournament;
    struct plan plan;
    struct rows rows;
    FILE *stream = NULL;
    bool is_json = settings->common.json || settings->output != NULL ||
                   settings->resume != NULL;

    if (!files_open_output(settings, &stream)) {
        return CHECK_USAGE;
    }
    int *labels = check_allocate(2 * ((size_t)nodes->count + 1) * sizeof(int),
                                 "order of nodes");
    void *room = check_allocate(plan_size_bytes(nodes->count), "pairs");
    struct sweep *sweep = check_allocate(sizeof(*sweep), "sweep");
    tournament_create(&tournament, nodes->count, settings->seed, labels);
    plan_create(&plan, nodes->count, nodes->own, placement->local_rank, room);
    *sweep = (struct sweep){
        .settings = settings,
        .nodes = nodes,
        .tournament = &tournament,
        .plan = &plan,
        .rows = placement->rank == 0 ? &rows : NULL,
    };
    if (sweep->rows != NULL) {
        rows_open(&rows, stream, program, settings, nodes, placement->np,
                  is_json);
    }
    watchdog_start(nodes->hosts[nodes->own], settings->pair_limit_s);
    enum check_exit code = run_sweep(sweep);
    if (sweep->rows != NULL && !report_close(&rows.report)) {
        code = CHECK_FAILED;
    }
    free(sweep);
    free(room);
    free(labels);
    return code;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct placement placement;
    struct nodes nodes;
    enum check_exit code = CHECK_USAGE;

    if (settings->preflight) {
        return preflight_run(settings->pretend_ppn);
    }
    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    const char **hosts = (const char **)check_allocate(
        (size_t)placement.nodes * sizeof(*hosts), "host names");
    for (int node = 0; node < placement.nodes; node++) {
        hosts[node] = placement.hosts[node];
    }
    nodes_create(&nodes, placement.nodes, hosts,
                 placement.hosts[placement.node], placement.hosts[0]);
    if (check_ranks(settings, &placement) &&
        check_rounds(settings, &nodes, placement.rank == 0) &&
        check_memory(MPI_COMM_WORLD, pair_size_bytes(settings))) {
        code = run_on_nodes(program, settings, &nodes, &placement);
    }
    free((void *)hosts);
    placement_free(&placement);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program PAIRSWEEP = {
        .name = NAME,
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .prepare = prepare,
        .run = run,
    };

    return program_main(&PAIRSWEEP, argc, argv);
}
