/* SPDX-License-Identifier: Apache-2.0 */
#include "resume.h"

#include "jsonl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum resume_key {
    RESUME_TYPE,
    RESUME_PROGRAM,
    RESUME_MODE,
    RESUME_STATUS,
    RESUME_SOURCE,
    RESUME_DESTINATION,
    RESUME_RAIL,
    RESUME_LATENCY,
    RESUME_BW,
    RESUME_BW_BACK,
    RESUME_KEYS,
};

enum { RESUME_VALUE_SIZE = 128 };

__attribute__((format(printf, 2, 3))) static enum record_found
resume_refuse(struct resume *resume, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(resume->error, RECORD_ERROR_SIZE,
                        "%.200s, line %ld: ", resume->path, resume->number);

    va_start(arguments, format);
    (void)vsnprintf(resume->error + used, RECORD_ERROR_SIZE - (size_t)used,
                    format, arguments);
    va_end(arguments);
    return RECORD_ERROR;
}

static bool resume_is(const struct jsonl_field *field, const char *text)
{
    return field->type == JSONL_TEXT && strcmp(field->text, text) == 0;
}

static bool resume_same(const struct output_field *setting,
                        const struct jsonl_field *found)
{
    switch (setting->type) {
    case OUTPUT_INTEGER:
        return found->type == JSONL_NUMBER &&
               found->number == (double)setting->integer;
    case OUTPUT_REAL:
        return found->type == JSONL_NUMBER && found->number == setting->real;
    case OUTPUT_TEXT:
        return setting->text == NULL ? found->type == JSONL_NULL
                                     : resume_is(found, setting->text);
    }
    return false;
}

static const char *resume_describe(const struct jsonl_field *found,
                                   char text[RESUME_VALUE_SIZE])
{
    switch (found->type) {
    case JSONL_TEXT:
        (void)snprintf(text, RESUME_VALUE_SIZE, "'%.100s'", found->text);
        return text;
    case JSONL_NUMBER:
        (void)snprintf(text, RESUME_VALUE_SIZE, "%.15g", found->number);
        return text;
    default:
        return "nothing";
    }
}

/* All runs in a file have the same settings; those of this run follow. */
static enum record_found resume_check_run(struct resume *resume)
{
    for (size_t i = 0; i < resume->settings_count; i++) {
        struct jsonl_field found = {.key = resume->settings[i].key};
        char text[RESUME_VALUE_SIZE];

        if (!jsonl_read(resume->line, &found, 1) ||
            !resume_same(&resume->settings[i], &found)) {
            return resume_refuse(resume,
                                 "a run with other settings: %s was %s, give "
                                 "the same or another file",
                                 found.key, resume_describe(&found, text));
        }
    }
    resume->has_run = true;
    return RECORD_END;
}

static float resume_number(const struct jsonl_field *field)
{
    return field->type == JSONL_NUMBER ? (float)field->number : NAN;
}

/* Return the pair of a row; RECORD_END if it is not in this run. */
static enum record_found resume_read_pair(struct resume *resume,
                                          const struct jsonl_field *fields,
                                          struct record *record)
{
    double rail = fields[RESUME_RAIL].number;
    bool is_sweep = resume_is(&fields[RESUME_MODE], "sweep");

    if (!resume->has_run || fields[RESUME_SOURCE].type != JSONL_TEXT ||
        fields[RESUME_DESTINATION].type != JSONL_TEXT ||
        fields[RESUME_RAIL].type != JSONL_NUMBER || rail != floor(rail) ||
        !(rail >= 0 && rail < resume->rails) ||
        !(is_sweep || resume_is(&fields[RESUME_MODE], "quiet"))) {
        return resume_refuse(resume, "no row of pairsweep");
    }
    *record = (struct record){
        .kind = is_sweep ? RECORD_DONE : RECORD_RETESTED,
        .source = nodes_find(resume->nodes, fields[RESUME_SOURCE].text),
        .destination =
            nodes_find(resume->nodes, fields[RESUME_DESTINATION].text),
        .rail = (int)rail,
        .latency_us = resume_number(&fields[RESUME_LATENCY]),
        .bw_mb_per_s = fminf(resume_number(&fields[RESUME_BW]),
                             resume_number(&fields[RESUME_BW_BACK])),
    };
    resume->has_pairs = true;
    resume->has_own_host |= record->source >= 0 || record->destination >= 0;
    if (record->source < 0 || record->destination < 0) {
        resume->passed_over++;
        return RECORD_END;
    }
    return RECORD_FOUND;
}

/* Read a line. RECORD_END: it has no pair of this run. */
static enum record_found resume_read_line(struct resume *resume, size_t length,
                                          struct record *record)
{
    struct jsonl_field fields[RESUME_KEYS] = {
        [RESUME_TYPE] = {.key = "type"},
        [RESUME_PROGRAM] = {.key = "program"},
        [RESUME_MODE] = {.key = "mode"},
        [RESUME_STATUS] = {.key = "status"},
        [RESUME_SOURCE] = {.key = "source"},
        [RESUME_DESTINATION] = {.key = "destination"},
        [RESUME_RAIL] = {.key = "rail"},
        [RESUME_LATENCY] = {.key = "latency_p50_us"},
        [RESUME_BW] = {.key = "bw_mb_per_s"},
        [RESUME_BW_BACK] = {.key = "bw_back_mb_per_s"},
    };
    const struct jsonl_field *type = &fields[RESUME_TYPE];

    if (strlen(resume->line) != length ||
        !jsonl_read(resume->line, fields, RESUME_KEYS)) {
        return resume_refuse(resume, "no row of pairsweep");
    }
    if (resume_is(type, "pair")) {
        return resume_read_pair(resume, fields, record);
    }
    if (resume_is(type, "run") &&
        (resume_is(&fields[RESUME_PROGRAM], "pairsweep") ||
         resume_is(&fields[RESUME_PROGRAM], "pairsweep_verbs"))) {
        return resume_check_run(resume);
    }
    if (resume_is(type, "end") || resume_is(type, "event")) {
        return RECORD_END;
    }
    return resume_refuse(resume, "no row of pairsweep");
}

static enum record_found resume_end(struct resume *resume)
{
    if (ferror(resume->stream) != 0 ||
        ftruncate(fileno(resume->stream), resume->offset) != 0 ||
        fseeko(resume->stream, 0, SEEK_END) != 0) {
        return resume_refuse(resume, "%s", strerror(errno));
    }
    if (resume->has_pairs && !resume->has_own_host) {
        return resume_refuse(resume, "none of its nodes is in this run");
    }
    return RECORD_END;
}

enum record_found resume_next(struct resume *resume, struct record *record)
{
    enum record_found found = RECORD_END;

    while (found == RECORD_END) {
        ssize_t length = getline(&resume->line, &resume->size, resume->stream);

        if (length <= 0 || resume->line[length - 1] != '\n') {
            return resume_end(resume);
        }
        resume->number++;
        resume->offset += length;
        found = resume_read_line(resume, (size_t)length, record);
    }
    return found;
}

void resume_free(struct resume *resume)
{
    free(resume->line);
    resume->line = NULL;
}
