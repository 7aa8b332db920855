/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_THREADS_H
#define SEATRIAL_THREADS_H

#include "cpus.h"

#include <stdbool.h>

/** What a thread saw of its place. */
struct threads_view {
    bool allowed[CPUS_MAX]; /* by sched_getaffinity */
    bool seen[CPUS_MAX];    /* it ran there */
    long long moves;        /* from one CPU to another */
};

/**
 * Mark the CPUs of this process: those of the places of OpenMP, which binds the
 * first thread before main; without places, those of the first thread. False,
 * with errno set, if the kernel does not tell.
 */
bool threads_process_cpus(bool marked[CPUS_MAX]);

/** Return the threads that OpenMP starts. */
int threads_count(void);

/**
 * Let all threads compute for some time, with short sleeps, and note where they
 * run. Returns the number of threads that there were, 0 with errno set if the
 * kernel does not tell a thread its CPUs.
 */
int threads_watch(long time_ms, struct threads_view *views, int count);

#endif
