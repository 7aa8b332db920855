/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

#include "budget.h"
#include "check.h"

#include <math.h>
#include <stdlib.h>

static int pairs_ranks_on(const struct placement *placement, int node)
{
    int ranks = 0;

    for (int r = 0; r < placement->np; r++) {
        ranks += placement->node_of[r] == node;
    }
    return ranks;
}

/* The first rank that is not on the node where blocks would put it. */
static int pairs_first_stray(const struct placement *placement)
{
    int rank = 0;

    while (rank < placement->np &&
           placement->node_of[rank] == rank / (placement->np / 2)) {
        rank++;
    }
    return rank;
}

static int pairs_available_between(const struct placement *placement)
{
    static const char HINT[] =
        "pairs take two nodes with as many ranks on each, the first half of "
        "the ranks on the first: srun --nodes=2 --ntasks-per-node=COUNT "
        "--distribution=block";
    bool is_root = placement->rank == 0;

    if (placement->nodes != 2) {
        if (is_root) {
            check_print("found %d rank%s on %d node%s: %s", placement->np,
                        placement->np == 1 ? "" : "s", placement->nodes,
                        placement->nodes == 1 ? "" : "s", HINT);
        }
        return 0;
    }
    int first = pairs_ranks_on(placement, 0);
    if (2 * first != placement->np) {
        if (is_root) {
            check_print("found %d ranks on %s and %d on %s: %s", first,
                        placement->hosts[0], placement->np - first,
                        placement->hosts[1], HINT);
        }
        return 0;
    }
    int stray = pairs_first_stray(placement);
    if (stray < placement->np) {
        if (is_root) {
            check_print("found rank %d of %d on %s: %s", stray, placement->np,
                        placement->hosts[placement->node_of[stray]], HINT);
        }
        return 0;
    }
    return first;
}

int pairs_available(const struct placement *placement, enum pairs_scope scope)
{
    if (scope == PAIRS_BETWEEN) {
        return pairs_available_between(placement);
    }
    int ranks = pairs_ranks_on(placement, 0);
    if (ranks % 2 != 0) {
        if (placement->rank == 0) {
            check_print("found %d rank%s on %s: pairs within a node take an "
                        "even number",
                        ranks, ranks == 1 ? "" : "s", placement->hosts[0]);
        }
        return 0;
    }
    return ranks / 2;
}

/* Rank 0 collects the samples of all pairs. */
static double pairs_samples_bytes(const struct settings_common *longest,
                                  int rank, int most_pairs)
{
    return rank == 0 ? (double)most_pairs * (double)longest->iterations *
                           (double)sizeof(double)
                     : 0.0;
}

double pairs_room_bytes(const struct pairs_loops *loops, long window, int rank,
                        int most_pairs)
{
    struct settings_common longest =
        budget_longest(loops->common, loops->windows);

    return p2p_size_bytes(&longest, window, 1) +
           pairs_samples_bytes(&longest, rank, most_pairs);
}

void pairs_room_create(struct pairs_room *room, const struct pairs_loops *loops,
                       long window, int rank, int most_pairs)
{
    struct settings_common longest =
        budget_longest(loops->common, loops->windows);
    size_t size = (size_t)longest.sizes.max;
    double samples = pairs_samples_bytes(&longest, rank, most_pairs);

    *room = (struct pairs_room){
        .send = check_allocate(size, "messages sent"),
        .receive = check_allocate(size, "messages received"),
        .samples = check_allocate((size_t)samples, "samples of all pairs"),
    };
    room->p2p = (struct p2p){
        .send = &room->send, .receive = &room->receive, .slots = 1};
    p2p_create(&room->p2p, &longest, window);
}

void pairs_room_free(struct pairs_room *room)
{
    p2p_free(&room->p2p);
    free(room->send);
    free(room->receive);
    free(room->samples);
}

/* The place of this rank in the pairs' communicator; -1: none. */
static int pairs_place(const struct placement *placement,
                       enum pairs_scope scope, int count)
{
    int side = placement->node;
    int index = placement->local_rank;

    if (scope == PAIRS_WITHIN && side == 0) {
        int half = placement->local_size / 2;

        side = index / half;
        index %= half;
    } else if (scope == PAIRS_WITHIN) {
        return -1;
    }
    return index < count ? side * count + index : -1;
}

void pairs_create(const struct placement *placement, enum pairs_scope scope,
                  int count, const struct pairs_room *room, struct pairs *pairs)
{
    int place = pairs_place(placement, scope, count);

    *pairs = (struct pairs){
        .count = count,
        .is_root = place == 0,
        .p2p = room->p2p,
        .samples = room->samples,
    };
    pairs->p2p.is_first = place >= 0 && place < count;
    pairs->p2p.peer =
        place >= 0 ? (place + count) % (2 * count) : MPI_PROC_NULL;
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, place >= 0 ? 0 : MPI_UNDEFINED,
                             place, &pairs->p2p.comm),
              "%d pairs", count);
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD,
                             pairs->p2p.is_first ? 0 : MPI_UNDEFINED, place,
                             &pairs->firsts),
              "first ranks of %d pairs", count);
}

void pairs_free(struct pairs *pairs)
{
    if (pairs->firsts != MPI_COMM_NULL) {
        CHECK_MPI(MPI_Comm_free(&pairs->firsts), "%d pairs", pairs->count);
    }
    if (pairs->p2p.comm != MPI_COMM_NULL) {
        CHECK_MPI(MPI_Comm_free(&pairs->p2p.comm), "%d pairs", pairs->count);
    }
}

/* The first ranks are on one node, so that their clocks agree. */
static double pairs_start_spread(const struct pairs *pairs)
{
    int64_t own = pairs->p2p.stamps_ns[0];
    int64_t first = 0;
    int64_t last = 0;

    CHECK_MPI(
        MPI_Reduce(&own, &first, 1, MPI_INT64_T, MPI_MIN, 0, pairs->firsts),
        "first start");
    CHECK_MPI(
        MPI_Reduce(&own, &last, 1, MPI_INT64_T, MPI_MAX, 0, pairs->firsts),
        "last start");
    return (double)(last - first) / 1e3;
}

/* Collect the times of the first ranks; the result counts on their first. */
static struct pairs_result pairs_collect(const struct pairs *pairs,
                                         const struct p2p_work *work, long n)
{
    bool is_latency = work->test == P2P_LATENCY;
    double *samples = pairs->p2p.samples;
    double mean_us = 0.0;
    struct pairs_result result = {.mb_per_s = NAN, .msg_per_s = NAN};

    for (long i = 0; i < n; i++) {
        samples[i] /= is_latency ? 2.0 : 1.0;
        mean_us += samples[i] / (double)n;
    }
    result.start_spread_us = pairs_start_spread(pairs);
    CHECK_MPI(MPI_Reduce(&mean_us, &result.slowest_us, 1, MPI_DOUBLE, MPI_MAX,
                         0, pairs->firsts),
              "the slowest of %d pairs", pairs->count);
    CHECK_MPI(MPI_Gather(samples, (int)n, MPI_DOUBLE, pairs->samples, (int)n,
                         MPI_DOUBLE, 0, pairs->firsts),
              "%ld times of %d pairs", n, pairs->count);
    return result;
}

static void pairs_summarise(const struct pairs *pairs,
                            const struct p2p_work *work, long n,
                            struct pairs_result *result)
{
    double messages = (double)work->window * pairs->count;

    result->times =
        stats_summarise(pairs->samples, (size_t)n * (size_t)pairs->count);
    if (work->test == P2P_LATENCY) {
        return;
    }
    if (work->test == P2P_BIDIRECTIONAL) {
        messages *= 2.0;
    }
    double per_us = messages / fmax(result->times.mean, 1e-3);
    result->mb_per_s = per_us * work->size_bytes;
    result->msg_per_s = per_us * 1e6;
}

struct pairs_result pairs_measure(const struct pairs *pairs,
                                  const struct pairs_loops *loops,
                                  const struct p2p_work *work)
{
    struct settings_common common =
        work->test == P2P_LATENCY
            ? *loops->common
            : budget_windows(loops->common, loops->windows);
    struct pairs_result result = {.mb_per_s = NAN, .msg_per_s = NAN};

    if (pairs->p2p.comm != MPI_COMM_NULL) {
        long n = p2p_times(&pairs->p2p, &common, work);

        if (pairs->firsts != MPI_COMM_NULL) {
            result = pairs_collect(pairs, work, n);
        }
        if (pairs->is_root) {
            pairs_summarise(pairs, work, n, &result);
        }
    }
    /* Here ranks without a pair wait, silent, while the others measure. */
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD), "%d pairs, %d bytes", pairs->count,
              work->size_bytes);
    return result;
}

bool pairs_validate(const struct pairs *pairs, int size_bytes)
{
    int valid = 1;

    if (pairs->p2p.comm != MPI_COMM_NULL) {
        valid = p2p_validate(&pairs->p2p, size_bytes);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            MPI_COMM_WORLD),
              "validation, %d bytes", size_bytes);
    return valid != 0;
}
