/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time that the operating system takes from each core. */
#include "clock.h"
#include "cores.h"
#include "cpus.h"
#include "node_program.h"
#include "noise.h"
#include "settings.h"
#include "version.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Noise of the operating system: quanta of fixed work on all cores at the "
    "same time,\neach thread on a core of its own. What a quantum takes longer "
    "than an undisturbed\none is lost to interrupts, daemons and other "
    "programs. Detours that recur are found\nby their spectrum.";

struct settings {
    struct settings_common common;
    const char *cpus;
    long quantum_us;
    long odds;
    bool node;
};

static const struct settings DEFAULTS = {
    .common = {.warmup = 100, .time_ms = 10000},
    .quantum_us = 100,
    .odds = 1000000,
};

static const struct options_row OPTIONS[] = {
    {"cpus", 0, OPTIONS_TEXT, offsetof(struct settings, cpus), 0, 0, NULL,
     "LIST", "CPUs, as 0,2,8-15; otherwise one of each core"},
    CORES_LOOP_ROWS(struct settings),
    {"quantum", 0, OPTIONS_INTEGER, offsetof(struct settings, quantum_us), 60,
     10000, NULL, "US", "time of a quantum without noise, about"},
    {"odds", 0, OPTIONS_INTEGER, offsetof(struct settings, odds), 10,
     1000000000, NULL, "COUNT",
     "one core in COUNT with noise at random has a false period"},
    {"node", 0, OPTIONS_FLAG, offsetof(struct settings, node), 0, 0, NULL, NULL,
     "write one row for all cores"},
    SETTINGS_LAST_ROWS(struct settings),
};

/** A run: its cores, the noise on each, and whether its results are right. */
struct osnoise {
    const struct settings *settings;
    struct core *cores;
    struct noise *noises;
    size_t count;
    long iterations;
    bool valid;
    char host[NODE_HOST_SIZE];
    struct output_writer writer;
};

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;

    return cores_verify(settings->cpus, error);
}

/* Iterations of a quantum, by the fastest of many short ones on this CPU. */
static long osnoise_iterations(long quantum_us)
{
    enum { ROUNDS = 2000, ITERATIONS = 1000 };
    double least_us = 1e9;
    volatile double result = 0.0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_ns = clock_now_ns();

        result = work_quantum(ITERATIONS);
        double us = clock_between_us(start_ns, clock_now_ns());
        least_us = us < least_us ? us : least_us;
    }
    (void)result;
    return (long)((double)quantum_us / least_us * ITERATIONS) + 1;
}

static const char *osnoise_validation(const struct osnoise *osnoise)
{
    return !osnoise->settings->common.validate ? "off"
           : osnoise->valid                    ? "pass"
                                               : "fail";
}

static void osnoise_core_row(struct osnoise *osnoise, size_t i)
{
    const struct settings *settings = osnoise->settings;
    const struct noise *noise = &osnoise->noises[i];
    const struct period *period = &noise->period;
    const struct output_field fields[] = {
        output_text("program", NULL, "osnoise"),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_integer("row", NULL, (long long)i + 1),
        output_integer("rows", NULL, (long long)osnoise->count),
        output_text("host", NULL, osnoise->host),
        output_integer("time_ms", NULL, settings->common.time_ms),
        output_integer("quantum_us", NULL, settings->quantum_us),
        output_integer("odds", NULL, settings->odds),
        output_integer("iterations", NULL, osnoise->iterations),
        output_integer("cpu", "CPU", osnoise->cores[i].ran_on),
        output_real("seconds", NULL, noise->seconds),
        output_real("base_us", "Base(us)", noise->base_us),
        output_real_digits("lost_percent", "Lost(%)", noise->lost_percent, 4),
        output_real("p50_us", "p50(us)", noise->p50_us),
        output_real("p99_9_us", "p99.9(us)", noise->p99_9_us),
        output_real("max_us", "Max(us)", noise->max_us),
        output_real("threshold_us", NULL, noise->threshold_us),
        output_integer("detours", "Detours", (long long)noise->detours),
        output_real("period_us", "Period(us)",
                    period->found ? period->period_us : NAN),
        output_real("period_power", NULL, period->found ? period->power : NAN),
        output_real_digits(
            "period_lost_percent", "Of it(%)",
            period->found ? period->lost_us / noise->seconds / 1e4 : NAN, 4),
        output_integer("n", "Quanta", (long long)noise->n),
        output_text("validation", "Validation", osnoise_validation(osnoise)),
    };

    output_row(&osnoise->writer, fields, sizeof(fields) / sizeof(fields[0]));
}

/* The cores that are worst in each way. */
struct worst {
    size_t lost;
    size_t p99_9;
    size_t max;
    size_t period; /* the one that loses most by a period */
    size_t periodic;
    double mean_lost_percent;
    size_t n;
};

static struct worst osnoise_worst(const struct osnoise *osnoise)
{
    struct worst worst = {0};
    const struct noise *noises = osnoise->noises;

    for (size_t i = 0; i < osnoise->count; i++) {
        const struct period *period = &noises[i].period;
        bool first = worst.periodic == 0;

        worst.mean_lost_percent +=
            noises[i].lost_percent / (double)osnoise->count;
        worst.n += noises[i].n;
        worst.lost = noises[i].lost_percent > noises[worst.lost].lost_percent
                         ? i
                         : worst.lost;
        worst.p99_9 =
            noises[i].p99_9_us > noises[worst.p99_9].p99_9_us ? i : worst.p99_9;
        worst.max = noises[i].max_us > noises[worst.max].max_us ? i : worst.max;
        if (period->found) {
            worst.periodic++;
            worst.period =
                first || period->lost_us > noises[worst.period].period.lost_us
                    ? i
                    : worst.period;
        }
    }
    return worst;
}

static void osnoise_node_row(struct osnoise *osnoise)
{
    const struct settings *settings = osnoise->settings;
    struct worst worst = osnoise_worst(osnoise);
    const struct noise *noises = osnoise->noises;
    const struct core *cores = osnoise->cores;
    const struct noise *periodic = &noises[worst.period];
    bool found = worst.periodic > 0;
    const struct output_field fields[] = {
        output_text("program", NULL, "osnoise"),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_text("host", NULL, osnoise->host),
        output_integer("time_ms", NULL, settings->common.time_ms),
        output_integer("quantum_us", NULL, settings->quantum_us),
        output_integer("odds", NULL, settings->odds),
        output_integer("iterations", NULL, osnoise->iterations),
        output_integer("cores", "Cores", (long long)osnoise->count),
        output_real_digits("lost_percent", "Lost(%)", worst.mean_lost_percent,
                           4),
        output_real_digits("worst_lost_percent", "Worst(%)",
                           noises[worst.lost].lost_percent, 4),
        output_integer("worst_cpu", "CPU", cores[worst.lost].ran_on),
        output_real("p99_9_us", "p99.9(us)", noises[worst.p99_9].p99_9_us),
        output_integer("p99_9_cpu", "CPU", cores[worst.p99_9].ran_on),
        output_real("max_us", "Max(us)", noises[worst.max].max_us),
        output_integer("max_cpu", "CPU", cores[worst.max].ran_on),
        output_integer("periodic_cores", "Periodic", (long long)worst.periodic),
        output_real("period_us", "Period(us)",
                    found ? periodic->period.period_us : NAN),
        output_real_digits(
            "period_lost_percent", "Of it(%)",
            found ? periodic->period.lost_us / periodic->seconds / 1e4 : NAN,
            4),
        output_real_digits("period_cpu", "CPU",
                           found ? (double)cores[worst.period].ran_on : NAN, 0),
        output_integer("n", "Quanta", (long long)worst.n),
        output_text("validation", "Validation", osnoise_validation(osnoise)),
    };

    output_row(&osnoise->writer, fields, sizeof(fields) / sizeof(fields[0]));
}

/* The name of this node, as Slurm calls it. */
static void osnoise_host(char host[NODE_HOST_SIZE])
{
    const char *node = getenv("SLURMD_NODENAME");

    node_host(host);
    if (node != NULL) {
        (void)snprintf(host, NODE_HOST_SIZE, "%s", node);
    }
}

static enum node_exit osnoise_report(struct osnoise *osnoise)
{
    const struct settings *settings = osnoise->settings;

    osnoise_host(osnoise->host);
    osnoise->writer =
        (struct output_writer){.stream = stdout, .json = settings->common.json};
    output_comment(&osnoise->writer, "Seatrial osnoise %s (%s)", VERSION,
                   COMMIT);
    output_comment(&osnoise->writer,
                   "[ host: %s ] [ cores: %zu ] [ quantum: %ld us ] "
                   "[ time: %ld ms ] [ odds: %ld ]",
                   osnoise->host, osnoise->count, settings->quantum_us,
                   settings->common.time_ms, settings->odds);
    osnoise->valid = true;
    for (size_t i = 0; i < osnoise->count; i++) {
        if (settings->common.validate &&
            core_wrong("osnoise", &osnoise->cores[i]) > 0) {
            osnoise->valid = false;
        }
        if (!noise_analyse(&osnoise->cores[i].work, (double)settings->odds,
                           &osnoise->noises[i])) {
            node_print("osnoise", "malloc: analysis of a core: %s",
                       strerror(errno));
            return NODE_USAGE;
        }
    }
    if (settings->node) {
        osnoise_node_row(osnoise);
    } else {
        for (size_t i = 0; i < osnoise->count; i++) {
            osnoise_core_row(osnoise, i);
        }
    }
    return node_finish("osnoise", &osnoise->writer,
                       osnoise->valid ? NODE_PASS : NODE_FAILED);
}

static enum node_exit run(const void *options)
{
    const struct settings *settings = options;
    struct settings_common common = settings->common;
    struct osnoise osnoise = {.settings = settings};
    struct cpus cpus = {.count = 0};

    if (settings->cpus == NULL) {
        cpus_of_cores(&cpus);
    } else {
        (void)cpus_parse(settings->cpus, &cpus);
    }
    osnoise.count = cpus.count;
    osnoise.cores = calloc(cpus.count, sizeof(*osnoise.cores));
    osnoise.noises = calloc(cpus.count, sizeof(*osnoise.noises));
    if (osnoise.cores == NULL || osnoise.noises == NULL) {
        node_print("osnoise", "calloc: %zu cores: %s", cpus.count,
                   strerror(errno));
        return NODE_USAGE;
    }
    for (size_t i = 0; i < cpus.count; i++) {
        osnoise.cores[i].cpu = cpus.numbers[i];
    }
    common.iterations = osnoise_iterations(settings->quantum_us);
    osnoise.iterations = common.iterations;
    if (!cores_run("osnoise", osnoise.cores, osnoise.count, &common)) {
        return NODE_USAGE; /* threads may still wait, and need their memory */
    }
    enum node_exit code = osnoise_report(&osnoise);

    cores_free(osnoise.cores, osnoise.count);
    free(osnoise.noises);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = DEFAULTS;
    static const struct node_program OSNOISE = {
        .name = "osnoise",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .verify = verify,
        .run = run,
    };

    return node_main(&OSNOISE, &settings, argc, argv);
}
