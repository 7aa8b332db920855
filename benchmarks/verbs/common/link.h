/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_LINK_H
#define SEATRIAL_LINK_H

#include "cm.h"
#include "port.h"
#include "report.h"
#include "verbs_settings.h"
#include "watch.h"

#include <infiniband/verbs.h>

enum {
    LINK_MAX_READS = 16, /* reads and atomics on the way */
    LINK_RETRIES = 7,
};

/** The wanted queues of a link. */
struct link_plan {
    int connections;
    int send_depth;    /* work requests of a connection */
    int receive_depth; /* the same; 0: it receives nothing */
};

/**
 * One end of reliable connections (RC) to a peer by one port. Both ends share
 * the plan and the layout of their memory: what is at an offset here is at the
 * same offset there.
 */
struct link {
    struct port port;
    struct link_plan plan;
    const struct verbs_settings *settings;
    int peer; /* rank in MPI_COMM_WORLD */
    char peer_name[PORT_FULL_SIZE];
    int mtu_bytes;
    char *memory;
    struct ibv_mr *mr;
    uint64_t remote_address;
    uint32_t remote_key;
    struct ibv_cq *cq;
    struct ibv_qp **qps; /* plan.connections */
    struct cm cm;        /* of --rdma-cm */
};

/**
 * Open a port and create queues; then connect them with those of the peer.
 * False, with the reason in fault. After a link_create the ranks must agree
 * (fault_agree) before all of them call link_connect. link_free takes all.
 */
bool link_create(struct link *link, const struct verbs_settings *settings,
                 const struct port_name *name, const struct link_plan *plan,
                 void *memory, size_t size_bytes, int peer,
                 struct fault *fault);
bool link_connect(struct link *link, struct fault *fault);
void link_free(struct link *link);

/** Create the queues of an open port. Part of link_create. */
bool link_create_queues(struct link *link, struct fault *fault);

/** What a queue pair of the link is made of. */
struct ibv_qp_init_attr link_qp_attributes(const struct link *link);

/** The largest message that is posted inline. */
static inline unsigned link_send_flags(const struct link *link,
                                       size_t size_bytes, bool signaled)
{
    bool is_inline = size_bytes <= (size_t)link->settings->inline_bytes;

    return (is_inline ? (unsigned)IBV_SEND_INLINE : 0U) |
           (signaled ? (unsigned)IBV_SEND_SIGNALED : 0U);
}

/** A work request with its only piece of memory. Not to be copied. */
struct link_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/**
 * Prepare a request: size_bytes from the offset `from` of the one memory to the
 * offset `to` of the other one; a read goes the other way, from the peer's
 * `from` to the own `to`. A message is inline if it is small enough.
 */
void link_prepare(const struct link *link, struct link_request *request,
                  enum ibv_wr_opcode opcode, size_t from, size_t to,
                  size_t size_bytes);

/** Abort: a call failed with this status on a connection. */
_Noreturn void link_post_failed(const struct link *link, const char *call,
                                int status);
_Noreturn void link_poll_failed(const struct link *link, int status,
                                const struct ibv_wc *wc);
_Noreturn void link_timed_out(const struct link *link, const char *awaited);

/** Post a prepared request. */
static inline void link_post(const struct link *link, int connection,
                             struct link_request *request)
{
    struct ibv_send_wr *bad = NULL;
    int status = ibv_post_send(link->qps[connection], &request->wr, &bad);

    if (status != 0) {
        link_post_failed(link, "ibv_post_send", status);
    }
}

/** Post a receive into the memory at an offset; its completion has this id. */
void link_post_receive(const struct link *link, int connection, size_t offset,
                       size_t size_bytes);

/** Take a completion, if there is one; it is a good one. */
static inline bool link_poll(const struct link *link, struct ibv_wc *wc)
{
    int count = ibv_poll_cq(link->cq, 1, wc);

    if (count != 0 && (count < 0 || wc->status != IBV_WC_SUCCESS)) {
        link_poll_failed(link, count, wc);
    }
    return count != 0;
}

/** Wait for the next completion. */
static inline void link_await(const struct link *link, struct ibv_wc *wc)
{
    struct watch_spin spin = {0};

    while (!link_poll(link, wc)) {
        if (!watch_spin(&spin, link->settings->timeout_s)) {
            link_timed_out(link, "a completion");
        }
    }
}

/** Wait until the peer has written this value to a byte. */
static inline void link_await_byte(const struct link *link,
                                   const unsigned char *byte,
                                   unsigned char value)
{
    struct watch_spin spin = {0};

    while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != value) {
        if (!watch_spin(&spin, link->settings->timeout_s)) {
            link_timed_out(link, "a message");
        }
    }
}

/** Meet the peer by MPI: what either did before is over for both. */
void link_meet(const struct link *link);

/**
 * Verify contents both ways, of a write or a read, from the offset `from` to
 * the offset `to` of the peer's memory. Both ends must call; each returns
 * whether what it received is right. Takes connection 0 and a receive.
 */
bool link_validate(const struct link *link, enum ibv_wr_opcode opcode,
                   size_t from, size_t to, size_t size_bytes);

/** Add device, peer_device, addressing, mtu_bytes and inline_bytes. */
void link_report(const struct link *link, struct report_row *row);

#endif
