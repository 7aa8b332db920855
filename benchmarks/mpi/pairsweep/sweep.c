/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include "check.h"

enum { SWEEP_RELAY_TAG = 22 };

int sweep_rounds(const struct sweep *sweep)
{
    return sweep->listed_rounds > 0 ? sweep->listed_rounds
                                    : tournament_rounds(sweep->nodes->count);
}

int sweep_partner(const struct sweep *sweep, int round)
{
    const struct plan *plan = sweep->plan;

    if (sweep->listed_rounds == 0) {
        return tournament_partner(sweep->tournament, round, plan->own);
    }
    for (int partner = 0; partner < plan->nodes; partner++) {
        if (plan->round[partner] == round + 1) {
            return partner;
        }
    }
    return -1;
}

int sweep_round(const struct sweep *sweep, int partner)
{
    const struct plan *plan = sweep->plan;

    return sweep->listed_rounds > 0
               ? plan->round[partner] - 1
               : tournament_round(sweep->tournament, plan->own, partner);
}

bool sweep_is_leader(const struct sweep *sweep)
{
    return sweep->nodes->own == sweep->nodes->first;
}

/* Rank 0 is the leader of the first pass. */
void sweep_emit(struct sweep *sweep, const struct pair_result *result)
{
    sweep->counts.measured += !result->meeting.quiet;
    sweep->counts.retested += result->meeting.quiet;
    sweep->valid = sweep->valid && result->valid;
    if (sweep->rows != NULL) {
        rows_pair(sweep->rows, result);
        return;
    }
    CHECK_MPI(MPI_Send(result, sizeof(*result), MPI_BYTE, 0, SWEEP_RELAY_TAG,
                       MPI_COMM_WORLD),
              "result to rank 0");
}

void sweep_end_relay(const struct sweep *sweep)
{
    const struct pair_result end = {.meeting = {.source = -1}};

    if (sweep_is_leader(sweep) && sweep->rows == NULL) {
        CHECK_MPI(MPI_Send(&end, sizeof(end), MPI_BYTE, 0, SWEEP_RELAY_TAG,
                           MPI_COMM_WORLD),
                  "end to rank 0");
    }
}

void sweep_relay(struct sweep *sweep)
{
    for (;;) {
        struct pair_result result;
        MPI_Request request;

        CHECK_MPI(MPI_Irecv(&result, sizeof(result), MPI_BYTE, MPI_ANY_SOURCE,
                            SWEEP_RELAY_TAG, MPI_COMM_WORLD, &request),
                  "result of a leader");
        check_wait_quietly(&request, SWEEP_POLL_NS);
        if (result.meeting.source < 0) {
            return;
        }
        rows_pair(sweep->rows, &result);
    }
}
