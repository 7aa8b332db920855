/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include "pairs.h"

#include <stdio.h>

/* The text that names the ports of a node. */
static const char *team_device(const struct verbs_settings *settings,
                               bool is_first)
{
    return is_first || settings->peer_device == NULL ? settings->device
                                                     : settings->peer_device;
}

bool team_verify(const struct verbs_settings *settings, int rails,
                 char error[OPTIONS_ERROR_SIZE])
{
    struct port_name names[PORT_MAX_RAILS];
    char reason[OPTIONS_ERROR_SIZE] = "";
    int first = port_parse(settings->device, rails, names, reason);
    int second = first == 0 ? 0
                            : port_parse(team_device(settings, false), rails,
                                         names, reason);

    if (first == 0 || second == 0) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE, "--%sdevice: %.200s",
                       first == 0 ? "" : "peer-", reason);
        return false;
    }
    if (first != second) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--device has %d ports, --peer-device %d", first,
                       second);
        return false;
    }
    if (settings->rdma_cm && (settings->gid_index >= 0 || settings->mtu > 0)) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--rdma-cm chooses GID and MTU itself: leave out "
                       "--gid-index and --mtu");
        return false;
    }
    if (settings->mtu > 0 && port_mtu_from_bytes(settings->mtu) == 0) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "--mtu: %ld is none of: 256, 512, 1024, 2048, 4096",
                       settings->mtu);
        return false;
    }
    return true;
}

bool team_create(const struct placement *placement,
                 const struct verbs_settings *settings, struct team *team)
{
    struct port_name names[PORT_MAX_RAILS];
    char error[OPTIONS_ERROR_SIZE];
    int pairs = pairs_available(placement, PAIRS_BETWEEN);

    *team = (struct team){
        .placement = placement,
        .pairs = pairs,
        .pair = placement->local_rank,
        .is_first = placement->node == 0,
        .peer = placement->rank < pairs ? placement->rank + pairs
                                        : placement->rank - pairs,
        .rails = port_parse(settings->device, PORT_MAX_RAILS, names, error),
    };
    return pairs > 0;
}

enum check_exit team_connect(const struct team *team,
                             const struct verbs_settings *settings,
                             const struct link_plan *plan, void *memory,
                             size_t size_bytes, struct link *links)
{
    struct port_name names[PORT_MAX_RAILS];
    char error[OPTIONS_ERROR_SIZE];
    struct fault fault = {.code = CHECK_PASS};
    bool good = true;

    (void)port_parse(team_device(settings, team->is_first), PORT_MAX_RAILS,
                     names, error);
    for (int r = 0; r < team->rails; r++) {
        links[r] = (struct link){.peer = team->peer};
    }
    for (int r = 0; r < team->rails && good; r++) {
        good = link_create(&links[r], settings, &names[r], plan, memory,
                           size_bytes, team->peer, &fault);
    }
    enum check_exit code = fault_agree(MPI_COMM_WORLD, &fault);
    for (int r = 0; r < team->rails && code == CHECK_PASS; r++) {
        (void)link_connect(&links[r], &fault);
    }
    return code != CHECK_PASS ? code : fault_agree(MPI_COMM_WORLD, &fault);
}

void team_disconnect(const struct team *team, struct link *links)
{
    for (int r = 0; r < team->rails; r++) {
        link_free(&links[r]);
    }
}
