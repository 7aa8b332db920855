/* SPDX-License-Identifier: Apache-2.0 */
#include "p2p_loops.h"

#include "check.h"
#include "clock.h"

enum { P2P_ACK_SIZE = 1 };

static size_t p2p_next(const struct p2p *p2p, size_t slot)
{
    return slot + 1 < p2p->slots ? slot + 1 : 0;
}

static void p2p_send(const struct p2p *p2p, size_t slot, int size)
{
    CHECK_MPI(MPI_Send(p2p->send[slot], size, MPI_CHAR, p2p->peer, P2P_TAG,
                       p2p->comm),
              "%d bytes to rank %d", size, p2p->peer);
}

/* Statuses are taken as OSU takes them, though unused: of small
 * messages they cost some percent. */
static void p2p_receive(const struct p2p *p2p, size_t slot, int size)
{
    MPI_Status status;

    CHECK_MPI(MPI_Recv(p2p->receive[slot], size, MPI_CHAR, p2p->peer, P2P_TAG,
                       p2p->comm, &status),
              "%d bytes from rank %d", size, p2p->peer);
}

static void p2p_ping_loop(const struct p2p *p2p, long window, int size,
                          long iterations)
{
    size_t slot = 0;

    (void)window;
    if (!p2p->is_first) {
        for (long i = 0; i < iterations; i++) {
            p2p_receive(p2p, slot, size);
            p2p_send(p2p, slot, size);
            slot = p2p_next(p2p, slot);
        }
        return;
    }
    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        p2p_send(p2p, slot, size);
        p2p_receive(p2p, slot, size);
        p2p->stamps_ns[i + 1] = clock_now_ns();
        slot = p2p_next(p2p, slot);
    }
}

static void p2p_post(const struct p2p *p2p, size_t slot, int size,
                     MPI_Request *request)
{
    CHECK_MPI(MPI_Irecv(p2p->receive[slot], size, MPI_CHAR, p2p->peer, P2P_TAG,
                        p2p->comm, request),
              "%d bytes from rank %d", size, p2p->peer);
}

static void p2p_await(const struct p2p *p2p, int size, MPI_Request *request)
{
    CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE), "%d bytes from rank %d",
              size, p2p->peer);
}

/* The second rank posts its next receive before it answers. */
static void p2p_answer_posted(const struct p2p *p2p, int size, long iterations)
{
    MPI_Request request;
    size_t slot = 0;

    p2p_post(p2p, slot, size, &request);
    for (long i = 1; i < iterations; i++) {
        size_t next = p2p_next(p2p, slot);

        p2p_await(p2p, size, &request);
        p2p_post(p2p, next, size, &request);
        p2p_send(p2p, slot, size);
        slot = next;
    }
    p2p_await(p2p, size, &request);
    p2p_send(p2p, slot, size);
}

static void p2p_posted_loop(const struct p2p *p2p, long window, int size,
                            long iterations)
{
    MPI_Request request;
    size_t slot = 0;

    (void)window;
    if (!p2p->is_first) {
        if (iterations > 0) {
            p2p_answer_posted(p2p, size, iterations);
        }
        return;
    }
    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        p2p_post(p2p, slot, size, &request);
        p2p_send(p2p, slot, size);
        p2p_await(p2p, size, &request);
        p2p->stamps_ns[i + 1] = clock_now_ns();
        slot = p2p_next(p2p, slot);
    }
}

static size_t p2p_isend_window(const struct p2p *p2p, long window, int size,
                               size_t slot, MPI_Request *requests)
{
    for (long w = 0; w < window; w++) {
        CHECK_MPI(MPI_Isend(p2p->send[slot], size, MPI_CHAR, p2p->peer, P2P_TAG,
                            p2p->comm, &requests[w]),
                  "%d bytes to rank %d", size, p2p->peer);
        slot = p2p_next(p2p, slot);
    }
    return slot;
}

static size_t p2p_irecv_window(const struct p2p *p2p, long window, int size,
                               size_t slot, MPI_Request *requests)
{
    for (long w = 0; w < window; w++) {
        CHECK_MPI(MPI_Irecv(p2p->receive[slot], size, MPI_CHAR, p2p->peer,
                            P2P_TAG, p2p->comm, &requests[w]),
                  "%d bytes from rank %d", size, p2p->peer);
        slot = p2p_next(p2p, slot);
    }
    return slot;
}

static void p2p_wait(const struct p2p *p2p, long count, MPI_Request *requests)
{
    CHECK_MPI(MPI_Waitall((int)count, requests, p2p->statuses),
              "%ld messages, rank %d", count, p2p->peer);
}

static void p2p_stream_loop(const struct p2p *p2p, long window, int size,
                            long iterations)
{
    char ack[P2P_ACK_SIZE] = {0};
    size_t slot = 0;

    if (!p2p->is_first) {
        for (long i = 0; i < iterations; i++) {
            slot = p2p_irecv_window(p2p, window, size, slot, p2p->requests);
            p2p_wait(p2p, window, p2p->requests);
            CHECK_MPI(MPI_Send(ack, P2P_ACK_SIZE, MPI_CHAR, p2p->peer,
                               P2P_ACK_TAG, p2p->comm),
                      "reply to rank %d", p2p->peer);
        }
        return;
    }
    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        slot = p2p_isend_window(p2p, window, size, slot, p2p->requests);
        p2p_wait(p2p, window, p2p->requests);
        CHECK_MPI(MPI_Recv(ack, P2P_ACK_SIZE, MPI_CHAR, p2p->peer, P2P_ACK_TAG,
                           p2p->comm, MPI_STATUS_IGNORE),
                  "reply from rank %d", p2p->peer);
        p2p->stamps_ns[i + 1] = clock_now_ns();
    }
}

static void p2p_bidirectional_loop(const struct p2p *p2p, long window, int size,
                                   long iterations)
{
    MPI_Request *sends = p2p->requests + window;
    size_t sent = 0;
    size_t received = 0;

    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        received = p2p_irecv_window(p2p, window, size, received, p2p->requests);
        sent = p2p_isend_window(p2p, window, size, sent, sends);
        p2p_wait(p2p, window, sends);
        p2p_wait(p2p, window, p2p->requests);
        p2p->stamps_ns[i + 1] = clock_now_ns();
    }
}

const p2p_loop P2P_LOOPS[] = {
    [P2P_LATENCY] = p2p_ping_loop,
    [P2P_LATENCY_POSTED] = p2p_posted_loop,
    [P2P_STREAM] = p2p_stream_loop,
    [P2P_BIDIRECTIONAL] = p2p_bidirectional_loop,
};
