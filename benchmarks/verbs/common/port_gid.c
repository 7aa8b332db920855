/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_GIDS_SIZE = 256 };

/* Keep the GID with this index; one that is empty or beyond is an error. */
static bool port_take_gid(struct port *port,
                          const struct ibv_gid_entry *entries, int count,
                          long gid_index, struct fault *fault)
{
    int choice = gid_index < 0 ? gid_choose(entries, count, port->ib_port) : -1;
    char known[PORT_GIDS_SIZE] = "";
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        if ((int)entries[i].port_num != port->ib_port ||
            gid_kind_of(&entries[i]) == GID_EMPTY) {
            continue;
        }
        if ((long)entries[i].gid_index == gid_index) {
            choice = i;
        }
        if (used < sizeof(known)) {
            used += (size_t)snprintf(known + used, sizeof(known) - used,
                                     "%s%u (%s)", used > 0 ? ", " : "",
                                     entries[i].gid_index,
                                     gid_name(gid_kind_of(&entries[i])));
        }
    }
    if (choice < 0) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_query_gid_table: %s: no GID with index %ld: %s "
                         "(errno %d): %s%s",
                         port->name, gid_index, strerror(ENOENT), ENOENT,
                         used > 0 ? "choose --gid-index from "
                                  : "give the interface an IP address",
                         known);
    }
    port->gid = entries[choice].gid;
    port->gid_index = (int)entries[choice].gid_index;
    port->gid_kind = gid_kind_of(&entries[choice]);
    return true;
}

bool port_query_gid(long gid_index, struct port *port, struct fault *fault)
{
    bool is_ethernet = port->attributes.link_layer == IBV_LINK_LAYER_ETHERNET;

    port->gid_index = -1;
    port->gid_kind = GID_INFINIBAND;
    port->uses_gid =
        !port->by_cm && (is_ethernet || gid_index >= 0 ||
                         (port->attributes.flags & IBV_QPF_GRH_REQUIRED) != 0);
    if (!port->uses_gid) {
        return true;
    }
    size_t most = (size_t)port->attributes.gid_tbl_len *
                  (size_t)port->device.phys_port_cnt;
    struct ibv_gid_entry *entries =
        check_allocate(most * sizeof(*entries), "GIDs");
    ssize_t count = ibv_query_gid_table(port->context, entries, most, 0);
    bool usable =
        count >= 0 ? port_take_gid(port, entries, (int)count, gid_index, fault)
                   : fault_set(fault, CHECK_FAILED,
                               "ibv_query_gid_table: %s: %s (errno %d): see "
                               "the driver's messages in dmesg",
                               port->name, strerror((int)-count), (int)-count);
    free(entries);
    return usable;
}
