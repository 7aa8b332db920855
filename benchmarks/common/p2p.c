/* SPDX-License-Identifier: Apache-2.0 */
#include "p2p.h"

#include "budget.h"
#include "check.h"
#include "clock.h"
#include "p2p_loops.h"
#include "payload.h"

#include <math.h>
#include <stdlib.h>

/* A loop leaves its stamps in the pilot and in the warm-up too. */
static size_t p2p_stamps(const struct settings_common *common)
{
    long most = common->iterations > common->warmup ? common->iterations
                                                    : common->warmup;

    return (size_t)most + P2P_PILOT + 1;
}

bool p2p_pair(MPI_Comm comm, struct p2p *p2p)
{
    int np = 0;
    int rank = 0;

    CHECK_MPI(MPI_Comm_size(comm, &np), "pair");
    CHECK_MPI(MPI_Comm_rank(comm, &rank), "pair");
    if (np != 2) {
        if (rank == 0) {
            check_print("%d process%s: a pair takes exactly 2", np,
                        np == 1 ? "" : "es");
        }
        return false;
    }
    *p2p = (struct p2p){.comm = comm, .peer = 1 - rank, .is_first = rank == 0};
    return true;
}

void p2p_create(struct p2p *p2p, const struct settings_common *common,
                long window)
{
    size_t stamps = p2p_stamps(common);

    p2p->stamps_ns = check_allocate(stamps * sizeof(int64_t), "time stamps");
    p2p->samples = check_allocate(stamps * sizeof(double), "samples");
    p2p->requests = check_allocate(2 * (size_t)window * sizeof(MPI_Request),
                                   "requests of a window");
    p2p->statuses = check_allocate((size_t)window * sizeof(MPI_Status),
                                   "statuses of a window");
}

void p2p_free(struct p2p *p2p)
{
    free(p2p->stamps_ns);
    free(p2p->samples);
    free(p2p->requests);
    free(p2p->statuses);
}

double p2p_size_bytes(const struct settings_common *common, long window,
                      double slots)
{
    double stamps = (double)p2p_stamps(common);

    return 2.0 * slots * (double)common->sizes.max +
           stamps * (double)(sizeof(int64_t) + sizeof(double)) +
           (double)window *
               (double)(2 * sizeof(MPI_Request) + sizeof(MPI_Status));
}

static p2p_loop p2p_loop_of(const struct p2p *p2p, enum p2p_test test)
{
    return p2p->loops != NULL ? p2p->loops[test] : P2P_LOOPS[test];
}

/* Run a loop; gives the times on the first rank. */
static void p2p_run(const struct p2p *p2p, const struct p2p_work *work,
                    long iterations)
{
    if (p2p->peer == MPI_PROC_NULL) {
        return;
    }
    p2p_loop_of(p2p, work->test)(p2p, work->window, work->size_bytes,
                                 iterations);
    for (long i = 0; p2p->is_first && i < iterations; i++) {
        p2p->samples[i] =
            clock_between_us(p2p->stamps_ns[i], p2p->stamps_ns[i + 1]);
    }
}

/* The same with barriers before each turn: one as in osu_multi_lat, or two as
 * in osu_mbw_mr. The number counts: ranks leave a second one closer together.
 */
static void p2p_run_each(const struct p2p *p2p, const struct p2p_work *work,
                         long iterations)
{
    bool is_window =
        work->test == P2P_STREAM || work->test == P2P_BIDIRECTIONAL;

    for (long i = 0; i < iterations; i++) {
        for (int b = 0; b < (is_window ? 2 : 1); b++) {
            CHECK_MPI(MPI_Barrier(p2p->comm), "%d bytes", work->size_bytes);
        }
        if (p2p->peer != MPI_PROC_NULL) {
            p2p_loop_of(p2p, work->test)(p2p, work->window, work->size_bytes,
                                         1);
        }
        if (p2p->is_first) {
            p2p->samples[i] =
                clock_between_us(p2p->stamps_ns[0], p2p->stamps_ns[1]);
        }
    }
}

/* Return the number of iterations that fit into the time. */
static long p2p_budget(const struct p2p *p2p,
                       const struct settings_common *common, double pilot_us)
{
    double iteration_us = pilot_us / P2P_PILOT;
    double budget_us = (double)common->time_ms * 1e3;
    long fit = 0;

    if (!p2p->own_budget) {
        return budget_iterations(p2p->comm, iteration_us, common->iterations,
                                 budget_us);
    }
    if (p2p->peer != MPI_PROC_NULL && p2p->is_first) {
        fit = budget_fit(iteration_us, common->iterations, budget_us);
        CHECK_MPI(
            MPI_Send(&fit, 1, MPI_LONG, p2p->peer, P2P_BUDGET_TAG, p2p->comm),
            "iterations to rank %d", p2p->peer);
    } else if (p2p->peer != MPI_PROC_NULL) {
        CHECK_MPI(MPI_Recv(&fit, 1, MPI_LONG, p2p->peer, P2P_BUDGET_TAG,
                           p2p->comm, MPI_STATUS_IGNORE),
                  "iterations from rank %d", p2p->peer);
    }
    return fit;
}

static void p2p_start_together(const struct p2p *p2p, int size)
{
    if (p2p->barrier != NULL) {
        p2p->barrier(p2p->barrier_context);
    } else {
        CHECK_MPI(MPI_Barrier(p2p->comm), "%d bytes", size);
    }
}

long p2p_times(const struct p2p *p2p, const struct settings_common *common,
               const struct p2p_work *work)
{
    void (*run)(const struct p2p *, const struct p2p_work *, long) =
        work->sync_each ? p2p_run_each : p2p_run;
    long iterations = common->iterations;

    if (common->time_ms > 0) {
        run(p2p, work, 1); /* connects */
        int64_t start_ns = clock_now_ns();
        run(p2p, work, P2P_PILOT);
        double pilot_us = clock_between_us(start_ns, clock_now_ns());
        iterations = p2p_budget(p2p, common, pilot_us);
    }
    run(p2p, work, budget_warmup(common, iterations));
    p2p_start_together(p2p, work->size_bytes);
    run(p2p, work, iterations);
    return iterations;
}

static struct stats_summary p2p_half_trips(const struct p2p *p2p,
                                           const struct settings_common *common,
                                           const struct p2p_work *work)
{
    double overhead_us = clock_overhead_ns() / 1e3;
    long iterations = p2p_times(p2p, common, work);

    if (!p2p->is_first || p2p->peer == MPI_PROC_NULL) {
        return (struct stats_summary){.n = 0};
    }
    for (long i = 0; i < iterations; i++) {
        p2p->samples[i] = fmax(p2p->samples[i] - overhead_us, 0.0) / 2.0;
    }
    return stats_summarise(p2p->samples, (size_t)iterations);
}

struct stats_summary p2p_latency(const struct p2p *p2p,
                                 const struct settings_common *common,
                                 int size_bytes)
{
    const struct p2p_work work = {.test = P2P_LATENCY,
                                  .size_bytes = size_bytes};

    return p2p_half_trips(p2p, common, &work);
}

struct stats_summary p2p_latency_posted(const struct p2p *p2p,
                                        const struct settings_common *common,
                                        int size_bytes)
{
    const struct p2p_work work = {.test = P2P_LATENCY_POSTED,
                                  .size_bytes = size_bytes};

    return p2p_half_trips(p2p, common, &work);
}

static struct p2p_bandwidth p2p_rate(const struct p2p *p2p,
                                     const struct settings_common *common,
                                     const struct p2p_work *work,
                                     double window_bytes)
{
    struct p2p_bandwidth result = {.mb_per_s = 0.0};
    long iterations = p2p_times(p2p, common, work);
    double whole_us = 0.0;

    if (!p2p->is_first || p2p->peer == MPI_PROC_NULL) {
        return result;
    }
    for (long i = 0; i < iterations; i++) {
        whole_us += p2p->samples[i];
        p2p->samples[i] = window_bytes / fmax(p2p->samples[i], 1e-3);
    }
    result.mb_per_s = window_bytes * (double)iterations / fmax(whole_us, 1e-3);
    result.windows = stats_summarise(p2p->samples, (size_t)iterations);
    return result;
}

struct p2p_bandwidth p2p_stream(const struct p2p *p2p,
                                const struct settings_common *common,
                                long window, int size_bytes)
{
    const struct p2p_work work = {
        .test = P2P_STREAM, .window = window, .size_bytes = size_bytes};

    return p2p_rate(p2p, common, &work, (double)window * size_bytes);
}

struct p2p_bandwidth p2p_bidirectional(const struct p2p *p2p,
                                       const struct settings_common *common,
                                       long window, int size_bytes)
{
    const struct p2p_work work = {
        .test = P2P_BIDIRECTIONAL, .window = window, .size_bytes = size_bytes};

    return p2p_rate(p2p, common, &work, 2.0 * (double)window * size_bytes);
}

static void p2p_validate_slot(const struct p2p *p2p, size_t slot, int size,
                              int rank, int *valid_p)
{
    size_t size_bytes = (size_t)size;

    payload_fill(p2p->send[slot], size_bytes, payload_key(rank, (long)slot));
    payload_fill(p2p->receive[slot], size_bytes, payload_key(-1, (long)slot));
    CHECK_MPI(MPI_Sendrecv(p2p->send[slot], size, MPI_CHAR, p2p->peer, P2P_TAG,
                           p2p->receive[slot], size, MPI_CHAR, p2p->peer,
                           P2P_TAG, p2p->comm, MPI_STATUS_IGNORE),
              "%d bytes, rank %d", size, p2p->peer);
    if (*valid_p != 0) {
        *valid_p = payload_check(p2p->receive[slot], size_bytes,
                                 payload_key(p2p->peer, (long)slot), p2p->peer);
    }
}

bool p2p_validate_own(const struct p2p *p2p, int size_bytes)
{
    int rank = 0;
    int valid = 1;

    if (p2p->validate != NULL && p2p->peer != MPI_PROC_NULL) {
        return p2p->validate(p2p, size_bytes);
    }
    CHECK_MPI(MPI_Comm_rank(p2p->comm, &rank), "validation");
    for (size_t slot = 0; p2p->peer != MPI_PROC_NULL && slot < p2p->slots;
         slot++) {
        p2p_validate_slot(p2p, slot, size_bytes, rank, &valid);
    }
    return valid != 0;
}

bool p2p_validate(const struct p2p *p2p, int size_bytes)
{
    int valid = p2p_validate_own(p2p, size_bytes);

    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN, p2p->comm),
        "validation, %d bytes", size_bytes);
    return valid != 0;
}
