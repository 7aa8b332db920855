/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by tests, which plant faults with it. SEATRIAL_TEST_SHIM holds
 *   CALL RANK PEER TAG WHAT
 * and lets that call, with these arguments, `hang` for ever or be `slow`. Every
 * rank tells at the very start of MPI what SEATRIAL_TEST_RAIL is. A graph of
 * neighbours made from a communicator that has a topology is refused: with Open
 * MPI 5.0, it does not work (github.com/open-mpi/ompi/issues/14438).
 */
#include "launcher.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHIM_SLOW_NS = 20000000, SHIM_WORD_SIZE = 32 };

int MPI_Init(int *argc, char ***argv)
{
    const char *rail = getenv("SEATRIAL_TEST_RAIL");

    (void)fprintf(stderr, "MPI_Init: place %ld, rail %s\n",
                  launcher_local_rank(), rail != NULL ? rail : "none");
    return PMPI_Init(argc, argv);
}

static void shim(const char *call, int peer, int tag)
{
    const struct timespec slow = {.tv_nsec = SHIM_SLOW_NS};
    const char *fault = getenv("SEATRIAL_TEST_SHIM");
    char name[SHIM_WORD_SIZE] = "";
    char what[SHIM_WORD_SIZE] = "";
    int found[3] = {0};
    int rank = 0;

    if (fault == NULL ||
        sscanf(fault, "%31s %d %d %d %31s", name, &found[0], &found[1],
               &found[2], what) != 5 ||
        strcmp(name, call) != 0 || found[1] != peer || found[2] != tag) {
        return;
    }
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != found[0]) {
        return;
    }
    while (strcmp(what, "hang") == 0) {
        (void)pause();
    }
    (void)nanosleep(&slow, NULL);
}

int MPI_Barrier(MPI_Comm comm)
{
    shim("barrier", 0, 0);
    return PMPI_Barrier(comm);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int peer,
             int tag, MPI_Comm comm)
{
    shim("send", peer, tag);
    return PMPI_Send(buffer, count, type, peer, tag, comm);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int peer,
              int tag, MPI_Comm comm, MPI_Request *request)
{
    shim("isend", peer, tag);
    return PMPI_Isend(buffer, count, type, peer, tag, comm, request);
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type,
                 int peer, int tag, void *in, int in_count,
                 MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    shim("sendrecv", peer, tag);
    return PMPI_Sendrecv(out, out_count, out_type, peer, tag, in, in_count,
                         in_type, source, in_tag, comm, status);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree,
                                   const int sources[],
                                   const int source_weights[], int outdegree,
                                   const int destinations[],
                                   const int destination_weights[],
                                   MPI_Info info, int reorder, MPI_Comm *graph)
{
    int topology = MPI_UNDEFINED;

    (void)PMPI_Topo_test(comm, &topology);
    if (topology != MPI_UNDEFINED) {
        return MPI_ERR_TOPOLOGY;
    }
    return PMPI_Dist_graph_create_adjacent(
        comm, indegree, sources, source_weights, outdegree, destinations,
        destination_weights, info, reorder, graph);
}
