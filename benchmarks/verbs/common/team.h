/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_TEAM_H
#define SEATRIAL_TEAM_H

#include "link.h"
#include "placement.h"

/** Ranks of two nodes: rank i of the first and rank i of the second pair. */
struct team {
    const struct placement *placement;
    int pairs;
    int pair;      /* of this rank, from 0 */
    int peer;      /* rank in MPI_COMM_WORLD */
    bool is_first; /* on the first node */
    int rails;     /* ports that each rank uses */
};

/** Refuse wrong names of up to `rails` ports, and a wrong MTU. */
bool team_verify(const struct verbs_settings *settings, int rails,
                 char error[OPTIONS_ERROR_SIZE]);

/**
 * Find the pairs. False on all ranks, after an error message, if the ranks are
 * not half and half on two nodes.
 */
bool team_create(const struct placement *placement,
                 const struct verbs_settings *settings, struct team *team);

/**
 * Open a link by every rail and connect it with the peer's; all ranks call. The
 * memory is registered for each. team_disconnect takes also what failed.
 */
enum check_exit team_connect(const struct team *team,
                             const struct verbs_settings *settings,
                             const struct link_plan *plan, void *memory,
                             size_t size_bytes, struct link *links);
void team_disconnect(const struct team *team, struct link *links);

#endif
