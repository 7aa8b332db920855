/* SPDX-License-Identifier: Apache-2.0 */
/* How long does a periodic two-dimensional halo exchange take? */
#include "check.h"
#include "clock.h"
#include "halo.h"
#include "options.h"
#include "output.h"
#include "stats.h"
#include "version.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char PURPOSE[] =
    "Time of a periodic 2-D halo exchange. The processes form a grid of Px x "
    "Py\n(MPI_Dims_create), each holds N x N doubles; rows go north and south, "
    "then\ncolumns with the corners go east and west. Size is the bytes of a "
    "row, 8 N.\nMedian and Best are median and minimum over the repetitions, "
    "each the mean\ntime of an exchange on its slowest rank; Min to Max are of "
    "single exchanges,\neach on its slowest rank.";

enum {
    MAX_N = 1 << 24,
    MAX_ITERATIONS = 10000000,
    MAX_REPETITIONS = 1000,
    MAX_TIME_MS = 3600000,
    PILOT_EXCHANGES = 3
};

struct settings {
    struct options_span sizes;
    long iterations;
    long warmup;
    long repetitions;
    long time_ms;
    size_t protocol;
    bool validate;
    bool json;
};

static const struct settings DEFAULTS = {
    .sizes = {.min = 0, .max = 1024},
    .iterations = 1000,
    .warmup = 200,
    .repetitions = 5,
    .time_ms = 0,
    .protocol = 0,
    .validate = false,
    .json = false,
};

static const struct options_row OPTIONS[] = {
    {"protocol", 0, OPTIONS_CHOICE, offsetof(struct settings, protocol), 0, 0,
     HALO_PROTOCOLS, "NAME", "how edges are exchanged"},
    {"sizes", 'm', OPTIONS_SPAN, offsetof(struct settings, sizes), 0, MAX_N,
     NULL, "[MIN:]MAX", "N from MIN, doubled up to MAX; 0 is followed by 2"},
    {"min-size", 0, OPTIONS_INTEGER, offsetof(struct settings, sizes.min), 0,
     MAX_N, NULL, "N", "smallest sub-domain, N x N doubles"},
    {"max-size", 0, OPTIONS_INTEGER, offsetof(struct settings, sizes.max), 0,
     MAX_N, NULL, "N", "largest sub-domain, N x N doubles"},
    {"iterations", 'i', OPTIONS_INTEGER, offsetof(struct settings, iterations),
     1, MAX_ITERATIONS, NULL, "COUNT", "timed exchanges per repetition"},
    {"warmup", 'x', OPTIONS_INTEGER, offsetof(struct settings, warmup), 0,
     MAX_ITERATIONS, NULL, "COUNT", "untimed exchanges before each size"},
    {"repetitions", 0, OPTIONS_INTEGER, offsetof(struct settings, repetitions),
     1, MAX_REPETITIONS, NULL, "COUNT", "repetitions of each size"},
    {"time", 0, OPTIONS_INTEGER, offsetof(struct settings, time_ms), 0,
     MAX_TIME_MS, NULL, "MS",
     "make fewer iterations where a size takes longer; "
     "0: never"},
    {"validate", 'c', OPTIONS_FLAG, offsetof(struct settings, validate), 0, 0,
     NULL, NULL, "verify contents, outside the timed part"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct settings, json), 0, 0, NULL, NULL,
     "write JSON Lines instead of a table"},
    {.name = NULL},
};

/** Raw samples, allocated once for all sizes. */
struct samples {
    int64_t *stamps_ns; /* iterations + 1: start, end of each exchange */
    double *own;        /* iterations: this rank */
    double *exchanges; /* iterations x repetitions: slowest rank, on the root */
    double *means;     /* repetitions: slowest rank, on the root */
};

/** What is reported of one size. */
struct result {
    struct stats_summary repetitions;
    struct stats_summary exchanges;
    bool valid;
};

static void time_exchanges(const struct halo *halo, halo_exchange_func exchange,
                           long iterations, int64_t *stamps_ns)
{
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
                              struct halo *halo, int64_t *stamps_ns)
{
    halo_exchange_func exchange = HALO_EXCHANGES[settings->protocol];
    double wanted = (double)settings->iterations;

    if (settings->time_ms == 0) {
        return settings->iterations;
    }
    exchange(halo); /* connects */
    time_exchanges(halo, exchange, PILOT_EXCHANGES, stamps_ns);
    double pilot_us =
        clock_between_us(stamps_ns[0], stamps_ns[PILOT_EXCHANGES]);
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &pilot_us, 1, MPI_DOUBLE, MPI_MAX,
                            halo->grid->comm),
              "pilot, N %d", halo->n);
    double budget_us =
        (double)settings->time_ms * 1000.0 / (double)settings->repetitions;
    double fit = budget_us * PILOT_EXCHANGES / fmax(pilot_us, 1e-3);

    return (long)fmax(1.0, fmin(wanted, fit));
}

static struct result measure(const struct settings *settings,
                             struct samples *samples, struct halo *halo)
{
    halo_exchange_func exchange = HALO_EXCHANGES[settings->protocol];
    int64_t *stamps_ns = samples->stamps_ns;
    long iterations = choose_iterations(settings, halo, stamps_ns);
    /* Warm-up shrinks with the iterations: its share of the time stays. */
    long warmup = settings->warmup * iterations / settings->iterations;
    bool is_root = halo->grid->rank == 0;
    struct result result = {.valid = true};

    for (long i = 0; i < warmup; i++) {
        exchange(halo);
    }
    for (long r = 0; r < settings->repetitions; r++) {
        CHECK_MPI(MPI_Barrier(halo->grid->comm), "N %d, repetition %ld",
                  halo->n, r);
        time_exchanges(halo, exchange, iterations, stamps_ns);
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
    if (settings->validate) {
        result.valid = halo_validate(halo, exchange) == 0;
    }
    if (is_root) {
        size_t repetitions = (size_t)settings->repetitions;

        result.repetitions = stats_summarise(samples->means, repetitions);
        result.exchanges = stats_summarise(samples->exchanges,
                                           repetitions * (size_t)iterations);
    }
    return result;
}

/* The first words of the library's description name product and version. */
static void describe_mpi(char text[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length = 0;

    CHECK_MPI(MPI_Get_library_version(text, &length), "description");
    text[strcspn(text, ",\n")] = '\0';
    for (; *text != '\0'; text++) {
        if (*text == '\t') {
            *text = ' ';
        }
    }
}

static void report_start(struct output_writer *writer,
                         const struct settings *settings,
                         const struct halo_grid *grid)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];

    describe_mpi(mpi);
    output_comment(writer, "Seatrial halo2d %s (%s), %s", VERSION, COMMIT, mpi);
    output_comment(writer, "[ protocol: %s ] [ processes: %d ] [ grid: %dx%d ]",
                   HALO_PROTOCOLS[settings->protocol], grid->np, grid->px,
                   grid->py);
    output_comment(
        writer,
        "[ iterations: %ld ] [ warmup: %ld ] [ repetitions: %ld ] [ rows: %d ]",
        settings->iterations, settings->warmup, settings->repetitions,
        options_count_sizes(settings->sizes));
    if (settings->time_ms > 0) {
        output_comment(writer,
                       "[ fewer iterations where a size takes > %ld ms ]",
                       settings->time_ms);
    }
    output_comment(writer, "Median, Best: over repetitions, each the mean on "
                           "the slowest rank; Min to Max: single exchanges");
}

static void report_size(struct output_writer *writer,
                        const struct settings *settings,
                        const struct halo_grid *grid, int row, long n,
                        const struct result *result)
{
    const char *validation = !settings->validate ? "off"
                             : result->valid     ? "pass"
                                                 : "fail";
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];

    describe_mpi(mpi);
    const struct output_field fields[] = {
        output_text("program", NULL, "halo2d"),
        output_text("version", NULL, VERSION),
        output_text("commit", NULL, COMMIT),
        output_text("mpi", NULL, mpi),
        output_text("protocol", NULL, HALO_PROTOCOLS[settings->protocol]),
        output_integer("np", NULL, grid->np),
        output_integer("px", NULL, grid->px),
        output_integer("py", NULL, grid->py),
        output_integer("iterations", NULL, settings->iterations),
        output_integer("warmup", NULL, settings->warmup),
        output_integer("repetitions", NULL, settings->repetitions),
        output_integer("row", NULL, row),
        output_integer("rows", NULL, options_count_sizes(settings->sizes)),
        output_integer("size_bytes", "Size", n * (long)sizeof(double)),
        output_integer("subdomain", "N", n),
        output_real("time_median_us", "Median(us)", result->repetitions.p50),
        output_real("time_min_us", "Best(us)", result->repetitions.min),
        output_real("min_us", "Min(us)", result->exchanges.min),
        output_real("p50_us", "p50(us)", result->exchanges.p50),
        output_real("p99_us", "p99(us)", result->exchanges.p99),
        output_real("max_us", "Max(us)", result->exchanges.max),
        output_integer("n", "Samples", (long long)result->exchanges.n),
        output_text("validation", "Validation", validation),
    };
    output_row(writer, fields, sizeof(fields) / sizeof(fields[0]));
}

/* The first size whose contents are wrong is the last. */
static enum check_exit run_sizes(const struct settings *settings,
                                 const struct halo_grid *grid,
                                 struct samples *samples)
{
    struct output_writer writer = {.stream = stdout, .json = settings->json};
    bool is_root = grid->rank == 0;
    bool valid = true;
    int row = 0;

    if (is_root) {
        report_start(&writer, settings, grid);
    }
    for (long n = settings->sizes.min; n <= settings->sizes.max && valid;
         n = options_next_size(n)) {
        struct halo halo;

        halo_create(grid, (int)n, &halo);
        struct result result = measure(settings, samples, &halo);
        halo_free(&halo);
        valid = result.valid;
        if (is_root) {
            report_size(&writer, settings, grid, ++row, n, &result);
        }
    }
    if (is_root && !output_finish(&writer)) {
        check_print("standard output: fflush: %s", strerror(errno));
        return CHECK_FAILED;
    }
    return valid ? CHECK_PASS : CHECK_FAILED;
}

static enum check_exit run(const struct settings *settings)
{
    struct halo_grid grid;
    size_t iterations = (size_t)settings->iterations;
    size_t repetitions = (size_t)settings->repetitions;
    size_t own_bytes = (iterations + PILOT_EXCHANGES + 1) * sizeof(double);
    enum check_exit code = CHECK_USAGE;

    halo_grid_create(MPI_COMM_WORLD, &grid);
    bool is_root = grid.rank == 0;
    size_t kept_bytes =
        is_root ? (iterations + 1) * repetitions * sizeof(double) : 0;
    if (grid.np < 2) {
        check_print("%d process: a halo exchange needs at least 2", grid.np);
    } else if (check_memory(grid.comm, halo_size_bytes(settings->sizes.max) +
                                           2.0 * (double)own_bytes +
                                           (double)kept_bytes)) {
        struct samples samples = {
            .stamps_ns = check_allocate(own_bytes, "time stamps"),
            .own = check_allocate(own_bytes, "times of a rank"),
            .exchanges = check_allocate(kept_bytes, "samples"),
            .means = check_allocate(repetitions * sizeof(double), "means"),
        };

        code = run_sizes(settings, &grid, &samples);
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
    struct settings settings = DEFAULTS;
    char error[OPTIONS_ERROR_SIZE] = "";
    enum options_outcome outcome =
        options_parse(OPTIONS, &settings, argc, argv, error);
    enum check_exit code = CHECK_USAGE;
    int rank = 0;

    if (outcome == OPTIONS_RUN && settings.sizes.min > settings.sizes.max) {
        (void)snprintf(error, sizeof(error),
                       "smallest size %ld is above the largest, %ld",
                       settings.sizes.min, settings.sizes.max);
        outcome = OPTIONS_ERROR;
    }
    if (outcome == OPTIONS_HELP || outcome == OPTIONS_VERSION) {
        if (!check_is_first_process()) {
            return CHECK_PASS;
        }
        if (outcome == OPTIONS_HELP) {
            options_help(stdout, "halo2d", PURPOSE, OPTIONS, &DEFAULTS);
        } else {
            (void)printf("halo2d %s (%s)\n", VERSION, COMMIT);
        }
        return fflush(stdout) == 0 ? CHECK_PASS : CHECK_FAILED;
    }
    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "all ranks");
    if (outcome == OPTIONS_RUN) {
        code = run(&settings);
    } else {
        CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
        if (rank == 0) {
            check_print("%s (see --help)", error);
        }
    }
    CHECK_MPI(MPI_Finalize(), "end");
    return (int)code;
}
