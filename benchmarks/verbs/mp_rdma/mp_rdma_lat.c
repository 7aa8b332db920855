/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the latency of RDMA write and read by the number of pairs. */
#include "mp.h"

static const char PURPOSE[] =
    "Latency of RDMA write and read (RC) of 1, 2, 4 ... pairs of ranks that\n"
    "measure at once between two nodes. Rank i of the first node and rank i of "
    "the\nsecond are a pair. The ranks of the first node pass a barrier in "
    "shared memory\nbefore every operation. A write is half the round trip, "
    "awaited by the last byte\nof the message; a read is from the request to "
    "its completion.";

static const struct mp_settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 4194304},
               .iterations = 1000,
               .warmup = 100},
    .verbs = VERBS_DEFAULTS,
    .pairs = {.min = 1, .max = 0},
    .operation = MP_OPERATIONS,
    .window = 2,
    .spread_limit_ns = 200,
};

static const struct options_row OPTIONS[] = {
    MP_OPTION_ROWS("timed operations", "untimed operations"),
};

/* Values of the last byte: each differs from the one before, and from 0. */
static unsigned char tag_of(long i)
{
    return (unsigned char)(i % 255 + 1);
}

static void write_first(const struct mp_run *run, const struct mp_work *work,
                        long n)
{
    const struct link *link = &run->link;
    size_t last = work->size_bytes - 1;
    unsigned char *sent = (unsigned char *)link->memory + run->send + last;
    const unsigned char *received =
        (unsigned char *)link->memory + run->receive + last;
    struct link_request request;
    struct ibv_wc wc;

    link_prepare(link, &request, IBV_WR_RDMA_WRITE, run->send, run->receive,
                 work->size_bytes);
    for (long i = 0; i < n; i++) {
        *sent = tag_of(i);
        run->left_ns[i] = mp_begin(run, work);
        link_post(link, 0, &request);
        link_await_byte(link, received, tag_of(i));
        run->end_ns[i] = clock_now_ns();
        link_await(link, &wc);
    }
}

static void write_second(const struct mp_run *run, const struct mp_work *work,
                         long n)
{
    const struct link *link = &run->link;
    size_t last = work->size_bytes - 1;
    unsigned char *sent = (unsigned char *)link->memory + run->send + last;
    const unsigned char *received =
        (unsigned char *)link->memory + run->receive + last;
    struct link_request request;
    struct ibv_wc wc;

    link_prepare(link, &request, IBV_WR_RDMA_WRITE, run->send, run->receive,
                 work->size_bytes);
    for (long i = 0; i < n; i++) {
        *sent = tag_of(i);
        link_await_byte(link, received, tag_of(i));
        link_post(link, 0, &request);
        link_await(link, &wc);
    }
}

static void read_first(const struct mp_run *run, const struct mp_work *work,
                       long n)
{
    const struct link *link = &run->link;
    struct link_request request;
    struct ibv_wc wc;

    link_prepare(link, &request, IBV_WR_RDMA_READ, run->send, run->receive,
                 work->size_bytes);
    for (long i = 0; i < n; i++) {
        run->left_ns[i] = mp_begin(run, work);
        link_post(link, 0, &request);
        link_await(link, &wc);
        run->end_ns[i] = clock_now_ns();
    }
}

static void first(const struct mp_run *run, const struct mp_work *work, long n)
{
    if (work->operation == MP_READ) {
        read_first(run, work, n);
    } else {
        write_first(run, work, n);
    }
}

/* Nobody answers a read but the adapter. */
static void second(const struct mp_run *run, const struct mp_work *work, long n)
{
    if (work->operation == MP_WRITE) {
        write_second(run, work, n);
    }
}

static void add(struct report_row *row, const struct mp_settings *settings,
                const struct mp_work *work, const struct mp_result *result)
{
    double slowest_us = 0.0;

    (void)settings;
    for (int p = 0; p < work->pairs; p++) {
        double mean_us =
            result->mean_us[p] / (work->operation == MP_WRITE ? 2.0 : 1.0);

        slowest_us = mean_us > slowest_us ? mean_us : slowest_us;
    }
    report_add(row, output_real("slowest_us", "Slowest(us)", slowest_us));
}

static enum check_exit run(const struct program *program, const void *settings)
{
    static const struct mp_kind LATENCY = {
        .first = first, .second = second, .is_half = true, .add = add};

    return mp_run(program, settings, &LATENCY);
}

int main(int argc, char **argv)
{
    static const struct program MP_RDMA_LAT = {
        .name = "mp_rdma_lat",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct mp_settings),
        .verify = mp_verify,
        .prepare = mp_prepare,
        .run = run,
    };

    return program_main(&MP_RDMA_LAT, argc, argv);
}
