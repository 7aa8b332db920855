/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include "payload.h"

#include <errno.h>
#include <string.h>

enum { LINK_MEET_TAG = 2 };

void link_prepare(const struct link *link, struct link_request *request,
                  enum ibv_wr_opcode opcode, size_t from, size_t to,
                  size_t size_bytes)
{
    bool is_read = opcode == IBV_WR_RDMA_READ;
    bool is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;

    *request = (struct link_request){
        .sge = {.addr = (uintptr_t)link->memory + (is_read ? to : from),
                .length = (uint32_t)size_bytes,
                .lkey = link->mr->lkey},
        .wr = {.opcode = opcode,
               .num_sge = size_bytes > 0 ? 1 : 0,
               .send_flags = is_read ? (unsigned)IBV_SEND_SIGNALED
                                     : link_send_flags(link, size_bytes, true)},
    };
    request->wr.sg_list = &request->sge;
    if (!is_send) {
        request->wr.wr.rdma.remote_addr =
            link->remote_address + (is_read ? from : to);
        request->wr.wr.rdma.rkey = link->remote_key;
    }
}

void link_post_failed(const struct link *link, const char *call, int status)
{
    check_abort(CHECK_FAILED,
                "%s: %s to %s of rank %d: %s (errno %d): see the driver's "
                "messages in dmesg",
                call, link->port.name, link->peer_name, link->peer,
                strerror(status), status);
}

static const char *link_remedy(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "the other side does not answer: look at its process, at both "
               "ports and at the path";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the other side has posted no receive: look at its process";
    case IBV_WC_WR_FLUSH_ERR:
        return "an earlier request failed or the other side closed the "
               "connection: look for its error";
    case IBV_WC_REM_ACCESS_ERR:
        return "the other side's memory is no longer registered: look for its "
               "error";
    default:
        return "see the driver's messages in dmesg and the port's counters";
    }
}

void link_poll_failed(const struct link *link, int status,
                      const struct ibv_wc *wc)
{
    if (status < 0) {
        link_post_failed(link, "ibv_poll_cq", -status);
    }
    check_abort(CHECK_FAILED,
                "ibv_poll_cq: %s to %s of rank %d: %s (status %d): %s (errno "
                "%d): %s",
                link->port.name, link->peer_name, link->peer,
                ibv_wc_status_str(wc->status), (int)wc->status, strerror(EIO),
                EIO, link_remedy(wc->status));
}

void link_timed_out(const struct link *link, const char *awaited)
{
    struct ibv_port_attr port = {.state = link->port.attributes.state};
    struct ibv_wc wc;
    int count = ibv_poll_cq(link->cq, 1, &wc);

    if (count > 0 && wc.status != IBV_WC_SUCCESS) {
        link_poll_failed(link, count, &wc); /* the cause of the wait */
    }
    (void)ibv_query_port(link->port.context, (uint8_t)link->port.ib_port,
                         &port);
    check_abort(CHECK_FAILED,
                "ibv_poll_cq: %s (now %s) to %s of rank %d: waited %ld s for "
                "%s: %s (errno %d): look at that rank and at both ports, or "
                "give more time by --timeout",
                link->port.name, ibv_port_state_str(port.state),
                link->peer_name, link->peer, link->settings->timeout_s, awaited,
                strerror(ETIMEDOUT), ETIMEDOUT);
}

void link_post_receive(const struct link *link, int connection, size_t offset,
                       size_t size_bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)link->memory + offset,
                          .length = (uint32_t)size_bytes,
                          .lkey = link->mr->lkey};
    struct ibv_recv_wr request = {.wr_id = (uint64_t)connection,
                                  .sg_list = &sge,
                                  .num_sge = size_bytes > 0 ? 1 : 0};
    struct ibv_recv_wr *bad = NULL;
    int status = ibv_post_recv(link->qps[connection], &request, &bad);

    if (status != 0) {
        link_post_failed(link, "ibv_post_recv", status);
    }
}

void link_meet(const struct link *link)
{
    char own = 0;
    char other = 0;

    watch_start(link->settings->timeout_s);
    CHECK_MPI(MPI_Sendrecv(&own, 1, MPI_CHAR, link->peer, LINK_MEET_TAG, &other,
                           1, MPI_CHAR, link->peer, LINK_MEET_TAG,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "meeting rank %d", link->peer);
    watch_stop();
}

bool link_validate(const struct link *link, enum ibv_wr_opcode opcode,
                   size_t from, size_t to, size_t size_bytes)
{
    struct link_request transfer;
    struct ibv_wc wc;
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "validation");
    payload_fill(link->memory + from, size_bytes,
                 payload_key(rank, (long)size_bytes));
    memset(link->memory + to, 0, size_bytes);
    link_meet(link);
    link_prepare(link, &transfer, opcode, from, to, size_bytes);
    link_post(link, 0, &transfer);
    link_await(link, &wc);
    /* A write that is complete here has been acknowledged there. */
    link_meet(link);
    return payload_check(link->memory + to, size_bytes,
                         payload_key(link->peer, (long)size_bytes), link->peer);
}
