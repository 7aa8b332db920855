/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <errno.h>
#include <string.h>

static bool link_fits(const struct link *link, const char *what, long wanted,
                      long available, const char *remedy, struct fault *fault)
{
    return wanted <= available ||
           fault_set(fault, CHECK_USAGE,
                     "ibv_query_device: %s: %ld %s wanted, the device has %ld: "
                     "%s (errno %d): %s",
                     link->port.name, wanted, what, available, strerror(EINVAL),
                     EINVAL, remedy);
}

/* Completions that may wait at once: no more than there are requests. */
static long link_completions(const struct link_plan *plan)
{
    return (long)plan->connections * (plan->send_depth + plan->receive_depth);
}

static bool link_fits_device(const struct link *link, struct fault *fault)
{
    const struct ibv_device_attr *device = &link->port.device;
    const struct link_plan *plan = &link->plan;
    int depth = plan->send_depth > plan->receive_depth ? plan->send_depth
                                                       : plan->receive_depth;

    return link_fits(link, "QPs (max_qp)", plan->connections, device->max_qp,
                     "ask for fewer connections", fault) &&
           link_fits(link, "work requests of a QP (max_qp_wr)", depth,
                     device->max_qp_wr, "choose a smaller --window", fault) &&
           link_fits(link, "completions (max_cqe)", link_completions(plan),
                     device->max_cqe,
                     "choose a smaller window or depth, or fewer connections",
                     fault);
}

struct ibv_qp_init_attr link_qp_attributes(const struct link *link)
{
    return (struct ibv_qp_init_attr){
        .send_cq = link->cq,
        .recv_cq = link->cq,
        .cap = {.max_send_wr = (uint32_t)link->plan.send_depth,
                .max_recv_wr = (uint32_t)link->plan.receive_depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = (uint32_t)link->settings->inline_bytes},
        .qp_type = IBV_QPT_RC,
    };
}

static bool link_create_qp(struct link *link, int index, struct fault *fault)
{
    long inline_bytes = link->settings->inline_bytes;
    struct ibv_qp_init_attr attributes = link_qp_attributes(link);

    link->qps[index] = ibv_create_qp(link->port.pd, &attributes);
    if (link->qps[index] != NULL) {
        return true;
    }
    if (errno == EINVAL && inline_bytes > 0) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_create_qp: %s: --inline %ld: %s (errno %d): "
                         "choose a smaller --inline",
                         link->port.name, inline_bytes, strerror(errno), errno);
    }
    return fault_set(fault, CHECK_USAGE,
                     "ibv_create_qp: %s: QP %d of %d: %s (errno %d): ask for "
                     "fewer connections, a smaller --window, or raise the "
                     "limit of locked memory (ulimit -l)",
                     link->port.name, index + 1, link->plan.connections,
                     strerror(errno), errno);
}

static bool link_start_qp(const struct link *link, int index,
                          struct fault *fault)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)link->port.ib_port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    int status = ibv_modify_qp(link->qps[index], &attributes,
                               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   IBV_QP_ACCESS_FLAGS);

    return status == 0 ||
           fault_set(fault, CHECK_FAILED,
                     "ibv_modify_qp: %s: to INIT: %s (errno %d): see the "
                     "driver's messages in dmesg",
                     link->port.name, strerror(status), status);
}

bool link_create_queues(struct link *link, struct fault *fault)
{
    if (!link_fits_device(link, fault)) {
        return false;
    }
    link->cq = ibv_create_cq(link->port.context,
                             (int)link_completions(&link->plan), NULL, NULL, 0);
    if (link->cq == NULL) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_create_cq: %s: %ld completions: %s (errno %d): "
                         "choose a smaller --window, or raise the limit of "
                         "locked memory (ulimit -l)",
                         link->port.name, link_completions(&link->plan),
                         strerror(errno), errno);
    }
    link->qps = check_allocate(
        (size_t)link->plan.connections * sizeof(struct ibv_qp *), "QPs");
    if (link->settings->rdma_cm) {
        return cm_listen(link, fault);
    }
    for (int i = 0; i < link->plan.connections; i++) {
        if (!link_create_qp(link, i, fault) || !link_start_qp(link, i, fault)) {
            return false;
        }
    }
    return true;
}
