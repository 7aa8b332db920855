/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"
#include "mqp_lat.h"

#include <math.h>
#include <string.h>

/* Writes are awaited by their last byte: none may be there from before. */
static void loop_once(const struct run *run, const struct rounds *rounds,
                      long n)
{
    memset(run->link.memory + rounds->receive, 0,
           (size_t)rounds->connections * rounds->stride);
    link_meet(&run->link);
    rounds_latency(rounds, n, run->stamps_ns);
}

/* Warm up, and find how many rounds there is time for. */
static long warm_up(const struct run *run, const struct rounds *rounds)
{
    enum { PILOT = 3 };
    const struct settings_common *common = &run->settings->common;
    long n = common->iterations;

    if (common->time_ms > 0) {
        loop_once(run, rounds, 1);
        int64_t start_ns = clock_now_ns();
        loop_once(run, rounds, PILOT);
        double pilot_us = clock_between_us(start_ns, clock_now_ns()) / PILOT;
        n = budget_iterations(MPI_COMM_WORLD, pilot_us, n,
                              (double)common->time_ms * 1e3);
    }
    long warmup = budget_warmup(common, n);
    if (warmup > 0) {
        loop_once(run, rounds, warmup);
    }
    return n;
}

static struct result measure_latency(const struct run *run,
                                     const struct rounds *rounds)
{
    struct result result = {.mb_per_s = NAN, .msg_per_s = NAN};
    long n = warm_up(run, rounds);

    loop_once(run, rounds, n);
    for (long i = 0; i < n && rounds->is_first; i++) {
        double round_us =
            clock_between_us(run->stamps_ns[2 * i], run->stamps_ns[2 * i + 1]);

        run->samples[i] =
            (round_us - run->clock_us) / 2.0 / rounds->connections;
    }
    if (rounds->is_first) {
        result.times = stats_summarise(run->samples, (size_t)n);
    }
    return result;
}

static struct result measure_throughput(const struct run *run,
                                        const struct rounds *rounds)
{
    struct result result = {.times = {NAN, NAN, NAN, NAN, NAN, 0}};
    double elapsed_us = 0.0;
    double own = 0.0;
    double both = 0.0;

    link_meet(&run->link);
    long messages = rounds_throughput(
        rounds, (double)run->settings->duration_ms * 1e3, &elapsed_us);
    own = (double)messages / elapsed_us;
    CHECK_MPI(
        MPI_Allreduce(&own, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
        "messages of both ways");
    result.mb_per_s = both * (double)rounds->size_bytes;
    result.msg_per_s = both * 1e6;
    return result;
}

struct result mqp_measure(const struct run *run, const struct rounds *rounds,
                          enum mqp_test test)
{
    return test == MQP_LATENCY ? measure_latency(run, rounds)
                               : measure_throughput(run, rounds);
}

bool mqp_validate(const struct rounds *rounds)
{
    int valid = rounds_validate(rounds);

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "validation, %zu bytes", rounds->size_bytes);
    return valid != 0;
}
