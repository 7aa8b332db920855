/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time of a periodic two-dimensional halo exchange. */
#include "budget.h"
#include "check.h"
#include "clock.h"
#include "halo.h"
#include "program.h"
#include "report.h"
#include "settings.h"
#include "stats.h"

#include <stdlib.h>

static const char PURPOSE[] =
    "Time of a periodic 2-D halo exchange. The processes form a grid of Px x "
    "Py\n(MPI_Dims_create), each holds N x N doubles; rows go north and south, "
    "then\ncolumns with the corners go east and west. Size is the bytes of a "
    "row, 8 N.\nMedian and Best are median and minimum over the repetitions, "
    "each the mean\ntime of an exchange on its slowest rank; Min to Max are of "
    "single exchanges,\neach on its slowest rank.";

enum { MAX_N = 1 << 24, MAX_REPETITIONS = 1000, PILOT_EXCHANGES = 3 };

struct settings {
    struct settings_common common; /* sizes are N */
    long repetitions;
    size_t protocol;
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 0, .max = 1024},
               .iterations = 1000,
               .warmup = 200},
    .repetitions = 5,
};

static const struct options_row OPTIONS[] = {
    {"protocol", 0, OPTIONS_CHOICE, offsetof(struct settings, protocol), 0, 0,
     HALO_PROTOCOL_NAMES, "NAME", "how edges are exchanged"},
    SETTINGS_SIZE_ROWS(struct settings, MAX_N, "N",
                       "sub-domain, N x N doubles"),
    SETTINGS_LOOP_ROWS(struct settings, "timed exchanges per repetition",
                       "untimed exchanges before each size"),
    {"repetitions", 0, OPTIONS_INTEGER, offsetof(struct settings, repetitions),
     1, MAX_REPETITIONS, NULL, "COUNT", "repetitions of each size"},
    SETTINGS_LAST_ROWS(struct settings),
};

/** Raw samples, allocated once for all sizes. */
struct samples {
    int64_t *stamps_ns; /* iterations + 1: start, end of each exchange */
    double *own;        /* iterations: this rank */
    double *exchanges; /* iterations x repetitions: slowest rank, on the root */
    double *means;     /* repetitions: slowest rank, on the root */
};

/** The numbers of one size. */
struct result {
    struct stats_summary repetitions;
    struct stats_summary exchanges;
    bool valid;
};

static void time_exchanges(const struct halo *halo, long iterations,
                           int64_t *stamps_ns)
{
    void (*exchange)(const struct halo *) = halo->protocol->exchange;

    stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        exchange(halo);
        stamps_ns[i + 1] = clock_now_ns();
    }
}

static void reduce_slowest(const struct halo_grid *grid, const double *own,
                           double *slowest, int count)
{
    CHECK_MPI(
        MPI_Reduce(own, slowest, count, MPI_DOUBLE, MPI_MAX, 0, grid->comm),
        "%d times", count);
}

/* As many of the wanted iterations as all repetitions have time for. */
static long choose_iterations(const struct settings *settings,
                              const struct halo *halo, int64_t *stamps_ns)
{
    if (settings->common.time_ms == 0) {
        return settings->common.iterations;
    }
    halo->protocol->exchange(halo); /* connects */
    time_exchanges(halo, PILOT_EXCHANGES, stamps_ns);
    double pilot_us =
        clock_between_us(stamps_ns[0], stamps_ns[PILOT_EXCHANGES]);
    double budget_us = (double)settings->common.time_ms * 1000.0 /
                       (double)settings->repetitions;

    return budget_iterations(halo->grid->comm, pilot_us / PILOT_EXCHANGES,
                             settings->common.iterations, budget_us);
}

static struct result measure(const struct settings *settings,
                             struct samples *samples, struct halo *halo)
{
    int64_t *stamps_ns = samples->stamps_ns;
    long iterations = choose_iterations(settings, halo, stamps_ns);
    long warmup = budget_warmup(&settings->common, iterations);
    bool is_root = halo->grid->rank == 0;
    struct result result = {.valid = true};

    for (long i = 0; i < warmup; i++) {
        halo->protocol->exchange(halo);
    }
    for (long r = 0; r < settings->repetitions; r++) {
        CHECK_MPI(MPI_Barrier(halo->grid->comm), "N %d, repetition %ld",
                  halo->n, r);
        time_exchanges(halo, iterations, stamps_ns);
        double mean = clock_between_us(stamps_ns[0], stamps_ns[iterations]) /
                      (double)iterations;
        for (long i = 0; i < iterations; i++) {
            samples->own[i] = clock_between_us(stamps_ns[i], stamps_ns[i + 1]);
        }
        reduce_slowest(halo->grid, &mean, &samples->means[r], 1);
        reduce_slowest(halo->grid, samples->own,
                       is_root ? &samples->exchanges[r * iterations] : NULL,
                       (int)iterations);
    }
    if (settings->common.validate) {
        result.valid = halo_validate(halo) == 0;
    }
    if (is_root) {
        size_t repetitions = (size_t)settings->repetitions;

        result.repetitions = stats_summarise(samples->means, repetitions);
        result.exchanges = stats_summarise(samples->exchanges,
                                           repetitions * (size_t)iterations);
    }
    return result;
}

static void report_size(struct report *report, const struct settings *settings,
                        const struct halo_grid *grid, long n,
                        const struct result *result)
{
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("protocol", NULL,
                                 HALO_PROTOCOL_NAMES[settings->protocol]));
    report_add(&row, output_integer("px", NULL, grid->px));
    report_add(&row, output_integer("py", NULL, grid->py));
    report_add(&row,
               output_integer("repetitions", NULL, settings->repetitions));
    report_add(&row,
               output_integer("size_bytes", "Size", n * (long)sizeof(double)));
    report_add(&row, output_integer("subdomain", "N", n));
    report_add(&row, output_real("time_median_us", "Median(us)",
                                 result->repetitions.p50));
    report_add(&row,
               output_real("time_min_us", "Best(us)", result->repetitions.min));
    report_add_times(&row, &result->exchanges);
    report_add_validation(&row, settings->common.validate, result->valid);
    report_end(report, &row);
}

static void report_start(struct report *report, const struct program *program,
                         const struct settings *settings,
                         const struct halo_grid *grid)
{
    report_open(report, stdout, program, &settings->common, grid->np,
                options_count_sizes(settings->common.sizes));
    output_comment(&report->writer,
                   "[ protocol: %s ] [ grid: %dx%d ] [ repetitions: %ld ]",
                   HALO_PROTOCOL_NAMES[settings->protocol], grid->px, grid->py,
                   settings->repetitions);
    output_comment(&report->writer,
                   "Median, Best: over repetitions, each the mean on the "
                   "slowest rank; the others: single exchanges");
}

/* Stop after the first size with wrong contents. */
static enum check_exit run_sizes(const struct program *program,
                                 const struct settings *settings,
                                 const struct halo_grid *grid,
                                 struct samples *samples)
{
    struct report report;
    bool is_root = grid->rank == 0;
    bool valid = true;

    if (is_root) {
        report_start(&report, program, settings, grid);
    }
    for (long n = settings->common.sizes.min;
         n <= settings->common.sizes.max && valid; n = options_next_size(n)) {
        struct halo halo;

        halo_create(grid, (int)n, &HALO_PROTOCOLS[settings->protocol], &halo);
        struct result result = measure(settings, samples, &halo);
        halo_free(&halo);
        valid = result.valid;
        if (is_root) {
            report_size(&report, settings, grid, n, &result);
        }
    }
    return (!is_root || report_close(&report)) && valid ? CHECK_PASS
                                                        : CHECK_FAILED;
}

static enum check_exit run(const struct program *program, const void *options)
{
    const struct settings *settings = options;
    struct halo_grid grid;
    size_t iterations = (size_t)settings->common.iterations;
    size_t repetitions = (size_t)settings->repetitions;
    size_t own_bytes = (iterations + PILOT_EXCHANGES + 1) * sizeof(double);
    double halo_bytes = halo_size_bytes(settings->common.sizes.max);
    enum check_exit code = CHECK_USAGE;

    halo_grid_create(MPI_COMM_WORLD, &grid);
    bool is_root = grid.rank == 0;
    size_t kept_bytes =
        is_root ? (iterations + 1) * repetitions * sizeof(double) : 0;
    if (grid.np < 2) {
        check_print("%d process: a halo exchange needs at least 2", grid.np);
    } else if (check_memory(grid.comm, halo_bytes + 2.0 * (double)own_bytes +
                                           (double)kept_bytes)) {
        struct samples samples = {
            .stamps_ns = check_allocate(own_bytes, "time stamps"),
            .own = check_allocate(own_bytes, "times of a rank"),
            .exchanges = check_allocate(kept_bytes, "samples"),
            .means = check_allocate(repetitions * sizeof(double), "means"),
        };

        code = run_sizes(program, settings, &grid, &samples);
        free(samples.means);
        free(samples.exchanges);
        free(samples.own);
        free(samples.stamps_ns);
    }
    halo_grid_free(&grid);
    return code;
}

int main(int argc, char **argv)
{
    static const struct program HALO2D = {
        .name = "halo2d",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .run = run,
    };

    return program_main(&HALO2D, argc, argv);
}
