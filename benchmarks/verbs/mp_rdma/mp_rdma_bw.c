/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the bandwidth of RDMA write and read by the number of pairs. */
#include "mp.h"

static const char PURPOSE[] =
    "Bandwidth of RDMA write and read (RC) of 1, 2, 4 ... pairs of ranks that\n"
    "measure at once between two nodes. Rank i of the first node and rank i of "
    "the\nsecond are a pair. The ranks of the first node pass a barrier in "
    "shared memory\nbefore every window of requests. Bandwidth (10^6 B/s) is "
    "that of all pairs, from\nthe first begin to the last end. Min to Max are "
    "of single windows of all pairs.";

static const struct mp_settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 4194304},
               .iterations = 100,
               .warmup = 10},
    .verbs = VERBS_DEFAULTS,
    .pairs = {.min = 1, .max = 0},
    .operation = MP_OPERATIONS,
    .window = 64,
    .spread_limit_ns = 200,
};

static const struct options_row OPTIONS[] = {
    {"window", 'W', OPTIONS_INTEGER, offsetof(struct mp_settings, window), 1,
     SETTINGS_MAX_WINDOW, NULL, "COUNT",
     "requests on the way before their completion is awaited"},
    MP_OPTION_ROWS("timed windows", "untimed windows"),
};

static void first(const struct mp_run *run, const struct mp_work *work, long n)
{
    const struct link *link = &run->link;
    bool is_read = work->operation == MP_READ;
    long before_last = run->settings->window - 1;
    struct link_request request;
    struct link_request last;
    struct ibv_wc wc;

    link_prepare(link, &request, is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                 run->send, run->receive, work->size_bytes);
    link_prepare(link, &last, request.wr.opcode, run->send, run->receive,
                 work->size_bytes);
    request.wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    for (long i = 0; i < n; i++) {
        run->left_ns[i] = mp_begin(run, work);
        for (long w = 0; w < before_last; w++) {
            link_post(link, 0, &request);
        }
        link_post(link, 0, &last);
        link_await(link, &wc);
        run->end_ns[i] = clock_now_ns();
    }
}

/* The adapter answers. */
static void second(const struct mp_run *run, const struct mp_work *work, long n)
{
    (void)run;
    (void)work;
    (void)n;
}

static void add(struct report_row *row, const struct mp_settings *settings,
                const struct mp_work *work, const struct mp_result *result)
{
    double window_bytes = (double)settings->window * (double)work->size_bytes;
    double messages =
        (double)settings->window * (double)result->made * (double)work->pairs;
    double msg_per_us = messages / result->interval_us;
    double least = 0.0;
    double most = 0.0;

    for (int p = 0; p < work->pairs; p++) {
        double *rate = &result->mean_us[p];

        *rate = window_bytes / *rate;
        least = p == 0 || *rate < least ? *rate : least;
        most = *rate > most ? *rate : most;
    }
    report_add(row, output_integer("window", NULL, settings->window));
    report_add(row, output_real("mb_per_s", "MB/s",
                                msg_per_us * (double)work->size_bytes));
    report_add(row, output_real("msg_per_s", "Messages/s", msg_per_us * 1e6));
    report_add(row, output_real("interval_us", NULL, result->interval_us));
    report_add(row, output_real("least_mb_per_s", NULL, least));
    report_add(row, output_real("most_mb_per_s", NULL, most));
    report_add(row, output_real_digits(
                        "fairness", "Fairness",
                        stats_jain(result->mean_us, (size_t)work->pairs), 4));
}

static enum check_exit run(const struct program *program, const void *settings)
{
    static const struct mp_kind BANDWIDTH = {
        .first = first, .second = second, .add = add};

    return mp_run(program, settings, &BANDWIDTH);
}

int main(int argc, char **argv)
{
    static const struct program MP_RDMA_BW = {
        .name = "mp_rdma_bw",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct mp_settings),
        .verify = mp_verify,
        .prepare = mp_prepare,
        .run = run,
    };

    return program_main(&MP_RDMA_BW, argc, argv);
}
