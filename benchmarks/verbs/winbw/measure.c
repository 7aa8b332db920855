/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"
#include "payload.h"
#include "winbw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct window winbw_window(struct run *run, const struct work *work)
{
    const struct team *team = &run->team;
    size_t threshold = (size_t)run->settings->threshold;
    struct stripes_sender sender = {.side = team->is_first ? 0 : 1,
                                    .pair = team->pair,
                                    .pairs = team->pairs};
    struct stripes_sender peer = sender;

    peer.side = 1 - sender.side;
    return (struct window){
        .links = run->links,
        .rails = team->rails,
        .receive = run->receive,
        .messages = run->settings->window,
        .sends = team->is_first || work->direction == BOTH_WAYS,
        .receives = !team->is_first || work->direction == BOTH_WAYS,
        .own = stripes_cut(work->policy, team->rails, threshold,
                           work->size_bytes, sender),
        .peer = stripes_cut(work->policy, team->rails, threshold,
                            work->size_bytes, peer),
        .tally = &run->tally,
    };
}

static void loop_once(const struct run *run, const struct window *window,
                      long n)
{
    watch_start(run->settings->verbs.timeout_s);
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD), "start of a loop");
    watch_stop();
    window_loop(window, n, run->stamps_ns);
}

/* Warm up, and find how many windows there is time for. */
static long warm_up(const struct run *run, const struct window *window)
{
    enum { PILOT = 3 };
    const struct settings_common *common = &run->settings->common;
    long n = common->iterations;

    if (common->time_ms > 0) {
        loop_once(run, window, 1);
        loop_once(run, window, PILOT);
        n = budget_iterations(
            MPI_COMM_WORLD,
            clock_between_us(run->stamps_ns[0], run->stamps_ns[PILOT]) / PILOT,
            n, (double)common->time_ms * 1e3);
    }
    long warmup = budget_warmup(common, n);
    if (warmup > 0) {
        loop_once(run, window, warmup);
    }
    return n;
}

/* All pairs together; their first ranks are on one node and have one clock. */
static struct result collect(const struct run *run, size_t n)
{
    struct result result = {.interval_us = NAN};
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    double *own = check_allocate(n * sizeof(*own), "samples");

    for (size_t i = 0; i < n; i++) {
        own[i] = clock_between_us(run->stamps_ns[i], run->stamps_ns[i + 1]);
    }
    CHECK_MPI(MPI_Reduce(&run->stamps_ns[0], &start_ns, 1, MPI_INT64_T, MPI_MIN,
                         0, run->firsts),
              "first start");
    CHECK_MPI(MPI_Reduce(&run->stamps_ns[n], &end_ns, 1, MPI_INT64_T, MPI_MAX,
                         0, run->firsts),
              "last end");
    CHECK_MPI(MPI_Gather(own, (int)n, MPI_DOUBLE, run->samples, (int)n,
                         MPI_DOUBLE, 0, run->firsts),
              "%zu times of all pairs", n);
    if (run->placement->rank == 0) {
        result.times =
            stats_summarise(run->samples, n * (size_t)run->team.pairs);
        result.interval_us = clock_between_us(start_ns, end_ns);
    }
    free(own);
    return result;
}

bool winbw_validate(const struct run *run, const struct window *window,
                    const struct work *work)
{
    int rank = run->placement->rank;
    char *memory = run->links[0].memory;
    int valid = 1;

    payload_fill(memory, work->size_bytes,
                 payload_key(rank, (long)work->size_bytes));
    memset(memory + run->receive, 0, work->size_bytes);
    loop_once(run, window, 1);
    if (window->receives) {
        valid =
            payload_check(memory + run->receive, work->size_bytes,
                          payload_key(run->team.peer, (long)work->size_bytes),
                          run->team.peer);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "validation, %zu bytes", work->size_bytes);
    return valid != 0;
}

struct result winbw_measure(const struct run *run, const struct window *window)
{
    struct result result = {.interval_us = NAN};
    long n = warm_up(run, window);

    loop_once(run, window, n);
    if (run->team.is_first) {
        result = collect(run, (size_t)n);
    }
    return result;
}
