/* SPDX-License-Identifier: Apache-2.0 */
#include "mq.h"

#include "check.h"
#include "p2p.h"
#include "report.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>

enum { MQ_MOST_DEPTHS = 16 }; /* up to MQ_MAX_DEPTH, doubled every time */

const struct options_row MQ_OPTIONS[] = {
    {"depth", 'd', OPTIONS_SPAN, offsetof(struct mq_settings, depth), 0,
     MQ_MAX_DEPTH, NULL, "[MIN:]MAX",
     "entries of the queue from MIN, doubled up to MAX; 0 is followed by 2"},
    {"entry-size", 0, OPTIONS_INTEGER,
     offsetof(struct mq_settings, entry_bytes), 0, MQ_MAX_ENTRY, NULL, "BYTES",
     "size of every entry's message"},
    {"tags", 0, OPTIONS_CHOICE, offsetof(struct mq_settings, tags), 0, 0,
     MQ_TAGS, "NAME", "tags of the entries"},
    SETTINGS_SIZE_ROWS(struct mq_settings, SETTINGS_MAX_SIZE, "BYTES",
                       "message of the ping-pong"),
    SETTINGS_LOOP_ROWS(struct mq_settings, "timed round trips per depth",
                       "untimed round trips before each depth"),
    SETTINGS_LAST_ROWS(struct mq_settings),
};

/* The state that all sizes and depths share. */
struct mq {
    const struct mq_kind *kind;
    const struct mq_settings *settings;
    struct mq_queue queue;
    struct p2p p2p;
    struct mq_result *results; /* of one size: as many as there are depths */
};

/* The numbers of one depth. */
struct mq_result {
    int depth;
    struct stats_summary latency;
    bool valid;
};

bool mq_verify(const void *settings, char error[OPTIONS_ERROR_SIZE])
{
    const struct options_span *depth =
        &((const struct mq_settings *)settings)->depth;

    if (depth->min > depth->max) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "smallest depth %ld is above the largest, %ld",
                       depth->min, depth->max);
        return false;
    }
    return true;
}

static void mq_barrier(void *context)
{
    const struct mq_queue *queue = context;

    CHECK_MPI(MPI_Barrier(queue->control), "%d entries", queue->depth);
}

static struct mq_result mq_measure(struct mq *mq, int size_bytes)
{
    const struct settings_common *common = &mq->settings->common;
    struct mq_queue *queue = &mq->queue;
    struct mq_result result = {.depth = queue->depth, .valid = true};

    mq_prepare(queue);
    mq->kind->fill(queue);
    mq_barrier(queue);
    result.latency = p2p_latency_posted(&mq->p2p, common, size_bytes);
    if (common->validate) {
        result.valid = p2p_validate(&mq->p2p, size_bytes);
    }
    mq_barrier(queue);
    mq->kind->empty(queue);
    if (common->validate) {
        result.valid = mq_check(queue) && result.valid;
    }
    return result;
}

/* The latency of an entry, in ns; NAN of a single depth. */
static double mq_slope_ns(const struct mq_result *results, size_t count)
{
    double depths[MQ_MOST_DEPTHS];
    double latencies_us[MQ_MOST_DEPTHS];

    for (size_t i = 0; i < count; i++) {
        depths[i] = results[i].depth;
        latencies_us[i] = results[i].latency.p50;
    }
    return count < 2 ? NAN
                     : 1e3 * stats_fit_line(depths, latencies_us, count).slope;
}

static void mq_report_size(struct report *report,
                           const struct mq_settings *settings, long size,
                           const struct mq_result *results, size_t count)
{
    double slope_ns = mq_slope_ns(results, count);
    struct report_row row;

    for (size_t i = 0; i < count; i++) {
        const struct mq_result *result = &results[i];

        report_begin(report, &row);
        report_add(&row, output_text("tags", NULL, MQ_TAGS[settings->tags]));
        report_add(&row,
                   output_integer("entry_bytes", NULL, settings->entry_bytes));
        report_add(&row, output_integer("size_bytes", "Size", size));
        report_add(&row, output_integer("depth", "Depth", result->depth));
        report_add_times(&row, &result->latency);
        report_add(&row,
                   output_real("ratio", "Ratio",
                               result->latency.p50 / results[0].latency.p50));
        report_add(&row, output_real("slope_ns", "ns/entry", slope_ns));
        report_add_validation(&row, settings->common.validate, result->valid);
        report_end(report, &row);
    }
}

static void mq_report_start(struct report *report, const struct mq *mq)
{
    const struct mq_settings *settings = mq->settings;

    report_open(report, stdout, mq->kind->program, &settings->common, 2,
                options_count_sizes(settings->common.sizes) *
                    options_count_sizes(settings->depth));
    output_comment(&report->writer, "[ entries: %ld bytes ] [ tags: %s ]",
                   settings->entry_bytes, MQ_TAGS[settings->tags]);
    output_comment(&report->writer,
                   "Latency is half a round trip; Ratio: p50 over that of the "
                   "first depth; ns/entry: slope of p50 over all depths");
}

/* Stop after the first depth with wrong contents. */
static enum check_exit mq_run_sizes(struct mq *mq)
{
    const struct options_span *sizes = &mq->settings->common.sizes;
    const struct options_span *depths = &mq->settings->depth;
    bool is_root = mq->queue.rank == 0;
    struct report report;
    bool valid = true;

    if (is_root) {
        mq_report_start(&report, mq);
    }
    for (long size = sizes->min; size <= sizes->max && valid;
         size = options_next_size(size)) {
        size_t count = 0;

        for (long depth = depths->min; depth <= depths->max && valid;
             depth = options_next_size(depth)) {
            mq->queue.depth = (int)depth;
            mq->results[count] = mq_measure(mq, (int)size);
            valid = mq->results[count++].valid;
        }
        if (is_root) {
            mq_report_size(&report, mq->settings, size, mq->results, count);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

enum check_exit mq_run(const struct mq_kind *kind,
                       const struct mq_settings *settings)
{
    const struct settings_common *common = &settings->common;
    size_t depths = (size_t)options_count_sizes(settings->depth);
    struct mq mq = {.kind = kind, .settings = settings};
    double wanted =
        p2p_size_bytes(common, 1, 1) + mq_queue_size_bytes(settings);

    if (!p2p_pair(MPI_COMM_WORLD, &mq.p2p) ||
        !check_memory(MPI_COMM_WORLD, wanted)) {
        return CHECK_USAGE;
    }
    char *send = check_allocate((size_t)common->sizes.max, "messages");
    char *receive = check_allocate((size_t)common->sizes.max, "messages");
    mq.p2p.send = &send;
    mq.p2p.receive = &receive;
    mq.p2p.slots = 1;
    mq.p2p.barrier = mq_barrier;
    mq.p2p.barrier_context = &mq.queue;
    p2p_create(&mq.p2p, common, 1);
    mq_queue_create(settings, &mq.queue);
    mq.results = check_allocate(depths * sizeof(*mq.results), "results");

    enum check_exit code = mq_run_sizes(&mq);

    free(mq.results);
    mq_queue_free(&mq.queue);
    p2p_free(&mq.p2p);
    free(send);
    free(receive);
    return code;
}
