/* SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"

#include "link.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

enum { CM_RESOLVE_MS = 5000 };

struct ibv_context *cm_context(struct ibv_device *device)
{
    struct ibv_context **contexts = rdma_get_devices(NULL);
    struct ibv_context *found = NULL;

    if (contexts == NULL) {
        return NULL;
    }
    for (int i = 0; contexts[i] != NULL && found == NULL; i++) {
        if (strcmp(ibv_get_device_name(contexts[i]->device),
                   ibv_get_device_name(device)) == 0) {
            found = contexts[i];
        }
    }
    rdma_free_devices(contexts);
    errno = ENODEV;
    return found;
}

/* Bind to an address, if it is of the port. */
static bool cm_bind(struct link *link, const struct ifaddrs *interface)
{
    struct cm *cm = &link->cm;
    struct sockaddr *address = interface->ifa_addr;

    if (address == NULL || (interface->ifa_flags & IFF_LOOPBACK) != 0 ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
        rdma_create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP) != 0) {
        return false;
    }
    if (rdma_bind_addr(cm->listener, address) == 0 &&
        cm->listener->verbs == link->port.context &&
        cm->listener->port_num == link->port.ib_port) {
        return true;
    }
    (void)rdma_destroy_id(cm->listener);
    cm->listener = NULL;
    return false;
}

bool cm_listen(struct link *link, struct fault *fault)
{
    struct cm *cm = &link->cm;
    struct ifaddrs *interfaces = NULL;

    cm->channel = rdma_create_event_channel();
    if (cm->channel == NULL || getifaddrs(&interfaces) != 0) {
        return fault_set(fault, CHECK_FAILED,
                         "rdma_create_event_channel: %s: %s (errno %d): load "
                         "the module rdma_ucm, or raise the limit of open "
                         "files (ulimit -n)",
                         link->port.name, strerror(errno), errno);
    }
    for (struct ifaddrs *i = interfaces; i != NULL && cm->listener == NULL;
         i = i->ifa_next) {
        (void)cm_bind(link, i);
    }
    freeifaddrs(interfaces);
    if (cm->listener == NULL) {
        return fault_set(fault, CHECK_USAGE,
                         "rdma_bind_addr: %s: no address of this node belongs "
                         "to the port: %s (errno %d): give its network "
                         "interface an IP address",
                         link->port.name, strerror(EADDRNOTAVAIL),
                         EADDRNOTAVAIL);
    }
    const struct sockaddr *own = rdma_get_local_addr(cm->listener);
    memcpy(&cm->address, own,
           own->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                     : sizeof(struct sockaddr_in6));
    cm->ids = check_allocate(
        (size_t)link->plan.connections * sizeof(struct rdma_cm_id *), "QPs");
    return rdma_listen(cm->listener, link->plan.connections) == 0 ||
           fault_set(fault, CHECK_FAILED,
                     "rdma_listen: %s: %s (errno %d): see the driver's "
                     "messages in dmesg",
                     link->port.name, strerror(errno), errno);
}

/* Abort if a call failed. */
static void cm_require(const struct link *link, const char *call, int status)
{
    if (status != 0) {
        check_abort(CHECK_FAILED,
                    "%s: %s to %s of rank %d: %s (errno %d): look for a route "
                    "between the two addresses (ip neigh, ping)",
                    call, link->port.name, link->peer_name, link->peer,
                    strerror(errno), errno);
    }
}

/* Wait for the next event, which must be one of two. */
static struct rdma_cm_event cm_await(const struct link *link,
                                     enum rdma_cm_event_type one,
                                     enum rdma_cm_event_type other)
{
    struct rdma_cm_event *event = NULL;

    cm_require(link, "rdma_get_cm_event",
               rdma_get_cm_event(link->cm.channel, &event));
    struct rdma_cm_event copy = *event;
    (void)rdma_ack_cm_event(event);
    if (copy.event != one && copy.event != other) {
        check_abort(CHECK_FAILED,
                    "rdma_get_cm_event: %s to %s of rank %d: %s (status %d): "
                    "look at that rank, and for a route between the two "
                    "addresses (ip neigh, ping)",
                    link->port.name, link->peer_name, link->peer,
                    rdma_event_str(copy.event), copy.status);
    }
    return copy;
}

static uint8_t cm_least(int a, int b)
{
    return (uint8_t)(a < b ? a : b);
}

static struct rdma_conn_param cm_parameters(const struct link *link)
{
    const struct ibv_device_attr *device = &link->port.device;

    return (struct rdma_conn_param){
        .responder_resources = cm_least(device->max_qp_rd_atom, LINK_MAX_READS),
        .initiator_depth =
            cm_least(device->max_qp_init_rd_atom, LINK_MAX_READS),
        .retry_count = LINK_RETRIES,
        .rnr_retry_count = LINK_RETRIES,
    };
}

/* Give a connection its queue pair. */
static void cm_create_qp(struct link *link, int index, struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attributes = link_qp_attributes(link);

    if (id->verbs != link->port.context) {
        check_abort(CHECK_FAILED,
                    "rdma_resolve_addr: %s to %s of rank %d: the route leaves "
                    "by another adapter: %s (errno %d): give each adapter a "
                    "network of its own",
                    link->port.name, link->peer_name, link->peer,
                    strerror(EHOSTUNREACH), EHOSTUNREACH);
    }
    cm_require(link, "rdma_create_qp",
               rdma_create_qp(id, link->port.pd, &attributes));
    link->cm.ids[index] = id;
    link->qps[index] = id->qp;
}

static void cm_ask(struct link *link, int index,
                   const struct sockaddr_storage *peer)
{
    struct cm *cm = &link->cm;
    struct rdma_conn_param parameters = cm_parameters(link);
    struct sockaddr_storage to = *peer;
    struct rdma_cm_id *id = NULL;

    cm_require(link, "rdma_create_id",
               rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP));
    cm_require(
        link, "rdma_resolve_addr",
        rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, CM_RESOLVE_MS));
    (void)cm_await(link, RDMA_CM_EVENT_ADDR_RESOLVED,
                   RDMA_CM_EVENT_ADDR_RESOLVED);
    cm_require(link, "rdma_resolve_route",
               rdma_resolve_route(id, CM_RESOLVE_MS));
    (void)cm_await(link, RDMA_CM_EVENT_ROUTE_RESOLVED,
                   RDMA_CM_EVENT_ROUTE_RESOLVED);
    cm_create_qp(link, index, id);
    cm_require(link, "rdma_connect", rdma_connect(id, &parameters));
    (void)cm_await(link, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED);
}

/* Accept all connections, in the order in which the peer asks for them. */
static void cm_accept(struct link *link)
{
    int connections = link->plan.connections;

    for (int asked = 0, established = 0; established < connections;) {
        struct rdma_cm_event event = cm_await(
            link, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_ESTABLISHED);
        if (event.event == RDMA_CM_EVENT_ESTABLISHED) {
            established++;
            continue;
        }
        struct rdma_conn_param parameters = cm_parameters(link);

        parameters.initiator_depth = cm_least(
            parameters.initiator_depth, event.param.conn.responder_resources);
        cm_create_qp(link, asked++, event.id);
        cm_require(link, "rdma_accept", rdma_accept(event.id, &parameters));
    }
}

/* iWARP: the side that asked must send first. */
static void cm_send_first(struct link *link)
{
    struct link_request request;
    struct ibv_wc wc;

    link_prepare(link, &request, IBV_WR_RDMA_WRITE, 0, 0, 0);
    for (int i = 0; i < link->plan.connections; i++) {
        link_post(link, i, &request);
        link_await(link, &wc);
    }
}

void cm_connect(struct link *link, const struct sockaddr_storage *peer)
{
    struct ibv_qp_attr attributes;
    struct ibv_qp_init_attr initial;
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "connections");
    if (rank < link->peer) {
        for (int i = 0; i < link->plan.connections; i++) {
            cm_ask(link, i, peer);
        }
        cm_send_first(link);
    } else {
        cm_accept(link);
    }
    if (ibv_query_qp(link->qps[0], &attributes, IBV_QP_PATH_MTU, &initial) ==
            0 &&
        port_mtu_bytes(attributes.path_mtu) > 0) {
        link->mtu_bytes = port_mtu_bytes(attributes.path_mtu);
    }
}

void cm_close(struct link *link)
{
    struct cm *cm = &link->cm;

    for (int i = 0; cm->ids != NULL && i < link->plan.connections; i++) {
        if (cm->ids[i] != NULL) {
            rdma_destroy_qp(cm->ids[i]);
            (void)rdma_destroy_id(cm->ids[i]);
        }
    }
    free(cm->ids);
    if (cm->listener != NULL) {
        (void)rdma_destroy_id(cm->listener);
    }
    if (cm->channel != NULL) {
        rdma_destroy_event_channel(cm->channel);
    }
}
