/* SPDX-License-Identifier: Apache-2.0 */
/* Measure latency, bandwidth and message rate by the number of pairs. */
#include "check.h"
#include "clock.h"
#include "pairs.h"
#include "placement.h"
#include "program.h"
#include "report.h"
#include "settings.h"

static const char PURPOSE[] =
    "Latency, bandwidth, bidirectional bandwidth and message rate of 1, 2, 4 "
    "... pairs\nof ranks that measure at once between two nodes, or within one "
    "(--intra).\nRank i of the first node and rank i of the second are a pair. "
    "Latency is half\nthe round trip; bandwidth (10^6 B/s) and messages are "
    "those of all pairs. Min to\nMax are of single operations of all pairs: "
    "half round trips, or whole windows.";

enum { MAX_PAIRS = 65536 };

/** The measurement of a row; the first names of the option, in this order. */
static const struct mode {
    const char *name;
    enum p2p_test test;
    bool sync_each; /* with any --sync */
} MODES[] = {
    {"latency", P2P_LATENCY, false},
    {"bw", P2P_STREAM, false},
    {"bibw", P2P_BIDIRECTIONAL, false},
    {"rate", P2P_STREAM, true},
};

enum { MODE_ALL = sizeof(MODES) / sizeof(MODES[0]) };

static const char *const MODE_NAMES[] = {"latency", "bw",  "bibw",
                                         "rate",    "all", NULL};
static const char *const SYNC_NAMES[] = {"start", "each", NULL};

_Static_assert(sizeof(MODE_NAMES) / sizeof(MODE_NAMES[0]) == MODE_ALL + 2,
               "every mode has a name, and all of them together");

struct settings {
    struct settings_common common;
    struct options_span pairs; /* max 0: all */
    long window;
    long windows;
    size_t mode;
    size_t sync;
    bool intra;
    long pretend_ppn;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 4194304},
               .iterations = 1000,
               .warmup = 100},
    .pairs = {.min = 1, .max = 0},
    .window = 64,
    .windows = 100,
    .mode = MODE_ALL,
};

static const struct options_row OPTIONS[] = {
    {"mode", 0, OPTIONS_CHOICE, offsetof(struct settings, mode), 0, 0,
     MODE_NAMES, "NAME", "what is measured"},
    {"pairs", 'p', OPTIONS_SPAN, offsetof(struct settings, pairs), 0, MAX_PAIRS,
     NULL, "[MIN:]MAX",
     "pairs from MIN, doubled, and MAX; MAX 0: all that there are"},
    {"intra", 0, OPTIONS_FLAG, offsetof(struct settings, intra), 0, 0, NULL,
     NULL, "pairs within one node: either half of its ranks"},
    {"sync", 0, OPTIONS_CHOICE, offsetof(struct settings, sync), 0, 0,
     SYNC_NAMES, "NAME",
     "pairs begin together at the start, or at each operation (rate: always)"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    SETTINGS_LOOP_ROWS(struct settings, "timed round trips",
                       "untimed round trips"),
    SETTINGS_WINDOW_ROW(struct settings),
    SETTINGS_WINDOWS_ROW(struct settings),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

/** A run: its settings and its place. */
struct run {
    const struct program *program;
    const struct settings *settings;
    const struct placement *placement;
    struct pairs_loops loops;
    int most_pairs;
    double clock_us; /* what one reading of the clock costs */
};

static enum pairs_scope scope_of(const struct settings *settings)
{
    return settings->intra ? PAIRS_WITHIN : PAIRS_BETWEEN;
}

/* Pairs are doubled; the largest number is always the last. */
static int next_pairs(int pairs, int most)
{
    if (pairs == most) {
        return most + 1;
    }
    return 2 * pairs < most ? 2 * pairs : most;
}

static int count_pairs(const struct run *run)
{
    int count = 0;

    for (int p = (int)run->settings->pairs.min; p <= run->most_pairs;
         p = next_pairs(p, run->most_pairs)) {
        count++;
    }
    return count;
}

static bool is_chosen(const struct settings *settings, size_t mode)
{
    return settings->mode == MODE_ALL || settings->mode == mode;
}

static struct p2p_work work_of(const struct settings *settings,
                               const struct mode *mode, int size_bytes)
{
    return (struct p2p_work){
        .test = mode->test,
        .size_bytes = size_bytes,
        .window = settings->window,
        .sync_each = mode->sync_each || settings->sync == 1,
    };
}

static void report_start(struct report *report, const struct run *run)
{
    const struct settings *settings = run->settings;
    const struct placement *placement = run->placement;
    int modes = settings->mode == MODE_ALL ? MODE_ALL : 1;

    report_open(report, stdout, run->program, &settings->common, placement->np,
                modes * count_pairs(run) *
                    options_count_sizes(settings->common.sizes));
    output_comment(&report->writer,
                   "[ from: %s ] [ to: %s ] [ window: %ld ] [ windows: %ld ]",
                   placement->hosts[0], placement->hosts[placement->nodes - 1],
                   settings->window, settings->windows);
    output_comment(&report->writer,
                   "MB/s, Messages/s: all pairs; Min to Max: single half round "
                   "trips (latency) or windows");
}

static void report_result(struct report *report, const struct run *run,
                          const struct mode *mode, const struct p2p_work *work,
                          int pairs, const struct pairs_result *result,
                          bool valid)
{
    const struct placement *placement = run->placement;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("source", NULL, placement->hosts[0]));
    report_add(&row, output_text("destination", NULL,
                                 placement->hosts[placement->nodes - 1]));
    report_add(&row, output_integer("window", NULL, work->window));
    report_add(&row, output_integer("windows", NULL, run->settings->windows));
    report_add(&row, output_text("mode", "Mode", mode->name));
    report_add(&row, output_text("sync", "Sync", SYNC_NAMES[work->sync_each]));
    report_add(&row, output_integer("pairs", "Pairs", pairs));
    report_add(&row, output_integer("size_bytes", "Size", work->size_bytes));
    report_add(&row, output_real("clock_us", NULL, run->clock_us));
    report_add(&row, output_real("mb_per_s", "MB/s", result->mb_per_s));
    report_add(&row, output_real("msg_per_s", "Messages/s", result->msg_per_s));
    report_add_times(&row, &result->times);
    report_add(&row,
               output_real("slowest_us", "Slowest(us)", result->slowest_us));
    report_add(&row, output_real("start_spread_us", "Spread(us)",
                                 result->start_spread_us));
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(report, &row);
}

/* Stop after the first size with wrong contents. */
static bool run_sizes(const struct run *run, const struct mode *mode,
                      const struct pairs *pairs, struct report *report)
{
    const struct settings_common *common = &run->settings->common;
    bool valid = true;

    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = options_next_size(size)) {
        struct p2p_work work = work_of(run->settings, mode, (int)size);
        struct pairs_result result = pairs_measure(pairs, &run->loops, &work);

        if (common->validate) {
            valid = pairs_validate(pairs, (int)size);
        }
        if (run->placement->rank == 0) {
            report_result(report, run, mode, &work, pairs->count, &result,
                          valid);
        }
    }
    return valid;
}

static bool run_mode(const struct run *run, const struct mode *mode,
                     const struct pairs_room *room, struct report *report)
{
    bool valid = true;

    for (int p = (int)run->settings->pairs.min; p <= run->most_pairs && valid;
         p = next_pairs(p, run->most_pairs)) {
        struct pairs pairs;

        pairs_create(run->placement, scope_of(run->settings), p, room, &pairs);
        valid = run_sizes(run, mode, &pairs, report);
        pairs_free(&pairs);
    }
    return valid;
}

static enum check_exit run_modes(const struct run *run,
                                 const struct pairs_room *room)
{
    struct report report;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    if (is_root) {
        report_start(&report, run);
    }
    for (size_t m = 0; m < MODE_ALL && valid; m++) {
        if (is_chosen(run->settings, m)) {
            valid = run_mode(run, &MODES[m], room, &report);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

/* The largest number of pairs to measure; 0, after an error message, if none
 * can be. */
static int choose_pairs(const struct settings *settings,
                        const struct placement *placement)
{
    bool is_root = placement->rank == 0;

    if (settings->intra && placement->nodes > 1) {
        if (is_root) {
            check_print("found ranks on %d nodes: --intra measures within one",
                        placement->nodes);
        }
        return 0;
    }
    if (!settings->intra && placement->nodes == 1) {
        if (is_root) {
            check_print("found all ranks (np %d) on %s: start as many on each "
                        "of two nodes, or measure within one by --intra",
                        placement->np, placement->hosts[0]);
        }
        return 0;
    }
    int available = pairs_available(placement, scope_of(settings));
    int most = settings->pairs.max > 0 ? (int)settings->pairs.max : available;
    if (available > 0 && (most > available || settings->pairs.min > most)) {
        if (is_root) {
            check_print("--pairs: asked for %ld to %d pairs, there is room for "
                        "%d",
                        settings->pairs.min, most, available);
        }
        return 0;
    }
    return available > 0 ? most : 0;
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
        .most_pairs = choose_pairs(settings, &placement),
        .clock_us = clock_overhead_ns() / 1e3,
    };
    if (run.most_pairs > 0 &&
        check_memory(MPI_COMM_WORLD,
                     pairs_room_bytes(&run.loops, settings->window,
                                      placement.rank, run.most_pairs))) {
        struct pairs_room room;

        pairs_room_create(&room, &run.loops, settings->window, placement.rank,
                          run.most_pairs);
        code = run_modes(&run, &room);
        pairs_room_free(&room);
    }
    placement_free(&placement);
    return code;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct options_span *pairs =
        &((const struct settings *)options)->pairs;

    if (pairs->min < 1 || (pairs->max > 0 && pairs->min > pairs->max)) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--pairs: from %ld to %ld is not a span of pairs",
                       pairs->min, pairs->max);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct program MPAIR = {
        .name = "mpair",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .run = run,
    };

    return program_main(&MPAIR, argc, argv);
}
