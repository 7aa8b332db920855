/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINK_TAG = 1,
    LINK_RNR_TIMER = 12,   /* 0.64 ms */
    LINK_ACK_TIMEOUT = 18, /* 4.096 us x 2^18 = 1.07 s, as in UCX */
    LINK_HOP_LIMIT = 64,
};

/** What an end must know of the other one. */
struct link_card {
    char name[PORT_FULL_SIZE];
    uint64_t address;
    uint32_t key;
    uint32_t lid;
    int link_layer;
    int mtu_bytes;
    int reads; /* that it answers at once */
    int uses_gid;
    int gid_kind;
    union ibv_gid gid;
    struct sockaddr_storage address_ip; /* of --rdma-cm */
};

static bool link_choose_mtu(struct link *link, struct fault *fault)
{
    int active = port_mtu_bytes(link->port.attributes.active_mtu);
    long wanted = link->settings->mtu;

    if (wanted > active) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_query_port: %s: --mtu %ld: %s (errno %d): the "
                         "active MTU is %d: choose that at most, or raise the "
                         "MTU of interface and switch",
                         link->port.name, wanted, strerror(EINVAL), EINVAL,
                         active);
    }
    link->mtu_bytes = wanted > 0 ? (int)wanted : active;
    return true;
}

/* iWARP connects in its own way, which only rdma_cm knows. */
static bool link_may_connect(const struct link *link, struct fault *fault)
{
    return link->settings->rdma_cm ||
           link->port.context->device->transport_type != IBV_TRANSPORT_IWARP ||
           fault_set(fault, CHECK_USAGE,
                     "ibv_query_device: %s: %s (errno %d): iWARP connects by "
                     "rdma_cm only: take --rdma-cm (mr_cost: no --validate)",
                     link->port.name, strerror(EPROTONOSUPPORT),
                     EPROTONOSUPPORT);
}

bool link_create(struct link *link, const struct verbs_settings *settings,
                 const struct port_name *name, const struct link_plan *plan,
                 void *memory, size_t size_bytes, int peer, struct fault *fault)
{
    *link = (struct link){
        .plan = *plan, .settings = settings, .peer = peer, .memory = memory};
    if (settings->doorbell && !port_forbid_blueflame(name, fault)) {
        return false;
    }
    if (!port_open(name, settings->gid_index, settings->rdma_cm, &link->port,
                   fault) ||
        !link_may_connect(link, fault) || !link_choose_mtu(link, fault)) {
        return false;
    }
    link->mr = memory_register(&link->port, memory, size_bytes, fault);
    return link->mr != NULL && link_create_queues(link, fault);
}

void link_free(struct link *link)
{
    bool is_own = link->cm.channel == NULL;

    cm_close(link);
    for (int i = 0; is_own && link->qps != NULL && i < link->plan.connections;
         i++) {
        if (link->qps[i] != NULL) {
            (void)ibv_destroy_qp(link->qps[i]);
        }
    }
    free(link->qps);
    if (link->cq != NULL) {
        (void)ibv_destroy_cq(link->cq);
    }
    if (link->mr != NULL) {
        (void)ibv_dereg_mr(link->mr);
    }
    port_close(&link->port);
}

static void link_exchange(const struct link *link, const void *own, void *other,
                          size_t size_bytes)
{
    CHECK_MPI(MPI_Sendrecv(own, (int)size_bytes, MPI_BYTE, link->peer, LINK_TAG,
                           other, (int)size_bytes, MPI_BYTE, link->peer,
                           LINK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "addresses, rank %d", link->peer);
}

static struct link_card link_own_card(const struct link *link)
{
    struct link_card card = {
        .address = (uintptr_t)link->memory,
        .key = link->mr->rkey,
        .lid = link->port.attributes.lid,
        .link_layer = link->port.attributes.link_layer,
        .mtu_bytes = link->mtu_bytes,
        .reads = link->port.device.max_qp_rd_atom,
        .uses_gid = link->port.uses_gid,
        .gid_kind = (int)link->port.gid_kind,
        .gid = link->port.gid,
        .address_ip = link->cm.address,
    };

    memcpy(card.name, link->port.name, sizeof(card.name));
    return card;
}

/* Ports of two kinds cannot talk; GIDs of two kinds are routed apart. */
static bool link_matches(const struct link *link, const struct link_card *peer,
                         struct fault *fault)
{
    if (peer->link_layer != link->port.attributes.link_layer) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_modify_qp: %s and %s of rank %d: %s (errno %d): "
                         "one is InfiniBand, one Ethernet: choose --device and "
                         "--peer-device of one network",
                         link->port.name, peer->name, link->peer,
                         strerror(EPROTOTYPE), EPROTOTYPE);
    }
    if (peer->gid_kind != (int)link->port.gid_kind) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_modify_qp: %s has a GID of %s, %s of rank %d one "
                         "of %s: %s (errno %d): choose --gid-index",
                         link->port.name, gid_name(link->port.gid_kind),
                         peer->name, link->peer,
                         gid_name((enum gid_kind)peer->gid_kind),
                         strerror(EPROTOTYPE), EPROTOTYPE);
    }
    return true;
}

static int link_least(int a, int b)
{
    return a < b ? a : b;
}

/* Ready to receive, from this QP of the peer. */
static int link_to_rtr(const struct link *link, int index,
                       const uint32_t *numbers, const struct link_card *peer)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = port_mtu_from_bytes(link->mtu_bytes),
        .dest_qp_num = numbers[index],
        .rq_psn = numbers[0] & 0xffffff,
        .max_dest_rd_atomic = (uint8_t)link_least(
            link->port.device.max_qp_rd_atom, LINK_MAX_READS),
        .min_rnr_timer = LINK_RNR_TIMER,
        .ah_attr = {.dlid = (uint16_t)peer->lid,
                    .port_num = (uint8_t)link->port.ib_port},
    };

    if (link->port.uses_gid) {
        attributes.ah_attr.is_global = 1;
        attributes.ah_attr.grh.dgid = peer->gid;
        attributes.ah_attr.grh.sgid_index = (uint8_t)link->port.gid_index;
        attributes.ah_attr.grh.hop_limit = LINK_HOP_LIMIT;
    }
    return ibv_modify_qp(link->qps[index], &attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* Ready to send. */
static int link_to_rts(const struct link *link, int index,
                       const struct link_card *peer)
{
    int reads = link_least(link->port.device.max_qp_init_rd_atom, peer->reads);
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = link->qps[0]->qp_num & 0xffffff,
        .timeout = LINK_ACK_TIMEOUT,
        .retry_cnt = LINK_RETRIES,
        .rnr_retry = LINK_RETRIES,
        .max_rd_atomic = (uint8_t)link_least(reads, LINK_MAX_READS),
    };

    return ibv_modify_qp(link->qps[index], &attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool link_start_qps(const struct link *link, const uint32_t *numbers,
                           const struct link_card *peer, struct fault *fault)
{
    for (int i = 0; i < link->plan.connections; i++) {
        int status = link_to_rtr(link, i, numbers, peer);
        const char *state = "RTR";

        if (status == 0) {
            status = link_to_rts(link, i, peer);
            state = "RTS";
        }
        if (status != 0) {
            return fault_set(fault, CHECK_FAILED,
                             "ibv_modify_qp: %s: QP %d to %s, peer %s of rank "
                             "%d: %s (errno %d): look for a route between the "
                             "two GIDs (ip neigh, ping)",
                             link->port.name, i, state, peer->name, link->peer,
                             strerror(status), status);
        }
    }
    return true;
}

/* Connect with the queue pairs whose numbers the peer tells. */
static bool link_connect_qps(const struct link *link,
                             const struct link_card *peer, struct fault *fault)
{
    size_t size_bytes = (size_t)link->plan.connections * sizeof(uint32_t);
    uint32_t *own_numbers = check_allocate(size_bytes, "QP numbers");
    uint32_t *numbers = check_allocate(size_bytes, "QP numbers");

    for (int i = 0; i < link->plan.connections; i++) {
        own_numbers[i] = link->qps[i]->qp_num;
    }
    link_exchange(link, own_numbers, numbers, size_bytes);
    bool is_connected = link_start_qps(link, numbers, peer, fault);
    free(own_numbers);
    free(numbers);
    return is_connected;
}

bool link_connect(struct link *link, struct fault *fault)
{
    struct link_card own = link_own_card(link);
    struct link_card peer;

    link_exchange(link, &own, &peer, sizeof(own));
    memcpy(link->peer_name, peer.name, sizeof(link->peer_name));
    link->remote_address = peer.address;
    link->remote_key = peer.key;
    link->mtu_bytes = link_least(link->mtu_bytes, peer.mtu_bytes);
    if (!link_matches(link, &peer, fault)) {
        return false;
    }
    if (!link->settings->rdma_cm) {
        return link_connect_qps(link, &peer, fault);
    }
    cm_connect(link, &peer.address_ip);
    return true;
}

void link_report(const struct link *link, struct report_row *row)
{
    report_add(row, output_text("device", NULL, link->port.name));
    report_add(row, output_text("peer_device", NULL, link->peer_name));
    report_add(row,
               output_text("addressing", NULL,
                           link->settings->rdma_cm ? "rdma_cm"
                           : link->port.uses_gid ? gid_name(link->port.gid_kind)
                                                 : "lid"));
    report_add(row,
               link->port.gid_index < 0
                   ? output_text("gid_index", NULL, NULL)
                   : output_integer("gid_index", NULL, link->port.gid_index));
    report_add(row, output_integer("mtu_bytes", NULL, link->mtu_bytes));
    report_add(row, output_integer("inline_bytes", NULL,
                                   link->settings->inline_bytes));
    report_add(row, output_text("doorbell", NULL,
                                link->settings->doorbell ? "only" : "driver"));
}
