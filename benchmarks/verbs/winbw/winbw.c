/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the bandwidth of windows of RDMA writes by one and two ports. */
#include "winbw.h"

#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Bandwidth of RDMA write (RC): windows of messages, each answered by an "
    "empty\nreply, in one direction and in both; by one port, and with two "
    "ports in --device\nstriped over them above --threshold or bound to them. "
    "One or more processes per\nnode: rank i of the first node and rank i of "
    "the second are a pair. Bandwidth\n(10^6 B/s) is that of all pairs and "
    "directions. Min to Max are of single windows.";

static const char *const DIRECTION_NAMES[] = {"uni", "bi", "all", NULL};
static const char *const POLICY_NAMES[] = {"single", "striped", "bound", "all",
                                           NULL};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 4194304},
               .iterations = 100,
               .warmup = 10},
    .verbs = VERBS_DEFAULTS,
    .window = 64,
    .direction = DIRECTIONS,
    .policy = STRIPES_POLICIES,
    .threshold = 8192,
};

static const struct options_row OPTIONS[] = {
    VERBS_DEVICE_ROW(struct settings,
                     "adapter and port, or two of them: NAME:1,NAME:2"),
    VERBS_CONNECTION_ROWS(struct settings),
    {"direction", 0, OPTIONS_CHOICE, offsetof(struct settings, direction), 0, 0,
     DIRECTION_NAMES, "NAME", "from the first node, or from both"},
    {"policy", 0, OPTIONS_CHOICE, offsetof(struct settings, policy), 0, 0,
     POLICY_NAMES, "NAME", "use of two ports (all: what there are ports for)"},
    {"threshold", 0, OPTIONS_INTEGER, offsetof(struct settings, threshold), 0,
     SETTINGS_MAX_SIZE, NULL, "BYTES", "only larger messages are striped"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    VERBS_FACTOR_ROW(struct settings),
    SETTINGS_LOOP_ROWS(struct settings, "timed windows", "untimed windows"),
    SETTINGS_WINDOW_ROW(struct settings),
    PLACEMENT_OPTION_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

static bool is_chosen(const struct run *run, size_t policy, size_t direction)
{
    const struct settings *settings = run->settings;
    bool has_rails = policy == STRIPES_SINGLE || run->team.rails > 1;

    return has_rails &&
           (settings->policy == STRIPES_POLICIES ||
            settings->policy == policy) &&
           (settings->direction == DIRECTIONS ||
            settings->direction == direction);
}

static int count_rows(const struct run *run)
{
    int kinds = 0;

    for (size_t p = 0; p < STRIPES_POLICIES; p++) {
        for (size_t d = 0; d < DIRECTIONS; d++) {
            kinds += is_chosen(run, p, d);
        }
    }
    return kinds * verbs_count_sizes(&run->settings->verbs,
                                     run->settings->common.sizes);
}

static void report_result(struct report *report, const struct run *run,
                          const struct work *work, const struct window *window,
                          const struct result *result, bool valid)
{
    const struct placement *placement = run->placement;
    double messages = (double)run->settings->window * (double)result->times.n *
                      (work->direction == BOTH_WAYS ? 2.0 : 1.0);
    double msg_per_us = messages / result->interval_us;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("source", NULL, placement->hosts[0]));
    report_add(&row, output_text("destination", NULL, placement->hosts[1]));
    link_report(&run->links[0], &row);
    bool is_dual = run->team.rails > 1;
    report_add(&row, output_text("device_2", NULL,
                                 is_dual ? run->links[1].port.name : NULL));
    report_add(&row, output_text("peer_device_2", NULL,
                                 is_dual ? run->links[1].peer_name : NULL));
    report_add(&row, output_integer("rails", NULL, run->team.rails));
    report_add(&row, output_integer("threshold_bytes", NULL,
                                    run->settings->threshold));
    report_add(&row, output_integer("window", NULL, run->settings->window));
    report_add(&row,
               output_text("policy", "Policy", POLICY_NAMES[work->policy]));
    report_add(&row, output_text("direction", "Direction",
                                 DIRECTION_NAMES[work->direction]));
    report_add(&row, output_integer("pairs", "Pairs", run->team.pairs));
    report_add(&row, output_integer("size_bytes", "Size",
                                    (long long)work->size_bytes));
    report_add(&row, output_integer("pieces", "Pieces", window->own.count));
    report_add(&row, output_real("mb_per_s", "MB/s",
                                 msg_per_us * (double)work->size_bytes));
    report_add(&row, output_real("msg_per_s", "Messages/s", msg_per_us * 1e6));
    report_add(&row, output_real("interval_us", NULL, result->interval_us));
    report_add_times(&row, &result->times);
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(report, &row);
}

/* Stop after the first size with wrong contents. */
static bool run_sizes(struct run *run, struct work work, struct report *report)
{
    const struct settings_common *common = &run->settings->common;
    bool valid = true;

    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = verbs_next_size(&run->settings->verbs, common->sizes, size)) {
        work.size_bytes = (size_t)size;
        struct window window = winbw_window(run, &work);
        struct result result = winbw_measure(run, &window);
        if (common->validate) {
            valid = winbw_validate(run, &window, &work);
        }
        if (run->placement->rank == 0) {
            report_result(report, run, &work, &window, &result, valid);
        }
    }
    return valid;
}

static enum check_exit run_rows(struct run *run)
{
    struct report report;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    window_post_receives(run->links, run->team.rails);
    if (is_root) {
        report_open(&report, stdout, run->program, &run->settings->common,
                    run->placement->np, count_rows(run));
        output_comment(&report.writer, "[ window: %ld ] [ threshold: %ld ]",
                       run->settings->window, run->settings->threshold);
    }
    for (size_t p = 0; p < STRIPES_POLICIES; p++) {
        for (size_t d = 0; d < DIRECTIONS && valid; d++) {
            if (is_chosen(run, p, d)) {
                valid =
                    run_sizes(run,
                              (struct work){.policy = (enum stripes_policy)p,
                                            .direction = (enum direction)d},
                              &report);
            }
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

static enum check_exit run_team(struct run *run)
{
    const struct settings *settings = run->settings;
    const struct settings_common *common = &settings->common;
    size_t size = ((size_t)common->sizes.max + 4095) / 4096 * 4096;
    size_t loop =
        (size_t)(common->iterations > common->warmup ? common->iterations
                                                     : common->warmup) +
        4;
    size_t all = run->placement->rank == 0 ? loop * (size_t)run->team.pairs : 1;
    /* A cut message takes two requests, and two windows may be on the way. */
    struct link_plan plan = {.connections = 1,
                             .send_depth = 2 * (int)settings->window + 1,
                             .receive_depth = 2 * (int)settings->window + 2};

    if (!check_memory(MPI_COMM_WORLD,
                      2.0 * (double)size +
                          8.0 * (2.0 * (double)loop + (double)all))) {
        return CHECK_USAGE;
    }
    char *memory = check_allocate(2 * size, "messages");
    run->receive = size;
    run->stamps_ns = check_allocate(loop * sizeof(int64_t), "stamps");
    run->samples = check_allocate(all * sizeof(double), "samples of all pairs");
    enum check_exit code = team_connect(&run->team, &settings->verbs, &plan,
                                        memory, 2 * size, run->links);
    watch_stop();
    if (code == CHECK_PASS) {
        code = run_rows(run);
    }
    team_disconnect(&run->team, run->links);
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
    struct run run = {
        .program = program, .settings = settings, .placement = &placement};
    if (team_create(&placement, &settings->verbs, &run.team)) {
        CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, placement.node, placement.rank,
                                 &run.firsts),
                  "ranks of a node");
        code = run_team(&run);
        CHECK_MPI(MPI_Comm_free(&run.firsts), "ranks of a node");
    }
    placement_free(&placement);
    return code;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;
    const char *device = settings->verbs.device;

    if (!team_verify(&settings->verbs, PORT_MAX_RAILS, error)) {
        return false;
    }
    if (settings->policy != STRIPES_POLICIES &&
        settings->policy != STRIPES_SINGLE &&
        (device == NULL || strchr(device, ',') == NULL)) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--policy %s takes two ports in --device",
                       POLICY_NAMES[settings->policy]);
        return false;
    }
    if (settings->common.sizes.min < 1) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--sizes: 0: RDMA writes have at least 1 byte here");
        return false;
    }
    return true;
}

static void prepare(const void *options)
{
    watch_start(((const struct settings *)options)->verbs.timeout_s);
}

int main(int argc, char **argv)
{
    static const struct program WINBW = {
        .name = "winbw",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .prepare = prepare,
        .run = run,
    };

    return program_main(&WINBW, argc, argv);
}
