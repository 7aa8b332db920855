/* SPDX-License-Identifier: Apache-2.0 */
#include "tournament.h"

#include "payload.h"

#include <stdint.h>

static int tournament_even(int nodes)
{
    return nodes + nodes % 2;
}

int tournament_rounds(int nodes)
{
    return tournament_even(nodes) - 1;
}

int tournament_pairs(int nodes)
{
    return nodes / 2;
}

/* SplitMix64: its output is a mix of a counter. */
static uint64_t tournament_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return payload_mix(*state);
}

void tournament_create(struct tournament *tournament, int nodes, long seed,
                       int *labels)
{
    uint64_t state = (uint64_t)seed;
    int places = tournament_even(nodes);
    int *label_of = labels;
    int *node_with = labels + nodes;

    for (int i = 0; i < nodes; i++) {
        node_with[i] = i;
    }
    for (int i = nodes - 1; i > 0; i--) { /* Fisher and Yates */
        int other = (int)(tournament_random(&state) % ((uint64_t)i + 1));
        int node = node_with[i];

        node_with[i] = node_with[other];
        node_with[other] = node;
    }
    for (int i = 0; i < nodes; i++) {
        label_of[node_with[i]] = i;
    }
    if (places > nodes) {
        node_with[places - 1] = -1;
    }
    *tournament = (struct tournament){
        .nodes = nodes,
        .places = places,
        .label_of = label_of,
        .node_with = node_with,
    };
}

/* The label that meets the last one: half of the round, mod M - 1. */
static int tournament_middle(const struct tournament *tournament, int round)
{
    return round % 2 == 0 ? round / 2 : (round + tournament->places - 1) / 2;
}

int tournament_partner(const struct tournament *tournament, int round, int node)
{
    int label = tournament->label_of[node];
    int last = tournament->places - 1;

    if (label == last) {
        return tournament->node_with[tournament_middle(tournament, round)];
    }
    int other = round - label;
    if (other < 0) {
        other += last;
    }
    return tournament->node_with[other == label ? last : other];
}

int tournament_number(const struct tournament *tournament, int round, int node)
{
    int label = tournament->label_of[node];
    int last = tournament->places - 1;

    if (label == last) {
        return 0;
    }
    /* The labels of pair k are k steps from the middle, on both sides of it. */
    int steps = label - tournament_middle(tournament, round);
    if (steps < 0) {
        steps += last;
    }
    int number = steps <= last / 2 ? steps : last - steps;
    return number - tournament->nodes % 2; /* 0 was no node's */
}

int tournament_round(const struct tournament *tournament, int node, int other)
{
    int last = tournament->places - 1;
    int label = tournament->label_of[node];
    int other_label = tournament->label_of[other];

    if (label == last) {
        label = other_label;
    } else if (other_label == last) {
        other_label = label;
    }
    return (label + other_label) % last;
}
