/* SPDX-License-Identifier: Apache-2.0 */
#include "gid.h"

#include <string.h>

const char *gid_name(enum gid_kind kind)
{
    static const char *const NAMES[] = {
        [GID_EMPTY] = "empty",
        [GID_INFINIBAND] = "infiniband",
        [GID_ROCE_V1] = "roce_v1",
        [GID_ROCE_V2_LINK_LOCAL] = "roce_v2_link_local",
        [GID_ROCE_V2_IPV6] = "roce_v2_ipv6",
        [GID_ROCE_V2_IPV4] = "roce_v2_ipv4",
    };

    return NAMES[kind];
}

enum gid_kind gid_kind_of(const struct ibv_gid_entry *entry)
{
    static const uint8_t ZERO[16] = {0};
    static const uint8_t IPV4[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *raw = entry->gid.raw;

    if (memcmp(raw, ZERO, sizeof(ZERO)) == 0) {
        return GID_EMPTY;
    }
    if (entry->gid_type == IBV_GID_TYPE_IB) {
        return GID_INFINIBAND;
    }
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V1) {
        return GID_ROCE_V1;
    }
    if (memcmp(raw, IPV4, sizeof(IPV4)) == 0) {
        return GID_ROCE_V2_IPV4;
    }
    return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80 ? GID_ROCE_V2_LINK_LOCAL
                                                     : GID_ROCE_V2_IPV6;
}

int gid_choose(const struct ibv_gid_entry *entries, int count, int ib_port)
{
    enum gid_kind best = GID_EMPTY;
    int choice = -1;

    for (int i = 0; i < count; i++) {
        enum gid_kind kind = gid_kind_of(&entries[i]);

        if ((int)entries[i].port_num != ib_port || kind < best ||
            kind == GID_EMPTY) {
            continue;
        }
        if (kind > best || entries[i].gid_index < entries[choice].gid_index) {
            best = kind;
            choice = i;
        }
    }
    return choice;
}
