/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by rdma_cm, which finds path and peer by an IP address. */
#ifndef SEATRIAL_CM_H
#define SEATRIAL_CM_H

#include "fault.h"

#include <rdma/rdma_cma.h>

struct link;

/** One end of the connections of a link; a member of struct link. */
struct cm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct rdma_cm_id **ids; /* of connections, with their queue pairs */
    struct sockaddr_storage address;
};

/**
 * Return the context that rdma_cm has of a device; it is not to be closed.
 * NULL, with errno, if there is none.
 */
struct ibv_context *cm_context(struct ibv_device *device);

/** Listen at an address of the open port. Part of link_create. */
bool cm_listen(struct link *link, struct fault *fault);

/**
 * Connect with the peer at its address; the lower rank asks. Part of
 * link_connect. Abort on an error: the other side waits.
 */
void cm_connect(struct link *link, const struct sockaddr_storage *peer);

/** Destroy connections and queue pairs. Part of link_free. */
void cm_close(struct link *link);

#endif
