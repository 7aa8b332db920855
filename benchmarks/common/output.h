/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_OUTPUT_H
#define SEATRIAL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum output_type {
    OUTPUT_INTEGER,
    OUTPUT_REAL, /* not finite: null in JSON, nan or inf in the table */
    OUTPUT_TEXT, /* NULL: null in JSON, - in the table */
};

/** One value of a row: its key in JSON and its column in the table. */
struct output_field {
    const char *key;
    const char *column; /* NULL: not in the table */
    enum output_type type;
    int decimals; /* of a real in the table */
    union {
        long long integer;
        double real;
        const char *text;
    };
};

/** The one writer of data: an aligned table, or JSON Lines. */
struct output_writer {
    FILE *stream;
    bool json;
    bool has_header;
    int error; /* errno of the first row that could not be written, or 0 */
};

struct output_field output_integer(const char *key, const char *column,
                                   long long value);
struct output_field output_real(const char *key, const char *column,
                                double value);
/** A real that needs more than the two decimals that the table shows else. */
struct output_field output_real_digits(const char *key, const char *column,
                                       double value, int decimals);
struct output_field output_text(const char *key, const char *column,
                                const char *value);

/** Write a comment line of the table; JSON rows carry the same as fields. */
void output_comment(struct output_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Write a row and hand it on at once; the first one writes the header too. */
void output_row(struct output_writer *writer, const struct output_field *fields,
                size_t count);

/** Flush. False, with errno set, if anything could not be written. */
bool output_finish(struct output_writer *writer);

#endif
