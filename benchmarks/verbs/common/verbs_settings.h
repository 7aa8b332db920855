/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_VERBS_SETTINGS_H
#define SEATRIAL_VERBS_SETTINGS_H

#include "settings.h"

/** Options of the verbs programs; the member `verbs` of their settings. */
struct verbs_settings {
    const char *device;      /* NAME[:PORT],..; NULL: the first active one */
    const char *peer_device; /* of the second node; NULL: as device */
    long gid_index;          /* -1: chosen by gid_choose */
    long mtu;                /* 0: the largest that both ports have */
    long inline_bytes;       /* larger messages are fetched by the adapter */
    long timeout_s;
    long factor; /* between sizes */
    bool doorbell;
    bool rdma_cm;
};

/** The values that the programs have unless a row says otherwise. */
#define VERBS_DEFAULTS {.gid_index = -1, .timeout_s = 60, .factor = 2}

enum {
    VERBS_MAX_GID_INDEX = 65535,
    VERBS_MAX_MTU = 4096,
    VERBS_MAX_INLINE = 65536,
    VERBS_MAX_TIMEOUT_S = 3600,
};

/** The row of the device; what says how many ports it may name. */
#define VERBS_DEVICE_ROW(type, what)                                           \
    SETTINGS_ROW("device", 'd', OPTIONS_TEXT, offsetof(type, verbs.device), 0, \
                 0, NULL, "NAME[:PORT]", what)

/** The rows of what a connection between two nodes needs. */
#define VERBS_CONNECTION_ROWS(type)                                            \
    SETTINGS_ROW("peer-device", 0, OPTIONS_TEXT,                               \
                 offsetof(type, verbs.peer_device), 0, 0, NULL, "NAME[:PORT]", \
                 "the same of the second node, where its names differ"),       \
        SETTINGS_ROW("gid-index", 0, OPTIONS_INTEGER,                          \
                     offsetof(type, verbs.gid_index), -1, VERBS_MAX_GID_INDEX, \
                     NULL, "INDEX",                                            \
                     "-1: RoCE v2 with IPv4 if there is one; LID on IB"),      \
        SETTINGS_ROW("mtu", 0, OPTIONS_INTEGER, offsetof(type, verbs.mtu), 0,  \
                     VERBS_MAX_MTU, NULL, "BYTES",                             \
                     "path MTU, 256, 512 .. 4096; 0: the active one"),         \
        SETTINGS_ROW("inline", 'I', OPTIONS_INTEGER,                           \
                     offsetof(type, verbs.inline_bytes), 0, VERBS_MAX_INLINE,  \
                     NULL, "BYTES",                                            \
                     "messages up to BYTES are part of the work request"),     \
        SETTINGS_ROW("doorbell", 0, OPTIONS_FLAG,                              \
                     offsetof(type, verbs.doorbell), 0, 0, NULL, NULL,         \
                     "ring the doorbell alone, without BlueFlame (mlx5)"),     \
        SETTINGS_ROW("rdma-cm", 'R', OPTIONS_FLAG,                             \
                     offsetof(type, verbs.rdma_cm), 0, 0, NULL, NULL,          \
                     "connect by rdma_cm and IP, as iWARP needs (untested)"),  \
        VERBS_TIMEOUT_ROW(type)

/** The row of the steps from size to size. */
#define VERBS_FACTOR_ROW(type)                                                 \
    SETTINGS_ROW("factor", 0, OPTIONS_INTEGER, offsetof(type, verbs.factor),   \
                 2, SETTINGS_MAX_SIZE, NULL, "FACTOR",                         \
                 "multiply sizes by FACTOR; above 2, MAX is the last one")

/** The size after this one; above the largest: there is none. */
static inline long verbs_next_size(const struct verbs_settings *settings,
                                   struct options_span sizes, long size)
{
    long next = settings->factor * size;

    return settings->factor > 2 && size < sizes.max && next > sizes.max
               ? sizes.max
               : next;
}

static inline int verbs_count_sizes(const struct verbs_settings *settings,
                                    struct options_span sizes)
{
    int count = 0;

    for (long size = sizes.min; size <= sizes.max;
         size = verbs_next_size(settings, sizes, size)) {
        count++;
    }
    return count;
}

/** The row of the time that no wait may exceed. */
#define VERBS_TIMEOUT_ROW(type)                                                \
    SETTINGS_ROW("timeout", 0, OPTIONS_INTEGER,                                \
                 offsetof(type, verbs.timeout_s), 1, VERBS_MAX_TIMEOUT_S,      \
                 NULL, "S", "give up a wait for the other side after S s")

#endif
