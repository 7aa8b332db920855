/* SPDX-License-Identifier: Apache-2.0 */
#include "node_barrier.h"

#include "check.h"

void node_barrier_create(MPI_Comm comm, struct node_barrier *barrier)
{
    int rank = 0;
    int unit = 1;
    MPI_Aint size = 0;
    void *memory = NULL;

    CHECK_MPI(MPI_Comm_rank(comm, &rank), "barrier of the node");
    size = rank == 0 ? 2 * (MPI_Aint)sizeof(struct node_barrier_page) : 0;
    CHECK_MPI(MPI_Win_allocate_shared(size, unit, MPI_INFO_NULL, comm, &memory,
                                      &barrier->window),
              "barrier of the node");
    CHECK_MPI(MPI_Win_shared_query(barrier->window, 0, &size, &unit, &memory),
              "barrier of the node");
    /* The first whole page in it: MPI aligns to less than cache lines. */
    uintptr_t align = _Alignof(struct node_barrier_page);
    uintptr_t beyond = (uintptr_t)memory % align;
    barrier->page =
        (struct node_barrier_page *)((char *)memory +
                                     (beyond > 0 ? align - beyond : 0));
    if (rank == 0) {
        atomic_init(&barrier->page->arrived, 0);
        atomic_init(&barrier->page->generation, 0);
    }
    CHECK_MPI(MPI_Barrier(comm), "barrier of the node");
}

void node_barrier_free(struct node_barrier *barrier)
{
    CHECK_MPI(MPI_Win_free(&barrier->window), "barrier of the node");
}
