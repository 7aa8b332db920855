/* SPDX-License-Identifier: Apache-2.0 */
/* Compare communication within a node with that between nodes. */
#include "check.h"
#include "pairs.h"
#include "placement.h"
#include "program.h"
#include "report.h"
#include "settings.h"

static const char PURPOSE[] =
    "Communication balance: latency, bandwidth, bidirectional bandwidth and "
    "bandwidth\nof many pairs, each measured within the first of two nodes and "
    "then between the\ntwo. A ratio says by how much the node surpasses the "
    "network: 1 is balanced.\nValues are medians, of half round trips or of "
    "windows; bandwidth is 10^6 B/s.";

struct settings {
    struct settings_common common;
    long window;
    long windows;
    long pretend_ppn;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 4194304},
               .iterations = 1000,
               .warmup = 100},
    .window = 64,
    .windows = 100,
};

static const struct options_row OPTIONS[] = {
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    SETTINGS_LOOP_ROWS(struct settings, "timed round trips",
                       "untimed round trips"),
    SETTINGS_WINDOW_ROW(struct settings),
    SETTINGS_WINDOWS_ROW(struct settings),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

/** A comparison: a value, within a node and between nodes. */
static const struct comparison {
    enum p2p_test test;
    bool is_multi; /* all pairs at once, not only the first */
    const char *keys[PAIRS_SCOPES];
    const char *columns[PAIRS_SCOPES];
    const char *ratio_key;
    const char *ratio_column;
    const char *count_key;
} COMPARISONS[] = {
    {P2P_LATENCY,
     false,
     {[PAIRS_WITHIN] = "latency_within_us",
      [PAIRS_BETWEEN] = "latency_between_us"},
     {[PAIRS_WITHIN] = "Lat in(us)", [PAIRS_BETWEEN] = "Lat out(us)"},
     "latency_ratio",
     "Lat out/in",
     "latency_n"},
    {P2P_STREAM,
     false,
     {[PAIRS_WITHIN] = "bw_within_mb_per_s",
      [PAIRS_BETWEEN] = "bw_between_mb_per_s"},
     {[PAIRS_WITHIN] = "BW in", [PAIRS_BETWEEN] = "BW out"},
     "bw_ratio",
     "BW in/out",
     "bw_n"},
    {P2P_BIDIRECTIONAL,
     false,
     {[PAIRS_WITHIN] = "bibw_within_mb_per_s",
      [PAIRS_BETWEEN] = "bibw_between_mb_per_s"},
     {[PAIRS_WITHIN] = "BiBW in", [PAIRS_BETWEEN] = "BiBW out"},
     "bibw_ratio",
     "BiBW in/out",
     "bibw_n"},
    {P2P_STREAM,
     true,
     {[PAIRS_WITHIN] = "multi_bw_within_mb_per_s",
      [PAIRS_BETWEEN] = "multi_bw_between_mb_per_s"},
     {[PAIRS_WITHIN] = "MultiBW in", [PAIRS_BETWEEN] = "MultiBW out"},
     "multi_bw_ratio",
     "Multi in/out",
     "multi_bw_n"},
};

enum { COMPARISONS_COUNT = sizeof(COMPARISONS) / sizeof(COMPARISONS[0]) };

/** A run: its settings, and the pairs, one or many, in both scopes. */
struct run {
    const struct program *program;
    const struct settings *settings;
    const struct placement *placement;
    struct pairs_loops loops;
    int many;
    struct pairs pairs[PAIRS_SCOPES][2]; /* of each scope: one, many */
};

/** Both sides of a comparison, on rank 0. */
struct balance {
    struct pairs_result sides[PAIRS_SCOPES];
};

static void compare(const struct run *run, const struct comparison *comparison,
                    int size_bytes, struct balance *balance)
{
    const struct p2p_work work = {.test = comparison->test,
                                  .size_bytes = size_bytes,
                                  .window = run->settings->window};

    for (int scope = 0; scope < PAIRS_SCOPES; scope++) {
        balance->sides[scope] = pairs_measure(
            &run->pairs[scope][comparison->is_multi], &run->loops, &work);
    }
}

/* Medians: one late window among a hundred must not decide a ratio. */
static double value_of(const struct comparison *comparison,
                       const struct pairs_result *result)
{
    const struct stats_summary *times = &result->times;

    return comparison->test == P2P_LATENCY
               ? times->p50
               : result->mb_per_s * times->mean / times->p50;
}

static void report_comparison(struct report_row *row,
                              const struct comparison *comparison,
                              const struct balance *balance)
{
    const struct stats_summary *within = &balance->sides[PAIRS_WITHIN].times;
    const struct stats_summary *between = &balance->sides[PAIRS_BETWEEN].times;
    size_t n = within->n < between->n ? within->n : between->n;

    for (int scope = 0; scope < PAIRS_SCOPES; scope++) {
        report_add(row, output_real(
                            comparison->keys[scope], comparison->columns[scope],
                            value_of(comparison, &balance->sides[scope])));
    }
    /* The time for the same work, so that empty messages have a ratio too. */
    report_add(row, output_real(comparison->ratio_key, comparison->ratio_column,
                                between->p50 / within->p50));
    report_add(row, output_integer(comparison->count_key, NULL, (long long)n));
}

static void report_size(struct report *report, const struct run *run, long size,
                        const struct balance balances[COMPARISONS_COUNT],
                        bool valid)
{
    const struct placement *placement = run->placement;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("source", NULL, placement->hosts[0]));
    report_add(&row, output_text("destination", NULL, placement->hosts[1]));
    report_add(&row, output_integer("window", NULL, run->settings->window));
    report_add(&row, output_integer("windows", NULL, run->settings->windows));
    report_add(&row, output_integer("pairs", NULL, run->many));
    report_add(&row, output_integer("size_bytes", "Size", size));
    for (int c = 0; c < COMPARISONS_COUNT; c++) {
        report_comparison(&row, &COMPARISONS[c], &balances[c]);
    }
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(report, &row);
}

static void report_start(struct report *report, const struct run *run)
{
    const struct settings *settings = run->settings;
    const struct placement *placement = run->placement;

    report_open(report, stdout, run->program, &settings->common, placement->np,
                options_count_sizes(settings->common.sizes));
    output_comment(&report->writer,
                   "[ in: %s ] [ out: %s to %s ] [ pairs of MultiBW: %d ] "
                   "[ window: %ld ] [ windows: %ld ]",
                   placement->hosts[0], placement->hosts[0],
                   placement->hosts[1], run->many, settings->window,
                   settings->windows);
}

/* The many pairs of a scope contain its single one. */
static bool validate(const struct run *run, int size_bytes)
{
    bool valid = true;

    for (int scope = 0; scope < PAIRS_SCOPES && valid; scope++) {
        valid = pairs_validate(&run->pairs[scope][1], size_bytes);
    }
    return valid;
}

/* Stop after the first size with wrong contents. */
static enum check_exit run_sizes(const struct run *run)
{
    const struct settings_common *common = &run->settings->common;
    struct balance balances[COMPARISONS_COUNT];
    struct report report;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    if (is_root) {
        report_start(&report, run);
    }
    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = options_next_size(size)) {
        for (int c = 0; c < COMPARISONS_COUNT; c++) {
            compare(run, &COMPARISONS[c], (int)size, &balances[c]);
        }
        valid = !common->validate || validate(run, (int)size);
        if (is_root) {
            report_size(&report, run, size, balances, valid);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

static enum check_exit run_pairs(struct run *run)
{
    struct pairs_room room;

    pairs_room_create(&room, &run->loops, run->settings->window,
                      run->placement->rank, run->many);
    for (int scope = 0; scope < PAIRS_SCOPES; scope++) {
        pairs_create(run->placement, scope, 1, &room, &run->pairs[scope][0]);
        pairs_create(run->placement, scope, run->many, &room,
                     &run->pairs[scope][1]);
    }
    enum check_exit code = run_sizes(run);
    for (int scope = 0; scope < PAIRS_SCOPES; scope++) {
        pairs_free(&run->pairs[scope][0]);
        pairs_free(&run->pairs[scope][1]);
    }
    pairs_room_free(&room);
    return code;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct placement placement;
    enum check_exit code = CHECK_USAGE;

    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    struct run run = {
        .program = program,
        .settings = settings,
        .placement = &placement,
        .loops = {&settings->common, settings->windows},
    };
    if (pairs_available(&placement, PAIRS_BETWEEN) > 0) {
        /* As many as fit within a node are compared between two as well. */
        run.many = pairs_available(&placement, PAIRS_WITHIN);
    }
    if (run.many > 0 &&
        check_memory(MPI_COMM_WORLD,
                     pairs_room_bytes(&run.loops, settings->window,
                                      placement.rank, run.many))) {
        code = run_pairs(&run);
    }
    placement_free(&placement);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program BALANCE = {
        .name = "balance",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .run = run,
    };

    return program_main(&BALANCE, argc, argv);
}
