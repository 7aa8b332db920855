/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "halo.h"

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
        MPI_Request requests[2 * HALO_TRANSFERS];
        MPI_Status statuses[2 * HALO_TRANSFERS];

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
                                halo->grid->comm, &requests[2 + d]),
                      "N %d, to rank %d", halo->n, transfer->destination);
        }
        CHECK_MPI(MPI_Waitall(2 * HALO_TRANSFERS, requests, statuses),
                  "N %d, phase %d", halo->n, p);
    }
}

const char *const HALO_PROTOCOLS[] = {
    "sendrecv",
    "irecv_isend",
    NULL,
};

const halo_exchange_func HALO_EXCHANGES[] = {
    halo_exchange_sendrecv,
    halo_exchange_irecv_isend,
    NULL,
};

_Static_assert(sizeof(HALO_PROTOCOLS) / sizeof(HALO_PROTOCOLS[0]) ==
                   sizeof(HALO_EXCHANGES) / sizeof(HALO_EXCHANGES[0]),
               "every protocol has a name and an exchange");
