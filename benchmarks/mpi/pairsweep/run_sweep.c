/* SPDX-License-Identifier: Apache-2.0 */
#include "run_sweep.h"

#include "files.h"
#include "pairsweep.h"
#include "passes.h"

/* Agree on the number of rounds that a list of pairs has. */
static void count_listed_rounds(struct sweep *sweep)
{
    const struct plan *plan = sweep->plan;
    int most = 0;

    for (int partner = 0; partner < plan->nodes; partner++) {
        most = plan->round[partner] > most ? plan->round[partner] : most;
    }
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD),
        "number of rounds");
    sweep->listed_rounds = most;
}

static void unwant_other_rounds(const struct settings *settings,
                                const struct sweep *sweep, struct plan *plan)
{
    for (int partner = 0; partner < plan->nodes; partner++) {
        int round = sweep_round(sweep, partner) + 1;

        if (round < settings->rounds.min || round > settings->rounds.max) {
            plan_unwant(plan, partner);
        }
    }
}

/* Count the pairs of all ranks that are pending, and that are done. */
static void count_pairs(const struct plan *plan, long *pending_p, long *done_p)
{
    long counts[] = {0, 0};

    for (int partner = 0; partner < plan->nodes; partner++) {
        if (plan_is_source(plan, partner) &&
            plan_is(plan, partner, RECORD_WANTED)) {
            counts[plan_is(plan, partner, RECORD_DONE)]++;
        }
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_LONG, MPI_SUM,
                            MPI_COMM_WORLD),
              "number of pairs");
    *pending_p = counts[0];
    *done_p = counts[1];
}

/* Sum counts on rank 0; return true on all ranks if all of them are valid. */
static bool conclude(struct sweep *sweep)
{
    struct rows_counts own = sweep->counts;
    struct histogram overhead_us = sweep->overhead_us;
    int valid = sweep->valid;

    CHECK_MPI(MPI_Reduce(&own, &sweep->counts,
                         sizeof(own) / sizeof(own.measured), MPI_LONG, MPI_SUM,
                         0, MPI_COMM_WORLD),
              "counts");
    CHECK_MPI(MPI_Reduce(overhead_us.bins, sweep->overhead_us.bins,
                         HISTOGRAM_BINS, MPI_LONG_LONG, MPI_SUM, 0,
                         MPI_COMM_WORLD),
              "overhead of rounds");
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "validation");
    return valid;
}

enum check_exit run_sweep(struct sweep *sweep)
{
    const struct settings *settings = sweep->settings;
    long pending = 0;
    long done = 0;

    if (!files_read_pairs(settings, sweep->nodes, sweep->plan)) {
        return CHECK_USAGE;
    }
    count_listed_rounds(sweep);
    if (sweep->listed_rounds > 0 && settings->quiet_pairs > 0) {
        if (sweep->rows != NULL) {
            check_print("%s has rounds: leave out --quiet-pairs",
                        settings->pairs);
        }
        return CHECK_USAGE;
    }
    unwant_other_rounds(settings, sweep, sweep->plan);
    if (!files_read_resume(settings, sweep->nodes, sweep->rows, sweep->plan)) {
        return CHECK_USAGE;
    }
    count_pairs(sweep->plan, &pending, &done);
    if (sweep->rows != NULL) {
        rows_run(sweep->rows, sweep_rounds(sweep), pending, done);
    }
    passes_run(sweep);
    bool valid = conclude(sweep);
    if (sweep->rows != NULL) {
        rows_end(sweep->rows, &sweep->counts,
                 histogram_median(&sweep->overhead_us));
    }
    return valid ? CHECK_PASS : CHECK_FAILED;
}
