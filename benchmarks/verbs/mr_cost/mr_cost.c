/* SPDX-License-Identifier: Apache-2.0 */
/* Measure what it costs to register memory, and to end that. */
#include "budget.h"
#include "clock.h"
#include "program.h"
#include "registration.h"
#include "report.h"
#include "team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char PURPOSE[] =
    "Time of ibv_reg_mr and ibv_dereg_mr by size, in one process: of memory "
    "that was\nregistered before (warm), of ever new memory whose pages are "
    "present (cold), and\nof new memory without pages (untouched). A line "
    "through the medians of all sizes\ntells what a page costs. Min to Mean "
    "are of ibv_reg_mr.";

enum { MAX_SIZES = 64 };

static const char *const STATE_NAMES[] = {"warm", "cold", "untouched", "all",
                                          NULL};
static const char *const PAGES_NAMES[] = {"off", "transparent", "reserved",
                                          NULL};

struct settings {
    struct settings_common common;
    struct verbs_settings verbs;
    size_t state;
    size_t pages; /* enum pages_kind */
};

static const struct settings DEFAULTS = {
    .common = {.sizes = {.min = 4096, .max = 268435456},
               .iterations = 200,
               .warmup = 10},
    .verbs = VERBS_DEFAULTS,
    .state = REGISTRATION_STATES,
};

static const struct options_row OPTIONS[] = {
    VERBS_DEVICE_ROW(struct settings,
                     "adapter and port; none: the first active one"),
    {"state", 0, OPTIONS_CHOICE, offsetof(struct settings, state), 0, 0,
     STATE_NAMES, "NAME", "what is registered"},
    {"huge-pages", 0, OPTIONS_CHOICE, offsetof(struct settings, pages), 0, 0,
     PAGES_NAMES, "KIND", "put the memory on huge pages"},
    SETTINGS_SIZE_ROWS(struct settings, SETTINGS_MAX_SIZE, "BYTES", "region"),
    SETTINGS_LOOP_ROWS(struct settings, "timed registrations",
                       "untimed registrations"),
    VERBS_TIMEOUT_ROW(struct settings),
    SETTINGS_LAST_ROWS(struct settings),
};

/** A run; rank 0 is all there is. */
struct run {
    const struct program *program;
    const struct settings *settings;
    struct port port;
    struct registration_samples samples;
    double clock_us;
    struct fault fault;
};

static bool is_chosen(const struct run *run, size_t state)
{
    return run->settings->state == REGISTRATION_STATES ||
           run->settings->state == state;
}

static bool loop(struct run *run, const struct registration *what, long n,
                 size_t *huge_bytes)
{
    return registration_loop(what, run->clock_us, n, &run->samples, huge_bytes,
                             &run->fault);
}

/* Find how many registrations there is time for, and warm up. */
static long warm_up(struct run *run, const struct registration *what)
{
    enum { PILOT = 3 };
    const struct settings_common *common = &run->settings->common;
    size_t huge_bytes = 0;
    long n = common->iterations;

    if (common->time_ms > 0) {
        double pilot_us = 0.0;

        if (!loop(run, what, 1, &huge_bytes) ||
            !loop(run, what, PILOT, &huge_bytes)) {
            return 0;
        }
        for (int i = 0; i < PILOT; i++) {
            pilot_us += (run->samples.reg[i] + run->samples.dereg[i]) / PILOT;
        }
        n = budget_fit(pilot_us, n, (double)common->time_ms * 1e3);
    }
    return loop(run, what, budget_warmup(common, n), &huge_bytes) ? n : 0;
}

static bool measure(struct run *run, const struct registration *what,
                    struct registration_result *result)
{
    long n = warm_up(run, what);

    *result = (struct registration_result){.size_bytes = what->size_bytes,
                                           .valid = true};
    if (n == 0 || !loop(run, what, n, &result->huge_bytes)) {
        return false;
    }
    result->reg = stats_summarise(run->samples.reg, (size_t)n);
    result->dereg = stats_summarise(run->samples.dereg, (size_t)n);
    return true;
}

static void report_result(struct report *report, const struct run *run,
                          enum registration_state state,
                          const struct registration_result *result,
                          const struct stats_line *reg,
                          const struct stats_line *dereg)
{
    double page_bytes = (double)sysconf(_SC_PAGESIZE);
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("device", NULL, run->port.name));
    report_add(&row, output_text("state", "State", STATE_NAMES[state]));
    report_add(&row, output_text("huge_pages", NULL,
                                 PAGES_NAMES[run->settings->pages]));
    report_add(&row, output_integer("size_bytes", "Size",
                                    (long long)result->size_bytes));
    report_add(&row, output_integer("huge_bytes", "Huge",
                                    (long long)result->huge_bytes));
    report_add(&row, output_integer("page_bytes", NULL, (long long)page_bytes));
    report_add(&row, output_real("clock_us", NULL, run->clock_us));
    report_add_times(&row, &result->reg);
    report_add(&row, output_real("dereg_min_us", NULL, result->dereg.min));
    report_add(&row,
               output_real("dereg_p50_us", "Dereg(us)", result->dereg.p50));
    report_add(&row, output_real("dereg_p99_us", NULL, result->dereg.p99));
    report_add(&row, output_real("dereg_max_us", NULL, result->dereg.max));
    report_add(&row, output_real("dereg_mean_us", NULL, result->dereg.mean));
    report_add(&row, output_real("fixed_us", NULL, reg->intercept));
    report_add(&row,
               output_real_digits("us_per_page", "us/page", reg->slope, 5));
    report_add(&row, output_real("dereg_fixed_us", NULL, dereg->intercept));
    report_add(&row, output_real_digits("dereg_us_per_page", "Dereg/page",
                                        dereg->slope, 5));
    report_add_validation(&row, run->settings->common.validate, result->valid);
    report_end(report, &row);
}

/* Measure all sizes of a state; a line needs them all, so rows come last. */
static bool run_state(struct run *run, enum registration_state state,
                      struct report *report)
{
    const struct settings_common *common = &run->settings->common;
    struct registration_result results[MAX_SIZES];
    double page_bytes = (double)sysconf(_SC_PAGESIZE);
    size_t count = 0;
    bool valid = true;

    for (long size = common->sizes.min; size <= common->sizes.max && valid;
         size = options_next_size(size)) {
        struct registration what = {.port = &run->port,
                                    .state = state,
                                    .kind =
                                        (enum pages_kind)run->settings->pages,
                                    .size_bytes = (size_t)size};

        if (!measure(run, &what, &results[count]) ||
            (common->validate &&
             !registration_validate(&what, &run->settings->verbs,
                                    &results[count].valid, &run->fault))) {
            return false;
        }
        valid = results[count++].valid;
    }
    struct stats_line reg = registration_fit(results, count, page_bytes, false);
    struct stats_line dereg =
        registration_fit(results, count, page_bytes, true);
    for (size_t i = 0; i < count; i++) {
        report_result(report, run, state, &results[i], &reg, &dereg);
    }
    return valid;
}

static enum check_exit run_states(struct run *run)
{
    const struct settings *settings = run->settings;
    int states =
        settings->state == REGISTRATION_STATES ? REGISTRATION_STATES : 1;
    struct report report;
    bool good = true;

    report_open(&report, stdout, run->program, &settings->common, 1,
                states * options_count_sizes(settings->common.sizes));
    output_comment(&report.writer, "[ device: %s ] [ huge pages: %s ]",
                   run->port.name, PAGES_NAMES[settings->pages]);
    for (size_t s = 0; s < REGISTRATION_STATES && good; s++) {
        if (is_chosen(run, s)) {
            good = run_state(run, (enum registration_state)s, &report);
        }
    }
    return report_close(&report) && good ? CHECK_PASS : CHECK_FAILED;
}

static enum check_exit run_device(struct run *run)
{
    const struct settings *settings = run->settings;
    size_t most = (size_t)settings->common.iterations + 4;
    struct port_name name;
    char error[OPTIONS_ERROR_SIZE];
    enum check_exit code = CHECK_FAILED;

    if (!check_memory(MPI_COMM_WORLD,
                      16.0 * (double)most +
                          2.0 * (double)settings->common.sizes.max)) {
        return CHECK_USAGE;
    }
    (void)port_parse(settings->verbs.device, 1, &name, error);
    run->samples.reg = check_allocate(most * sizeof(double), "samples");
    run->samples.dereg = check_allocate(most * sizeof(double), "samples");
    if (port_open(&name, -1, false, &run->port, &run->fault)) {
        code = run_states(run);
    }
    if (run->fault.code != CHECK_PASS) {
        code = fault_agree(MPI_COMM_WORLD, &run->fault);
    }
    port_close(&run->port);
    free(run->samples.reg);
    free(run->samples.dereg);
    return code;
}

static enum check_exit run(const struct program *program, const void *settings)
{
    struct run run = {.program = program,
                      .settings = settings,
                      .clock_us = clock_overhead_ns() / 1e3};
    int np = 0;
    int rank = 0;

    watch_stop();
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &np), "all ranks");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
    if (np == 1) {
        return run_device(&run);
    }
    if (rank == 0) {
        check_print("found %d ranks: mr_cost measures one process", np);
    }
    return CHECK_USAGE;
}

static bool verify(const void *options, char error[OPTIONS_ERROR_SIZE])
{
    const struct settings *settings = options;

    if (settings->common.sizes.min < 1) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--sizes: 0: a region has at least 1 byte");
        return false;
    }
    return team_verify(&settings->verbs, 1, error);
}

static void prepare(const void *options)
{
    watch_start(((const struct settings *)options)->verbs.timeout_s);
}

int main(int argc, char **argv)
{
    static const struct program MR_COST = {
        .name = "mr_cost",
        .purpose = PURPOSE,
        .options = OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct settings),
        .verify = verify,
        .prepare = prepare,
        .run = run,
    };

    return program_main(&MR_COST, argc, argv);
}
