/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time of a load from each cache and from memory. */
#include "chase.h"
#include "machine.h"
#include "node_program.h"
#include "pages.h"
#include "settings.h"
#include "stats.h"
#include "version.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Latency of loads that depend on each other, from working sets that the "
    "caches hold\nand from ones that they do not: every load gives the address "
    "of the next, on one\nrandom cycle through all cache lines of the working "
    "set. A sample is the mean of\na walk, in ns. The program stays where it "
    "is bound to (taskset, srun --cpu-bind).";

#define MEMLAT_MAX_SIZE (1L << 36)

static const char *const PAGES_NAMES[] = {"off", "transparent", "reserved",
                                          NULL};

struct settings {
    struct settings_common common;
    long stride;
    long loads;
    size_t pages;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 16384, .max = 1L << 30},
               .iterations = 1000,
               .warmup = 1},
    .stride = 64,
    .loads = 4096,
    .pages = PAGES_SMALL,
};

static const struct options_row OPTIONS[] = {
    SETTINGS_SIZE_ROWS(struct settings, MEMLAT_MAX_SIZE, "BYTES",
                       "working set"),
    {"stride", 0, OPTIONS_INTEGER, offsetof(struct settings, stride),
     sizeof(void *), 1L << 20, NULL, "BYTES",
     "from one load to its neighbours in memory"},
    {"loads", 0, OPTIONS_INTEGER, offsetof(struct settings, loads),
     CHASE_UNROLL, 1L << 30, NULL, "COUNT",
     "loads of a timed walk, a multiple of 16"},
    {"huge-pages", 0, OPTIONS_CHOICE, offsetof(struct settings, pages), 0, 0,
     PAGES_NAMES, "KIND", "put the working set on huge pages"},
    SETTINGS_LOOP_ROWS(struct settings, "timed walks",
                       "untimed walks through the whole cycle"),
    SETTINGS_LAST_ROWS(struct settings),
};

/** The run: its settings, where it goes, and the row it is at. */
struct memlat {
    const struct settings *settings;
    char host[NODE_HOST_SIZE];
    struct output_writer writer;
    int row;
};

/** The numbers of one size. */
struct result {
    struct stats_summary latency_ns;
    size_t huge_bytes;
    bool valid;
};

/* Refuse settings that contradict each other, or that the node is too small
 * for: false, and why. */
static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;
    const struct options_span sizes = settings->common.sizes;
    double available = machine_available_bytes();
    const char *reason = NULL;

    if (sizes.min > sizes.max) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "smallest size %ld is above the largest, %ld", sizes.min,
                       sizes.max);
        return false;
    }
    if (settings->stride % (long)sizeof(void *) != 0) {
        reason = "--stride is not a multiple of an address";
    } else if (settings->loads % CHASE_UNROLL != 0) {
        reason = "--loads is not a multiple of 16";
    } else if (sizes.min / settings->stride < 2) {
        reason = "the smallest size has no room for two loads";
    }
    if (reason != NULL) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE, "%s", reason);
        return false;
    }
    if ((double)sizes.max > available) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "it needs %.0f MiB of memory, available are %.0f MiB: "
                       "choose a smaller size",
                       (double)sizes.max / 0x1p20, available / 0x1p20);
        return false;
    }
    return true;
}

/* As many walks as the time for a size allows, at least one. */
static size_t memlat_walks(const struct memlat *memlat,
                           const struct chase *chase)
{
    const struct settings *settings = memlat->settings;
    size_t wanted = (size_t)settings->common.iterations;
    double pilot_ns = 0.0;

    if (settings->common.time_ms == 0) {
        return wanted;
    }
    chase_time(chase, (size_t)settings->loads, &pilot_ns, 1);
    double fit = (double)settings->common.time_ms * 1e6 /
                 (pilot_ns * (double)settings->loads);
    if (fit >= (double)wanted) {
        return wanted;
    }
    return fit < 1.0 ? 1 : (size_t)fit;
}

/* False, after an error message, if there is no memory. */
static bool memlat_measure(const struct memlat *memlat, size_t size,
                           struct result *result)
{
    const struct settings *settings = memlat->settings;
    struct pages pages;

    if (!pages_map(&pages, (enum pages_kind)settings->pages, size)) {
        node_print("memlat", "mmap: %zu bytes, huge pages %s: %s", size,
                   PAGES_NAMES[settings->pages], strerror(errno));
        return false;
    }
    struct chase chase = {
        .memory = pages.memory,
        .stride = (size_t)settings->stride,
        .slots = size / (size_t)settings->stride,
    };
    chase_link(&chase);
    size_t whole = (chase.slots / CHASE_UNROLL + 1) * CHASE_UNROLL;
    for (long i = 0; i < settings->common.warmup; i++) {
        (void)chase_walk(chase.memory, whole);
    }
    size_t walks = memlat_walks(memlat, &chase);
    double *samples = calloc(walks, sizeof(*samples));
    if (samples == NULL) {
        node_print("memlat", "calloc: %zu samples: %s", walks, strerror(errno));
        pages_unmap(&pages);
        return false;
    }
    chase_time(&chase, (size_t)settings->loads, samples, walks);
    result->latency_ns = stats_summarise(samples, walks);
    result->huge_bytes =
        pages_huge_bytes(&pages, (enum pages_kind)settings->pages);
    result->valid = true;
    if (settings->common.validate) {
        size_t loads = chase_cycle(&chase);

        result->valid = loads == chase.slots;
        if (!result->valid) {
            node_print("memlat",
                       "validation failed: %zu bytes: %zu loads lead back to "
                       "the start, expected %zu",
                       size, loads, chase.slots);
        }
    }
    free(samples);
    pages_unmap(&pages);
    return true;
}

static void memlat_report(struct memlat *memlat, size_t size,
                          const struct result *result)
{
    const struct settings *settings = memlat->settings;
    const struct settings_common *common = &settings->common;
    const struct stats_summary *latency = &result->latency_ns;
    const struct output_field fields[] = {
        output_text("program", NULL, "memlat"),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_text("mpi", NULL, "none"),
        output_integer("np", NULL, 1),
        output_integer("iterations", NULL, common->iterations),
        output_integer("warmup", NULL, common->warmup),
        output_integer("row", NULL, ++memlat->row),
        output_integer("rows", NULL, options_count_sizes(common->sizes)),
        output_text("host", NULL, memlat->host),
        output_integer("stride", NULL, settings->stride),
        output_integer("loads", NULL, settings->loads),
        output_integer("cache_bytes", NULL,
                       (long long)machine_largest_cache_bytes()),
        output_text("huge_pages", NULL, PAGES_NAMES[settings->pages]),
        output_integer("size_bytes", "Size", (long long)size),
        output_integer("huge_bytes", "Huge", (long long)result->huge_bytes),
        output_integer("cpu", "CPU", sched_getcpu()),
        output_real("min_ns", "Min(ns)", latency->min),
        output_real("p50_ns", "p50(ns)", latency->p50),
        output_real("p99_ns", "p99(ns)", latency->p99),
        output_real("max_ns", "Max(ns)", latency->max),
        output_real("mean_ns", "Mean(ns)", latency->mean),
        output_integer("n", "Samples", (long long)latency->n),
        output_text("validation", "Validation",
                    !common->validate ? "off"
                    : result->valid   ? "pass"
                                      : "fail"),
    };

    output_row(&memlat->writer, fields, sizeof(fields) / sizeof(fields[0]));
}

/* Stop after the first size with a wrong cycle. */
static enum node_exit run(const void *options)
{
    const struct settings *settings = options;
    const struct options_span sizes = settings->common.sizes;
    struct memlat memlat = {
        .settings = settings,
        .writer = {.stream = stdout, .json = settings->common.json},
    };
    enum node_exit code = NODE_PASS;

    node_host(memlat.host);
    output_comment(&memlat.writer, "Seatrial memlat %s (%s)", VERSION, COMMIT);
    output_comment(&memlat.writer,
                   "[ host: %s ] [ stride: %ld ] [ loads: %ld ] [ huge pages: "
                   "%s ] [ largest cache: %zu bytes ]",
                   memlat.host, settings->stride, settings->loads,
                   PAGES_NAMES[settings->pages], machine_largest_cache_bytes());
    for (long size = sizes.min; size <= sizes.max && code == NODE_PASS;
         size = options_next_size(size)) {
        struct result result;

        if (!memlat_measure(&memlat, (size_t)size, &result)) {
            return NODE_USAGE;
        }
        memlat_report(&memlat, (size_t)size, &result);
        code = result.valid ? NODE_PASS : NODE_FAILED;
    }
    return node_finish("memlat", &memlat.writer, code);
}

int main(int argc, char **argv)
{
    struct settings settings = DEFAULTS;
    static const struct node_program MEMLAT = {
        .name = "memlat",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .verify = verify,
        .run = run,
    };

    return node_main(&MEMLAT, &settings, argc, argv);
}
