/* SPDX-License-Identifier: Apache-2.0 */
/* Measure latency and throughput by the number of connections. */
#include "mqp_lat.h"

#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static const char PURPOSE[] =
    "Latency and throughput of 1, 2, 4 ... reliable connections between two "
    "ranks on\ntwo nodes. Latency: a message on every connection, one after "
    "the other, and an\nanswer on each; half the time of such a round, over "
    "the connections. Throughput:\nboth ranks send over the connections in "
    "turn; the sum of both ways.";

enum {
    MAX_CONNECTIONS = 65536,
    MAX_DEPTH = 1024,
    SLOT = 64,
    ANSWERS = 4, /* of a connection, sent and not yet acknowledged */
};

static const char *const MODE_NAMES[] = {"send", "write", "all", NULL};
static const char *const TEST_NAMES[] = {"latency", "throughput", "all", NULL};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 16384},
               .iterations = 100,
               .warmup = 10},
    .verbs = VERBS_DEFAULTS,
    .connections = {.min = 1, .max = 256},
    .mode = ROUNDS_MODES,
    .test = MQP_TESTS,
    .depth = 4,
    .duration_ms = 100,
};

static const struct options_row OPTIONS[] = {
    VERBS_DEVICE_ROW(struct settings,
                     "adapter and port; none: the first active one"),
    VERBS_CONNECTION_ROWS(struct settings),
    {"connections", 'q', OPTIONS_SPAN, offsetof(struct settings, connections),
     1, MAX_CONNECTIONS, NULL, "[MIN:]MAX",
     "connections from MIN, doubled up to MAX"},
    {"mode", 0, OPTIONS_CHOICE, offsetof(struct settings, mode), 0, 0,
     MODE_NAMES, "NAME", "send and receive, or RDMA write"},
    {"test", 0, OPTIONS_CHOICE, offsetof(struct settings, test), 0, 0,
     TEST_NAMES, "NAME", "what is measured"},
    {"depth", 0, OPTIONS_INTEGER, offsetof(struct settings, depth), 1,
     MAX_DEPTH, NULL, "COUNT",
     "messages on the way of each connection (throughput)"},
    {"duration", 0, OPTIONS_INTEGER, offsetof(struct settings, duration_ms), 1,
     SETTINGS_MAX_TIME_MS, NULL, "MS", "time to send (throughput)"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    VERBS_FACTOR_ROW(struct settings),
    SETTINGS_LOOP_ROWS(struct settings, "timed rounds", "untimed rounds"),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

static bool is_chosen(const struct settings *settings, size_t mode, size_t test)
{
    return (settings->mode == ROUNDS_MODES || settings->mode == mode) &&
           (settings->test == MQP_TESTS || settings->test == test);
}

static int count_rows(const struct settings *settings)
{
    int kinds = 0;

    for (size_t m = 0; m < ROUNDS_MODES; m++) {
        for (size_t t = 0; t < MQP_TESTS; t++) {
            kinds += is_chosen(settings, m, t);
        }
    }
    return kinds * options_count_sizes(settings->connections) *
           verbs_count_sizes(&settings->verbs, settings->common.sizes);
}

static void report_result(struct report *report, const struct run *run,
                          const struct rounds *rounds, enum mqp_test test,
                          const struct result *result, bool valid)
{
    const struct placement *placement = run->placement;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("source", NULL, placement->hosts[0]));
    report_add(&row, output_text("destination", NULL, placement->hosts[1]));
    link_report(&run->link, &row);
    report_add(&row, output_integer("depth", NULL, run->settings->depth));
    report_add(&row,
               output_integer("duration_ms", NULL, run->settings->duration_ms));
    report_add(&row, output_text("mode", "Mode", MODE_NAMES[rounds->mode]));
    report_add(&row, output_text("test", "Test", TEST_NAMES[test]));
    report_add(&row, output_integer("connections", "QPs", rounds->connections));
    report_add(&row, output_integer("size_bytes", "Size",
                                    (long long)rounds->size_bytes));
    report_add(&row, output_real("clock_us", NULL, run->clock_us));
    report_add(&row, output_real("mb_per_s", "MB/s", result->mb_per_s));
    report_add(&row, output_real("msg_per_s", "Messages/s", result->msg_per_s));
    report_add_times(&row, &result->times);
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(report, &row);
}

/* Stop after the first size with wrong contents. */
static bool run_sizes(const struct run *run, struct rounds rounds,
                      enum mqp_test test, struct report *report)
{
    const struct settings_common *common = &run->settings->common;
    bool valid = true;

    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = verbs_next_size(&run->settings->verbs, common->sizes, size)) {
        rounds.size_bytes = (size_t)size;
        rounds_prepare(&rounds);
        struct result result = mqp_measure(run, &rounds, test);
        if (common->validate) {
            valid = mqp_validate(&rounds);
        }
        if (run->placement->rank == 0) {
            report_result(report, run, &rounds, test, &result, valid);
        }
    }
    return valid;
}

static bool run_kind(const struct run *run, enum rounds_mode mode,
                     enum mqp_test test, struct report *report)
{
    struct options_span span = run->settings->connections;
    struct rounds rounds = run->rounds;
    bool valid = true;

    rounds.mode = mode;
    for (long c = span.min; c <= span.max && valid; c = options_next_size(c)) {
        rounds.connections = (int)c;
        valid = run_sizes(run, rounds, test, report);
    }
    return valid;
}

static enum check_exit run_rows(struct run *run)
{
    const struct settings *settings = run->settings;
    struct report report;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    rounds_post_receives(&run->rounds, (int)settings->connections.max);
    if (is_root) {
        report_open(&report, stdout, run->program, &settings->common, 2,
                    count_rows(settings));
        output_comment(&report.writer, "[ depth: %ld ] [ duration: %ld ms ]",
                       settings->depth, settings->duration_ms);
    }
    for (size_t m = 0; m < ROUNDS_MODES; m++) {
        for (size_t t = 0; t < MQP_TESTS && valid; t++) {
            if (is_chosen(settings, m, t)) {
                valid = run_kind(run, (enum rounds_mode)m, (enum mqp_test)t,
                                 &report);
            }
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

/* Find room for the slots, requests and samples, and connect. */
static enum check_exit run_team(struct run *run)
{
    const struct settings *settings = run->settings;
    const struct settings_common *common = &settings->common;
    size_t count = (size_t)settings->connections.max;
    size_t stride = ((size_t)common->sizes.max + SLOT - 1) / SLOT * SLOT;
    size_t loop =
        (size_t)(common->iterations > common->warmup ? common->iterations
                                                     : common->warmup) +
        3;
    struct link_plan plan = {.connections = (int)count,
                             .send_depth = (int)settings->depth + ANSWERS,
                             .receive_depth = 2 * (int)settings->depth};

    if (!check_memory(MPI_COMM_WORLD, 2.0 * (double)count * (double)stride +
                                          24.0 * (double)loop)) {
        return CHECK_USAGE;
    }
    char *memory = check_allocate(2 * count * stride, "messages");
    run->stamps_ns = check_allocate(2 * loop * sizeof(int64_t), "stamps");
    run->samples = check_allocate(loop * sizeof(double), "samples");
    run->rounds = (struct rounds){
        .link = &run->link,
        .is_first = run->team.is_first,
        .depth = (int)settings->depth,
        .stride = stride,
        .receive = count * stride,
        .requests =
            check_allocate(count * sizeof(struct link_request), "requests"),
        .outstanding = check_allocate(count * sizeof(int), "requests"),
    };
    enum check_exit code = team_connect(&run->team, &settings->verbs, &plan,
                                        memory, 2 * count * stride, &run->link);
    watch_stop();
    if (code == CHECK_PASS) {
        code = run_rows(run);
    }
    team_disconnect(&run->team, &run->link);
    free(run->rounds.outstanding);
    free(run->rounds.requests);
    free(run->samples);
    free(run->stamps_ns);
    free(memory);
    return code;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct placement placement;
    enum check_exit code = CHECK_USAGE;

    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    struct run run = {.program = program,
                      .settings = settings,
                      .placement = &placement,
                      .clock_us = clock_overhead_ns() / 1e3};
    bool is_placed = team_create(&placement, &settings->verbs, &run.team);
    if (is_placed && run.team.pairs == 1) {
        code = run_team(&run);
    } else if (is_placed && placement.rank == 0) {
        check_print("found %d ranks: mqp_lat takes two, one on each of two "
                    "nodes",
                    placement.np);
    }
    placement_free(&placement);
    return code;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;

    if (settings->connections.min > settings->connections.max) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--connections: from %ld to %ld is not a span",
                       settings->connections.min, settings->connections.max);
        return false;
    }
    if (settings->common.sizes.min < 1) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--sizes: 0: a message is awaited by its last byte");
        return false;
    }
    return team_verify(&settings->verbs, 1, error);
}

static void prepare(const void *options)
{
    watch_start(((const struct settings *)options)->verbs.timeout_s);
}

int main(int argc, char **argv)
{
    static const struct program MQP_LAT = {
        .name = "mqp_lat",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .prepare = prepare,
        .run = run,
    };

    return program_main(&MQP_LAT, argc, argv);
}
