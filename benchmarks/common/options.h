/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_OPTIONS_H
#define SEATRIAL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Sizes min, then doubled (0 is followed by 2), up to max. */
struct options_span {
    long min;
    long max;
};

/** The type of an option's value in the settings of its program. */
enum options_type {
    OPTIONS_INTEGER, /* long, from low to high */
    OPTIONS_SPAN,    /* struct options_span, [MIN:]MAX, from low to high */
    OPTIONS_CHOICE,  /* size_t, index into choices */
    OPTIONS_FLAG,    /* bool */
    OPTIONS_TEXT,    /* const char *, as it is; NULL: none */
};

/**
 * One row of a program's table of options. The table is the only place that
 * knows them: parsing and help both read it. Its end is a row without a name.
 */
struct options_row {
    const char *name;
    char letter; /* 0: long form only */
    enum options_type type;
    size_t offset; /* of the value in the settings */
    long low;
    long high;
    const char *const *choices; /* ends with NULL */
    const char *value;          /* its name in the help */
    const char *help;
};

enum options_outcome {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_VERSION,
    OPTIONS_ERROR,
};

enum { OPTIONS_ERROR_SIZE = 256 };

/**
 * Read the command line into settings, which hold the defaults before. Writes
 * the reason into error if the outcome is OPTIONS_ERROR. Every program has
 * --help (-h) and --version (-v).
 */
enum options_outcome options_parse(const struct options_row *rows,
                                   void *settings, int argc, char *const *argv,
                                   char error[OPTIONS_ERROR_SIZE]);

/** Print usage; the defaults shown are the values in defaults. */
void options_help(FILE *stream, const char *program, const char *purpose,
                  const struct options_row *rows, const void *defaults);

/** The size after size; a span is walked from min while size <= max. */
long options_next_size(long size);

/** The number of sizes in a span. */
int options_count_sizes(struct options_span span);

#endif
