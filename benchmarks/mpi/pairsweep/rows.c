/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "clock.h"
#include "rails.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A sweep takes hours: better it ends than that its rows are lost. */
static void rows_write(struct rows *rows, const struct report_row *row)
{
    report_end(&rows->report, row);
    if (!output_finish(&rows->report.writer)) {
        check_abort(CHECK_FAILED, "output: write: %s", strerror(errno));
    }
}

/* Rows that only JSON has; the table has them as comments. */
static void rows_write_json(struct rows *rows, const struct report_row *row)
{
    if (rows->report.writer.json) {
        rows_write(rows, row);
    }
}

void rows_open(struct rows *rows, FILE *stream, const struct program *program,
               const struct settings *settings, const struct nodes *nodes,
               int np, bool is_json)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    *rows = (struct rows){
        .settings = settings,
        .nodes = nodes,
        .start_time = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
        .start_ns = clock_now_ns(),
    };
    report_prepare(&rows->report, stream, program, &settings->common, np);
    rows->report.writer.json = is_json;
}

void rows_add_settings(const struct rows *rows, struct report_row *row)
{
    const struct settings *settings = rows->settings;
    const struct settings_common *common = &settings->common;
    const char *variable =
        settings->rails != NULL ? settings->rail_variable : NULL;

    report_add(row, output_text("rails", NULL, settings->rails));
    report_add(row, output_text("rail_variable", NULL, variable));
    report_add(row, output_integer("seed", NULL, settings->seed));
    report_add(row, output_integer("latency_bytes", NULL, common->sizes.min));
    report_add(row, output_integer("bandwidth_bytes", NULL, common->sizes.max));
    report_add(row, output_integer("iterations", NULL, common->iterations));
    report_add(row, output_integer("warmup", NULL, common->warmup));
    report_add(row, output_integer("window", NULL, settings->window));
    report_add(row, output_integer("windows", NULL, settings->windows));
    report_add(row, output_integer("time_ms", NULL, common->time_ms));
    report_add(row, output_integer("suspect_percent", NULL,
                                   settings->suspect_percent));
}

void rows_run(struct rows *rows, int rounds, long pairs, long resumed)
{
    const struct settings *settings = rows->settings;
    const struct settings_common *common = &settings->common;
    struct report_row row = {.count = 0};

    report_add(&row, output_text("type", NULL, "run"));
    report_add_program(&rows->report, &row);
    report_add(&row, output_integer("np", NULL, rows->report.np));
    report_add(&row, output_integer("nodes", NULL, rows->nodes->count));
    report_add(&row, output_integer("rounds", NULL, rounds));
    rows_add_settings(rows, &row);
    report_add(&row, output_integer("pairs", NULL, pairs));
    report_add(&row, output_integer("resumed", NULL, resumed));
    report_add(&row, output_real("start_time", NULL, rows->start_time));
    rows_write_json(rows, &row);
    report_title(&rows->report, (int)pairs);
    output_comment(&rows->report.writer,
                   "[ nodes: %d ] [ rounds: %d ] [ pairs: %ld ] [ seed: %ld ] "
                   "[ rails: %s ]",
                   rows->nodes->count, rounds, pairs, settings->seed,
                   settings->rails != NULL ? settings->rails : "-");
    output_comment(&rows->report.writer,
                   "[ latency: %ld bytes ] [ bandwidth: %ld bytes, window: "
                   "%ld, windows: %ld ]",
                   common->sizes.min, common->sizes.max, settings->window,
                   settings->windows);
}

void rows_pair(struct rows *rows, const struct pair_result *result)
{
    const struct pair_meeting *meeting = &result->meeting;
    const struct stats_summary *latency = &result->latency_us;
    const struct settings *settings = rows->settings;
    struct report_row row = {.count = 0};
    char room[RAILS_NAME_SIZE];

    report_add(&row, output_text("type", NULL, "pair"));
    report_add(&row,
               output_text("mode", NULL, meeting->quiet ? "quiet" : "sweep"));
    report_add(&row, output_text("status", NULL, "ok"));
    report_add(&row, output_text("source", "Source",
                                 rows->nodes->hosts[meeting->source]));
    report_add(&row, output_text("destination", "Destination",
                                 rows->nodes->hosts[meeting->destination]));
    report_add(&row,
               output_text("hca", "HCA",
                           rails_name(settings->rails, meeting->rail, room)));
    report_add(&row, output_integer("rail", NULL, meeting->rail));
    report_add(&row, output_integer("round", "Round", meeting->round));
    report_add(&row, output_integer("at_once", "At once", meeting->at_once));
    report_add(&row, output_real("start_time", NULL, result->start_time));
    report_add(&row,
               output_real("start_spread_us", NULL, result->start_spread_us));
    report_add(&row, output_real("latency_min_us", "Min(us)", latency->min));
    report_add(&row, output_real("latency_p50_us", "p50(us)", latency->p50));
    report_add(&row, output_real("latency_p99_us", "p99(us)", latency->p99));
    report_add(&row, output_real("latency_max_us", NULL, latency->max));
    report_add(&row, output_integer("latency_n", NULL, (long long)latency->n));
    report_add(&row, output_real("bw_mb_per_s", "MB/s", result->bw_mb_per_s));
    report_add(&row, output_real("bw_back_mb_per_s", "Back MB/s",
                                 result->bw_back_mb_per_s));
    report_add(&row, output_integer("bw_n", NULL, result->windows));
    report_add_validation(&row, settings->common.validate, result->valid);
    rows_write(rows, &row);
}

void rows_end(struct rows *rows, const struct rows_counts *counts,
              double round_overhead_us)
{
    double elapsed_s = clock_between_us(rows->start_ns, clock_now_ns()) / 1e6;
    struct report_row row = {.count = 0};

    report_add(&row, output_text("type", NULL, "end"));
    report_add(&row, output_integer("measured", NULL, counts->measured));
    report_add(&row, output_integer("suspects", NULL, counts->suspects));
    report_add(&row, output_integer("retested", NULL, counts->retested));
    report_add(&row, output_integer("rounds_made", NULL, counts->rounds));
    report_add(&row,
               output_real("round_overhead_p50_us", NULL, round_overhead_us));
    report_add(&row, output_real("elapsed_s", NULL, elapsed_s));
    rows_write_json(rows, &row);
    output_comment(&rows->report.writer,
                   "[ measured: %ld ] [ suspects: %ld ] [ measured again "
                   "alone: %ld ] [ seconds: %.1f ]",
                   counts->measured, counts->suspects, counts->retested,
                   elapsed_s);
}
