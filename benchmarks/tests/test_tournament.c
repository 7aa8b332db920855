/* SPDX-License-Identifier: Apache-2.0 */
#include "tournament.h"
#include "unit.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_NODES = 257, SEEDS = 3 };

static int labels[2 * (MOST_NODES + 1)];
static unsigned char met[MOST_NODES][MOST_NODES];

/* One round: all agree who meets whom, and every pair has a number. */
static void test_round(const struct tournament *tournament, int round)
{
    bool has_number[MOST_NODES] = {false};
    int nodes = tournament->nodes;
    int free = 0;

    for (int node = 0; node < nodes; node++) {
        int partner = tournament_partner(tournament, round, node);

        if (partner < 0) {
            free++;
            continue;
        }
        EXPECT(partner < nodes && partner != node);
        EXPECT(tournament_partner(tournament, round, partner) == node);
        EXPECT(tournament_round(tournament, node, partner) == round);
        int number = tournament_number(tournament, round, node);
        EXPECT(number == tournament_number(tournament, round, partner));
        EXPECT(number >= 0 && number < tournament_pairs(nodes));
        EXPECT(has_number[number] == (partner < node));
        has_number[number] = true;
        met[node][partner]++;
    }
    EXPECT(free == nodes % 2);
}

static void test_every_pair_once(int nodes, long seed)
{
    struct tournament tournament;

    tournament_create(&tournament, nodes, seed, labels);
    memset(met, 0, sizeof(met));
    for (int round = 0; round < tournament_rounds(nodes); round++) {
        test_round(&tournament, round);
    }
    for (int i = 0; i < nodes; i++) {
        for (int j = 0; j < nodes; j++) {
            EXPECT(met[i][j] == (i != j));
        }
    }
}

static void test_labels_are_a_permutation(int nodes, long seed)
{
    struct tournament tournament;
    bool has_label[MOST_NODES] = {false};

    tournament_create(&tournament, nodes, seed, labels);
    for (int node = 0; node < nodes; node++) {
        int label = tournament.label_of[node];

        EXPECT(label >= 0 && label < nodes && !has_label[label]);
        has_label[label] = true;
        EXPECT(tournament.node_with[label] == node);
    }
}

/* Equal seeds draw equal labels, others draw others; so do numbers of nodes. */
static void test_labels_follow_the_seed(void)
{
    static int others[2 * (MOST_NODES + 1)];
    struct tournament tournament;
    struct tournament other;
    int equal = 0;

    tournament_create(&tournament, MOST_NODES, 1, labels);
    tournament_create(&other, MOST_NODES, 1, others);
    EXPECT(memcmp(tournament.label_of, other.label_of,
                  MOST_NODES * sizeof(int)) == 0);
    tournament_create(&other, MOST_NODES, 2, others);
    for (int node = 0; node < MOST_NODES; node++) {
        equal += tournament.label_of[node] == other.label_of[node];
    }
    EXPECT(equal < 10); /* of a random permutation: 1 on average */
}

/* Every node gets every label, about equally often. */
static void test_labels_are_fair(void)
{
    enum { NODES = 8, DRAWS = 8000 };
    int drawn[NODES][NODES] = {{0}};

    for (long seed = 0; seed < DRAWS; seed++) {
        struct tournament tournament;

        tournament_create(&tournament, NODES, seed, labels);
        for (int node = 0; node < NODES; node++) {
            drawn[node][tournament.label_of[node]]++;
        }
    }
    for (int i = 0; i < NODES * NODES; i++) {
        /* 1000 +- 6 standard deviations of 30 */
        EXPECT(abs(drawn[i / NODES][i % NODES] - DRAWS / NODES) < 180);
    }
}

int main(void)
{
    for (int nodes = 2; nodes <= MOST_NODES; nodes++) {
        test_every_pair_once(nodes, nodes % SEEDS);
        test_labels_are_a_permutation(nodes, nodes % SEEDS);
    }
    test_labels_follow_the_seed();
    test_labels_are_fair();
    return 0;
}
