/* SPDX-License-Identifier: Apache-2.0 */
/* Eight ranks, which play two nodes of four. */
#include "check.h"
#include "pairs.h"
#include "unit.h"

#include <math.h>

enum { NP = 8, PPN = 4, WINDOW = 3, WINDOWS = 5, SIZE = 1000 };

static const struct settings_common COMMON = {
    .sizes = {SIZE, SIZE}, .iterations = 4, .warmup = 1};
static const struct pairs_loops LOOPS = {&COMMON, WINDOWS};

static int rank_in_world(const struct pairs *pairs, int rank)
{
    MPI_Group world;
    MPI_Group group;
    int translated = -1;

    CHECK_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world), "world");
    CHECK_MPI(MPI_Comm_group(pairs->p2p.comm, &group), "pairs");
    CHECK_MPI(MPI_Group_translate_ranks(group, 1, &rank, world, &translated),
              "rank %d", rank);
    CHECK_MPI(MPI_Group_free(&group), "pairs");
    CHECK_MPI(MPI_Group_free(&world), "world");
    return translated;
}

/* The peer of a rank; -1: it takes no part. */
static int expected_peer(int rank, enum pairs_scope scope, int count)
{
    int distance = scope == PAIRS_BETWEEN ? PPN : PPN / 2;
    int place = rank % distance;
    int side = rank / distance;

    if (place >= count || side > 1) {
        return -1;
    }
    return side == 0 ? rank + distance : rank - distance;
}

static void test_measure(const struct pairs *pairs, enum p2p_test test)
{
    const struct p2p_work work = {
        .test = test, .size_bytes = SIZE, .window = WINDOW};
    size_t n = test == P2P_LATENCY ? (size_t)COMMON.iterations : WINDOWS;
    struct pairs_result result = pairs_measure(pairs, &LOOPS, &work);

    EXPECT(pairs_validate(pairs, SIZE));
    if (!pairs->is_root) {
        return;
    }
    EXPECT(result.times.n == n * (size_t)pairs->count);
    EXPECT(result.slowest_us >= result.times.mean * (1.0 - 1e-9));
    EXPECT(result.slowest_us <= result.times.max * (1.0 + 1e-9));
    EXPECT(result.start_spread_us >= 0.0);
    if (test == P2P_LATENCY) {
        EXPECT(isnan(result.mb_per_s) && isnan(result.msg_per_s));
    } else {
        double bytes = result.mb_per_s * result.times.mean;
        double sent = (test == P2P_BIDIRECTIONAL ? 2.0 : 1.0) * WINDOW *
                      pairs->count * SIZE;

        EXPECT(fabs(bytes / sent - 1.0) < 1e-9);
        EXPECT(fabs(result.msg_per_s * SIZE / result.mb_per_s / 1e6 - 1.0) <
               1e-9);
    }
}

static void test_pairs(const struct placement *placement,
                       enum pairs_scope scope, int count)
{
    struct pairs_room room;
    struct pairs pairs;
    int peer = expected_peer(placement->rank, scope, count);

    pairs_room_create(&room, &LOOPS, WINDOW, placement->rank, count);
    pairs_create(placement, scope, count, &room, &pairs);
    EXPECT(pairs.is_root == (placement->rank == 0));
    EXPECT((pairs.p2p.comm == MPI_COMM_NULL) == (peer < 0));
    if (peer >= 0) {
        EXPECT(rank_in_world(&pairs, pairs.p2p.peer) == peer);
        EXPECT(pairs.p2p.is_first == (peer > placement->rank));
    }
    test_measure(&pairs, P2P_LATENCY);
    test_measure(&pairs, P2P_STREAM);
    test_measure(&pairs, P2P_BIDIRECTIONAL);
    pairs_free(&pairs);
    pairs_room_free(&room);
}

static int available(int np, int nodes, int *node_of, enum pairs_scope scope)
{
    char hosts[3][PLACEMENT_HOST_SIZE] = {"cn01", "cn02", "cn03"};
    const struct placement placement = {
        .np = np, .nodes = nodes, .node_of = node_of, .hosts = hosts};

    return pairs_available(&placement, scope);
}

static void test_other_placements(void)
{
    EXPECT(available(4, 2, (int[]){0, 0, 1, 1}, PAIRS_BETWEEN) == 2);
    EXPECT(available(4, 2, (int[]){0, 1, 0, 1}, PAIRS_BETWEEN) == 0);
    EXPECT(available(4, 2, (int[]){0, 1, 1, 0}, PAIRS_BETWEEN) == 0);
    EXPECT(available(4, 2, (int[]){0, 0, 0, 1}, PAIRS_BETWEEN) == 0);
    EXPECT(available(3, 2, (int[]){0, 1, 1}, PAIRS_BETWEEN) == 0);
    EXPECT(available(2, 1, (int[]){0, 0}, PAIRS_BETWEEN) == 0);
    EXPECT(available(3, 3, (int[]){0, 1, 2}, PAIRS_BETWEEN) == 0);
    EXPECT(available(2, 1, (int[]){0, 0}, PAIRS_WITHIN) == 1);
    EXPECT(available(3, 1, (int[]){0, 0, 0}, PAIRS_WITHIN) == 0);
    EXPECT(available(2, 2, (int[]){0, 1}, PAIRS_WITHIN) == 0);
}

int main(int argc, char **argv)
{
    struct placement placement;

    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    placement_create(MPI_COMM_WORLD, PPN, &placement);
    EXPECT(placement.np == NP);
    EXPECT(pairs_available(&placement, PAIRS_BETWEEN) == PPN);
    EXPECT(pairs_available(&placement, PAIRS_WITHIN) == PPN / 2);
    for (int count = 1; count <= PPN; count++) {
        test_pairs(&placement, PAIRS_BETWEEN, count);
    }
    for (int count = 1; count <= PPN / 2; count++) {
        test_pairs(&placement, PAIRS_WITHIN, count);
    }
    if (placement.rank == 0) {
        test_other_placements();
    }
    placement_free(&placement);
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}
