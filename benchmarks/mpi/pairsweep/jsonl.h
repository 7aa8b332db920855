/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_JSONL_H
#define SEATRIAL_JSONL_H

#include <stdbool.h>
#include <stddef.h>

enum jsonl_type {
    JSONL_MISSING,
    JSONL_NULL,
    JSONL_BOOL,
    JSONL_NUMBER,
    JSONL_TEXT,
};

enum { JSONL_TEXT_SIZE = 512 };

/** A value that is looked for in a line. */
struct jsonl_field {
    const char *key;
    enum jsonl_type type;
    double number; /* or 1 for true */
    char text[JSONL_TEXT_SIZE];
};

/**
 * Read a line that is one flat JSON object, no object or array in it, and set
 * the fields with the keys that it has; the others become JSONL_MISSING. False
 * if it is anything else, or a text that is looked for is too long.
 */
bool jsonl_read(const char *line, struct jsonl_field *fields, size_t count);

#endif
