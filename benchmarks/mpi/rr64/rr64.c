/* SPDX-License-Identifier: Apache-2.0 */
/* Measure messages that do not fit into the caches. */
#include "budget.h"
#include "check.h"
#include "p2p.h"
#include "placement.h"
#include "program.h"
#include "report.h"
#include "settings.h"

#include <stdlib.h>

static const char PURPOSE[] =
    "Latency and bandwidth between two ranks that send from, and receive into, "
    "many\nregions in turn (64), beside the same with one region. Once all "
    "regions together\nare larger than the caches, every message is read from "
    "memory and written to it.\nLatency is half the round trip; bandwidth is "
    "10^6 B/s; ratios are many over one.";

enum { MAX_REGIONS = 65536 };

struct settings {
    struct settings_common common;
    long regions;
    long window;
    long windows;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 1, .max = 1048576},
               .iterations = 1000,
               .warmup = 100},
    .regions = 64,
    .window = 64,
    .windows = 100,
};

static const struct options_row OPTIONS[] = {
    {"regions", 'R', OPTIONS_INTEGER, offsetof(struct settings, regions), 1,
     MAX_REGIONS, NULL, "COUNT", "regions to send from, and to receive into"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "message"),
    SETTINGS_LOOP_ROWS(struct settings, "timed round trips",
                       "untimed round trips"),
    SETTINGS_WINDOW_ROW(struct settings),
    SETTINGS_WINDOWS_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

/** The regions, and the pair that uses all of them or only the first. */
struct regions {
    char **send;
    char **receive;
    struct p2p many;
    struct p2p one;
};

/** The numbers of one size. */
struct result {
    struct stats_summary latency;
    struct stats_summary latency_one;
    struct p2p_bandwidth bandwidth;
    struct p2p_bandwidth bandwidth_one;
    bool valid;
};

/* Every region begins on a page of its own. */
static double regions_size_bytes(const struct settings *settings)
{
    const double page = 4096.0;
    struct settings_common longest =
        budget_longest(&settings->common, settings->windows);

    return p2p_size_bytes(&longest, settings->window, settings->regions) +
           2.0 * (double)settings->regions * page;
}

static char **regions_allocate(const struct settings *settings)
{
    size_t count = (size_t)settings->regions;
    char **regions = check_allocate(count * sizeof(*regions), "regions");

    for (size_t i = 0; i < count; i++) {
        regions[i] =
            check_allocate((size_t)settings->common.sizes.max, "a region");
    }
    return regions;
}

static void regions_release(char **regions, long count)
{
    for (long i = 0; i < count; i++) {
        free(regions[i]);
    }
    free(regions);
}

static void regions_create(const struct settings *settings,
                           struct regions *regions)
{
    struct settings_common longest =
        budget_longest(&settings->common, settings->windows);

    regions->send = regions_allocate(settings);
    regions->receive = regions_allocate(settings);
    regions->many.send = regions->send;
    regions->many.receive = regions->receive;
    regions->many.slots = (size_t)settings->regions;
    p2p_create(&regions->many, &longest, settings->window);
    regions->one = regions->many;
    regions->one.slots = 1;
}

static void regions_free(const struct settings *settings,
                         struct regions *regions)
{
    p2p_free(&regions->many);
    regions_release(regions->send, settings->regions);
    regions_release(regions->receive, settings->regions);
}

static struct result measure(const struct settings *settings,
                             const struct regions *regions, int size)
{
    const struct settings_common *common = &settings->common;
    struct settings_common windows = budget_windows(common, settings->windows);
    long window = settings->window;

    struct result result = {.valid = true};

    result.latency_one = p2p_latency(&regions->one, common, size);
    result.latency = p2p_latency(&regions->many, common, size);
    result.bandwidth_one = p2p_stream(&regions->one, &windows, window, size);
    result.bandwidth = p2p_stream(&regions->many, &windows, window, size);
    if (common->validate) {
        result.valid = p2p_validate(&regions->many, size);
    }
    return result;
}

static void report_size(struct report *report, const struct settings *settings,
                        int nodes, long size, const struct result *result)
{
    const struct stats_summary *bandwidth = &result->bandwidth.windows;
    const struct stats_summary *bandwidth_one = &result->bandwidth_one.windows;
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_integer("nodes", NULL, nodes));
    report_add(&row, output_integer("regions", NULL, settings->regions));
    report_add(&row, output_integer("window", NULL, settings->window));
    report_add(&row, output_integer("windows", NULL, settings->windows));
    report_add(&row, output_integer("size_bytes", "Size", size));
    report_add_times(&row, &result->latency);
    report_add(&row, output_real("one_p50_us", "p50 one(us)",
                                 result->latency_one.p50));
    report_add(&row,
               output_integer("one_n", NULL, (long long)result->latency_one.n));
    report_add(&row,
               output_real("latency_ratio", "Lat ratio",
                           result->latency.p50 / result->latency_one.p50));
    report_add(&row, output_real("bw_mb_per_s", "BW", bandwidth->p50));
    report_add(&row,
               output_real("bw_one_mb_per_s", "BW one", bandwidth_one->p50));
    report_add(&row, output_real("bw_ratio", "BW ratio",
                                 bandwidth->p50 / bandwidth_one->p50));
    report_add(&row, output_integer("bw_n", NULL, (long long)bandwidth->n));
    report_add(&row,
               output_integer("bw_one_n", NULL, (long long)bandwidth_one->n));
    report_add_validation(&row, settings->common.validate, result->valid);
    report_end(report, &row);
}

static void report_start(struct report *report, const struct program *program,
                         const struct settings *settings, int nodes)
{
    report_open(report, stdout, program, &settings->common, 2,
                options_count_sizes(settings->common.sizes));
    output_comment(&report->writer,
                   "[ nodes: %d ] [ regions: %ld ] [ window: %ld ] [ windows: "
                   "%ld ]",
                   nodes, settings->regions, settings->window,
                   settings->windows);
    output_comment(
        &report->writer,
        "Latency is half a round trip; BW: median window, MB/s; one: "
        "the same with one region; ratio: many over one");
}

/* Stop after the first size with wrong contents. */
static enum check_exit run_sizes(const struct program *program,
                                 const struct settings *settings, int nodes,
                                 const struct regions *regions)
{
    struct report report;
    bool is_root = regions->many.is_first;
    bool valid = true;

    if (is_root) {
        report_start(&report, program, settings, nodes);
    }
    for (long size = settings->common.sizes.min;
         size <= settings->common.sizes.max && valid;
         size = options_next_size(size)) {
        struct result result = measure(settings, regions, (int)size);

        valid = result.valid;
        if (is_root) {
            report_size(&report, settings, nodes, size, &result);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct placement placement;
    struct regions regions;

    if (!p2p_pair(MPI_COMM_WORLD, &regions.many) ||
        !check_memory(MPI_COMM_WORLD, regions_size_bytes(settings))) {
        return CHECK_USAGE;
    }
    placement_create(MPI_COMM_WORLD, 0, &placement);
    regions_create(settings, &regions);
    enum check_exit code =
        run_sizes(program, settings, placement.nodes, &regions);
    regions_free(settings, &regions);
    placement_free(&placement);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program RR64 = {
        .name = "rr64",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .run = run,
    };

    return program_main(&RR64, argc, argv);
}
