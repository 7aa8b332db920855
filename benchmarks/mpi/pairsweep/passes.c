/* SPDX-License-Identifier: Apache-2.0 */
#include "passes.h"

#include "check.h"
#include "rails.h"
#include "retest.h"
#include "rounds.h"

void passes_run(struct sweep *sweep)
{
    const struct nodes *nodes = sweep->nodes;
    int rail = sweep->plan->rail;
    int rails = rails_count(sweep->settings->rails);

    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, rail, nodes->own, &sweep->comm),
              "rail %d", rail);
    pair_create(&sweep->bench, sweep->settings, nodes, sweep->comm);
    sweep->valid = true;
    for (int pass = 0; pass < rails; pass++) {
        MPI_Request all_done;

        if (pass == rail) {
            rounds_run(sweep);
            retest_run(sweep);
            sweep_end_relay(sweep);
        } else if (sweep->rows != NULL) {
            sweep_relay(sweep);
        }
        CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &all_done), "rail %d", pass);
        check_wait_quietly(&all_done, SWEEP_POLL_NS);
    }
    pair_free(&sweep->bench);
    CHECK_MPI(MPI_Comm_free(&sweep->comm), "rail %d", rail);
}
