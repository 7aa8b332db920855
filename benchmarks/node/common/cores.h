/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CORES_H
#define SEATRIAL_CORES_H

#include "settings.h"
#include "work.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/** A thread, the CPU that it is bound to (-1: none), and its work. */
struct core {
    pthread_t thread;
    pthread_barrier_t *start;
    long warmup;
    int cpu;
    int bind_error;
    int ran_on;
    struct work work;
};

/** The rows of the time and of the warm-up, for settings of this type. */
#define CORES_LOOP_ROWS(type)                                                  \
    SETTINGS_ROW("time", 0, OPTIONS_INTEGER, offsetof(type, common.time_ms),   \
                 1, SETTINGS_MAX_TIME_MS, NULL, "MS",                          \
                 "how long quanta are begun"),                                 \
        SETTINGS_ROW("warmup", 'x', OPTIONS_INTEGER,                           \
                     offsetof(type, common.warmup), 0,                         \
                     SETTINGS_MAX_ITERATIONS, NULL, "COUNT", "untimed quanta")

/** Verify a list of CPUs, or NULL; describe what is wrong. */
bool cores_verify(const char *cpus, char error[OPTIONS_ERROR_SIZE]);

/** Run all cores at the same time; false, after an error message, if not. */
bool cores_run(const char *program, struct core *cores, size_t count,
               const struct settings_common *settings);

/** Count the quanta with another result than that of the same work, done once
 * more; print an error message if there are some. */
size_t core_wrong(const char *program, const struct core *core);

/** Free all cores and their work. */
void cores_free(struct core *cores, size_t count);

#endif
