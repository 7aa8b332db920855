/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_NODES_H
#define SEATRIAL_NODES_H

/** The nodes of a run, numbered in the order of their host names. */
struct nodes {
    int count;
    const char **hosts; /* short names, ascending */
    int own;            /* of this rank */
    int first;          /* of rank 0 */
};

/** Sort hosts, which stay the caller's, and find own and first in them. */
void nodes_create(struct nodes *nodes, int count, const char **hosts,
                  const char *own, const char *first);

/** Return the node with this host name, ignoring the domain; -1: none. */
int nodes_find(const struct nodes *nodes, const char *host);

#endif
