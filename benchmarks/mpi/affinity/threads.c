/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include "clock.h"

#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { BUSY_NS = 5000000, SLEEP_NS = 500000, WORK = 1000 };

static bool allowed_cpus(bool marked[CPUS_MAX])
{
    cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];

    if (sched_getaffinity(0, sizeof(sets), sets) != 0) {
        return false;
    }
    for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
        marked[cpu] = CPU_ISSET_S(cpu, sizeof(sets), sets);
    }
    return true;
}

bool threads_process_cpus(bool marked[CPUS_MAX])
{
    int numbers[CPUS_MAX];
    int places = omp_get_num_places();

    memset(marked, 0, CPUS_MAX * sizeof(marked[0]));
    for (int place = 0; place < places; place++) {
        int count = omp_get_place_num_procs(place);

        if (count > CPUS_MAX) {
            errno = E2BIG;
            return false;
        }
        omp_get_place_proc_ids(place, numbers);
        for (int i = 0; i < count; i++) {
            marked[numbers[i]] = true;
        }
    }
    return places > 0 || allowed_cpus(marked);
}

int threads_count(void)
{
    return omp_get_max_threads();
}

/* A number that the compiler must compute: the thread is busy for a while. */
static void compute(void)
{
    volatile double number = 1.0;

    for (int i = 0; i < WORK; i++) {
        number = number * 1.0000001;
    }
}

static bool watch(long time_ms, struct threads_view *view)
{
    const struct timespec pause = {.tv_nsec = SLEEP_NS};
    int64_t end_ns = clock_now_ns() + (int64_t)time_ms * 1000000;
    int64_t sleep_ns = clock_now_ns() + BUSY_NS;
    int last = -1;

    memset(view, 0, sizeof(*view));
    do {
        int cpu = sched_getcpu();

        if (cpu < 0 || cpu >= CPUS_MAX) {
            return false;
        }
        view->moves += last >= 0 && cpu != last;
        view->seen[cpu] = true;
        last = cpu;
        compute();
        if (clock_now_ns() >= sleep_ns) { /* threads move when they wake up */
            (void)nanosleep(&pause, NULL);
            sleep_ns = clock_now_ns() + BUSY_NS;
        }
    } while (clock_now_ns() < end_ns);
    return allowed_cpus(view->allowed);
}

int threads_watch(long time_ms, struct threads_view *views, int count)
{
    int threads = 0;
    int failed = 0;

#pragma omp parallel num_threads(count) reduction(+ : threads)                 \
    reduction(max : failed)
    {
        threads = 1;
#pragma omp barrier
        if (!watch(time_ms, &views[omp_get_thread_num()])) {
            failed = errno == 0 ? EINVAL : errno;
        }
    }
    errno = failed;
    return failed == 0 ? threads : 0;
}
