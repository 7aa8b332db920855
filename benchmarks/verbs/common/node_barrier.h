/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_NODE_BARRIER_H
#define SEATRIAL_NODE_BARRIER_H

#include "watch.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

/** The memory that the ranks share; each counter has its own cache line. */
struct node_barrier_page {
    _Alignas(128) atomic_uint arrived;
    _Alignas(128) atomic_uint generation;
};

/** A barrier of ranks of one node: no system call, all of them spin. */
struct node_barrier {
    MPI_Win window;
    struct node_barrier_page *page;
};

/** Share the page among the ranks of comm, which must be on one node. */
void node_barrier_create(MPI_Comm comm, struct node_barrier *barrier);
void node_barrier_free(struct node_barrier *barrier);

/** Wait for count ranks, itself one of them; false: not within timeout_s. */
static inline bool node_barrier_wait(const struct node_barrier *barrier,
                                     unsigned count, long timeout_s)
{
    struct node_barrier_page *page = barrier->page;
    struct watch_spin spin = {0};
    unsigned generation =
        atomic_load_explicit(&page->generation, memory_order_acquire);

    if (atomic_fetch_add_explicit(&page->arrived, 1, memory_order_acq_rel) +
            1 ==
        count) {
        atomic_store_explicit(&page->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&page->generation, generation + 1,
                              memory_order_release);
        return true;
    }
    while (atomic_load_explicit(&page->generation, memory_order_acquire) ==
           generation) {
        if (!watch_spin(&spin, timeout_s)) {
            return false;
        }
    }
    return true;
}

#endif
