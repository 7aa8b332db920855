/* SPDX-License-Identifier: Apache-2.0 */
#include "roles.h"

#include "unit.h"

#include <string.h>

enum { COUNT = 10 };

static void test_shuffle(void)
{
    int order[COUNT];
    int again[COUNT];
    int firsts[COUNT] = {0};

    for (uint64_t seed = 0; seed < 1000; seed++) {
        int seen[COUNT] = {0};

        roles_shuffle(order, COUNT, seed);
        roles_shuffle(again, COUNT, seed);
        EXPECT(memcmp(order, again, sizeof(order)) == 0);
        for (int i = 0; i < COUNT; i++) {
            seen[order[i]]++;
        }
        for (int i = 0; i < COUNT; i++) {
            EXPECT(seen[i] == 1);
        }
        firsts[order[0]]++;
    }
    for (int i = 0; i < COUNT; i++) { /* 100 each, with a deviation of 9.5 */
        EXPECT(firsts[i] > 50 && firsts[i] < 150);
    }
}

/* Ten nodes of one rank: two victims, and two nodes for each kind. */
static void test_mixed(const struct placement *placement, uint64_t seed)
{
    struct roles roles;
    int size = 0;
    int kinds[AGGRESSOR_KINDS] = {0};

    EXPECT(roles_create(placement, AGGRESSOR_MIXED, seed, &roles));
    EXPECT(roles.victim_nodes == 2 && roles.aggressor_nodes == 8);
    if (!roles.is_victim) {
        kinds[roles.kind]++;
    }
    (void)MPI_Comm_size(roles.slice, &size);
    EXPECT(size == 2);
    (void)MPI_Allreduce(MPI_IN_PLACE, kinds, AGGRESSOR_KINDS, MPI_INT, MPI_SUM,
                        MPI_COMM_WORLD);
    for (int kind = 0; kind < AGGRESSOR_KINDS; kind++) {
        EXPECT(kinds[kind] == 2);
    }
    roles_free(&roles);
}

/* Five nodes of two ranks: a slice has one rank of each node of its side. */
static void test_slices(const struct placement *placement)
{
    struct roles roles;
    int size = 0;

    EXPECT(roles_create(placement, AGGRESSOR_INCAST, 3, &roles));
    EXPECT(roles.victim_nodes == 2 && roles.aggressor_nodes == 3);
    (void)MPI_Comm_size(roles.slice, &size);
    EXPECT(size == (roles.is_victim ? 2 : 3));
    (void)MPI_Comm_size(roles.side, &size);
    EXPECT(size == (roles.is_victim ? 4 : 6));
    roles_free(&roles);
}

int main(int argc, char **argv)
{
    struct placement placement;

    (void)MPI_Init(&argc, &argv);
    test_shuffle();
    placement_create(MPI_COMM_WORLD, 1, &placement);
    for (uint64_t seed = 0; seed < 3; seed++) {
        test_mixed(&placement, seed);
    }
    placement_free(&placement);
    placement_create(MPI_COMM_WORLD, 2, &placement);
    test_slices(&placement);
    placement_free(&placement);
    (void)MPI_Finalize();
    return 0;
}
