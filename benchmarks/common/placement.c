/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void placement_host(const char *processor, int rank, long pretend_ppn,
                    char host[PLACEMENT_HOST_SIZE])
{
    int length = (int)strcspn(processor, ".");

    if (pretend_ppn > 0) {
        (void)snprintf(host, PLACEMENT_HOST_SIZE, "%.*s/%ld",
                       length < 100 ? length : 100, processor,
                       rank / pretend_ppn);
    } else {
        (void)snprintf(host, PLACEMENT_HOST_SIZE, "%.*s", length, processor);
    }
}

struct placement_host {
    const char *name;
    int rank;
};

static int placement_compare(const void *left, const void *right)
{
    const struct placement_host *a = left;
    const struct placement_host *b = right;
    int order = strcmp(a->name, b->name);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Find for every rank the first rank of its host, and its place there. */
static void placement_group(struct placement *placement,
                            char (*names)[PLACEMENT_HOST_SIZE])
{
    struct placement_host *sorted =
        check_allocate((size_t)placement->np * sizeof(*sorted), "host names");

    for (int r = 0; r < placement->np; r++) {
        sorted[r] = (struct placement_host){names[r], r};
    }
    qsort(sorted, (size_t)placement->np, sizeof(*sorted), placement_compare);
    for (int i = 0, first = 0; i < placement->np; i++) {
        if (strcmp(sorted[i].name, sorted[first].name) != 0) {
            first = i;
        }
        placement->node_of[sorted[i].rank] = sorted[first].rank;
        placement->local_of[sorted[i].rank] = i - first;
    }
    free(sorted);
}

/* Number the nodes by their first ranks. */
static void placement_number(struct placement *placement,
                             char (*names)[PLACEMENT_HOST_SIZE])
{
    for (int r = 0; r < placement->np; r++) {
        int first = placement->node_of[r];

        if (first == r) {
            memcpy(placement->hosts[placement->nodes], names[r],
                   PLACEMENT_HOST_SIZE);
            placement->first_rank[placement->nodes] = r;
            placement->node_of[r] = placement->nodes++;
        } else {
            placement->node_of[r] = placement->node_of[first];
        }
    }
}

void placement_create(MPI_Comm comm, long pretend_ppn,
                      struct placement *placement)
{
    *placement = (struct placement){.np = 0};
    CHECK_MPI(MPI_Comm_size(comm, &placement->np), "placement");
    CHECK_MPI(MPI_Comm_rank(comm, &placement->rank), "placement");

    size_t np = (size_t)placement->np;
    char processor[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    char own[PLACEMENT_HOST_SIZE] = "";
    char(*names)[PLACEMENT_HOST_SIZE] =
        check_allocate(np * sizeof(*names), "host names");

    CHECK_MPI(MPI_Get_processor_name(processor, &length), "this host");
    placement_host(processor, placement->rank, pretend_ppn, own);
    CHECK_MPI(MPI_Allgather(own, PLACEMENT_HOST_SIZE, MPI_CHAR, names,
                            PLACEMENT_HOST_SIZE, MPI_CHAR, comm),
              "host names of %d ranks", placement->np);
    placement->node_of = check_allocate(np * sizeof(int), "placement");
    placement->local_of = check_allocate(np * sizeof(int), "placement");
    placement->first_rank = check_allocate(np * sizeof(int), "placement");
    placement->hosts = check_allocate(np * sizeof(*names), "host names");
    placement_group(placement, names);
    placement_number(placement, names);
    free(names);
    placement->node = placement->node_of[placement->rank];
    placement->local_rank = placement->local_of[placement->rank];
    for (int r = 0; r < placement->np; r++) {
        placement->local_size += placement->node_of[r] == placement->node;
    }
}

void placement_free(struct placement *placement)
{
    free(placement->node_of);
    free(placement->local_of);
    free(placement->first_rank);
    free(placement->hosts);
}
