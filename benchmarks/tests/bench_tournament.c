/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time to walk the schedule of all pairs of N nodes. */
#include "clock.h"
#include "plan.h"
#include "tournament.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every node's partner in every round. Gives the number of pairs. */
static long walk(const struct tournament *tournament)
{
    long meetings = 0;

    for (int round = 0; round < tournament_rounds(tournament->nodes); round++) {
        for (int node = 0; node < tournament->nodes; node++) {
            meetings += tournament_partner(tournament, round, node) >= 0;
        }
    }
    return meetings / 2;
}

/* Not of getrusage: it counts what the parent had before it started this. */
static double peak_memory_mib(void)
{
    FILE *stream = fopen("/proc/self/status", "re");
    char line[128];
    double kib = 0.0;

    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtod(line + 6, NULL);
        }
    }
    if (stream != NULL) {
        (void)fclose(stream);
    }
    return kib / 1024.0;
}

int main(int argc, char **argv)
{
    int nodes = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 0;
    struct tournament tournament;
    struct plan plan;

    if (nodes < 2 || nodes > 1000000) {
        (void)fprintf(stderr, "Usage: bench_tournament NODES\n");
        return 2;
    }
    int *labels = calloc(2 * ((size_t)nodes + 1), sizeof(*labels));
    void *room = malloc(plan_size_bytes(nodes));
    if (labels == NULL || room == NULL) {
        (void)fprintf(stderr, "bench_tournament: no memory\n");
        return 1;
    }
    int64_t start_ns = clock_now_ns();
    tournament_create(&tournament, nodes, 1, labels);
    plan_create(&plan, nodes, 0, 0, room);
    plan_want_all(&plan);
    long pairs = walk(&tournament);
    double time_s = clock_between_us(start_ns, clock_now_ns()) / 1e6;
    (void)printf("{\"nodes\": %d, \"pairs\": %ld, \"time_s\": %.6f, "
                 "\"peak_memory_mib\": %.1f}\n",
                 nodes, pairs, time_s, peak_memory_mib());
    free(room);
    free(labels);
    return pairs == (long)nodes * (nodes - 1) / 2 ? 0 : 1;
}
