/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_NODE_MAP_H
#define SEATRIAL_NODE_MAP_H

#include "cpus.h"

#include <stdbool.h>

enum { NODE_MAP_TEXT_SIZE = 65536 };

/**
 * The CPUs of this node as its kernel groups them: lists of CPUs, divided by
 * blanks, of cores, sockets and NUMA nodes; and adapters as NAME:NUMA-NODE (-1:
 * unknown). What the kernel does not tell is empty.
 */
struct node_map {
    char cores[NODE_MAP_TEXT_SIZE];
    char sockets[NODE_MAP_TEXT_SIZE];
    char numa[NODE_MAP_TEXT_SIZE];
    char hcas[NODE_MAP_TEXT_SIZE];
};

/** Read the map below a root: that of the file system is "". */
void node_map_read(const char *root, struct node_map *map);

/** Write the numbers of the NUMA nodes of the CPUs that are marked. */
void node_map_numa_of(const struct node_map *map, const bool marked[CPUS_MAX],
                      char text[CPUS_TEXT_SIZE]);

/** Write the adapters of NUMA nodes, which are a list such as 0,1. */
void node_map_hcas_of(const struct node_map *map, const char *numa,
                      char text[CPUS_TEXT_SIZE]);

#endif
