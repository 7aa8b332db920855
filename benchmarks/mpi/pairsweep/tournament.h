/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_TOURNAMENT_H
#define SEATRIAL_TOURNAMENT_H

/**
 * Rounds in which every two of the nodes 0 to nodes - 1 meet exactly once, and
 * no node meets two others in the same round: the circle method. It works on
 * labels, a random permutation of the nodes, so that neighbours in the list of
 * nodes are not always under load together. No table of pairs: O(nodes) memory.
 *
 * Let M be the number of nodes, made even. Labels i, j < M - 1 meet in the
 * round r (from 0) with i + j = r mod M - 1. The one label with 2i = r meets
 * label M - 1, which is no node if the number of nodes is odd.
 */
struct tournament {
    int nodes;
    int places; /* M */
    int *label_of;
    int *node_with; /* label M - 1: -1 if it is no node */
};

/** The number of rounds, and the most pairs of one, for at least two nodes. */
int tournament_rounds(int nodes);
int tournament_pairs(int nodes);

/**
 * Draw the labels of at least two nodes by seed, the same on every machine.
 * labels is room for 2 x (nodes + 1) numbers, which the tournament goes on
 * using.
 */
void tournament_create(struct tournament *tournament, int nodes, long seed,
                       int *labels);

/** Return the partner of the node in the round; -1: none. */
int tournament_partner(const struct tournament *tournament, int round,
                       int node);

/** The number, from 0, of the pair that the node is in in the round. */
int tournament_number(const struct tournament *tournament, int round, int node);

/** The round in which two nodes meet. */
int tournament_round(const struct tournament *tournament, int node, int other);

#endif
