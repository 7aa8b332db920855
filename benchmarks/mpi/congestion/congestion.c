/* SPDX-License-Identifier: Apache-2.0 */
/* Compare communication of victims alone with that beside aggressors. */
#include "aggressors.h"
#include "check.h"
#include "placement.h"
#include "program.h"
#include "report.h"
#include "roles.h"
#include "settings.h"
#include "victims.h"

static const char PURPOSE[] =
    "Congestion as GPCNeT defines it: a fifth of the nodes, chosen by chance, "
    "measure\nlatency and bandwidth in random rings and the time of "
    "MPI_Allreduce, alone and\nthen while the other nodes load the network. An "
    "impact is how many times worse\nthe mean, or the 99th percentile, is "
    "beside them. Bandwidth is 10^6 B/s of a rank.";

enum { MAX_RINGS = 100000, MAX_SEED = 2147483647, POLL_NS = 100000 };

static const char *const AGGRESSORS[] = {
    [AGGRESSOR_ALLTOALL] = "alltoall", [AGGRESSOR_INCAST] = "incast",
    [AGGRESSOR_PUT] = "put",           [AGGRESSOR_GET] = "get",
    [AGGRESSOR_MIXED] = "mixed",       [AGGRESSOR_NONE] = "none",
    [AGGRESSOR_NONE + 1] = NULL,
};

struct settings {
    struct settings_common common;
    size_t aggressors;
    long rings;
    long window;
    long windows;
    long seed;
    long pretend_ppn;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 4096, .max = 4096},
               .iterations = 200,
               .warmup = 200},
    .aggressors = AGGRESSOR_MIXED,
    .rings = 30,
    .window = 8,
    .windows = 8,
    .seed = 1,
};

static const struct options_row OPTIONS[] = {
    {"aggressors", 'a', OPTIONS_CHOICE, offsetof(struct settings, aggressors),
     0, 0, AGGRESSORS, "KIND",
     "load of the other nodes: mixed is all four kinds at once, none is idle"},
    {"rings", 'r', OPTIONS_INTEGER, offsetof(struct settings, rings), 1,
     MAX_RINGS, NULL, "COUNT", "random orders of the victims"},
    {"seed", 's', OPTIONS_INTEGER, offsetof(struct settings, seed), 0, MAX_SEED,
     NULL, "NUMBER", "divides the nodes, and orders them in rings"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES",
                       "message of an aggressor"),
    SETTINGS_LOOP_ROWS(struct settings, "timed exchanges of a ring",
                       "untimed exchanges"),
    SETTINGS_WINDOW_ROW(struct settings),
    SETTINGS_WINDOWS_ROW(struct settings),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

static const struct {
    const char *name;
    const char *unit;
    bool is_time;
} VICTIMS[VICTIM_KINDS] = {
    [VICTIM_LATENCY] = {"latency", "us", true},
    [VICTIM_BANDWIDTH] = {"bw", "MB/s", false},
    [VICTIM_ALLREDUCE] = {"allreduce", "us", true},
};

/** A run: its settings and parts; a rank has victims or aggressors. */
struct run {
    const struct program *program;
    const struct settings *settings;
    const struct placement *placement;
    struct victims_work work;
    struct roles roles;
    struct victims victims;
    struct aggressors aggressors;
    struct report report;
};

/** The numbers of a victim, on rank 0. */
struct result {
    struct victims_result isolated;
    struct victims_result congested;
    long long operations; /* of the aggressor with the fewest */
    double mb_per_s;      /* of a rank that sends or gets */
};

/* Measure between the two barriers that aggressors wait for. */
static struct victims_result beside(struct run *run, enum victim victim)
{
    MPI_Request request;

    CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request), "start of victims");
    check_wait_quietly(&request, POLL_NS);
    victims_measure(&run->victims, victim);
    CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request), "end of victims");
    check_wait_quietly(&request, POLL_NS);
    return victims_summarise(&run->victims, victim);
}

/* Collect the work of all aggressors; the sum of rates is of those with one. */
static void collect_load(const struct run *run, struct aggressors_load load,
                         struct result *result)
{
    bool is_idle = run->roles.is_victim || run->roles.kinds == 0;
    long long fewest = is_idle ? INT64_MAX : load.operations;
    double sums[2] = {load.mb_per_s, load.mb_per_s > 0.0 ? 1.0 : 0.0};

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &fewest, 1, MPI_LONG_LONG, MPI_MIN,
                            MPI_COMM_WORLD),
              "work of aggressors");
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM,
                            MPI_COMM_WORLD),
              "work of aggressors");
    result->operations = run->roles.kinds > 0 ? fewest : 0;
    result->mb_per_s = sums[1] > 0.0 ? sums[0] / sums[1] : 0.0;
}

/* Rank 0 may be an aggressor: all ranks get the numbers of the first victim. */
static void share_result(const struct run *run, struct result *result)
{
    int rank = run->placement->rank;
    int first = run->roles.is_victim ? rank : run->placement->np;

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "first victim");
    CHECK_MPI(MPI_Bcast(result, (int)sizeof(*result), MPI_BYTE, first,
                        MPI_COMM_WORLD),
              "numbers of victims");
}

static struct result measure(struct run *run, enum victim victim)
{
    struct aggressors_load load = {0, 0.0};
    struct aggressors idle = {.kind = AGGRESSOR_NONE};
    struct result result = {.operations = 0};

    if (run->roles.is_victim) {
        result.isolated = beside(run, victim);
        result.congested = beside(run, victim);
    } else {
        (void)aggressors_run(&idle);
        load = aggressors_run(&run->aggressors);
    }
    collect_load(run, load, &result);
    share_result(run, &result);
    return result;
}

static bool validate(struct run *run, enum victim victim)
{
    int valid = run->roles.is_victim ? victims_validate(&run->victims, victim)
                                     : aggressors_validate(&run->aggressors);

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "contents of all ranks");
    return valid != 0;
}

static double impact(bool is_time, double isolated, double congested)
{
    return is_time ? congested / isolated : isolated / congested;
}

static void report_run(struct report_row *row, const struct run *run)
{
    const struct settings *settings = run->settings;

    report_add(row, output_integer("nodes", NULL, run->placement->nodes));
    report_add(row,
               output_integer("victim_nodes", NULL, run->roles.victim_nodes));
    report_add(row, output_integer("aggressor_nodes", NULL,
                                   run->roles.aggressor_nodes));
    report_add(row, output_integer("seed", NULL, settings->seed));
    report_add(
        row, output_text("aggressors", NULL, AGGRESSORS[settings->aggressors]));
    report_add(row, output_integer("rings", NULL, settings->rings));
    report_add(row, output_integer("window", NULL, settings->window));
    report_add(row, output_integer("windows", NULL, settings->windows));
}

static void report_victim(struct run *run, enum victim victim, long size,
                          const struct result *result, bool valid)
{
    const struct victims_result *alone = &result->isolated;
    const struct victims_result *loaded = &result->congested;
    bool is_time = VICTIMS[victim].is_time;
    struct report_row row;

    report_begin(&run->report, &row);
    report_run(&row, run);
    report_add(&row, output_integer("aggressor_bytes", "Aggressor", size));
    report_add(&row, output_text("victim", "Victim", VICTIMS[victim].name));
    report_add(
        &row, output_integer("size_bytes", "Size", victims_size_bytes(victim)));
    report_add(&row, output_text("unit", "Unit", VICTIMS[victim].unit));
    report_add(&row, output_real("isolated_mean", "Isolated", alone->mean));
    report_add(&row, output_real("isolated_p99", "p99", alone->p99));
    report_add(&row, output_integer("isolated_n", NULL, alone->n));
    report_add(&row, output_real("congested_mean", "Congested", loaded->mean));
    report_add(&row, output_real("congested_p99", "p99", loaded->p99));
    report_add(&row, output_integer("congested_n", NULL, loaded->n));
    report_add(&row, output_real("impact_mean", "Impact",
                                 impact(is_time, alone->mean, loaded->mean)));
    report_add(&row, output_real("impact_p99", "Impact p99",
                                 impact(is_time, alone->p99, loaded->p99)));
    report_add(
        &row, output_integer("aggressor_operations", NULL, result->operations));
    report_add(&row, output_real("aggressor_mb_per_s", "Load(MB/s)",
                                 result->mb_per_s));
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(&run->report, &row);
}

static void report_start(struct run *run)
{
    const struct settings *settings = run->settings;

    report_open(&run->report, stdout, run->program, &settings->common,
                run->placement->np,
                VICTIM_KINDS * options_count_sizes(settings->common.sizes));
    output_comment(&run->report.writer,
                   "[ victims: %d nodes ] [ aggressors: %d nodes, %s ] "
                   "[ seed: %ld ] [ rings: %ld ]",
                   run->roles.victim_nodes, run->roles.aggressor_nodes,
                   AGGRESSORS[settings->aggressors], settings->seed,
                   settings->rings);
}

/* All victims beside aggressors with messages of a size; false: contents. */
static bool run_size(struct run *run, long size)
{
    bool valid = true;

    if (!run->roles.is_victim) {
        aggressors_create(&run->roles, (int)size, &run->aggressors);
    }
    for (int victim = 0; victim < VICTIM_KINDS && valid; victim++) {
        struct result result = measure(run, (enum victim)victim);

        valid = !run->settings->common.validate ||
                validate(run, (enum victim)victim);
        if (run->placement->rank == 0) {
            report_victim(run, (enum victim)victim, size, &result, valid);
        }
    }
    if (!run->roles.is_victim) {
        aggressors_free(&run->aggressors);
    }
    return valid;
}

static enum check_exit run_sizes(struct run *run)
{
    const struct options_span *sizes = &run->settings->common.sizes;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    if (is_root) {
        report_start(run);
    }
    if (run->roles.is_victim) {
        victims_create(&run->work, run->roles.side, run->roles.slice,
                       &run->victims);
    }
    for (long size = sizes->min; size <= sizes->max && valid;
         size = options_next_size(size)) {
        valid = run_size(run, size);
    }
    if (run->roles.is_victim) {
        victims_free(&run->victims);
    }
    return (!is_root || report_close(&run->report)) && valid ? CHECK_PASS
                                                             : CHECK_FAILED;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct placement placement;
    enum check_exit code = CHECK_USAGE;
    struct run run = {
        .program = program,
        .settings = settings,
        .placement = &placement,
        .work = {&settings->common, settings->rings, settings->window,
                 settings->windows, (uint64_t)settings->seed},
    };

    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    if (roles_create(&placement, (enum aggressor)settings->aggressors,
                     (uint64_t)settings->seed, &run.roles)) {
        int largest = (int)settings->common.sizes.max;
        double bytes = run.roles.is_victim
                           ? victims_bytes(&run.work)
                           : aggressors_bytes(&placement, largest);

        if (check_memory(MPI_COMM_WORLD, bytes)) {
            code = run_sizes(&run);
        }
        roles_free(&run.roles);
    }
    placement_free(&placement);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program CONGESTION = {
        .name = "congestion",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .run = run,
    };

    return program_main(&CONGESTION, argc, argv);
}
