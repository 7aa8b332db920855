/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include "cpus.h"
#include "node_program.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most quanta that are recorded for a millisecond of the run. */
enum { CORES_QUANTA_PER_MS = 20 };

static void *core_main(void *argument)
{
    struct core *core = argument;

    if (core->cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)core->cpu, &set);
        core->bind_error =
            pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    }
    for (long i = 0; i < core->warmup; i++) {
        core->work.results[0] = work_quantum(core->work.iterations);
    }
    (void)pthread_barrier_wait(core->start);
    if (core->bind_error == 0) {
        work_run(&core->work);
        core->ran_on = sched_getcpu();
    }
    return NULL;
}

/* Allocate memory for all quanta of a core; false without memory. */
static bool core_prepare(struct core *core,
                         const struct settings_common *settings)
{
    struct work *work = &core->work;

    work->iterations = settings->iterations;
    work->limit_ns = (int64_t)settings->time_ms * 1000000;
    work->capacity = (size_t)settings->time_ms * CORES_QUANTA_PER_MS;
    work->end_ns = malloc(work->capacity * sizeof(*work->end_ns));
    work->results = malloc(work->capacity * sizeof(*work->results));
    core->warmup = settings->warmup;
    return work->end_ns != NULL && work->results != NULL;
}

bool cores_verify(const char *cpus, char error[OPTIONS_ERROR_SIZE])
{
    struct cpus parsed = {.count = 0};

    if (cpus == NULL || cpus_parse(cpus, &parsed)) {
        return true;
    }
    (void)snprintf(error, OPTIONS_ERROR_SIZE,
                   "--cpus: '%s' is not a list of CPUs such as 0,2,8-15", cpus);
    return false;
}

bool cores_run(const char *program, struct core *cores, size_t count,
               const struct settings_common *settings)
{
    pthread_barrier_t start;
    size_t started = 0;
    int error = pthread_barrier_init(&start, NULL, (unsigned)count);

    for (; error == 0 && started < count; started++) {
        cores[started].start = &start;
        if (!core_prepare(&cores[started], settings)) {
            error = ENOMEM;
            break;
        }
        error = pthread_create(&cores[started].thread, NULL, core_main,
                               &cores[started]);
        if (error != 0) {
            break;
        }
    }
    if (error != 0) {
        /* Threads that wait for the others end with the process. */
        node_print(program, "thread %zu of %zu: %s", started + 1, count,
                   strerror(error));
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(cores[i].thread, NULL);
    }
    (void)pthread_barrier_destroy(&start);
    for (size_t i = 0; i < count; i++) {
        if (cores[i].bind_error != 0) {
            node_print(program, "CPU %d: pthread_setaffinity_np: %s",
                       cores[i].cpu, strerror(cores[i].bind_error));
            return false;
        }
    }
    return true;
}

size_t core_wrong(const char *program, const struct core *core)
{
    const struct work *work = &core->work;
    double expected = work_quantum(work->iterations);
    size_t wrong = 0;

    for (size_t i = 0; i < work->count; i++) {
        wrong += work->results[i] != expected;
    }
    if (wrong > 0) {
        node_print(program,
                   "validation failed: %zu of %zu quanta on CPU %d computed "
                   "another result",
                   wrong, work->count, core->ran_on);
    }
    return wrong;
}

void cores_free(struct core *cores, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(cores[i].work.end_ns);
        free(cores[i].work.results);
    }
    free(cores);
}
