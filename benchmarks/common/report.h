/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_REPORT_H
#define SEATRIAL_REPORT_H

#include "output.h"
#include "program.h"
#include "settings.h"
#include "stats.h"

#include <mpi.h>

enum { REPORT_MAX_FIELDS = 48 };

/** The fields of a run in all its rows. Only rank 0 has one. */
struct report {
    struct output_writer writer;
    const struct program *program;
    const struct settings_common *common;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    int np;
    int row;
    int rows;
};

/** A row while it is filled, field by field. */
struct report_row {
    struct output_field fields[REPORT_MAX_FIELDS];
    size_t count;
};

/** Write product and version of the MPI library. */
void report_describe_mpi(char text[MPI_MAX_LIBRARY_VERSION_STRING]);

/** Prepare a report without writing; write its title of a number of rows. */
void report_prepare(struct report *report, FILE *stream,
                    const struct program *program,
                    const struct settings_common *common, int np);
void report_title(struct report *report, int rows);

/**
 * Begin the data of a run of np processes and this many rows: in the table, a
 * title and the settings that all programs have.
 */
void report_open(struct report *report, FILE *stream,
                 const struct program *program,
                 const struct settings_common *common, int np, int rows);

/** Begin the next row with program, version, MPI, np, settings and number. */
void report_begin(struct report *report, struct report_row *row);

/** Add program, version, commit and MPI. */
void report_add_program(const struct report *report, struct report_row *row);

/** Add a field to a row. */
void report_add(struct report_row *row, struct output_field field);

/** Add min, p50, p99, max and mean in us, and n. */
void report_add_times(struct report_row *row,
                      const struct stats_summary *summary);

/** Add validation: off, pass or fail. */
void report_add_validation(struct report_row *row, bool asked, bool valid);

/** Write the row. */
void report_end(struct report *report, const struct report_row *row);

/** End the data. False, after an error message, if some were not written. */
bool report_close(struct report *report);

#endif
