/* SPDX-License-Identifier: Apache-2.0 */
#include "retest.h"

#include "check.h"
#include "suspects.h"

#include <stdlib.h>

enum { RETEST_TURN_TAG = 31, RETEST_RESULT_TAG };

/* In a quiet pair no limit is stretched by barriers, but there are more. */
enum { RETEST_WAIT_FACTOR = 10 };

/** A suspect; travels between ranks as bytes. */
struct retest {
    int source;
    int destination;
    int round;
    double severity;
};

static void retest_add(const struct sweep *sweep, struct histogram *histogram)
{
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, histogram->bins, HISTOGRAM_BINS,
                            MPI_LONG_LONG, MPI_SUM, sweep->comm),
              "histogram");
}

/* The median of one of the plan's numbers over all pairs. */
static double retest_median(const struct sweep *sweep, const float *numbers)
{
    struct histogram histogram = {.bins = {0}};

    for (int partner = 0; partner < sweep->nodes->count; partner++) {
        if (plan_is_source(sweep->plan, partner) && numbers[partner] > 0) {
            histogram_add(&histogram, numbers[partner]);
        }
    }
    retest_add(sweep, &histogram);
    return histogram_median(&histogram);
}

/* The severity of the pair with this node, if this rank speaks for it. */
static double retest_severity(const struct sweep *sweep,
                              const struct suspects_usual *usual, int partner)
{
    const struct plan *plan = sweep->plan;

    if (!plan_is_source(plan, partner) ||
        !plan_is(plan, partner, RECORD_WANTED)) {
        return 0.0;
    }
    return suspects_severity(usual, plan->latency_us[partner],
                             plan->bw_mb_per_s[partner]);
}

/* Count the suspects of earlier ranks in the bin of the limit. */
static long long retest_count_before(const struct sweep *sweep,
                                     const struct histogram *own,
                                     const struct suspects_limit *limit)
{
    long long before = 0;
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(sweep->comm, &rank), "suspects");
    CHECK_MPI(MPI_Exscan(&own->bins[limit->bin], &before, 1, MPI_LONG_LONG,
                         MPI_SUM, sweep->comm),
              "suspects");
    return rank == 0 ? 0 : before;
}

/* Choose the worst of all suspects; *own_p gets those of this rank. */
static int retest_choose(struct sweep *sweep,
                         const struct suspects_usual *usual,
                         struct retest **own_p)
{
    int nodes = sweep->nodes->count;
    struct histogram own = {.bins = {0}};
    struct retest *chosen =
        check_allocate((size_t)nodes * sizeof(*chosen), "suspects of a rank");
    int count = 0;

    for (int partner = 0; partner < nodes; partner++) {
        double severity = retest_severity(sweep, usual, partner);

        if (severity > 0.0) {
            histogram_add(&own, severity);
        }
    }
    struct histogram all = own;
    retest_add(sweep, &all);
    if (sweep_is_leader(sweep)) {
        sweep->counts.suspects = (long)histogram_count(&all);
    }
    struct suspects_limit limit =
        suspects_find_limit(&all, sweep->settings->retest);
    long long before = retest_count_before(sweep, &own, &limit);
    for (int partner = 0; partner < nodes; partner++) {
        double severity = retest_severity(sweep, usual, partner);

        if (severity > 0.0 && suspects_is_worst(&limit, severity, &before) &&
            !plan_is(sweep->plan, partner, RECORD_RETESTED)) {
            chosen[count++] =
                (struct retest){sweep->nodes->own, partner,
                                sweep_round(sweep, partner) + 1, severity};
        }
    }
    *own_p = chosen;
    return count;
}

static int retest_compare(const void *left, const void *right)
{
    const struct retest *a = left;
    const struct retest *b = right;

    if (a->severity != b->severity) {
        return a->severity < b->severity ? 1 : -1;
    }
    return a->source != b->source ? a->source - b->source
                                  : a->destination - b->destination;
}

/* Send the choice of each rank to all ranks: at most --retest pairs in all. */
static struct retest *retest_share(const struct sweep *sweep,
                                   const struct retest *own, int own_count,
                                   int *count_p)
{
    int nodes = sweep->nodes->count;
    int own_bytes = own_count * (int)sizeof(*own);
    int *bytes = check_allocate((size_t)nodes * sizeof(int), "suspects");
    int *starts = check_allocate((size_t)nodes * sizeof(int), "suspects");
    int all_bytes = 0;

    CHECK_MPI(
        MPI_Allgather(&own_bytes, 1, MPI_INT, bytes, 1, MPI_INT, sweep->comm),
        "number of suspects");
    for (int node = 0; node < nodes; node++) {
        starts[node] = all_bytes;
        all_bytes += bytes[node];
    }
    struct retest *all = check_allocate((size_t)all_bytes, "suspects");
    CHECK_MPI(MPI_Allgatherv(own, own_bytes, MPI_BYTE, all, bytes, starts,
                             MPI_BYTE, sweep->comm),
              "%d bytes of suspects", all_bytes);
    free(starts);
    free(bytes);
    *count_p = all_bytes / (int)sizeof(*all);
    qsort(all, (size_t)*count_p, sizeof(*all), retest_compare);
    return all;
}

/* The ends of the pair wait until the leader gives them their turn. */
static void retest_await_turn(const struct sweep *sweep,
                              const struct pair_meeting *meeting, bool is_end)
{
    const int ends[] = {meeting->source, meeting->destination};
    int leader = sweep->nodes->first;
    MPI_Request request;

    for (int i = 0; sweep_is_leader(sweep) && i < 2; i++) {
        if (ends[i] != leader) {
            CHECK_MPI(MPI_Send(NULL, 0, MPI_CHAR, ends[i], RETEST_TURN_TAG,
                               sweep->comm),
                      "turn of rank %d", ends[i]);
        }
    }
    if (is_end && !sweep_is_leader(sweep)) {
        CHECK_MPI(MPI_Irecv(NULL, 0, MPI_CHAR, leader, RETEST_TURN_TAG,
                            sweep->comm, &request),
                  "turn from rank %d", leader);
        check_wait_quietly(&request, SWEEP_POLL_NS);
    }
}

static void retest_collect(struct sweep *sweep, struct pair_result *result,
                           const struct pair_meeting *meeting)
{
    bool is_source = meeting->source == sweep->nodes->own;
    MPI_Request request;

    if (!sweep_is_leader(sweep)) {
        if (is_source) {
            CHECK_MPI(MPI_Send(result, sizeof(*result), MPI_BYTE,
                               sweep->nodes->first, RETEST_RESULT_TAG,
                               sweep->comm),
                      "result to rank %d", sweep->nodes->first);
        }
        return;
    }
    if (!is_source) {
        watchdog_name_round(meeting->round);
        watchdog_wait(RETEST_WAIT_FACTOR);
        CHECK_MPI(MPI_Irecv(result, sizeof(*result), MPI_BYTE, meeting->source,
                            RETEST_RESULT_TAG, sweep->comm, &request),
                  "result of rank %d", meeting->source);
        check_wait_quietly(&request, SWEEP_POLL_NS);
        watchdog_stop();
    }
    sweep_emit(sweep, result);
}

static void retest_pair(struct sweep *sweep, const struct retest *retest)
{
    const struct pair_meeting meeting = {
        .source = retest->source,
        .destination = retest->destination,
        .rail = sweep->plan->rail,
        .round = retest->round,
        .at_once = 1,
        .quiet = true,
    };
    bool is_end = retest->source == sweep->nodes->own ||
                  retest->destination == sweep->nodes->own;
    struct pair_result result;

    retest_await_turn(sweep, &meeting, is_end);
    if (is_end) {
        result = pair_measure(&sweep->bench, &meeting);
    }
    retest_collect(sweep, &result, &meeting);
}

void retest_run(struct sweep *sweep)
{
    struct retest *own = NULL;
    int count = 0;

    watchdog_wait(WATCHDOG_WAIT_FACTOR);
    const struct suspects_usual usual = {
        .latency_us = retest_median(sweep, sweep->plan->latency_us),
        .bw_mb_per_s = retest_median(sweep, sweep->plan->bw_mb_per_s),
        .percent = (double)sweep->settings->suspect_percent,
    };
    int own_count = retest_choose(sweep, &usual, &own);
    struct retest *all = retest_share(sweep, own, own_count, &count);
    watchdog_stop();
    for (int i = 0; i < count; i++) {
        retest_pair(sweep, &all[i]);
    }
    free(all);
    free(own);
}
