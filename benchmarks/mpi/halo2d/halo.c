/* SPDX-License-Identifier: Apache-2.0 */
#include "halo.h"

#include "check.h"
#include "payload.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { HALO_VALIDATION_STEPS = 10 };

void halo_grid_create(MPI_Comm comm, struct halo_grid *grid)
{
    int dims[2] = {0, 0};
    int periods[2] = {1, 1};
    int own[2];

    CHECK_MPI(MPI_Comm_size(comm, &grid->np), "all ranks");
    CHECK_MPI(MPI_Dims_create(grid->np, 2, dims), "%d ranks", grid->np);
    grid->py = dims[0];
    grid->px = dims[1];
    CHECK_MPI(MPI_Cart_create(comm, 2, dims, periods, 0, &grid->comm),
              "%d x %d ranks", grid->px, grid->py);
    CHECK_MPI(MPI_Comm_rank(grid->comm, &grid->rank), "grid");
    CHECK_MPI(MPI_Cart_coords(grid->comm, grid->rank, 2, own), "rank %d",
              grid->rank);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int place[2] = {own[0] + i - 1, own[1] + j - 1};

            CHECK_MPI(MPI_Cart_rank(grid->comm, place, &grid->neighbours[i][j]),
                      "row %d, column %d", place[0], place[1]);
        }
    }
}

void halo_grid_free(struct halo_grid *grid)
{
    CHECK_MPI(MPI_Comm_free(&grid->comm), "grid");
}

double halo_size_bytes(long n)
{
    return ((double)n + 2.0) * ((double)n + 2.0) * (double)sizeof(double);
}

static double *halo_cell(const struct halo *halo, int row, int column)
{
    return halo->cells + (size_t)row * halo->stride + (size_t)column;
}

/* Set the order of messages of a sub-domain with allocated cells. */
static void halo_plan(struct halo *halo)
{
    const int(*ranks)[3] = halo->grid->neighbours;
    int n = halo->n;
    MPI_Datatype row;
    MPI_Datatype column;

    CHECK_MPI(MPI_Type_contiguous(n, MPI_DOUBLE, &row), "N %d", n);
    CHECK_MPI(MPI_Type_commit(&row), "row, N %d", n);
    CHECK_MPI(MPI_Type_vector(n + 2, 1, n + 2, MPI_DOUBLE, &column), "N %d", n);
    CHECK_MPI(MPI_Type_commit(&column), "column, N %d", n);
    halo->phases[0] = (struct halo_phase){
        .type = row,
        .count = n > 0,
        .transfers = {{halo_cell(halo, 1, 1), ranks[0][1],
                       halo_cell(halo, n + 1, 1), ranks[2][1], 0},
                      {halo_cell(halo, n, 1), ranks[2][1],
                       halo_cell(halo, 0, 1), ranks[0][1], 1}},
    };
    /* Columns hold the rows that have just come in, so corners follow. */
    halo->phases[1] = (struct halo_phase){
        .type = column,
        .count = n > 0,
        .transfers = {{halo_cell(halo, 0, 1), ranks[1][0],
                       halo_cell(halo, 0, n + 1), ranks[1][2], 2},
                      {halo_cell(halo, 0, n), ranks[1][2],
                       halo_cell(halo, 0, 0), ranks[1][0], 3}},
    };
}

void halo_create(const struct halo_grid *grid, int n,
                 const struct halo_protocol *protocol, struct halo *halo)
{
    *halo = (struct halo){
        .grid = grid,
        .n = n,
        .stride = (size_t)n + 2,
        .protocol = protocol,
    };
    halo->cells = check_allocate(halo->stride * halo->stride * sizeof(double),
                                 "the sub-domain");
    halo_plan(halo);
    if (protocol->set_up != NULL) {
        protocol->set_up(halo);
    }
}

void halo_free(struct halo *halo)
{
    if (halo->protocol->tear_down != NULL) {
        halo->protocol->tear_down(halo);
    }
    for (int p = 0; p < HALO_PHASES; p++) {
        CHECK_MPI(MPI_Type_free(&halo->phases[p].type), "phase %d", p);
    }
    free(halo->cells);
}

/* The value of a cell in a step: an integer below 2^53, exact as a double. */
static double halo_value(int rank, int row, int column, int step)
{
    uint64_t where = ((uint64_t)(uint32_t)row << 32) | (uint32_t)column;
    uint64_t when = ((uint64_t)(uint32_t)rank << 32) | (uint32_t)step;

    return (double)(payload_mix(payload_mix(where + 1) ^ when) >> 11);
}

/* 0, 1 or 2 as the index is in the halo before, the sub-domain, or after. */
static int halo_side(int index, int n)
{
    return index == 0 ? 0 : index <= n ? 1 : 2;
}

/* The index, in the sub-domain that owns it, of a cell seen from next to it. */
static int halo_wrap(int index, int n)
{
    return index == 0 ? n : index <= n ? index : 1;
}

/* Only edges and halo travel, so the middle of the inner rows is skipped. */
static int halo_next_column(int row, int column, int n)
{
    bool is_inner = row > 1 && row < n;

    return is_inner && column == 1 ? n : column + 1;
}

static void halo_fill(struct halo *halo, int step)
{
    int n = halo->n;

    for (int i = 0; i < n + 2; i++) {
        for (int j = 0; j < n + 2; j = halo_next_column(i, j, n)) {
            bool is_own = halo_side(i, n) == 1 && halo_side(j, n) == 1;

            *halo_cell(halo, i, j) =
                is_own ? halo_value(halo->grid->rank, i, j, step) : NAN;
        }
    }
}

static long halo_compare(const struct halo *halo, int step)
{
    int n = halo->n;
    long wrong = 0;

    for (int i = 0; i < n + 2; i++) {
        for (int j = 0; j < n + 2; j = halo_next_column(i, j, n)) {
            int owner =
                halo->grid->neighbours[halo_side(i, n)][halo_side(j, n)];
            double expected =
                halo_value(owner, halo_wrap(i, n), halo_wrap(j, n), step);
            double found = *halo_cell(halo, i, j);

            if (found != expected && wrong++ == 0) {
                check_print("validation failed: N %d, step %d, row %d, column "
                            "%d, sent by rank %d: expected %.17g, found %.17g",
                            n, step, i, j, owner, expected, found);
            }
        }
    }
    return wrong;
}

/* A test build damages one received corner, to prove that it is noticed. */
static void halo_corrupt(struct halo *halo, int step)
{
#ifdef PLANT_CORRUPTION
    if (step == HALO_VALIDATION_STEPS - 1 &&
        halo->grid->rank == halo->grid->np - 1) {
        *(unsigned char *)halo_cell(halo, halo->n + 1, halo->n + 1) ^= 1;
    }
#else
    (void)halo;
    (void)step;
#endif
}

long halo_validate(struct halo *halo)
{
    long wrong = 0;

    if (halo->n == 0) {
        return 0;
    }
    for (int step = 0; step < HALO_VALIDATION_STEPS && wrong == 0; step++) {
        halo_fill(halo, step);
        halo->protocol->exchange(halo);
        halo_corrupt(halo, step);
        wrong = halo_compare(halo, step);
        CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM,
                                halo->grid->comm),
                  "wrong cells, N %d", halo->n);
    }
    return wrong;
}
