/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to exchange edges; what they prepare belongs to one sub-domain. */
#include "check.h"
#include "halo.h"

#include <stdlib.h>

enum { HALO_REQUESTS = 2 * HALO_TRANSFERS };

static void halo_exchange_sendrecv(const struct halo *halo)
{
    for (int p = 0; p < HALO_PHASES; p++) {
        const struct halo_phase *phase = &halo->phases[p];

        for (int d = 0; d < HALO_TRANSFERS; d++) {
            const struct halo_transfer *transfer = &phase->transfers[d];

            CHECK_MPI(MPI_Sendrecv(transfer->source, phase->count, phase->type,
                                   transfer->destination, transfer->tag,
                                   transfer->target, phase->count, phase->type,
                                   transfer->origin, transfer->tag,
                                   halo->grid->comm, MPI_STATUS_IGNORE),
                      "N %d, to rank %d, from rank %d", halo->n,
                      transfer->destination, transfer->origin);
        }
    }
}

static void halo_exchange_irecv_isend(const struct halo *halo)
{
    for (int p = 0; p < HALO_PHASES; p++) {
        const struct halo_phase *phase = &halo->phases[p];
        MPI_Request requests[HALO_REQUESTS];

        for (int d = 0; d < HALO_TRANSFERS; d++) {
            const struct halo_transfer *transfer = &phase->transfers[d];

            CHECK_MPI(MPI_Irecv(transfer->target, phase->count, phase->type,
                                transfer->origin, transfer->tag,
                                halo->grid->comm, &requests[d]),
                      "N %d, from rank %d", halo->n, transfer->origin);
        }
        for (int d = 0; d < HALO_TRANSFERS; d++) {
            const struct halo_transfer *transfer = &phase->transfers[d];

            CHECK_MPI(MPI_Isend(transfer->source, phase->count, phase->type,
                                transfer->destination, transfer->tag,
                                halo->grid->comm,
                                &requests[HALO_TRANSFERS + d]),
                      "N %d, to rank %d", halo->n, transfer->destination);
        }
        CHECK_MPI(MPI_Waitall(HALO_REQUESTS, requests, MPI_STATUSES_IGNORE),
                  "N %d, phase %d", halo->n, p);
    }
}

/** Requests of all messages of an exchange; of a phase, receives come first. */
struct halo_persistent {
    MPI_Request requests[HALO_PHASES][HALO_REQUESTS];
};

static void halo_set_up_persistent(struct halo *halo)
{
    struct halo_persistent *state =
        check_allocate(sizeof(*state), "persistent requests");

    for (int p = 0; p < HALO_PHASES; p++) {
        const struct halo_phase *phase = &halo->phases[p];

        for (int d = 0; d < HALO_TRANSFERS; d++) {
            const struct halo_transfer *transfer = &phase->transfers[d];

            CHECK_MPI(MPI_Recv_init(transfer->target, phase->count, phase->type,
                                    transfer->origin, transfer->tag,
                                    halo->grid->comm, &state->requests[p][d]),
                      "N %d, from rank %d", halo->n, transfer->origin);
            CHECK_MPI(MPI_Send_init(transfer->source, phase->count, phase->type,
                                    transfer->destination, transfer->tag,
                                    halo->grid->comm,
                                    &state->requests[p][HALO_TRANSFERS + d]),
                      "N %d, to rank %d", halo->n, transfer->destination);
        }
    }
    halo->state = state;
}

static void halo_exchange_persistent(const struct halo *halo)
{
    struct halo_persistent *state = halo->state;

    for (int p = 0; p < HALO_PHASES; p++) {
        CHECK_MPI(MPI_Startall(HALO_REQUESTS, state->requests[p]),
                  "N %d, phase %d", halo->n, p);
        CHECK_MPI(
            MPI_Waitall(HALO_REQUESTS, state->requests[p], MPI_STATUSES_IGNORE),
            "N %d, phase %d", halo->n, p);
    }
}

static void halo_tear_down_persistent(struct halo *halo)
{
    struct halo_persistent *state = halo->state;

    for (int p = 0; p < HALO_PHASES; p++) {
        for (int r = 0; r < HALO_REQUESTS; r++) {
            CHECK_MPI(MPI_Request_free(&state->requests[p][r]),
                      "N %d, phase %d", halo->n, p);
        }
    }
    free(state);
}

/** A graph of the neighbours of a phase, and the arguments for its edges. */
struct halo_neighbor_phase {
    MPI_Comm comm;
    int edges;
    int counts[HALO_TRANSFERS];
    MPI_Datatype sent[HALO_TRANSFERS];
    MPI_Datatype received[HALO_TRANSFERS];
    MPI_Aint sources[HALO_TRANSFERS]; /* bytes after the first source */
    MPI_Aint targets[HALO_TRANSFERS]; /* bytes after the first target */
};

struct halo_neighbor {
    struct halo_neighbor_phase phases[HALO_PHASES];
};

static MPI_Datatype halo_neighbor_pack(const struct halo_phase *phase,
                                       const int counts[HALO_TRANSFERS],
                                       const MPI_Aint places[HALO_TRANSFERS])
{
    MPI_Datatype both;

    CHECK_MPI(MPI_Type_create_hindexed(HALO_TRANSFERS, counts, places,
                                       phase->type, &both),
              "both edges");
    CHECK_MPI(MPI_Type_commit(&both), "both edges");
    return both;
}

/*
 * Where both neighbours are the same rank, one edge of the graph carries both
 * transfers. With two between the same ranks, libraries disagree which of the
 * messages goes where (github.com/mpi-forum/mpi-issues/issues/153).
 */
static void halo_neighbor_join(const struct halo_phase *phase,
                               struct halo_neighbor_phase *neighbor)
{
    neighbor->sent[0] =
        halo_neighbor_pack(phase, neighbor->counts, neighbor->sources);
    neighbor->received[0] =
        halo_neighbor_pack(phase, neighbor->counts, neighbor->targets);
    neighbor->counts[0] = 1;
    neighbor->edges = 1;
}

static void halo_neighbor_create(MPI_Comm plain, const struct halo *halo,
                                 const struct halo_phase *phase,
                                 struct halo_neighbor_phase *neighbor)
{
    const struct halo_transfer *first = &phase->transfers[0];
    int origins[HALO_TRANSFERS];
    int destinations[HALO_TRANSFERS];

    neighbor->edges = HALO_TRANSFERS;
    for (int d = 0; d < HALO_TRANSFERS; d++) {
        const struct halo_transfer *transfer = &phase->transfers[d];

        origins[d] = transfer->origin;
        destinations[d] = transfer->destination;
        neighbor->counts[d] = phase->count;
        neighbor->sent[d] = phase->type;
        neighbor->received[d] = phase->type;
        neighbor->sources[d] =
            (const char *)transfer->source - (const char *)first->source;
        neighbor->targets[d] =
            (const char *)transfer->target - (const char *)first->target;
    }
    if (destinations[0] == destinations[1]) {
        halo_neighbor_join(phase, neighbor);
    }
    CHECK_MPI(MPI_Dist_graph_create_adjacent(plain, neighbor->edges, origins,
                                             MPI_UNWEIGHTED, neighbor->edges,
                                             destinations, MPI_UNWEIGHTED,
                                             MPI_INFO_NULL, 0, &neighbor->comm),
              "N %d, ranks %d and %d", halo->n, destinations[0],
              destinations[1]);
}

/*
 * The graphs are made from a communicator without a topology, of the same
 * ranks in the same order: Open MPI 5.0 treats a graph that is made from a
 * Cartesian one as Cartesian (github.com/open-mpi/ompi/issues/14438).
 */
static void halo_set_up_neighbor(struct halo *halo)
{
    const struct halo_grid *grid = halo->grid;
    struct halo_neighbor *state =
        check_allocate(sizeof(*state), "graphs of neighbours");
    MPI_Comm plain;

    CHECK_MPI(MPI_Comm_split(grid->comm, 0, grid->rank, &plain), "N %d",
              halo->n);
    for (int p = 0; p < HALO_PHASES; p++) {
        halo_neighbor_create(plain, halo, &halo->phases[p], &state->phases[p]);
    }
    CHECK_MPI(MPI_Comm_free(&plain), "N %d", halo->n);
    halo->state = state;
}

static void halo_exchange_neighbor(const struct halo *halo)
{
    const struct halo_neighbor *state = halo->state;

    for (int p = 0; p < HALO_PHASES; p++) {
        const struct halo_neighbor_phase *neighbor = &state->phases[p];
        const struct halo_transfer *first = &halo->phases[p].transfers[0];

        CHECK_MPI(MPI_Neighbor_alltoallw(
                      first->source, neighbor->counts, neighbor->sources,
                      neighbor->sent, first->target, neighbor->counts,
                      neighbor->targets, neighbor->received, neighbor->comm),
                  "N %d, phase %d", halo->n, p);
    }
}

static void halo_tear_down_neighbor(struct halo *halo)
{
    struct halo_neighbor *state = halo->state;

    for (int p = 0; p < HALO_PHASES; p++) {
        struct halo_neighbor_phase *neighbor = &state->phases[p];

        CHECK_MPI(MPI_Comm_free(&neighbor->comm), "N %d, phase %d", halo->n, p);
        if (neighbor->edges == 1) {
            CHECK_MPI(MPI_Type_free(&neighbor->sent[0]), "both edges");
            CHECK_MPI(MPI_Type_free(&neighbor->received[0]), "both edges");
        }
    }
    free(state);
}

struct halo_put {
    MPI_Win window; /* the sub-domain with its halo, counted in doubles */
};

static void halo_set_up_put(struct halo *halo)
{
    struct halo_put *state = check_allocate(sizeof(*state), "window");

    CHECK_MPI(MPI_Win_create(halo->cells, (MPI_Aint)halo_size_bytes(halo->n),
                             (int)sizeof(double), MPI_INFO_NULL,
                             halo->grid->comm, &state->window),
              "N %d", halo->n);
    CHECK_MPI(MPI_Win_set_errhandler(state->window, MPI_ERRORS_RETURN), "N %d",
              halo->n);
    halo->state = state;
}

static void halo_fence(const struct halo *halo, int assertion)
{
    const struct halo_put *state = halo->state;

    CHECK_MPI(MPI_Win_fence(assertion, state->window), "N %d", halo->n);
}

/*
 * All sub-domains are alike: an edge lands as far into the neighbour's as the
 * same transfer lands here. The first fence waits until halos may be changed.
 */
static void halo_exchange_put(const struct halo *halo)
{
    const struct halo_put *state = halo->state;

    halo_fence(halo, MPI_MODE_NOPRECEDE);
    for (int p = 0; p < HALO_PHASES; p++) {
        const struct halo_phase *phase = &halo->phases[p];

        for (int d = 0; d < HALO_TRANSFERS; d++) {
            const struct halo_transfer *transfer = &phase->transfers[d];

            CHECK_MPI(MPI_Put(transfer->source, phase->count, phase->type,
                              transfer->destination,
                              transfer->target - halo->cells, phase->count,
                              phase->type, state->window),
                      "N %d, to rank %d", halo->n, transfer->destination);
        }
        halo_fence(halo, p + 1 < HALO_PHASES ? 0 : MPI_MODE_NOSUCCEED);
    }
}

static void halo_tear_down_put(struct halo *halo)
{
    struct halo_put *state = halo->state;

    CHECK_MPI(MPI_Win_free(&state->window), "N %d", halo->n);
    free(state);
}

enum {
    HALO_SENDRECV,
    HALO_IRECV_ISEND,
    HALO_PERSISTENT,
    HALO_NEIGHBOR_ALLTOALL,
    HALO_PUT_FENCE,
    HALO_PROTOCOLS_END,
};

const char *const HALO_PROTOCOL_NAMES[] = {
    [HALO_SENDRECV] = "sendrecv",
    [HALO_IRECV_ISEND] = "irecv_isend",
    [HALO_PERSISTENT] = "persistent",
    [HALO_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
    [HALO_PUT_FENCE] = "put_fence",
    [HALO_PROTOCOLS_END] = NULL,
};

const struct halo_protocol HALO_PROTOCOLS[] = {
    [HALO_SENDRECV] = {.exchange = halo_exchange_sendrecv},
    [HALO_IRECV_ISEND] = {.exchange = halo_exchange_irecv_isend},
    [HALO_PERSISTENT] = {.set_up = halo_set_up_persistent,
                         .exchange = halo_exchange_persistent,
                         .tear_down = halo_tear_down_persistent},
    [HALO_NEIGHBOR_ALLTOALL] = {.set_up = halo_set_up_neighbor,
                                .exchange = halo_exchange_neighbor,
                                .tear_down = halo_tear_down_neighbor},
    [HALO_PUT_FENCE] = {.set_up = halo_set_up_put,
                        .exchange = halo_exchange_put,
                        .tear_down = halo_tear_down_put},
};
