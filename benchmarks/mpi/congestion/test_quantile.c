/* SPDX-License-Identifier: Apache-2.0 */
#include "quantile.h"

#include "unit.h"

#include <mpi.h>

enum { EACH = 100 };

/* Rank r has the numbers from 100 r: of n ranks, all from 0 to 100 n - 1. */
static void test_all_ranks(int rank, int ranks)
{
    double samples[EACH];
    int all = EACH * ranks;

    for (int i = 0; i < EACH; i++) {
        samples[i] = EACH * rank + i;
    }
    for (int percent = 1; percent <= 100; percent++) {
        double found =
            quantile_of_all(MPI_COMM_WORLD, samples, EACH, percent / 100.0);

        EXPECT((int)found == percent * all / 100 - 1);
    }
    EXPECT(quantile_mean(MPI_COMM_WORLD, samples, EACH) == (all - 1) / 2.0);
}

/* One sample in all, of the last rank; equal ones; fractions. */
static void test_few(int rank, int ranks)
{
    double one = 0.1;
    double same[3] = {0.0, 7.5, 7.5};
    size_t n = rank == ranks - 1;

    EXPECT(quantile_of_all(MPI_COMM_WORLD, &one, n, 0.99) == 0.1);
    EXPECT(quantile_mean(MPI_COMM_WORLD, &one, n) == 0.1);
    EXPECT(quantile_of_all(MPI_COMM_WORLD, same, 3, 1.0 / 3.0) == 0.0);
    EXPECT(quantile_of_all(MPI_COMM_WORLD, same, 3, 0.5) == 7.5);
}

int main(int argc, char **argv)
{
    int rank = 0;
    int ranks = 0;

    (void)MPI_Init(&argc, &argv);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    test_all_ranks(rank, ranks);
    test_few(rank, ranks);
    (void)MPI_Finalize();
    return 0;
}
