/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"
#include "mp.h"
#include "spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MP_PILOT = 3, MP_POLL_NS = 20000000 };

void mp_join(const struct mp_run *run, int pairs, struct mp_comms *comms)
{
    bool is_active = run->team.pair < pairs;
    bool is_first = is_active && run->team.is_first;

    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, is_active ? 0 : MPI_UNDEFINED,
                             run->placement->rank, &comms->active),
              "%d pairs", pairs);
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, is_first ? 0 : MPI_UNDEFINED,
                             run->placement->rank, &comms->firsts),
              "first ranks of %d pairs", pairs);
}

void mp_leave(struct mp_comms *comms)
{
    if (comms->firsts != MPI_COMM_NULL) {
        CHECK_MPI(MPI_Comm_free(&comms->firsts), "first ranks");
    }
    if (comms->active != MPI_COMM_NULL) {
        CHECK_MPI(MPI_Comm_free(&comms->active), "pairs");
    }
}

/* Messages are awaited by their last byte: none may be there from before. */
static void mp_loop_once(const struct mp_run *run, const struct mp_work *work,
                         const struct mp_comms *comms, long n)
{
    long timeout_s = run->settings->verbs.timeout_s;
    MPI_Request all_done;

    memset(run->link.memory + run->receive, 0, work->size_bytes);
    watch_start(timeout_s);
    CHECK_MPI(MPI_Barrier(comms->active), "start of a loop");
    watch_stop();
    if (run->team.is_first) {
        run->kind->first(run, work, n);
    } else {
        run->kind->second(run, work, n);
    }
    /* Ranks that answer nothing wait here for the whole loop of the others,
     * which have deadlines of their own. A poll would take the core from an
     * adapter in software, which answers for them. */
    CHECK_MPI(MPI_Ibarrier(comms->active, &all_done), "end of a loop");
    check_wait_quietly(&all_done, MP_POLL_NS);
}

/* Warm up, and find how many operations there is time for. */
static long mp_warm_up(const struct mp_run *run, const struct mp_work *work,
                       const struct mp_comms *comms)
{
    const struct settings_common *common = &run->settings->common;
    long n = common->iterations;

    if (common->time_ms > 0) {
        mp_loop_once(run, work, comms, 1);
        int64_t start_ns = clock_now_ns();
        mp_loop_once(run, work, comms, MP_PILOT);
        double pilot_us = clock_between_us(start_ns, clock_now_ns()) / MP_PILOT;
        n = budget_iterations(comms->active, pilot_us, n,
                              (double)common->time_ms * 1e3);
    }
    long warmup = budget_warmup(common, n);
    if (warmup > 0) {
        mp_loop_once(run, work, comms, warmup);
    }
    return n;
}

static void mp_summarise_spread(struct mp_result *result,
                                const int64_t *first_ns, const int64_t *last_ns,
                                size_t n)
{
    double *spreads = check_allocate(n * sizeof(*spreads), "spreads");

    for (size_t i = 0; i < n; i++) {
        spreads[i] = (double)(last_ns[i] - first_ns[i]);
    }
    result->spread_ns = stats_summarise(spreads, n);
    free(spreads);
}

/* Collect stamps of the first ranks; the result counts on rank 0. */
static void mp_collect(const struct mp_run *run, const struct mp_work *work,
                       const struct mp_comms *comms, size_t n,
                       struct mp_result *result)
{
    bool is_half = run->kind->is_half && work->operation == MP_WRITE;
    size_t pairs = (size_t)work->pairs;
    int64_t *first_ns = check_allocate(n * sizeof(*first_ns), "stamps");
    int64_t *last_ns = check_allocate(n * sizeof(*last_ns), "stamps");
    int64_t end_ns = 0;
    double *own = check_allocate(n * sizeof(*own), "samples");
    double mean_us = 0.0;

    for (size_t i = 0; i < n; i++) {
        own[i] = clock_between_us(run->left_ns[i], run->end_ns[i]);
        mean_us += own[i] / (double)n;
        if (run->kind->is_half) {
            own[i] = (own[i] - run->clock_us) / (is_half ? 2.0 : 1.0);
        }
    }
    CHECK_MPI(MPI_Reduce(run->left_ns, first_ns, (int)n, MPI_INT64_T, MPI_MIN,
                         0, comms->firsts),
              "first to leave the barrier");
    CHECK_MPI(MPI_Reduce(run->left_ns, last_ns, (int)n, MPI_INT64_T, MPI_MAX, 0,
                         comms->firsts),
              "last to leave the barrier");
    CHECK_MPI(MPI_Reduce(&run->end_ns[n - 1], &end_ns, 1, MPI_INT64_T, MPI_MAX,
                         0, comms->firsts),
              "last end");
    CHECK_MPI(MPI_Gather(&mean_us, 1, MPI_DOUBLE, result->mean_us, 1,
                         MPI_DOUBLE, 0, comms->firsts),
              "means of %zu pairs", pairs);
    CHECK_MPI(MPI_Gather(own, (int)n, MPI_DOUBLE, run->samples, (int)n,
                         MPI_DOUBLE, 0, comms->firsts),
              "%zu times of %zu pairs", n, pairs);
    if (run->placement->rank == 0) {
        size_t kept =
            spread_keep(first_ns, last_ns, n, run->settings->spread_limit_ns,
                        run->samples, pairs);
        result->times =
            kept > 0 ? stats_summarise(run->samples, kept * pairs)
                     : (struct stats_summary){NAN, NAN, NAN, NAN, NAN, 0};
        result->made = n;
        result->dropped = n - kept;
        result->interval_us = clock_between_us(first_ns[0], end_ns);
        mp_summarise_spread(result, first_ns, last_ns, n);
    }
    free(own);
    free(last_ns);
    free(first_ns);
}

struct mp_result mp_measure(const struct mp_run *run,
                            const struct mp_work *work,
                            const struct mp_comms *comms)
{
    struct mp_result result = {.plan = run->link.plan};

    result.mean_us = check_allocate((size_t)work->pairs * sizeof(double),
                                    "means of all pairs");
    if (comms->active != MPI_COMM_NULL) {
        long n = mp_warm_up(run, work, comms);

        mp_loop_once(run, work, comms, n);
        if (comms->firsts != MPI_COMM_NULL) {
            mp_collect(run, work, comms, (size_t)n, &result);
        }
    }
    /* Here ranks without a pair wait, silent, while the others measure. */
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD), "%d pairs", work->pairs);
    return result;
}

bool mp_validate(const struct mp_run *run, const struct mp_work *work)
{
    int valid = 1;

    if (run->team.pair < work->pairs) {
        valid = link_validate(&run->link,
                              work->operation == MP_READ ? IBV_WR_RDMA_READ
                                                         : IBV_WR_RDMA_WRITE,
                              run->send, run->receive, work->size_bytes);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "validation, %zu bytes", work->size_bytes);
    return valid != 0;
}
