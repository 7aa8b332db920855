/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_GID_H
#define SEATRIAL_GID_H

#include <infiniband/verbs.h>

/** Kinds of GIDs, the best one to reach another node last. */
enum gid_kind {
    GID_EMPTY,
    GID_INFINIBAND,
    GID_ROCE_V1,
    GID_ROCE_V2_LINK_LOCAL, /* fe80::/10: not beyond a router */
    GID_ROCE_V2_IPV6,
    GID_ROCE_V2_IPV4,
};

/** The name of a kind: roce_v2_ipv4 ... */
const char *gid_name(enum gid_kind kind);

enum gid_kind gid_kind_of(const struct ibv_gid_entry *entry);

/**
 * Return the place in entries of the best kind that a port has; of two alike
 * the one with the lower GID index. -1: the port has none.
 */
int gid_choose(const struct ibv_gid_entry *entries, int count, int ib_port);

#endif
