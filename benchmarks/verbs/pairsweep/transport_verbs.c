/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of pairsweep_verbs: RDMA writes over a reliable connection (RC), made
 * for each pair and destroyed after it. */
#include "check.h"
#include "clock.h"
#include "link.h"
#include "p2p_loops.h"
#include "payload.h"
#include "rails.h"
#include "transport.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERBS_PAGE = 4096,
    VERBS_RECEIVES = 2,
    VERBS_MEET_TAG = 31,
    VERBS_TAGS = 255, /* values of the last byte; 0 is none */
};

/** The connection of a pair, and its memory: what is sent, then received. */
struct verbs_pair {
    struct verbs_settings settings;
    struct link link;
    char *memory;
    size_t half_bytes;
    long messages; /* of ping-pong, on this connection */
};

static size_t half_bytes(const struct settings *settings)
{
    size_t size_bytes = (size_t)settings->common.sizes.max;

    return (size_bytes + VERBS_PAGE - 1) / VERBS_PAGE * VERBS_PAGE;
}

double transport_size_bytes(const struct settings *settings)
{
    return 2.0 * (double)half_bytes(settings);
}

static unsigned char next_tag(struct verbs_pair *pair)
{
    return (unsigned char)(pair->messages++ % VERBS_TAGS + 1);
}

/* Ping-pong of RDMA writes; the last byte of a message tells that it came. */
static void ping_loop(const struct p2p *p2p, long window, int size,
                      long iterations)
{
    struct verbs_pair *pair = p2p->transport;
    const struct link *link = &pair->link;
    size_t last = (size_t)size - 1;
    unsigned char *sent = (unsigned char *)pair->memory + last;
    const unsigned char *received = sent + pair->half_bytes;
    struct link_request request;
    struct ibv_wc wc;

    (void)window;
    link_prepare(link, &request, IBV_WR_RDMA_WRITE, 0, pair->half_bytes,
                 (size_t)size);
    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        unsigned char tag = next_tag(pair);

        *sent = tag;
        if (!p2p->is_first) {
            link_await_byte(link, received, tag);
        }
        link_post(link, 0, &request);
        if (p2p->is_first) {
            link_await_byte(link, received, tag);
        }
        p2p->stamps_ns[i + 1] = clock_now_ns();
        link_await(link, &wc);
    }
}

/* Wait for one completion of each kind, in any order. */
static void await_both(const struct link *link)
{
    bool has_sent = false;
    bool has_received = false;

    while (!has_sent || !has_received) {
        struct ibv_wc wc;

        link_await(link, &wc);
        if ((wc.opcode & IBV_WC_RECV) != 0) {
            has_received = true;
            link_post_receive(link, 0, 0, 0);
        } else {
            has_sent = true;
        }
    }
}

/* A window of RDMA writes, an empty message after it, and an empty reply. */
static void stream_loop(const struct p2p *p2p, long window, int size,
                        long iterations)
{
    struct verbs_pair *pair = p2p->transport;
    const struct link *link = &pair->link;
    struct link_request request;
    struct link_request empty;
    struct ibv_wc wc;

    link_prepare(link, &request, IBV_WR_RDMA_WRITE, 0, pair->half_bytes,
                 (size_t)size);
    request.wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    link_prepare(link, &empty, IBV_WR_SEND, 0, 0, 0);
    p2p->stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < iterations; i++) {
        if (p2p->is_first) {
            for (long w = 0; w < window; w++) {
                link_post(link, 0, &request);
            }
            link_post(link, 0, &empty);
            await_both(link);
        } else {
            link_await(link, &wc); /* all of the window is here */
            link_post_receive(link, 0, 0, 0);
            link_post(link, 0, &empty);
            link_await(link, &wc);
        }
        p2p->stamps_ns[i + 1] = clock_now_ns();
    }
}

/* Meet the other end by MPI: what either did before is over for both. */
static void meet(const struct p2p *p2p)
{
    CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_CHAR, p2p->peer, VERBS_MEET_TAG, NULL,
                           0, MPI_CHAR, p2p->peer, VERBS_MEET_TAG, p2p->comm,
                           MPI_STATUS_IGNORE),
              "rank %d", p2p->peer);
}

static bool validate(const struct p2p *p2p, int size)
{
    struct verbs_pair *pair = p2p->transport;
    size_t size_bytes = (size_t)size;
    struct link_request request;
    struct ibv_wc wc;
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(p2p->comm, &rank), "validation");
    payload_fill(pair->memory, size_bytes, payload_key(rank, (long)size));
    memset(pair->memory + pair->half_bytes, 0, size_bytes);
    meet(p2p);
    link_prepare(&pair->link, &request, IBV_WR_RDMA_WRITE, 0, pair->half_bytes,
                 size_bytes);
    link_post(&pair->link, 0, &request);
    link_await(&pair->link, &wc);
    meet(p2p);
    return payload_check(pair->memory + pair->half_bytes, size_bytes,
                         payload_key(p2p->peer, (long)size), p2p->peer);
}

void transport_create(struct pair_bench *bench)
{
    static const p2p_loop LOOPS[] = {
        [P2P_LATENCY] = ping_loop,
        [P2P_STREAM] = stream_loop,
    };
    const struct settings *settings = bench->settings;
    struct verbs_pair *pair = check_allocate(sizeof(*pair), "connection");

    pair->settings =
        (struct verbs_settings){.gid_index = settings->gid_index,
                                .rdma_cm = settings->rdma_cm,
                                .timeout_s = settings->pair_limit_s};
    pair->half_bytes = half_bytes(settings);
    pair->memory = check_allocate(2 * pair->half_bytes, "messages");
    bench->p2p.loops = LOOPS;
    bench->p2p.validate = validate;
    bench->p2p.transport = pair;
    check_before_abort(watchdog_tell_failed);
}

void transport_free(struct pair_bench *bench)
{
    struct verbs_pair *pair = bench->p2p.transport;

    free(pair->memory);
    free(pair);
}

/* The rank in MPI_COMM_WORLD of the other end. */
static int peer_in_world(const struct p2p *p2p)
{
    MPI_Group own;
    MPI_Group world;
    int peer = 0;

    CHECK_MPI(MPI_Comm_group(p2p->comm, &own), "ranks of a pass");
    CHECK_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world), "all ranks");
    CHECK_MPI(MPI_Group_translate_ranks(own, 1, &p2p->peer, world, &peer),
              "rank %d", p2p->peer);
    CHECK_MPI(MPI_Group_free(&own), "ranks of a pass");
    CHECK_MPI(MPI_Group_free(&world), "all ranks");
    return peer;
}

void transport_connect(struct pair_bench *bench, int rail)
{
    struct verbs_pair *pair = bench->p2p.transport;
    const struct settings *settings = bench->settings;
    const struct link_plan plan = {.connections = 1,
                                   .send_depth = (int)settings->window + 1,
                                   .receive_depth = VERBS_RECEIVES};
    char room[RAILS_NAME_SIZE];
    char error[OPTIONS_ERROR_SIZE];
    struct port_name name;
    struct fault fault = {.code = CHECK_PASS};

    pair->messages = 0;
    memset(pair->memory, 0, 2 * pair->half_bytes);
    if (port_parse(rails_name(settings->rails, rail, room), 1, &name, error) ==
        0) {
        check_abort(CHECK_USAGE, "--rails: %s", error);
    }
    if (!link_create(&pair->link, &pair->settings, &name, &plan, pair->memory,
                     2 * pair->half_bytes, peer_in_world(&bench->p2p),
                     &fault) ||
        !link_connect(&pair->link, &fault)) {
        /* Of this pair, whatever its cause: others may work. */
        check_abort(CHECK_FAILED, "%s", fault.text);
    }
    for (int i = 0; i < VERBS_RECEIVES; i++) {
        link_post_receive(&pair->link, 0, 0, 0);
    }
    meet(&bench->p2p);
}

void transport_disconnect(struct pair_bench *bench)
{
    struct verbs_pair *pair = bench->p2p.transport;

    link_free(&pair->link);
}
