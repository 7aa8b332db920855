/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>

enum { OUTPUT_FIRST_WIDTH = 10, OUTPUT_WIDTH = 13, OUTPUT_DECIMALS = 2 };

struct output_field output_integer(const char *key, const char *column,
                                   long long value)
{
    return (struct output_field){
        .key = key, .column = column, .type = OUTPUT_INTEGER, .integer = value};
}

struct output_field output_real(const char *key, const char *column,
                                double value)
{
    return output_real_digits(key, column, value, OUTPUT_DECIMALS);
}

struct output_field output_real_digits(const char *key, const char *column,
                                       double value, int decimals)
{
    return (struct output_field){.key = key,
                                 .column = column,
                                 .type = OUTPUT_REAL,
                                 .decimals = decimals,
                                 .real = value};
}

struct output_field output_text(const char *key, const char *column,
                                const char *value)
{
    return (struct output_field){
        .key = key, .column = column, .type = OUTPUT_TEXT, .text = value};
}

void output_comment(struct output_writer *writer, const char *format, ...)
{
    va_list arguments;

    if (writer->json) {
        return;
    }
    (void)fputs("# ", writer->stream);
    va_start(arguments, format);
    (void)vfprintf(writer->stream, format, arguments);
    va_end(arguments);
    (void)fputc('\n', writer->stream);
}

static void output_json_text(FILE *stream, const char *text)
{
    (void)fputc('"', stream);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            (void)fprintf(stream, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            (void)fprintf(stream, "\\u%04x", byte);
        } else {
            (void)fputc(byte, stream);
        }
    }
    (void)fputc('"', stream);
}

static void output_json_row(FILE *stream, const struct output_field *fields,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i == 0 ? "{" : ", ", stream);
        output_json_text(stream, fields[i].key);
        (void)fputs(": ", stream);
        switch (fields[i].type) {
        case OUTPUT_INTEGER:
            (void)fprintf(stream, "%lld", fields[i].integer);
            break;
        case OUTPUT_REAL:
            if (isfinite(fields[i].real)) {
                (void)fprintf(stream, "%.15g", fields[i].real);
            } else {
                (void)fputs("null", stream);
            }
            break;
        case OUTPUT_TEXT:
            if (fields[i].text != NULL) {
                output_json_text(stream, fields[i].text);
            } else {
                (void)fputs("null", stream);
            }
            break;
        }
    }
    (void)fputs("}\n", stream);
}

static void output_table_header(FILE *stream, const struct output_field *fields,
                                size_t count)
{
    int width = -(OUTPUT_FIRST_WIDTH - 2);
    const char *gap = "";

    (void)fputs("# ", stream);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].column != NULL) {
            (void)fprintf(stream, "%s%*s", gap, width, fields[i].column);
            width = OUTPUT_WIDTH - 1;
            gap = " ";
        }
    }
    (void)fputc('\n', stream);
}

static void output_table_row(FILE *stream, const struct output_field *fields,
                             size_t count)
{
    int width = -OUTPUT_FIRST_WIDTH;
    const char *gap = "";

    for (size_t i = 0; i < count; i++) {
        if (fields[i].column == NULL) {
            continue;
        }
        (void)fputs(gap, stream);
        switch (fields[i].type) {
        case OUTPUT_INTEGER:
            (void)fprintf(stream, "%*lld", width, fields[i].integer);
            break;
        case OUTPUT_REAL:
            (void)fprintf(stream, "%*.*f", width, fields[i].decimals,
                          fields[i].real);
            break;
        case OUTPUT_TEXT:
            (void)fprintf(stream, "%*s", width,
                          fields[i].text != NULL ? fields[i].text : "-");
            break;
        }
        width = OUTPUT_WIDTH - 1;
        gap = " "; /* even where a host name is longer than its column */
    }
    (void)fputc('\n', stream);
}

void output_row(struct output_writer *writer, const struct output_field *fields,
                size_t count)
{
    if (writer->json) {
        output_json_row(writer->stream, fields, count);
    } else {
        if (!writer->has_header) {
            output_table_header(writer->stream, fields, count);
            writer->has_header = true;
        }
        output_table_row(writer->stream, fields, count);
    }
    bool is_lost = fflush(writer->stream) != 0 || ferror(writer->stream) != 0;
    if (is_lost && writer->error == 0) {
        writer->error = errno;
    }
}

bool output_finish(struct output_writer *writer)
{
    if (fflush(writer->stream) == 0 && ferror(writer->stream) == 0) {
        return true;
    }
    /* MPI changes errno between a row that was lost and the end. */
    errno = writer->error != 0 ? writer->error : errno;
    return false;
}
