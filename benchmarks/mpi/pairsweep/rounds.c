/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"

#include "check.h"
#include "clock.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS_RESULT_TAG = 21 };

/*
 * The leader collects one result of each pair. Gives the time that was needed
 * for measuring: that of the slowest pair in each leg.
 */
static double rounds_collect(struct sweep *sweep, const struct pair_result *own,
                             int count)
{
    bool is_source = own->meeting.source == sweep->nodes->own;
    double slowest_us[PAIR_LEGS] = {0};
    double measuring_us = 0.0;

    if (!sweep_is_leader(sweep)) {
        if (is_source) {
            CHECK_MPI(MPI_Send(own, sizeof(*own), MPI_BYTE, sweep->nodes->first,
                               ROUNDS_RESULT_TAG, sweep->comm),
                      "result, round %d", own->meeting.round);
        }
        return 0.0;
    }
    for (int i = 0; i < count; i++) {
        struct pair_result result = *own;

        if (i > 0 || !is_source) {
            watchdog_wait(WATCHDOG_WAIT_FACTOR);
            CHECK_MPI(MPI_Recv(&result, sizeof(result), MPI_BYTE,
                               MPI_ANY_SOURCE, ROUNDS_RESULT_TAG, sweep->comm,
                               MPI_STATUS_IGNORE),
                      "results of round %d", own->meeting.round);
            watchdog_stop();
        }
        for (int leg = 0; leg < PAIR_LEGS; leg++) {
            slowest_us[leg] = fmax(slowest_us[leg], result.leg_us[leg]);
        }
        sweep_emit(sweep, &result);
    }
    for (int leg = 0; leg < PAIR_LEGS; leg++) {
        measuring_us += slowest_us[leg];
    }
    return measuring_us;
}

static void rounds_keep(struct sweep *sweep, const struct pair_result *result)
{
    const struct record record = {
        .kind = RECORD_DONE,
        .source = result->meeting.source,
        .destination = result->meeting.destination,
        .rail = result->meeting.rail,
        .latency_us = (float)result->latency_us.p50,
        .bw_mb_per_s =
            (float)fmin(result->bw_mb_per_s, result->bw_back_mb_per_s),
    };

    plan_keep(sweep->plan, &record);
}

/* Return the number of pairs in this round; all ranks wait for each other. */
static int rounds_count(const struct sweep *sweep, int round, bool is_source)
{
    int count = is_source;

    watchdog_name_round(round);
    watchdog_wait(WATCHDOG_WAIT_FACTOR);
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT, MPI_SUM, sweep->comm),
        "pairs of round %d", round);
    watchdog_stop();
    return count;
}

/* Measure some pairs of a round at once; partner -1: this node has none. */
static void rounds_group(struct sweep *sweep, int round, int partner)
{
    int own = sweep->nodes->own;
    int64_t start_ns = clock_now_ns();
    struct pair_meeting meeting = {
        .source = partner < 0 || own < partner ? own : partner,
        .destination = own < partner ? partner : own,
        .rail = sweep->plan->rail,
        .round = round + 1,
    };

    if (partner < 0) {
        meeting.source = -1;
        meeting.destination = -1;
    }
    meeting.at_once = rounds_count(sweep, meeting.round, meeting.source == own);
    if (meeting.at_once == 0) {
        return;
    }
    struct pair_result result = pair_measure(&sweep->bench, &meeting);
    if (partner >= 0) {
        rounds_keep(sweep, &result);
    }
    double measuring_us = rounds_collect(sweep, &result, meeting.at_once);
    if (sweep_is_leader(sweep)) {
        double round_us = clock_between_us(start_ns, clock_now_ns());

        histogram_add(&sweep->overhead_us, round_us - measuring_us);
    }
}

static void rounds_measure(struct sweep *sweep, int round)
{
    const struct tournament *tournament = sweep->tournament;
    int own = sweep->nodes->own;
    int partner = sweep_partner(sweep, round);
    int pairs = tournament_pairs(sweep->nodes->count);
    int most = sweep->settings->quiet_pairs == 0
                   ? pairs
                   : (int)sweep->settings->quiet_pairs;

    for (int first = 0; first < pairs; first += most) {
        bool has_turn = false;

        if (partner >= 0 && plan_is_pending(sweep->plan, partner)) {
            has_turn = most >= pairs ||
                       tournament_number(tournament, round, own) / most ==
                           first / most;
        }
        rounds_group(sweep, round, has_turn ? partner : -1);
    }
}

/* Rounds in which a rank has work: one byte for each, agreed by all. */
static unsigned char *rounds_find_work(struct sweep *sweep)
{
    int rounds = sweep_rounds(sweep);
    unsigned char *work = check_allocate((size_t)rounds, "rounds");

    for (int partner = 0; partner < sweep->nodes->count; partner++) {
        if (plan_is_pending(sweep->plan, partner)) {
            work[sweep_round(sweep, partner)] = 1;
        }
    }
    watchdog_wait(WATCHDOG_WAIT_FACTOR);
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, work, rounds, MPI_UNSIGNED_CHAR,
                            MPI_MAX, sweep->comm),
              "work in %d rounds", rounds);
    watchdog_stop();
    return work;
}

void rounds_run(struct sweep *sweep)
{
    unsigned char *work = rounds_find_work(sweep);

    for (int r = 0; r < sweep_rounds(sweep); r++) {
        if (work[r]) {
            rounds_measure(sweep, r);
            sweep->counts.rounds += sweep_is_leader(sweep);
        }
    }
    free(work);
}
