/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct options_row OPTIONS_COMMON[] = {
    {.name = "help", .letter = 'h', .help = "print this text and exit"},
    {.name = "version", .letter = 'v', .help = "print the version and exit"},
    {.name = NULL},
};

__attribute__((format(printf, 2, 3))) static bool
options_refuse(char error[OPTIONS_ERROR_SIZE], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error, OPTIONS_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return false;
}

static bool options_read_integer(const char *text, long low, long high,
                                 long *value_p)
{
    char *end = NULL;

    if ((*text < '0' || *text > '9') && *text != '-') {
        return false;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < low ||
        value > high) {
        return false;
    }
    *value_p = value;
    return true;
}

static bool options_read_span(const struct options_row *row, const char *text,
                              struct options_span *span)
{
    const char *colon = strchr(text, ':');
    char first[32];

    if (colon == NULL) {
        return options_read_integer(text, row->low, row->high, &span->max);
    }
    int length =
        snprintf(first, sizeof(first), "%.*s", (int)(colon - text), text);
    return length > 0 && (size_t)length < sizeof(first) &&
           options_read_integer(first, row->low, row->high, &span->min) &&
           options_read_integer(colon + 1, row->low, row->high, &span->max);
}

static bool options_read_choice(const struct options_row *row, const char *text,
                                size_t *index_p)
{
    for (size_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(text, row->choices[i]) == 0) {
            *index_p = i;
            return true;
        }
    }
    return false;
}

static void options_list_choices(const struct options_row *row, char *text,
                                 size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; row->choices[i] != NULL && used < size; i++) {
        int length = snprintf(text + used, size - used, "%s%s",
                              i == 0 ? "" : ", ", row->choices[i]);
        used += (size_t)length;
    }
}

static bool options_set(const struct options_row *row, const char *text,
                        void *settings, char error[OPTIONS_ERROR_SIZE])
{
    void *target = (char *)settings + row->offset;
    char known[128];

    switch (row->type) {
    case OPTIONS_INTEGER:
        return options_read_integer(text, row->low, row->high, target) ||
               options_refuse(error,
                              "--%s: '%s' is not an integer from %ld to %ld",
                              row->name, text, row->low, row->high);
    case OPTIONS_SPAN:
        return options_read_span(row, text, target) ||
               options_refuse(error,
                              "--%s: '%s' is not [MIN:]MAX, integers from %ld "
                              "to %ld",
                              row->name, text, row->low, row->high);
    case OPTIONS_CHOICE:
        if (options_read_choice(row, text, target)) {
            return true;
        }
        options_list_choices(row, known, sizeof(known));
        return options_refuse(error, "--%s: '%s' is none of: %s", row->name,
                              text, known);
    case OPTIONS_FLAG:
        *(bool *)target = true;
        return true;
    case OPTIONS_TEXT:
        *(const char **)target = text;
        return *text != '\0' ||
               options_refuse(error, "--%s: empty, expected %s", row->name,
                              row->value);
    }
    return options_refuse(error, "--%s: option of an unknown type", row->name);
}

/* Find the row of an argument; text_p gets what follows the name, or NULL. */
static const struct options_row *options_find(const struct options_row *rows,
                                              const char *argument,
                                              const char **text_p)
{
    bool is_long = strncmp(argument, "--", 2) == 0;
    const char *name = argument + 2;
    size_t length = is_long ? strcspn(name, "=") : 0;

    for (; rows->name != NULL; rows++) {
        if (is_long && strlen(rows->name) == length &&
            strncmp(rows->name, name, length) == 0) {
            *text_p = name[length] == '=' ? name + length + 1 : NULL;
            return rows;
        }
        if (!is_long && argument[0] == '-' && rows->letter != 0 &&
            argument[1] == rows->letter) {
            *text_p = argument[2] != '\0' ? argument + 2 : NULL;
            return rows;
        }
    }
    return NULL;
}

enum options_outcome options_parse(const struct options_row *rows,
                                   void *settings, int argc, char *const *argv,
                                   char error[OPTIONS_ERROR_SIZE])
{
    for (int i = 1; i < argc; i++) {
        const char *text = NULL;
        const struct options_row *row =
            options_find(OPTIONS_COMMON, argv[i], &text);

        if (row != NULL && text == NULL) {
            return row->letter == 'h' ? OPTIONS_HELP : OPTIONS_VERSION;
        }
        row = options_find(rows, argv[i], &text);
        if (row == NULL) {
            (void)options_refuse(error, "unknown argument '%s'", argv[i]);
            return OPTIONS_ERROR;
        }
        if (row->type == OPTIONS_FLAG && text != NULL) {
            (void)options_refuse(error, "--%s takes no value, found '%s'",
                                 row->name, text);
            return OPTIONS_ERROR;
        }
        if (row->type != OPTIONS_FLAG && text == NULL) {
            if (i + 1 == argc) {
                (void)options_refuse(error, "--%s needs a value: %s", row->name,
                                     row->value);
                return OPTIONS_ERROR;
            }
            text = argv[++i];
        }
        if (!options_set(row, text, settings, error)) {
            return OPTIONS_ERROR;
        }
    }
    return OPTIONS_RUN;
}

static void options_print_default(FILE *stream, const struct options_row *row,
                                  const void *defaults)
{
    const void *value = (const char *)defaults + row->offset;
    const struct options_span *span = value;

    switch (row->type) {
    case OPTIONS_INTEGER:
        (void)fprintf(stream, " (default %ld)", *(const long *)value);
        break;
    case OPTIONS_SPAN:
        (void)fprintf(stream, " (default %ld:%ld)", span->min, span->max);
        break;
    case OPTIONS_CHOICE:
        (void)fprintf(stream, " (default %s)",
                      row->choices[*(const size_t *)value]);
        break;
    case OPTIONS_TEXT:
        if (*(const char *const *)value != NULL) {
            (void)fprintf(stream, " (default %s)", *(const char *const *)value);
        }
        break;
    case OPTIONS_FLAG:
        break;
    }
}

static void options_print_row(FILE *stream, const struct options_row *row,
                              const void *defaults)
{
    char left[48];
    char short_form[8] = "    ";

    if (row->letter != 0) {
        (void)snprintf(short_form, sizeof(short_form), "-%c, ", row->letter);
    }
    (void)snprintf(left, sizeof(left), "%s--%s%s%s", short_form, row->name,
                   row->value != NULL ? " " : "",
                   row->value != NULL ? row->value : "");
    (void)fprintf(stream, "  %-28s %s", left, row->help);
    if (row->choices != NULL) {
        char known[128];

        options_list_choices(row, known, sizeof(known));
        (void)fprintf(stream, ": %s", known);
    }
    if (defaults != NULL) {
        options_print_default(stream, row, defaults);
    }
    (void)fputc('\n', stream);
}

void options_help(FILE *stream, const char *program, const char *purpose,
                  const struct options_row *rows, const void *defaults)
{
    (void)fprintf(stream, "Usage: %s [options]\n\n%s\n\nOptions:\n", program,
                  purpose);
    for (; rows->name != NULL; rows++) {
        options_print_row(stream, rows, defaults);
    }
    for (rows = OPTIONS_COMMON; rows->name != NULL; rows++) {
        options_print_row(stream, rows, NULL);
    }
}

long options_next_size(long size)
{
    return size == 0 ? 2 : 2 * size;
}

int options_count_sizes(struct options_span span)
{
    int count = 0;

    for (long size = span.min; size <= span.max;
         size = options_next_size(size)) {
        count++;
    }
    return count;
}
