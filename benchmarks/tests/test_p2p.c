/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "p2p.h"
#include "unit.h"

enum { WINDOW = 3, SLOTS = 3, LARGEST = 100000 };

/* Built twice: the twin damages a byte of every message that is validated. */
#ifdef PLANT_CORRUPTION
static const bool IS_DAMAGED = true;
#else
static const bool IS_DAMAGED = false;
#endif

/* Less warm-up than iterations, and more, by a page of time stamps. */
static void test_loops(struct p2p *p2p, long iterations, long warmup,
                       long time_ms)
{
    const struct settings_common common = {.sizes = {0, LARGEST},
                                           .iterations = iterations,
                                           .warmup = warmup,
                                           .time_ms = time_ms};

    p2p_create(p2p, &common, WINDOW);
    for (int size = 0; size <= LARGEST; size += LARGEST / 2) {
        struct stats_summary latency = p2p_latency(p2p, &common, size);
        struct stats_summary posted = p2p_latency_posted(p2p, &common, size);
        struct p2p_bandwidth one = p2p_stream(p2p, &common, WINDOW, size);
        struct p2p_bandwidth both =
            p2p_bidirectional(p2p, &common, WINDOW, size);

        EXPECT(p2p_validate(p2p, size) == (size == 0 || !IS_DAMAGED));
        if (!p2p->is_first) {
            EXPECT(latency.n == 0 && posted.n == 0);
            EXPECT(one.windows.n == 0 && both.windows.n == 0);
            continue;
        }
        EXPECT(posted.n >= 1 && posted.n <= (size_t)iterations);
        EXPECT(time_ms > 0 || posted.n == (size_t)iterations);
        EXPECT(posted.min >= 0.0 && posted.p50 > 0.0);
        EXPECT(latency.n >= 1 && latency.n <= (size_t)iterations);
        EXPECT(time_ms > 0 || latency.n == (size_t)iterations);
        EXPECT(latency.min >= 0.0 && latency.p50 > 0.0);
        EXPECT((one.mb_per_s > 0.0) == (size > 0));
        EXPECT((both.mb_per_s > 0.0) == (size > 0));
    }
    p2p_free(p2p);
}

/* A rank without a peer must take its part in the barriers of all turns. */
static void test_sync_each(struct p2p *p2p, enum p2p_test test)
{
    const struct settings_common common = {
        .sizes = {0, LARGEST}, .iterations = 20, .warmup = 2, .time_ms = 50};
    const struct p2p_work work = {.test = test,
                                  .size_bytes = LARGEST,
                                  .window = WINDOW,
                                  .sync_each = true};

    p2p_create(p2p, &common, WINDOW);
    long count = p2p_times(p2p, &common, &work);

    EXPECT(count >= 1 && count <= common.iterations);
    for (long i = 0; i < count; i++) {
        EXPECT(p2p->is_first == (p2p->samples[i] > 0.0));
    }
    p2p_free(p2p);
}

/* Neighbours are pairs, which measure at once; an odd last rank has no peer. */
static void test_pairs(int rank, int np)
{
    char *send[SLOTS];
    char *receive[SLOTS];
    bool is_paired = (rank ^ 1) < np;

    for (int i = 0; i < SLOTS; i++) {
        send[i] = check_allocate(LARGEST, "a slot");
        receive[i] = check_allocate(LARGEST, "a slot");
    }
    struct p2p p2p = {.comm = MPI_COMM_WORLD,
                      .peer = is_paired ? rank ^ 1 : MPI_PROC_NULL,
                      .is_first = is_paired && rank % 2 == 0,
                      .send = send,
                      .receive = receive,
                      .slots = 1};
    test_loops(&p2p, 5, 1, 0);
    p2p.slots = SLOTS; /* walked by windows and single messages */
    test_loops(&p2p, 20, 0, 0);
    test_loops(&p2p, 2, 1000, 0);
    test_loops(&p2p, 1, 1000, 20);
    test_sync_each(&p2p, P2P_LATENCY);
    test_sync_each(&p2p, P2P_STREAM);
    test_sync_each(&p2p, P2P_BIDIRECTIONAL);
    for (int i = 0; i < SLOTS; i++) {
        free(send[i]);
        free(receive[i]);
    }
}

/* Two ranks are a pair, three are none. */
static void test_two_ranks_pair(int rank, int np)
{
    struct p2p p2p;

    EXPECT(p2p_pair(MPI_COMM_WORLD, &p2p) == (np == 2));
    if (np == 2) {
        EXPECT(p2p.peer == 1 - rank && p2p.is_first == (rank == 0));
    }
}

int main(int argc, char **argv)
{
    int rank = 0;
    int np = 0;

    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &np), "all ranks");
    test_pairs(rank, np);
    test_two_ranks_pair(rank, np);
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}
