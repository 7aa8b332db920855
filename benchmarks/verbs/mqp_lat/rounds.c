/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"

#include "payload.h"

#include <string.h>

/* Post a receive into the slot of its connection. */
static void rounds_post_receive(const struct rounds *rounds, int connection)
{
    link_post_receive(rounds->link, connection,
                      rounds->receive + (size_t)connection * rounds->stride,
                      rounds->stride);
}

void rounds_post_receives(const struct rounds *rounds, int connections)
{
    for (int k = 0; k < connections; k++) {
        for (int i = 0; i < rounds->link->plan.receive_depth; i++) {
            rounds_post_receive(rounds, k);
        }
    }
}

void rounds_prepare(const struct rounds *rounds)
{
    for (int k = 0; k < rounds->connections; k++) {
        size_t slot = (size_t)k * rounds->stride;

        link_prepare(rounds->link, &rounds->requests[k],
                     rounds->mode == ROUNDS_SEND ? IBV_WR_SEND
                                                 : IBV_WR_RDMA_WRITE,
                     slot, rounds->receive + slot, rounds->size_bytes);
        rounds->requests[k].wr.wr_id = (uint64_t)k;
    }
}

static unsigned char *rounds_last_byte(const struct rounds *rounds,
                                       size_t offset, int connection)
{
    return (unsigned char *)rounds->link->memory + offset +
           (size_t)connection * rounds->stride + rounds->size_bytes - 1;
}

/* Values of the last byte: each differs from the one before, and from 0. */
static unsigned char rounds_tag(long i)
{
    return (unsigned char)(i % 255 + 1);
}

/* Mark a message with its round and post it. */
static void rounds_send(const struct rounds *rounds, int connection, long round)
{
    *rounds_last_byte(rounds, 0, connection) = rounds_tag(round);
    link_post(rounds->link, connection, &rounds->requests[connection]);
}

/* Wait for completions of own messages. */
static void rounds_drain(const struct rounds *rounds, long count)
{
    struct ibv_wc wc;

    for (; count > 0; count--) {
        link_await(rounds->link, &wc);
    }
}

static void rounds_await_byte(const struct rounds *rounds, int connection,
                              long round)
{
    link_await_byte(rounds->link,
                    rounds_last_byte(rounds, rounds->receive, connection),
                    rounds_tag(round));
}

static void rounds_write(const struct rounds *rounds, long round,
                         int64_t *stamps_ns)
{
    int count = rounds->connections;

    stamps_ns[0] = clock_now_ns();
    if (rounds->is_first) {
        for (int k = 0; k < count; k++) {
            rounds_send(rounds, k, round);
        }
        for (int k = 0; k < count; k++) {
            rounds_await_byte(rounds, k, round);
        }
    } else {
        for (int k = 0; k < count; k++) {
            rounds_await_byte(rounds, k, round);
            rounds_send(rounds, k, round);
        }
    }
    stamps_ns[1] = clock_now_ns();
    rounds_drain(rounds, count);
}

/* Take completions until so many messages came. Return the completions of own
 * messages among them. */
static long rounds_receive(const struct rounds *rounds, long messages)
{
    long sent = 0;
    struct ibv_wc wc;

    while (messages > 0) {
        link_await(rounds->link, &wc);
        if ((wc.opcode & IBV_WC_RECV) == 0) {
            sent++;
            continue;
        }
        messages--;
        rounds_post_receive(rounds, (int)wc.wr_id);
    }
    return sent;
}

static void rounds_send_all(const struct rounds *rounds, long round,
                            int64_t *stamps_ns)
{
    int count = rounds->connections;

    stamps_ns[0] = clock_now_ns();
    for (int k = 0; k < count; k++) {
        rounds_send(rounds, k, round);
    }
    long sent = rounds_receive(rounds, count);
    stamps_ns[1] = clock_now_ns();
    rounds_drain(rounds, count - sent);
}

/* Answer all messages of n rounds. Those of a round may come before the last
 * answers of the round before are complete here. */
static void rounds_answer(const struct rounds *rounds, long n)
{
    long received = n * rounds->connections;
    long sent = received;
    struct ibv_wc wc;

    while (received > 0 || sent > 0) {
        link_await(rounds->link, &wc);
        if ((wc.opcode & IBV_WC_RECV) == 0) {
            sent--;
            continue;
        }
        received--;
        rounds_post_receive(rounds, (int)wc.wr_id);
        link_post(rounds->link, (int)wc.wr_id, &rounds->requests[wc.wr_id]);
    }
}

void rounds_latency(const struct rounds *rounds, long n, int64_t *stamps_ns)
{
    if (rounds->mode == ROUNDS_SEND && !rounds->is_first) {
        rounds_answer(rounds, n);
        return;
    }
    for (long i = 0; i < n; i++) {
        if (rounds->mode == ROUNDS_SEND) {
            rounds_send_all(rounds, i, &stamps_ns[2 * i]);
        } else {
            rounds_write(rounds, i, &stamps_ns[2 * i]);
        }
    }
}

/* Take one completion, if there is one; return the messages that ended. */
static long rounds_poll(const struct rounds *rounds)
{
    struct ibv_wc wc;

    if (!link_poll(rounds->link, &wc)) {
        return 0;
    }
    if ((wc.opcode & IBV_WC_RECV) != 0) {
        rounds_post_receive(rounds, (int)wc.wr_id);
        return 0;
    }
    rounds->outstanding[wc.wr_id]--;
    return 1;
}

/* Both ends have ended: until then the peer needs receives from here. */
static void rounds_part(const struct rounds *rounds)
{
    MPI_Request request;
    int is_over = 0;

    watch_start(rounds->link->settings->timeout_s);
    CHECK_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request), "end of the throughput");
    while (!is_over) {
        (void)rounds_poll(rounds);
        CHECK_MPI(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE),
                  "end of the throughput");
    }
    watch_stop();
    struct ibv_wc wc;
    while (link_poll(rounds->link, &wc)) {
        rounds_post_receive(rounds, (int)wc.wr_id);
    }
}

/* Wait until fewer than `most` messages of a connection are on the way. Return
 * the messages of all that ended. */
static long rounds_await_fewer(const struct rounds *rounds, int connection,
                               int most)
{
    struct watch_spin spin = {0};
    long ended = 0;

    while (rounds->outstanding[connection] >= most) {
        long more = rounds_poll(rounds);

        ended += more;
        if (more > 0) {
            spin = (struct watch_spin){0};
        } else if (!watch_spin(&spin, rounds->link->settings->timeout_s)) {
            link_timed_out(rounds->link, "a completion");
        }
    }
    return ended;
}

long rounds_throughput(const struct rounds *rounds, double time_us,
                       double *elapsed_us)
{
    int64_t start_ns = clock_now_ns();
    int64_t now_ns = start_ns;
    long arrived = 0;

    memset(rounds->outstanding, 0,
           (size_t)rounds->connections * sizeof(*rounds->outstanding));
    for (int k = 0; clock_between_us(start_ns, now_ns) < time_us;
         k = (k + 1) % rounds->connections) {
        arrived += rounds_await_fewer(rounds, k, rounds->depth);
        link_post(rounds->link, k, &rounds->requests[k]);
        rounds->outstanding[k]++;
        arrived += rounds_poll(rounds);
        now_ns = clock_now_ns();
    }
    for (int k = 0; k < rounds->connections; k++) {
        arrived += rounds_await_fewer(rounds, k, 1);
    }
    *elapsed_us = clock_between_us(start_ns, clock_now_ns());
    rounds_part(rounds);
    return arrived;
}

bool rounds_validate(const struct rounds *rounds)
{
    char *memory = rounds->link->memory;
    size_t size = rounds->size_bytes;
    long received = rounds->mode == ROUNDS_SEND ? rounds->connections : 0;
    bool valid = true;
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "validation");
    for (int k = 0; k < rounds->connections; k++) {
        size_t slot = (size_t)k * rounds->stride;

        payload_fill(memory + slot, size, payload_key(rank, k));
        memset(memory + rounds->receive + slot, 0, size);
    }
    link_meet(rounds->link);
    for (int k = 0; k < rounds->connections; k++) {
        link_post(rounds->link, k, &rounds->requests[k]);
    }
    long sent = rounds_receive(rounds, received);
    rounds_drain(rounds, rounds->connections - sent);
    link_meet(rounds->link);
    for (int k = 0; k < rounds->connections && valid; k++) {
        size_t slot = (size_t)k * rounds->stride;

        valid = payload_check(memory + rounds->receive + slot, size,
                              payload_key(rounds->link->peer, k),
                              rounds->link->peer);
    }
    return valid;
}
