/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPCNeT (Chunduri et al. 2019; network_load_test.c, subcomms.c) divides nodes
 * in an order of chance: 80 % are congestors, the others run the tests. On
 * the congestors, of the ranks with the same place on their nodes, each takes
 * one of four kinds, by chance too.
 */
#include "roles.h"

#include "check.h"
#include "payload.h"

#include <stdlib.h>

void roles_shuffle(int *order, int count, uint64_t seed)
{
    uint64_t state = payload_mix(seed + 1);

    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    for (int i = count - 1; i > 0; i--) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        int other = (int)(payload_mix(state) % (uint64_t)(i + 1));
        int kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
}

static void roles_count(int nodes, struct roles *roles)
{
    int victims = nodes - 4 * nodes / 5;

    roles->victim_nodes = victims < 2 ? 2 : victims;
    roles->aggressor_nodes = nodes - roles->victim_nodes;
}

static bool roles_fit(const struct placement *placement,
                      const struct roles *roles)
{
    int least = ROLES_LEAST_OF_KIND * (roles->kinds > 0 ? roles->kinds : 1);
    int extremes[2] = {placement->local_size, -placement->local_size};

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "ranks of the nodes");
    if (placement->nodes < ROLES_LEAST_NODES ||
        roles->aggressor_nodes < least) {
        if (placement->rank == 0) {
            check_print("found %d node%s: these aggressors take %d nodes or "
                        "more, beside 2 victims",
                        placement->nodes, placement->nodes == 1 ? "" : "s",
                        least);
        }
        return false;
    }
    if (extremes[0] != -extremes[1]) {
        if (placement->rank == 0) {
            check_print("found from %d to %d ranks on a node: all nodes take "
                        "the same number",
                        extremes[0], -extremes[1]);
        }
        return false;
    }
    return true;
}

/* Aggressors of a slice stand in an order of chance, and take turns. */
static int roles_turn(const struct placement *placement, int place, int count,
                      uint64_t seed)
{
    int *order = check_allocate((size_t)count * sizeof(*order), "kinds");
    int turn = 0;

    roles_shuffle(order, count,
                  payload_mix(seed) + (uint64_t)placement->local_rank);
    while (order[turn] != place) {
        turn++;
    }
    free(order);
    return turn;
}

bool roles_create(const struct placement *placement, enum aggressor aggressors,
                  uint64_t seed, struct roles *roles)
{
    int place = 0;

    *roles = (struct roles){.kind = aggressors, .kinds = 1};
    roles->has_window = aggressors == AGGRESSOR_PUT ||
                        aggressors == AGGRESSOR_GET ||
                        aggressors == AGGRESSOR_MIXED;
    if (aggressors == AGGRESSOR_MIXED) {
        roles->kinds = AGGRESSOR_KINDS;
    } else if (aggressors == AGGRESSOR_NONE) {
        roles->kinds = 0;
    }
    roles_count(placement->nodes, roles);
    if (!roles_fit(placement, roles)) {
        return false;
    }
    int *order =
        check_allocate((size_t)placement->nodes * sizeof(*order), "nodes");

    roles_shuffle(order, placement->nodes, seed);
    while (order[place] != placement->node) {
        place++;
    }
    free(order);
    roles->is_victim = place >= roles->aggressor_nodes;
    if (aggressors == AGGRESSOR_MIXED && !roles->is_victim) {
        roles->kind = (enum aggressor)(
            roles_turn(placement, place, roles->aggressor_nodes, seed) %
            AGGRESSOR_KINDS);
    }
    CHECK_MPI(
        MPI_Comm_split(MPI_COMM_WORLD, roles->is_victim, place, &roles->side),
        "victims and aggressors");
    CHECK_MPI(MPI_Comm_split(roles->side,
                             placement->local_rank * (AGGRESSOR_NONE + 1) +
                                 (roles->is_victim ? 0 : (int)roles->kind),
                             place, &roles->slice),
              "ranks with place %d on their nodes", placement->local_rank);
    return true;
}

void roles_free(struct roles *roles)
{
    CHECK_MPI(MPI_Comm_free(&roles->slice), "end");
    CHECK_MPI(MPI_Comm_free(&roles->side), "end");
}
