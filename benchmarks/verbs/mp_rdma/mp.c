/* SPDX-License-Identifier: Apache-2.0 */
#include "mp.h"

#include "pairs.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

const char *const MP_OPERATION_NAMES[] = {"write", "read", "all", NULL};

bool mp_verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct mp_settings *settings = options;
    const struct options_span *pairs = &settings->pairs;

    if (pairs->min < 1 || (pairs->max > 0 && pairs->min > pairs->max)) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--pairs: from %ld to %ld is not a span of pairs",
                       pairs->min, pairs->max);
        return false;
    }
    if (settings->common.sizes.min < 1) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--sizes: 0: a message is awaited by its last byte");
        return false;
    }
    return team_verify(&settings->verbs, 1, error);
}

void mp_prepare(const void *options)
{
    watch_start(((const struct mp_settings *)options)->verbs.timeout_s);
}

/* Pairs are doubled; the largest number is always the last. */
static int mp_next_pairs(int pairs, int most)
{
    if (pairs == most) {
        return most + 1;
    }
    return 2 * pairs < most ? 2 * pairs : most;
}

static bool mp_is_chosen(const struct mp_settings *settings, size_t operation)
{
    return settings->operation == MP_OPERATIONS ||
           settings->operation == operation;
}

static int mp_count_rows(const struct mp_run *run)
{
    int operations = run->settings->operation == MP_OPERATIONS ? 2 : 1;
    int count = 0;

    for (int p = (int)run->settings->pairs.min; p <= run->most_pairs;
         p = mp_next_pairs(p, run->most_pairs)) {
        count += operations * verbs_count_sizes(&run->settings->verbs,
                                                run->settings->common.sizes);
    }
    return count;
}

static void mp_report(struct report *report, const struct mp_run *run,
                      const struct mp_work *work,
                      const struct mp_result *result, bool valid)
{
    const struct placement *placement = run->placement;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("source", NULL, placement->hosts[0]));
    report_add(&row, output_text("destination", NULL,
                                 placement->hosts[placement->nodes - 1]));
    link_report(&run->link, &row);
    report_add(&row, output_text("operation", "Operation",
                                 MP_OPERATION_NAMES[work->operation]));
    report_add(&row, output_integer("pairs", "Pairs", work->pairs));
    report_add(&row, output_integer("size_bytes", "Size",
                                    (long long)work->size_bytes));
    report_add(&row, output_real("clock_us", NULL, run->clock_us));
    run->kind->add(&row, run->settings, work, result);
    report_add_times(&row, &result->times);
    report_add(&row, output_integer("spread_limit_ns", NULL,
                                    run->settings->spread_limit_ns));
    report_add(&row, output_real("spread_p50_ns", "Spread(ns)",
                                 result->spread_ns.p50));
    report_add(&row, output_real("spread_max_ns", NULL, result->spread_ns.max));
    report_add(&row,
               output_integer("operations", NULL, (long long)result->made));
    report_add(
        &row, output_integer("dropped", "Dropped", (long long)result->dropped));
    report_add_validation(&row, run->settings->common.validate, valid);
    report_end(report, &row);
}

/* Stop after the first size with wrong contents. */
static bool mp_run_sizes(const struct mp_run *run, enum mp_operation operation,
                         int pairs, struct report *report)
{
    const struct settings_common *common = &run->settings->common;
    struct mp_comms comms;
    bool valid = true;

    mp_join(run, pairs, &comms);
    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = verbs_next_size(&run->settings->verbs, common->sizes, size)) {
        struct mp_work work = {operation, (size_t)size, pairs};
        struct mp_result result = mp_measure(run, &work, &comms);

        if (common->validate) {
            valid = mp_validate(run, &work);
        }
        if (run->placement->rank == 0) {
            mp_report(report, run, &work, &result, valid);
        }
        free(result.mean_us);
    }
    mp_leave(&comms);
    return valid;
}

static enum check_exit mp_run_rows(const struct mp_run *run)
{
    struct report report;
    bool is_root = run->placement->rank == 0;
    bool valid = true;

    if (is_root) {
        report_open(&report, stdout, run->program, &run->settings->common,
                    run->placement->np, mp_count_rows(run));
        output_comment(&report.writer, "[ from: %s %s ] [ to: %s %s ]",
                       run->placement->hosts[0], run->link.port.name,
                       run->placement->hosts[1], run->link.peer_name);
    }
    for (size_t o = 0; o < MP_OPERATIONS; o++) {
        for (int p = (int)run->settings->pairs.min;
             p <= run->most_pairs && valid && mp_is_chosen(run->settings, o);
             p = mp_next_pairs(p, run->most_pairs)) {
            valid = mp_run_sizes(run, (enum mp_operation)o, p, &report);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

/* Memory for the messages, twice the largest, and for the samples. */
static enum check_exit mp_run_team(struct mp_run *run)
{
    const struct settings_common *common = &run->settings->common;
    size_t size = (size_t)common->sizes.max;
    size_t loop =
        (size_t)(common->iterations > common->warmup ? common->iterations
                                                     : common->warmup) +
        3;
    bool is_root = run->placement->rank == 0;
    double bytes = 2.0 * (double)size + 5.0 * 8.0 * (double)loop +
                   (is_root ? 8.0 * (double)loop * run->most_pairs : 0.0);
    struct link_plan plan = {.connections = 1,
                             .send_depth = (int)run->settings->window,
                             .receive_depth = 1};

    if (!check_memory(MPI_COMM_WORLD, bytes)) {
        return CHECK_USAGE;
    }
    run->receive = (size + 4095) / 4096 * 4096;
    char *memory = check_allocate(2 * run->receive, "messages");
    run->left_ns = check_allocate(loop * sizeof(int64_t), "stamps");
    run->end_ns = check_allocate(loop * sizeof(int64_t), "stamps");
    run->samples = check_allocate(
        (is_root ? loop * (size_t)run->most_pairs : 1) * sizeof(double),
        "samples of all pairs");
    enum check_exit code =
        team_connect(&run->team, &run->settings->verbs, &plan, memory,
                     2 * run->receive, &run->link);
    watch_stop();
    if (code == CHECK_PASS) {
        code = mp_run_rows(run);
    }
    team_disconnect(&run->team, &run->link);
    free(run->samples);
    free(run->end_ns);
    free(run->left_ns);
    free(memory);
    return code;
}

/* The largest number of pairs to measure; 0, after an error message, if there
 * is no room for them. */
static int mp_choose_pairs(const struct mp_run *run)
{
    const struct options_span *pairs = &run->settings->pairs;
    int most = pairs->max > 0 ? (int)pairs->max : run->team.pairs;

    if (most <= run->team.pairs && pairs->min <= most) {
        return most;
    }
    if (run->placement->rank == 0) {
        check_print("--pairs: asked for %ld to %d pairs, there is room for %d",
                    pairs->min, most, run->team.pairs);
    }
    return 0;
}

enum check_exit mp_run(const struct program *program,
                       const struct mp_settings *settings,
                       const struct mp_kind *kind)
{
    struct placement placement;
    MPI_Comm node;
    enum check_exit code = CHECK_USAGE;

    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    struct mp_run run = {.program = program,
                         .settings = settings,
                         .kind = kind,
                         .placement = &placement,
                         .clock_us = clock_overhead_ns() / 1e3};
    if (team_create(&placement, &settings->verbs, &run.team)) {
        run.most_pairs = mp_choose_pairs(&run);
    }
    if (run.most_pairs > 0) {
        CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, placement.node, placement.rank,
                                 &node),
                  "ranks of a node");
        node_barrier_create(node, &run.barrier);
        code = mp_run_team(&run);
        node_barrier_free(&run.barrier);
        CHECK_MPI(MPI_Comm_free(&node), "ranks of a node");
    }
    placement_free(&placement);
    return code;
}
