/* SPDX-License-Identifier: Apache-2.0 */
/* Measure messages from and into ever new buffers. */
#include "budget.h"
#include "buffers.h"
#include "cache.h"
#include "check.h"
#include "machine.h"
#include "p2p.h"
#include "program.h"
#include "report.h"
#include "sequence.h"
#include "settings.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Latency of a ping-pong between two ranks that use one buffer again and "
    "again,\nor ever new ones. With a re-use of 100 % all messages come from "
    "and go to\nbuffer 0, with 0 % each has the next buffer, in between a "
    "share of them is\nspread evenly. Latency is half the round trip; Ratio is "
    "its median over that\nof 100 %.";

enum { FULL_REUSE = 100, MAX_BUFFERS = 65536, MOST_SIZES = 32 };

struct settings {
    struct settings_common common;
    long buffers;
    long eager_limit;
    const char *reuse; /* a list of percentages, or all */
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 8, .max = 262144},
               .iterations = 1024,
               .warmup = 100},
    .buffers = 1024,
    .eager_limit = 8192,
    .reuse = "all",
};

static const struct options_row OPTIONS[] = {
    {"buffers", 0, OPTIONS_INTEGER, offsetof(struct settings, buffers), 1,
     MAX_BUFFERS, NULL, "COUNT", "buffers to send, and as many to receive"},
    {"reuse", 0, OPTIONS_TEXT, offsetof(struct settings, reuse), 0, 0, NULL,
     "LIST", "shares of re-use: all, or percentages such as 0,50,100"},
    {"eager-limit", 0, OPTIONS_INTEGER, offsetof(struct settings, eager_limit),
     0, SETTINGS_MAX_SIZE, NULL, "BYTES",
     "largest eager message, as MPI is set; larger are rendezvous"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    SETTINGS_LOOP_ROWS(struct settings, "timed round trips per share",
                       "untimed round trips of buffer 0 before each share"),
    SETTINGS_LAST_ROWS(struct settings),
};

/** Shares to measure: the percentages that are true. */
struct shares {
    bool wanted[FULL_REUSE + 1];
    int count;
};

/* Read a list; false if it is none. */
static bool read_shares(const char *text, struct shares *shares)
{
    *shares = (struct shares){.count = 0};
    text = strcmp(text, "all") == 0 ? "0,25,50,75,100" : text;
    for (;;) {
        char *end = NULL;
        long share = strtol(text, &end, 10);

        if (*text < '0' || *text > '9' || share > FULL_REUSE) {
            return false;
        }
        shares->count += shares->wanted[share] ? 0 : 1;
        shares->wanted[share] = true;
        if (*end == '\0') {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        text = end + 1;
    }
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;
    struct shares shares;

    if (!read_shares(settings->reuse, &shares)) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--reuse: '%.100s' is neither all nor a list of "
                       "percentages from 0 to 100",
                       settings->reuse);
        return false;
    }
    return true;
}

/** Ratios without re-use, of the sizes of a protocol. */
struct ratios {
    double values[MOST_SIZES];
    size_t count;
};

enum { EAGER, RENDEZVOUS, PROTOCOLS };
static const char *const NAMES[PROTOCOLS] = {"eager", "rendezvous"};

/* The state that all sizes and shares need. */
struct bench {
    const struct program *program;
    const struct settings *settings;
    struct shares shares;
    struct p2p p2p; /* without slots */
    struct cache cache;
    struct report report; /* of rank 0, as the ratios */
    struct ratios ratios[PROTOCOLS];
};

/* The numbers of a size and a share of re-use. */
struct result {
    long size;
    int reuse_percent;
    size_t buffers_used;
    double ratio; /* NAN without full re-use */
    struct stats_summary latency;
    bool valid;
};

/* Warm up with buffer 0 only. Gives as many iterations as there is time for. */
static long warm_up(const struct bench *bench, const struct buffers *buffers,
                    int size)
{
    struct settings_common common = bench->settings->common;
    struct p2p one = bench->p2p;

    one.send = buffers->send;
    one.receive = buffers->receive;
    one.slots = 1;
    common.iterations = common.warmup > 0 ? common.warmup : 1;
    common.warmup = 0;
    double round_trip_us = 2.0 * p2p_latency(&one, &common, size).mean;

    return common.time_ms == 0
               ? bench->settings->common.iterations
               : budget_iterations(one.comm, round_trip_us,
                                   bench->settings->common.iterations,
                                   (double)common.time_ms * 1e3);
}

/* The timed messages are the first ones of their buffers, with cold caches. */
static void time_sequence(const struct bench *bench,
                          const struct buffers *buffers, long iterations,
                          struct result *result)
{
    const struct settings_common common = {.iterations = iterations};
    struct p2p ring = bench->p2p;
    struct sequence sequence;

    sequence_create(buffers->count, result->reuse_percent, &sequence);
    size_t bytes = sequence.length * sizeof(char *);
    char **send = check_allocate(bytes, "a ring");
    char **receive = check_allocate(bytes, "a ring");
    for (size_t i = 0; i < sequence.length; i++) {
        send[i] = buffers->send[sequence.buffers[i]];
        receive[i] = buffers->receive[sequence.buffers[i]];
    }
    ring.send = send;
    ring.receive = receive;
    ring.slots = sequence.length;
    cache_flush(&bench->cache);
    result->latency = p2p_latency(&ring, &common, (int)result->size);
    result->buffers_used = sequence_used(&sequence, (size_t)iterations);
    free(receive);
    free(send);
    sequence_free(&sequence);
}

static bool validate(const struct bench *bench, const struct buffers *buffers,
                     int size)
{
    struct p2p each = bench->p2p;

    each.send = buffers->send;
    each.receive = buffers->receive;
    each.slots = buffers->count;
    return p2p_validate(&each, size);
}

static struct result measure(const struct bench *bench, long size,
                             int reuse_percent)
{
    struct result result = {
        .size = size, .reuse_percent = reuse_percent, .valid = true};
    struct buffers buffers;

    buffers_create((size_t)bench->settings->buffers, (size_t)size, &buffers);
    long iterations = warm_up(bench, &buffers, (int)size);
    time_sequence(bench, &buffers, iterations, &result);
    if (bench->settings->common.validate) {
        result.valid = validate(bench, &buffers, (int)size);
    }
    buffers_free(&buffers);
    return result;
}

static void report_start(struct bench *bench)
{
    const struct settings *settings = bench->settings;
    struct report *report = &bench->report;

    report_open(report, stdout, bench->program, &settings->common, 2,
                bench->shares.count *
                    options_count_sizes(settings->common.sizes));
    output_comment(&report->writer,
                   "[ buffers: %ld ] [ eager up to: %ld bytes ] [ caches "
                   "swept with: %zu bytes ]",
                   settings->buffers, settings->eager_limit,
                   bench->cache.size_bytes);
    if (settings->common.iterations < settings->buffers) {
        output_comment(&report->writer,
                       "fewer iterations than buffers: not all have a turn");
    }
}

static void report_result(struct bench *bench, const struct result *result)
{
    const struct settings *settings = bench->settings;
    int protocol = result->size <= settings->eager_limit ? EAGER : RENDEZVOUS;
    struct ratios *ratios = &bench->ratios[protocol];
    struct report_row row;

    if (result->reuse_percent == 0) {
        ratios->values[ratios->count++] = result->ratio;
    }

    report_begin(&bench->report, &row);
    report_add(&row, output_integer("buffers", NULL, settings->buffers));
    report_add(
        &row, output_integer("eager_limit_bytes", NULL, settings->eager_limit));
    report_add(&row, output_integer("swept_bytes", NULL,
                                    (long long)bench->cache.size_bytes));
    report_add(&row, output_integer("size_bytes", "Size", result->size));
    report_add(&row, output_text("protocol", "Protocol", NAMES[protocol]));
    report_add(&row, output_integer("reuse_percent", "Re-use(%)",
                                    result->reuse_percent));
    report_add(&row, output_integer("buffers_used", "Used",
                                    (long long)result->buffers_used));
    report_add_times(&row, &result->latency);
    report_add(&row, output_real("ratio", "Ratio", result->ratio));
    report_add_validation(&row, settings->common.validate, result->valid);
    report_end(&bench->report, &row);
}

/* For people; whoever reads the rows has all ratios. */
static void report_medians(struct bench *bench)
{
    for (int i = 0; i < PROTOCOLS && bench->shares.wanted[FULL_REUSE]; i++) {
        struct ratios *ratios = &bench->ratios[i];

        if (ratios->count > 0) {
            output_comment(&bench->report.writer,
                           "median ratio without re-use, %s: %.2f", NAMES[i],
                           stats_summarise(ratios->values, ratios->count).p50);
        }
    }
}

/* From full re-use down, as the ratios refer to it. */
static bool run_size(struct bench *bench, long size)
{
    double full_us = NAN;
    bool valid = true;

    for (int share = FULL_REUSE; share >= 0 && valid; share--) {
        if (!bench->shares.wanted[share]) {
            continue;
        }
        struct result result = measure(bench, size, share);
        full_us = share == FULL_REUSE ? result.latency.p50 : full_us;
        result.ratio = result.latency.p50 / full_us;
        valid = result.valid;
        if (bench->p2p.is_first) {
            report_result(bench, &result);
        }
    }
    return valid;
}

/* Stop after the first size with wrong contents. */
static enum check_exit run_sizes(struct bench *bench)
{
    const struct options_span *sizes = &bench->settings->common.sizes;
    bool is_first = bench->p2p.is_first;
    bool valid = true;

    if (is_first) {
        report_start(bench);
    }
    for (long size = sizes->min; size <= sizes->max && valid;
         size = options_next_size(size)) {
        valid = run_size(bench, size);
    }
    if (is_first) {
        report_medians(bench);
    }
    return (!is_first || report_close(&bench->report)) && valid ? CHECK_PASS
                                                                : CHECK_FAILED;
}

/* The largest number of bytes that a rank takes. */
static double memory_bytes(const struct bench *bench)
{
    const struct settings *settings = bench->settings;
    size_t buffers = (size_t)settings->buffers;
    size_t longest = 0;

    for (int share = 0; share <= FULL_REUSE; share++) {
        if (bench->shares.wanted[share]) {
            size_t length = sequence_length(buffers, share);

            longest = length > longest ? length : longest;
        }
    }
    return buffers_size_bytes(buffers, (size_t)settings->common.sizes.max) +
           p2p_size_bytes(&settings->common, 1, 0) +
           2.0 * (double)machine_largest_cache_bytes() +
           (double)longest * (sizeof(uint32_t) + 2 * sizeof(char *));
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct bench bench = {.program = program, .settings = settings};

    (void)read_shares(settings->reuse, &bench.shares);
    if (!p2p_pair(MPI_COMM_WORLD, &bench.p2p) ||
        !check_memory(MPI_COMM_WORLD, memory_bytes(&bench))) {
        return CHECK_USAGE;
    }
    p2p_create(&bench.p2p, &settings->common, 1);
    cache_create(&bench.cache);

    enum check_exit code = run_sizes(&bench);

    cache_free(&bench.cache);
    p2p_free(&bench.p2p);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program BUFREUSE = {
        .name = "bufreuse",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .run = run,
    };

    return program_main(&BUFREUSE, argc, argv);
}
