/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

#include "clock.h"

#include <time.h>

static double work_cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double work_quantum(long iterations)
{
    double x[WORK_LANES];
    double sum = 0.0;

    for (int lane = 0; lane < WORK_LANES; lane++) {
        x[lane] = 0.1 + 0.1 * lane;
    }
    for (long i = 0; i < iterations; i++) {
        for (int lane = 0; lane < WORK_LANES; lane++) {
            double rest = 1.0 - x[lane];
            double scaled = 3.9 * x[lane];

            x[lane] = scaled * rest;
        }
    }
    for (int lane = 0; lane < WORK_LANES; lane++) {
        sum += x[lane];
    }
    return sum;
}

void work_run(struct work *work)
{
    double cpu_ns = work_cpu_ns();
    int64_t start_ns = clock_now_ns();
    int64_t now_ns = start_ns;
    size_t count = 0;

    do {
        work->results[count] = work_quantum(work->iterations);
        now_ns = clock_now_ns();
        work->end_ns[count] = (double)(now_ns - start_ns);
        count++;
    } while (now_ns - start_ns < work->limit_ns && count < work->capacity);
    work->cpu_ns = work_cpu_ns() - cpu_ns;
    work->count = count;
#ifdef PLANT_CORRUPTION
    work->results[count - 1] += 1e-9;
#endif
}

/* Quanta done until a time; of the one that is at work then, its share. */
static double work_done(const struct work *work, double time_ns)
{
    size_t low = 0;
    size_t high = work->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (work->end_ns[middle] <= time_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == work->count) {
        return (double)low;
    }
    double begin_ns = low == 0 ? 0.0 : work->end_ns[low - 1];

    return (double)low + (time_ns - begin_ns) / (work->end_ns[low] - begin_ns);
}

double work_rate(const struct work *work, int part, int parts)
{
    double whole_ns = work->end_ns[work->count - 1];
    double from = work_done(work, whole_ns * part / parts);
    double to = work_done(work, whole_ns * (part + 1) / parts);

    return (to - from) / (whole_ns / parts) * 1e9;
}
