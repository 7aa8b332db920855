/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PORT_H
#define SEATRIAL_PORT_H

#include "fault.h"
#include "gid.h"
#include "options.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

enum {
    PORT_MAX_RAILS = 2,
    PORT_NAME_SIZE = 64,                  /* of a device */
    PORT_FULL_SIZE = PORT_NAME_SIZE + 16, /* and its port */
};

/** A port as an option names it: NAME or NAME:PORT. */
struct port_name {
    char device[PORT_NAME_SIZE]; /* empty: the first that has an active port */
    int ib_port;                 /* 0: the first active one */
};

/** An open port of an adapter. */
struct port {
    char name[PORT_FULL_SIZE]; /* mlx5_0:1 */
    struct ibv_context *context;
    struct ibv_pd *pd;
    int ib_port;
    struct ibv_device_attr device;
    struct ibv_port_attr attributes;
    bool by_cm;    /* the context is rdma_cm's */
    bool uses_gid; /* packets carry a GRH: always on Ethernet */
    int gid_index; /* -1: addressed by LID */
    enum gid_kind gid_kind;
    union ibv_gid gid;
};

/**
 * Read up to `most` names, separated by commas; NULL is one without a name.
 * Return their number; 0, with the reason in error, if the text is wrong.
 */
int port_parse(const char *text, int most, struct port_name *names,
               char error[OPTIONS_ERROR_SIZE]);

/**
 * Open a port that must be active; gid_index -1 chooses, and by_cm leaves the
 * GID to rdma_cm. False, with the reason in fault, if it cannot be used.
 * port_close takes both.
 */
bool port_open(const struct port_name *name, long gid_index, bool by_cm,
               struct port *port, struct fault *fault);
void port_close(struct port *port);

/** Find the GID of an open port; -1 chooses. Part of port_open. */
bool port_query_gid(long gid_index, struct port *port, struct fault *fault);

/**
 * Make the next port_open use doorbells without BlueFlame. False, with the
 * reason in fault, if the driver of the device is another than mlx5's.
 */
bool port_forbid_blueflame(const struct port_name *name, struct fault *fault);

/** MTU in bytes of a verbs constant, and back; 0: there is none. */
int port_mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu port_mtu_from_bytes(long bytes);

#endif
