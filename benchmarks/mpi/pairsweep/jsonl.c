/* SPDX-License-Identifier: Apache-2.0 */
#include "jsonl.h"

#include <stdlib.h>
#include <string.h>

static const char JSONL_SPACE[] = " \t\r\n";

static void jsonl_skip_space(const char **at)
{
    *at += strspn(*at, JSONL_SPACE);
}

static bool jsonl_skip(const char **at, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*at, text, length) != 0) {
        return false;
    }
    *at += length;
    return true;
}

/* Text while it is read; without room it is only checked. */
struct jsonl_text {
    char *room;
    size_t used;
    bool fits;
};

static void jsonl_put(struct jsonl_text *text, unsigned byte)
{
    if (text->room == NULL) {
        return;
    }
    if (text->used + 1 == JSONL_TEXT_SIZE) {
        text->fits = false;
        return;
    }
    text->room[text->used++] = (char)byte;
    text->room[text->used] = '\0';
}

/* UTF-8 of a code unit; a half of a surrogate pair is kept as it is. */
static void jsonl_put_unit(struct jsonl_text *text, unsigned unit)
{
    if (unit < 0x80) {
        jsonl_put(text, unit);
    } else if (unit < 0x800) {
        jsonl_put(text, 0xc0 | unit >> 6);
        jsonl_put(text, 0x80 | (unit & 0x3f));
    } else {
        jsonl_put(text, 0xe0 | unit >> 12);
        jsonl_put(text, 0x80 | (unit >> 6 & 0x3f));
        jsonl_put(text, 0x80 | (unit & 0x3f));
    }
}

/* The character after a backslash. */
static bool jsonl_read_escape(const char **at, struct jsonl_text *text)
{
    static const char NAMES[] = "\"\\/bfnrt";
    static const char BYTES[] = "\"\\/\b\f\n\r\t";
    const char *name = strchr(NAMES, **at);

    if (**at == 'u') {
        char digits[5] = "";

        (*at)++;
        memcpy(digits, *at, strnlen(*at, 4));
        if (strspn(digits, "0123456789abcdefABCDEF") != 4) {
            return false;
        }
        jsonl_put_unit(text, (unsigned)strtoul(digits, NULL, 16));
        *at += 4;
        return true;
    }
    if (**at == '\0' || name == NULL) {
        return false;
    }
    jsonl_put(text, (unsigned char)BYTES[name - NAMES]);
    (*at)++;
    return true;
}

static bool jsonl_read_text(const char **at, char *room)
{
    struct jsonl_text text = {.room = room, .fits = true};

    if (room != NULL) {
        room[0] = '\0';
    }
    if (!jsonl_skip(at, "\"")) {
        return false;
    }
    while (**at != '"') {
        if ((unsigned char)**at < 0x20) {
            return false;
        }
        if (jsonl_skip(at, "\\")) {
            if (!jsonl_read_escape(at, &text)) {
                return false;
            }
        } else {
            jsonl_put(&text, (unsigned char)*(*at)++);
        }
    }
    (*at)++;
    return text.fits;
}

static bool jsonl_read_number(const char **at, double *number)
{
    char *end = NULL;
    size_t length = strspn(*at, "+-.0123456789eE"); /* no inf, nan, 0x1 */

    *number = strtod(*at, &end);
    if (length == 0 || **at == '+' || end != *at + length) {
        return false;
    }
    *at = end;
    return true;
}

/* Read a value into field, or past it if field is NULL. */
static bool jsonl_read_value(const char **at, struct jsonl_field *field)
{
    double number = 0.0;
    enum jsonl_type type = JSONL_BOOL;

    if (**at == '"') {
        type = JSONL_TEXT;
        if (!jsonl_read_text(at, field != NULL ? field->text : NULL)) {
            return false;
        }
    } else if (jsonl_skip(at, "null")) {
        type = JSONL_NULL;
    } else if (jsonl_skip(at, "true")) {
        number = 1.0;
    } else if (!jsonl_skip(at, "false")) {
        type = JSONL_NUMBER;
        if (!jsonl_read_number(at, &number)) {
            return false;
        }
    }
    if (field != NULL) {
        field->type = type;
        field->number = number;
    }
    return true;
}

static bool jsonl_read_member(const char **at, struct jsonl_field *fields,
                              size_t count)
{
    char key[JSONL_TEXT_SIZE];
    struct jsonl_field *field = NULL;

    jsonl_skip_space(at);
    if (!jsonl_read_text(at, key)) {
        return false;
    }
    for (size_t i = 0; i < count && field == NULL; i++) {
        field = strcmp(fields[i].key, key) == 0 ? &fields[i] : NULL;
    }
    jsonl_skip_space(at);
    if (!jsonl_skip(at, ":")) {
        return false;
    }
    jsonl_skip_space(at);
    if (!jsonl_read_value(at, field)) {
        return false;
    }
    jsonl_skip_space(at);
    return true;
}

bool jsonl_read(const char *line, struct jsonl_field *fields, size_t count)
{
    const char *at = line;

    for (size_t i = 0; i < count; i++) {
        fields[i].type = JSONL_MISSING;
        fields[i].text[0] = '\0';
    }
    jsonl_skip_space(&at);
    if (!jsonl_skip(&at, "{")) {
        return false;
    }
    do {
        if (!jsonl_read_member(&at, fields, count)) {
            return false;
        }
    } while (jsonl_skip(&at, ","));
    if (!jsonl_skip(&at, "}")) {
        return false;
    }
    jsonl_skip_space(&at);
    return *at == '\0';
}
