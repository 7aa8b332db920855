/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_SETTINGS_H
#define SEATRIAL_SETTINGS_H

#include "options.h"

#include <stdbool.h>

/** Options of every benchmark; the member `common` of its settings. */
struct settings_common {
    struct options_span sizes;
    long iterations;
    long warmup;
    long time_ms; /* 0: no limit */
    bool validate;
    bool json;
};

enum {
    SETTINGS_MAX_ITERATIONS = 10000000,
    SETTINGS_MAX_TIME_MS = 3600000,
    SETTINGS_MAX_WINDOW = 65536,
    SETTINGS_MAX_WINDOWS = 1000000,
    SETTINGS_MAX_SIZE = 1 << 30, /* a message's bytes are an int to MPI */
};

/* Braces around a row: a macro call is easier to lay out than a list. */
#define SETTINGS_ROW(...) {__VA_ARGS__}

/**
 * The rows of sizes, for settings of this type; unit names one (BYTES), what
 * says what it is the size of.
 */
#define SETTINGS_SIZE_ROWS(type, largest, unit, what)                          \
    SETTINGS_ROW("sizes", 'm', OPTIONS_SPAN, offsetof(type, common.sizes), 0,  \
                 largest, NULL, "[MIN:]MAX",                                   \
                 unit " from MIN, doubled up to MAX; 0 is followed by 2"),     \
        SETTINGS_ROW("min-size", 0, OPTIONS_INTEGER,                           \
                     offsetof(type, common.sizes.min), 0, largest, NULL, unit, \
                     "smallest " what),                                        \
        SETTINGS_ROW("max-size", 0, OPTIONS_INTEGER,                           \
                     offsetof(type, common.sizes.max), 0, largest, NULL, unit, \
                     "largest " what)

/** The rows of iterations, warm-up and the time for both; each says of what. */
#define SETTINGS_LOOP_ROWS(type, timed, untimed)                               \
    SETTINGS_ROW("iterations", 'i', OPTIONS_INTEGER,                           \
                 offsetof(type, common.iterations), 1,                         \
                 SETTINGS_MAX_ITERATIONS, NULL, "COUNT", timed),               \
        SETTINGS_ROW("warmup", 'x', OPTIONS_INTEGER,                           \
                     offsetof(type, common.warmup), 0,                         \
                     SETTINGS_MAX_ITERATIONS, NULL, "COUNT", untimed),         \
        SETTINGS_ROW(                                                          \
            "time", 0, OPTIONS_INTEGER, offsetof(type, common.time_ms), 0,     \
            SETTINGS_MAX_TIME_MS, NULL, "MS",                                  \
            "make fewer iterations where a size takes longer; 0: never")

/** The row of a window, for settings with a member window. */
#define SETTINGS_WINDOW_ROW(type)                                              \
    SETTINGS_ROW("window", 'W', OPTIONS_INTEGER, offsetof(type, window), 1,    \
                 SETTINGS_MAX_WINDOW, NULL, "COUNT",                           \
                 "messages on the way before an answer is awaited")

/** The row of their number, for settings with a member windows. */
#define SETTINGS_WINDOWS_ROW(type)                                             \
    SETTINGS_ROW("windows", 0, OPTIONS_INTEGER, offsetof(type, windows), 1,    \
                 SETTINGS_MAX_WINDOWS, NULL, "COUNT",                          \
                 "timed windows; --warmup counts their share too")

/** The rows of validation and output, and the end of the table. */
#define SETTINGS_LAST_ROWS(type)                                               \
    SETTINGS_ROW("validate", 'c', OPTIONS_FLAG,                                \
                 offsetof(type, common.validate), 0, 0, NULL, NULL,            \
                 "verify contents, outside the timed part"),                   \
        SETTINGS_ROW("json", 0, OPTIONS_FLAG, offsetof(type, common.json), 0,  \
                     0, NULL, NULL, "write JSON Lines instead of a table"),    \
        SETTINGS_ROW(.name = NULL)

#endif
