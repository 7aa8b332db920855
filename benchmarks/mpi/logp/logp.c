/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the cost of a message for sender, receiver and network. */
#include "check.h"
#include "measure.h"
#include "placement.h"
#include "program.h"
#include "refine.h"
#include "report.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Parameterised LogP (Kielmann, Bal, Verstoep 2000) between two processes.\n"
    "os: time the sender is busy with a message. or: time the receiver is\n"
    "busy with one that has come. g: gap between messages, RTT(m) - RTT(0) +\n"
    "g(0); g_flood: the same by saturation. RTT: a message and an empty one\n"
    "back. L: latency of the network, RTT(0) / 2 - g(0). All are medians.\n"
    "Size 0 is always measured; rows come at the end.";

enum { MAX_FLOOD = 1 << 30, MAX_INSERTS = 1024, MAX_DELAY_US = 1000000 };

static const struct logp_settings DEFAULTS = {
    .common = {.sizes = {.min = 0, .max = 1 << 20},
               .iterations = 10000,
               .warmup = 10,
               .time_ms = 1000},
    .least = 30,
    .eps_percent = 3,
    .confidence_percent = 95,
    .flood = 1 << 17,
    .inserts = 8,
};

static const struct options_row OPTIONS[] = {
    SETTINGS_SIZE_ROWS(struct logp_settings, SETTINGS_MAX_SIZE, "BYTES",
                       "message"),
    {"send", 0, OPTIONS_CHOICE, offsetof(struct logp_settings, send), 0, 0,
     LOGP_SENDS, "NAME", "os is the time of"},
    {"receive", 0, OPTIONS_CHOICE, offsetof(struct logp_settings, receive), 0,
     0, LOGP_RECEIVES, "NAME",
     "or is the time of a recv, or of the wait for an earlier irecv"},
    SETTINGS_LOOP_ROWS(struct logp_settings,
                       "the most samples of os, or and RTT",
                       "untimed round trips before each"),
    {"least", 0, OPTIONS_INTEGER, offsetof(struct logp_settings, least), 2,
     SETTINGS_MAX_ITERATIONS, NULL, "COUNT",
     "samples before precision can end it"},
    {"eps", 0, OPTIONS_INTEGER, offsetof(struct logp_settings, eps_percent), 1,
     100, NULL, "PERCENT",
     "precise enough: half the interval of a mean, or the change of g"},
    {"confidence", 0, OPTIONS_INTEGER,
     offsetof(struct logp_settings, confidence_percent), 50, 99, NULL,
     "PERCENT", "of that interval, by Student's t"},
    {"flood", 0, OPTIONS_INTEGER, offsetof(struct logp_settings, flood), 1,
     MAX_FLOOD, NULL, "COUNT", "the most messages sent in a row"},
    {"inserts", 0, OPTIONS_INTEGER, offsetof(struct logp_settings, inserts), 0,
     MAX_INSERTS, NULL, "COUNT", "the most sizes added where values jump"},
    {"delay", 0, OPTIONS_INTEGER, offsetof(struct logp_settings, delay_us), 0,
     MAX_DELAY_US, NULL, "US",
     "let the mirror wait before it answers, to try the method"},
    PLACEMENT_OPTION_ROW(struct logp_settings),
    SETTINGS_LAST_ROWS(struct logp_settings),
};

/** All points, in the order of their sizes. */
struct curve {
    struct logp_point *points;
    int count;
};

/* Measure a size and put it in its place. False: its contents were wrong. */
static bool measure_at(struct logp_link *link, struct curve *curve, int place,
                       int size_bytes)
{
    struct logp_point *point = &curve->points[place];

    memmove(point + 1, point, (size_t)(curve->count - place) * sizeof(*point));
    curve->count++;
    logp_measure(link, size_bytes, &curve->points[0], point);
    point->g = logp_gap(&curve->points[0], point);
    return point->is_valid;
}

static bool measure_span(struct logp_link *link, struct options_span span,
                         struct curve *curve)
{
    bool is_valid = measure_at(link, curve, 0, 0);

    for (long size = span.min; size <= span.max && is_valid;
         size = options_next_size(size)) {
        if (size > 0) {
            is_valid = measure_at(link, curve, curve->count, (int)size);
        }
    }
    return is_valid;
}

/*
 * All gaps and the latency follow from size 0. No empty message takes longer
 * than a full one: where one did, something disturbed it, so try once more.
 */
static void settle_empty(struct logp_link *link, struct curve *curve)
{
    struct logp_point *empty = &curve->points[0];
    struct logp_point again = *empty;
    bool is_lowest = true;

    for (int i = 1; i < curve->count; i++) {
        is_lowest = is_lowest && empty->rtt.p50 <= curve->points[i].rtt.p50;
    }
    if (!is_lowest) {
        logp_measure(link, 0, &again, &again);
    }
    if (again.rtt.p50 < empty->rtt.p50) {
        *empty = again;
    }
    for (int i = 0; i < curve->count; i++) {
        curve->points[i].g = logp_gap(empty, &curve->points[i]);
    }
}

/*
 * Add a size in the middle before each jump, the largest sizes first, and look
 * again, until there is no jump left or no size to add.
 */
static bool refine(struct logp_link *link, long inserts, struct curve *curve)
{
    long before = -1;

    for (long made = 0; made > before && made < inserts;) {
        before = made;
        for (int i = curve->count - 1; i >= 2 && made < inserts; i--) {
            int middle = refine_middle(curve->points[i - 1].size_bytes,
                                       curve->points[i].size_bytes);

            if (middle == 0 || !refine_has_jump(&curve->points[i - 2])) {
                continue;
            }
            if (!measure_at(link, curve, i, middle)) {
                return false;
            }
            curve->points[i].is_inserted = true;
            made++;
        }
    }
    return true;
}

static void report_settings(struct report_row *row,
                            const struct logp_settings *settings)
{
    report_add(row, output_text("send", NULL, LOGP_SENDS[settings->send]));
    report_add(row,
               output_text("receive", NULL, LOGP_RECEIVES[settings->receive]));
    report_add(row, output_integer("least", NULL, settings->least));
    report_add(row, output_integer("eps_percent", NULL, settings->eps_percent));
    report_add(row, output_integer("confidence_percent", NULL,
                                   settings->confidence_percent));
    report_add(row, output_integer("flood", NULL, settings->flood));
    report_add(row, output_integer("inserts", NULL, settings->inserts));
    report_add(row, output_integer("delay_us", NULL, settings->delay_us));
}

enum { ESTIMATE_FIELDS = 4, ESTIMATE_DECIMALS = 3 };

static void report_estimate(struct report_row *row,
                            const char *const keys[ESTIMATE_FIELDS],
                            const char *column,
                            const struct logp_estimate *estimate)
{
    report_add(row, output_real_digits(keys[0], column, estimate->p50,
                                       ESTIMATE_DECIMALS));
    report_add(row, output_real(keys[1], NULL, estimate->mean));
    report_add(row, output_real(keys[2], NULL, estimate->half));
    report_add(row, output_integer(keys[3], NULL, (long long)estimate->n));
}

static void report_point(struct report *report, const struct logp_link *link,
                         int nodes, const struct logp_point *empty,
                         const struct logp_point *point)
{
    static const char *const OS[] = {"os_p50_us", "os_mean_us", "os_half_us",
                                     "os_n"};
    static const char *const OR[] = {"or_p50_us", "or_mean_us", "or_half_us",
                                     "or_n"};
    static const char *const RTT[] = {"rtt_p50_us", "rtt_mean_us",
                                      "rtt_half_us", "rtt_n"};
    static const char *const G[] = {"g_p50_us", "g_mean_us", "g_half_us",
                                    "g_n"};
    struct report_row row;

    report_begin(report, &row);
    report_settings(&row, link->settings);
    report_add(&row, output_integer("nodes", NULL, nodes));
    report_add(&row, output_real("clock_us", NULL, link->overhead_us));
    report_add(&row, output_real("l_us", NULL, logp_latency_us(empty)));
    report_add(&row, output_integer("size_bytes", "Size", point->size_bytes));
    report_estimate(&row, OS, "os(us)", &point->os);
    report_estimate(&row, OR, "or(us)", &point->or);
    report_estimate(&row, G, "g(us)", &point->g);
    report_add(&row, output_real_digits("g_flood_us", "g_flood(us)",
                                        point->g_flood_us, ESTIMATE_DECIMALS));
    report_add(&row,
               output_real("g_flood_change", NULL, point->g_flood_change));
    report_add(&row, output_integer("g_flood_n", NULL, point->g_flood_n));
    report_estimate(&row, RTT, "RTT(us)", &point->rtt);
    report_add(&row, output_text("precise", "Precise",
                                 point->is_precise ? "yes" : "no"));
    report_add(&row, output_text("inserted", "Inserted",
                                 point->is_inserted ? "yes" : "no"));
    report_add_validation(&row, link->settings->common.validate,
                          point->is_valid);
    report_end(report, &row);
}

static bool report_curve(const struct program *program,
                         const struct logp_link *link, int nodes,
                         const struct curve *curve)
{
    const struct logp_settings *settings = link->settings;
    const struct logp_point *empty = &curve->points[0];
    struct report report;

    report_open(&report, stdout, program, &settings->common, 2, curve->count);
    output_comment(&report.writer,
                   "[ send: %s ] [ receive: %s ] [ nodes: %d ] "
                   "[ interval: %ld %% +- %ld %% ] [ clock: %.0f ns ]",
                   LOGP_SENDS[settings->send], LOGP_RECEIVES[settings->receive],
                   nodes, settings->confidence_percent, settings->eps_percent,
                   link->overhead_us * 1e3);
    output_comment(&report.writer, "[ L: %.3f us ]", logp_latency_us(empty));
    for (int i = 0; i < curve->count; i++) {
        report_point(&report, link, nodes, empty, &curve->points[i]);
    }
    return report_close(&report);
}

/* On rank 0: measure all sizes, then report them. False: something failed. */
static bool lead(const struct program *program, struct logp_link *link,
                 int nodes)
{
    const struct logp_settings *settings = link->settings;
    size_t most = (size_t)options_count_sizes(settings->common.sizes) + 1 +
                  (size_t)settings->inserts;
    struct curve curve = {
        .points = check_allocate(most * sizeof(struct logp_point), "points")};

    bool is_valid = measure_span(link, settings->common.sizes, &curve);
    if (is_valid) {
        settle_empty(link, &curve);
        is_valid = refine(link, settings->inserts, &curve);
    }
    logp_finish(link);
    bool is_written = report_curve(program, link, nodes, &curve);
    free(curve.points);
    return is_valid && is_written;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct logp_settings *settings = options;
    struct placement placement;
    struct logp_link link;

    placement_create(MPI_COMM_WORLD, settings->pretend_ppn, &placement);
    bool is_first = placement.rank == 0;
    bool is_pair = placement.np == 2;
    int nodes = placement.nodes;
    if (!is_pair && is_first) {
        check_print("%d process%s: LogP is measured between exactly 2",
                    placement.np, placement.np == 1 ? "" : "es");
    }
    placement_free(&placement);
    if (!is_pair ||
        !check_memory(MPI_COMM_WORLD, logp_link_size_bytes(settings))) {
        return CHECK_USAGE;
    }
    logp_link_create(MPI_COMM_WORLD, settings, &link);
    bool is_good = is_first ? lead(program, &link, nodes) : logp_mirror(&link);
    logp_link_free(&link);
    return is_good ? CHECK_PASS : CHECK_FAILED;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct logp_settings *settings = options;

    if (settings->common.iterations < 2) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--iterations %ld: an interval takes at least 2 samples",
                       settings->common.iterations);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct program LOGP = {
        .name = "logp",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct logp_settings),
        .verify = verify,
        .run = run,
    };

    return program_main(&LOGP, argc, argv);
}
