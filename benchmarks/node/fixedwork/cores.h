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

/** Run all cores at the same time; false, after an error message, if not. */
bool cores_run(struct core *cores, size_t count,
               const struct settings_common *settings);

#endif
