/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "version.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The first words of the library's description name product and version. */
void report_describe_mpi(char text[MPI_MAX_LIBRARY_VERSION_STRING])
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

void report_prepare(struct report *report, FILE *stream,
                    const struct program *program,
                    const struct settings_common *common, int np)
{
    *report = (struct report){
        .writer = {.stream = stream, .json = common->json},
        .program = program,
        .common = common,
        .np = np,
    };
    report_describe_mpi(report->mpi);
}

void report_title(struct report *report, int rows)
{
    const struct settings_common *common = report->common;

    report->rows = rows;
    output_comment(&report->writer, "Seatrial %s %s (%s), %s",
                   report->program->name, VERSION, COMMIT, report->mpi);
    output_comment(&report->writer,
                   "[ processes: %d ] [ iterations: %ld ] [ warmup: %ld ] "
                   "[ rows: %d ]",
                   report->np, common->iterations, common->warmup, rows);
    if (common->time_ms > 0) {
        output_comment(&report->writer,
                       "[ fewer iterations where a size takes > %ld ms ]",
                       common->time_ms);
    }
}

void report_open(struct report *report, FILE *stream,
                 const struct program *program,
                 const struct settings_common *common, int np, int rows)
{
    report_prepare(report, stream, program, common, np);
    report_title(report, rows);
}

void report_add_program(const struct report *report, struct report_row *row)
{
    report_add(row, output_text("program", NULL, report->program->name));
    report_add(row, output_text("version", NULL, VERSION));
    report_add(row, output_text("commit", NULL, COMMIT));
    report_add(row, output_text("mpi", NULL, report->mpi));
}

void report_begin(struct report *report, struct report_row *row)
{
    row->count = 0;
    report_add_program(report, row);
    report_add(row, output_integer("np", NULL, report->np));
    report_add(row,
               output_integer("iterations", NULL, report->common->iterations));
    report_add(row, output_integer("warmup", NULL, report->common->warmup));
    report_add(row, output_integer("row", NULL, ++report->row));
    report_add(row, output_integer("rows", NULL, report->rows));
}

void report_add(struct report_row *row, struct output_field field)
{
    assert(row->count < REPORT_MAX_FIELDS);
    row->fields[row->count++] = field;
}

void report_add_times(struct report_row *row,
                      const struct stats_summary *summary)
{
    report_add(row, output_real("min_us", "Min(us)", summary->min));
    report_add(row, output_real("p50_us", "p50(us)", summary->p50));
    report_add(row, output_real("p99_us", "p99(us)", summary->p99));
    report_add(row, output_real("max_us", "Max(us)", summary->max));
    report_add(row, output_real("mean_us", "Mean(us)", summary->mean));
    report_add(row, output_integer("n", "Samples", (long long)summary->n));
}

void report_add_validation(struct report_row *row, bool asked, bool valid)
{
    report_add(row, output_text("validation", "Validation",
                                !asked  ? "off"
                                : valid ? "pass"
                                        : "fail"));
}

void report_end(struct report *report, const struct report_row *row)
{
    output_row(&report->writer, row->fields, row->count);
}

bool report_close(struct report *report)
{
    if (!output_finish(&report->writer)) {
        check_print("output: fflush: %s", strerror(errno));
        return false;
    }
    return true;
}
