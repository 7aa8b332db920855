/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the work that each core does, and its pace over time. */
#include "cores.h"
#include "cpus.h"
#include "node_program.h"
#include "settings.h"
#include "stats.h"
#include "version.h"
#include "work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Fixed work on all cores at the same time, for longer than any period of a "
    "CPU quota:\nquanta of the same floating-point operations in registers. A "
    "core that a quota, heat\nor other programs hold up gets fewer of them "
    "done. A sample is the time of a quantum.";

enum { FIXEDWORK_PARTS = 4 };

struct settings {
    struct settings_common common;
    long threads;
    const char *cpus;
};

static const struct settings DEFAULTS = {
    .common = {.iterations = 250000, .warmup = 1, .time_ms = 10000},
    .threads = 1,
};

static const struct options_row OPTIONS[] = {
    {"cpus", 0, OPTIONS_TEXT, offsetof(struct settings, cpus), 0, 0, NULL,
     "LIST", "one thread on each of these CPUs, as 0,2,8-15"},
    {"threads", 0, OPTIONS_INTEGER, offsetof(struct settings, threads), 1,
     CPUS_MAX, NULL, "COUNT", "without --cpus: threads, bound to nothing"},
    CORES_LOOP_ROWS(struct settings),
    {"iterations", 'i', OPTIONS_INTEGER,
     offsetof(struct settings, common.iterations), 1, SETTINGS_MAX_ITERATIONS,
     NULL, "COUNT", "of a quantum, 24 operations each"},
    SETTINGS_LAST_ROWS(struct settings),
};

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;

    return cores_verify(settings->cpus, error);
}

/* Compute the times of the quanta in us; this overwrites their ends. */
static struct stats_summary core_times(struct work *work)
{
    for (size_t i = work->count; i-- > 1;) {
        work->end_ns[i] -= work->end_ns[i - 1];
    }
    for (size_t i = 0; i < work->count; i++) {
        work->end_ns[i] /= 1e3;
    }
    return stats_summarise(work->end_ns, work->count);
}

static void core_report(struct output_writer *writer, struct core *core,
                        const char *host, int row, int rows,
                        const struct settings *settings, const char *validation)
{
    const struct settings_common *common = &settings->common;
    struct work *work = &core->work;
    double seconds = work->end_ns[work->count - 1] / 1e9;
    double first = work_rate(work, 0, FIXEDWORK_PARTS);
    double last = work_rate(work, FIXEDWORK_PARTS - 1, FIXEDWORK_PARTS);
    struct stats_summary times = core_times(work);
    double flops =
        (double)common->iterations * WORK_LANES * WORK_FLOPS_PER_LANE;
    const struct output_field fields[] = {
        output_text("program", NULL, "fixedwork"),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_text("mpi", NULL, "none"),
        output_integer("np", NULL, 1),
        output_integer("iterations", NULL, common->iterations),
        output_integer("warmup", NULL, common->warmup),
        output_integer("row", NULL, row),
        output_integer("rows", NULL, rows),
        output_text("host", NULL, host),
        output_integer("time_ms", NULL, common->time_ms),
        output_text("bound", NULL, core->cpu >= 0 ? "yes" : "no"),
        output_integer("cpu", "CPU", core->ran_on),
        output_real("seconds", NULL, seconds),
        output_real("cpu_seconds", NULL, work->cpu_ns / 1e9),
        output_real("gflops", "Gflop/s",
                    flops * (double)work->count / seconds / 1e9),
        output_real("first_per_s", "First/s", first),
        output_real("last_per_s", "Last/s", last),
        output_real("min_us", "Min(us)", times.min),
        output_real("p50_us", "p50(us)", times.p50),
        output_real("p99_us", "p99(us)", times.p99),
        output_real("max_us", "Max(us)", times.max),
        output_real("mean_us", "Mean(us)", times.mean),
        output_integer("n", "Quanta", (long long)work->count),
        output_text("validation", "Validation", validation),
    };

    output_row(writer, fields, sizeof(fields) / sizeof(fields[0]));
}

static enum node_exit fixedwork_report(struct core *cores, size_t count,
                                       const struct settings *settings)
{
    struct output_writer writer = {.stream = stdout,
                                   .json = settings->common.json};
    char host[NODE_HOST_SIZE];
    enum node_exit code = NODE_PASS;

    node_host(host);
    output_comment(&writer, "Seatrial fixedwork %s (%s)", VERSION, COMMIT);
    output_comment(&writer, "[ host: %s ] [ iterations: %ld ] [ cores: %zu ]",
                   host, settings->common.iterations, count);
    for (size_t i = 0; i < count; i++) {
        const char *validation = "off";

        if (settings->common.validate) {
            bool valid = core_wrong("fixedwork", &cores[i]) == 0;

            validation = valid ? "pass" : "fail";
            code = valid ? code : NODE_FAILED;
        }
        core_report(&writer, &cores[i], host, (int)i + 1, (int)count, settings,
                    validation);
    }
    return node_finish("fixedwork", &writer, code);
}

static enum node_exit run(const void *options)
{
    const struct settings *settings = options;
    bool bound = settings->cpus != NULL;
    struct cpus cpus = {.count = (size_t)settings->threads};

    if (bound) {
        (void)cpus_parse(settings->cpus, &cpus);
    }
    size_t count = cpus.count;
    struct core *cores = calloc(count, sizeof(*cores));
    enum node_exit code = NODE_USAGE;

    if (cores == NULL) {
        node_print("fixedwork", "calloc: %zu cores: %s", count,
                   strerror(errno));
        return code;
    }
    for (size_t i = 0; i < count; i++) {
        cores[i].cpu = bound ? cpus.numbers[i] : -1;
    }
    if (!cores_run("fixedwork", cores, count, &settings->common)) {
        return code; /* threads may still wait, and need their memory */
    }
    code = fixedwork_report(cores, count, settings);
    cores_free(cores, count);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = DEFAULTS;
    static const struct node_program FIXEDWORK = {
        .name = "fixedwork",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .verify = verify,
        .run = run,
    };

    return node_main(&FIXEDWORK, &settings, argc, argv);
}
