/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four congestors of GPCNeT (Chunduri et al. 2019; congestors.c) in each
 * slice: a pairwise alltoall, many ranks that send to one, many that put into
 * the memory of one, and many that get from it ("broadcast").
 */
#include "aggressors.h"

#include "check.h"
#include "clock.h"
#include "payload.h"

#include <stdlib.h>

enum { BATCH = 16, TAG = 1, IDLE_POLL_NS = 1000000 };

double aggressors_bytes(const struct placement *placement, int size_bytes)
{
    return 2.0 * placement->nodes * (double)size_bytes;
}

/*
 * One window for all aggressors: windows of slices that share nodes may get the
 * same name in shared memory (Open MPI 4.1).
 */
static void create_window(const struct roles *roles, size_t size_bytes,
                          struct aggressors *aggressors)
{
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(roles->side, &rank), "aggressors");
    aggressors->target = rank;
    CHECK_MPI(MPI_Bcast(&aggressors->target, 1, MPI_INT, 0, roles->slice),
              "target");
    CHECK_MPI(MPI_Win_create(aggressors->receive, (MPI_Aint)size_bytes, 1,
                             MPI_INFO_NULL, roles->side, &aggressors->window),
              "memory of %zu bytes", size_bytes);
}

void aggressors_create(const struct roles *roles, int size_bytes,
                       struct aggressors *aggressors)
{
    *aggressors = (struct aggressors){.kind = roles->kind,
                                      .slice = roles->slice,
                                      .size_bytes = size_bytes,
                                      .window = MPI_WIN_NULL};
    CHECK_MPI(MPI_Comm_rank(roles->slice, &aggressors->rank), "a slice");
    CHECK_MPI(MPI_Comm_size(roles->slice, &aggressors->ranks), "a slice");
    size_t all = (size_t)aggressors->ranks * (size_t)size_bytes;

    aggressors->send = check_allocate(all, "messages");
    aggressors->receive = check_allocate(all, "messages");
    aggressors->requests = check_allocate(
        (size_t)aggressors->ranks * sizeof(MPI_Request), "requests");
    if (roles->has_window) {
        create_window(roles, all, aggressors);
    }
}

void aggressors_free(struct aggressors *aggressors)
{
    if (aggressors->window != MPI_WIN_NULL) {
        CHECK_MPI(MPI_Win_free(&aggressors->window), "end");
    }
    free(aggressors->send);
    free(aggressors->receive);
    free(aggressors->requests);
}

static char *message(const struct aggressors *aggressors, char *memory,
                     int rank)
{
    return memory + (size_t)rank * (size_t)aggressors->size_bytes;
}

static void alltoall(const struct aggressors *aggressors)
{
    int ranks = aggressors->ranks;
    int size = aggressors->size_bytes;

    for (int i = 0; i < ranks; i++) {
        int to = (aggressors->rank + i) % ranks;
        int from = (aggressors->rank - i + ranks) % ranks;

        CHECK_MPI(MPI_Sendrecv(message(aggressors, aggressors->send, to), size,
                               MPI_BYTE, to, TAG,
                               message(aggressors, aggressors->receive, from),
                               size, MPI_BYTE, from, TAG, aggressors->slice,
                               MPI_STATUS_IGNORE),
                  "to rank %d, from rank %d", to, from);
    }
}

static void incast(const struct aggressors *aggressors)
{
    int size = aggressors->size_bytes;

    if (aggressors->rank > 0) {
        CHECK_MPI(MPI_Send(aggressors->send, size, MPI_BYTE, 0, TAG,
                           aggressors->slice),
                  "to rank 0");
        return;
    }
    for (int from = 1; from < aggressors->ranks; from++) {
        CHECK_MPI(MPI_Irecv(message(aggressors, aggressors->receive, from),
                            size, MPI_BYTE, from, TAG, aggressors->slice,
                            &aggressors->requests[from - 1]),
                  "from rank %d", from);
    }
    CHECK_MPI(MPI_Waitall(aggressors->ranks - 1, aggressors->requests,
                          MPI_STATUSES_IGNORE),
              "messages of all ranks");
}

/* Within an epoch; rank 0 is the target and only makes progress. */
static void put_or_get(const struct aggressors *aggressors)
{
    int size = aggressors->size_bytes;

    if (aggressors->rank == 0) {
        return;
    }
    if (aggressors->kind == AGGRESSOR_PUT) {
        CHECK_MPI(MPI_Put(aggressors->send, size, MPI_BYTE, aggressors->target,
                          (MPI_Aint)aggressors->rank * size, size, MPI_BYTE,
                          aggressors->window),
                  "to rank 0");
    } else {
        CHECK_MPI(MPI_Get(aggressors->send, size, MPI_BYTE, aggressors->target,
                          0, size, MPI_BYTE, aggressors->window),
                  "from rank 0");
    }
    CHECK_MPI(MPI_Win_flush(aggressors->target, aggressors->window), "rank 0");
}

static void operate(const struct aggressors *aggressors)
{
    switch (aggressors->kind) {
    case AGGRESSOR_ALLTOALL:
        alltoall(aggressors);
        break;
    case AGGRESSOR_INCAST:
        incast(aggressors);
        break;
    default:
        put_or_get(aggressors);
        break;
    }
}

static bool has_epoch(const struct aggressors *aggressors)
{
    return aggressors->rank > 0 && (aggressors->kind == AGGRESSOR_PUT ||
                                    aggressors->kind == AGGRESSOR_GET);
}

static void begin_epoch(const struct aggressors *aggressors)
{
    if (has_epoch(aggressors)) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, aggressors->target, 0,
                               aggressors->window),
                  "rank 0");
    }
}

static void end_epoch(const struct aggressors *aggressors)
{
    if (has_epoch(aggressors)) {
        CHECK_MPI(MPI_Win_unlock(aggressors->target, aggressors->window),
                  "rank 0");
    }
}

static double operation_bytes(const struct aggressors *aggressors)
{
    double size = aggressors->size_bytes;

    if (aggressors->kind == AGGRESSOR_ALLTOALL) {
        return size * (aggressors->ranks - 1);
    }
    return aggressors->rank > 0 ? size : 0.0;
}

static bool is_complete(MPI_Request *request)
{
    int complete = 0;

    CHECK_MPI(MPI_Test(request, &complete, MPI_STATUS_IGNORE), "victims");
    return complete != 0;
}

/*
 * Batches of operations, the first one before the victims may begin. The ranks
 * of a slice agree on the last batch, a batch late, so that they need not wait
 * for each other.
 */
static struct aggressors_load press(struct aggressors *aggressors)
{
    MPI_Request victims = MPI_REQUEST_NULL;
    MPI_Request agreement = MPI_REQUEST_NULL;
    int done = 0;
    int all_done = 0;
    bool has_begun = false;
    int64_t start_ns = 0;
    long long operations = 0;

    for (;;) {
        for (int i = 0; i < BATCH; i++) {
            operate(aggressors);
        }
        operations += BATCH;
        CHECK_MPI(MPI_Wait(&agreement, MPI_STATUS_IGNORE), "an agreement");
        if (all_done) { /* not to be read while it is agreed on */
            break;
        }
        if (start_ns == 0) { /* this rank loads the network */
            start_ns = clock_now_ns();
            operations = 0;
            CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &victims), "all ranks");
        } else if (!has_begun && is_complete(&victims)) {
            has_begun = true;
            CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &victims), "all ranks");
        } else if (has_begun && !done) {
            done = is_complete(&victims);
        }
        CHECK_MPI(MPI_Iallreduce(&done, &all_done, 1, MPI_INT, MPI_MIN,
                                 aggressors->slice, &agreement),
                  "an agreement");
    }
    double us = clock_between_us(start_ns, clock_now_ns());

    return (struct aggressors_load){
        operations, (double)operations * operation_bytes(aggressors) / us};
}

static struct aggressors_load idle(void)
{
    for (int i = 0; i < 2; i++) {
        MPI_Request victims;

        CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &victims), "all ranks");
        check_wait_quietly(&victims, IDLE_POLL_NS);
    }
    return (struct aggressors_load){0, 0.0};
}

struct aggressors_load aggressors_run(struct aggressors *aggressors)
{
    if (aggressors->kind == AGGRESSOR_NONE) {
        return idle();
    }
    begin_epoch(aggressors);
    struct aggressors_load load = press(aggressors);

    end_epoch(aggressors);
    return load;
}

/* Fill what this rank sends, or what others get from it. */
static void fill(struct aggressors *aggressors)
{
    size_t size = (size_t)aggressors->size_bytes;

    for (int to = 0; to < aggressors->ranks; to++) {
        long step = aggressors->kind == AGGRESSOR_ALLTOALL ? to : 0;

        payload_fill(message(aggressors, aggressors->send, to), size,
                     payload_key(aggressors->rank, step));
    }
    if (aggressors->kind == AGGRESSOR_GET) {
        payload_fill(aggressors->receive, size, payload_key(0, 0));
    }
}

bool aggressors_validate(struct aggressors *aggressors)
{
    size_t size = (size_t)aggressors->size_bytes;
    int rank = aggressors->rank;
    bool valid = true;

    if (aggressors->kind == AGGRESSOR_NONE) {
        return true;
    }
    fill(aggressors);
    CHECK_MPI(MPI_Barrier(aggressors->slice), "contents");
    begin_epoch(aggressors);
    operate(aggressors);
    end_epoch(aggressors);
    CHECK_MPI(MPI_Barrier(aggressors->slice), "contents");
    if (aggressors->kind == AGGRESSOR_GET) {
        return rank == 0 ||
               payload_check(aggressors->send, size, payload_key(0, 0), 0);
    }
    if (aggressors->kind == AGGRESSOR_PUT && rank == 0) { /* see it here, too */
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, aggressors->target, 0,
                               aggressors->window),
                  "own memory");
        CHECK_MPI(MPI_Win_unlock(aggressors->target, aggressors->window),
                  "own memory");
    }
    bool receives = aggressors->kind == AGGRESSOR_ALLTOALL || rank == 0;

    for (int from = 0; from < aggressors->ranks && receives && valid; from++) {
        if (from != rank) {
            long step = aggressors->kind == AGGRESSOR_ALLTOALL ? rank : 0;

            valid =
                payload_check(message(aggressors, aggressors->receive, from),
                              size, payload_key(from, step), from);
        }
    }
    return valid;
}
