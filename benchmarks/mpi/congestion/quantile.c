/* SPDX-License-Identifier: Apache-2.0 */
#include "quantile.h"

#include "check.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The bits of numbers from 0 are in the order of the numbers. */
static double quantile_number(uint64_t bits)
{
    double number = 0.0;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

static size_t quantile_count(const double *sorted, size_t n, double limit)
{
    size_t low = 0;
    size_t high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sorted[middle] <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static long long quantile_sum(MPI_Comm comm, long long count)
{
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_LONG_LONG, MPI_SUM, comm),
        "samples of all ranks");
    return count;
}

double quantile_of_all(MPI_Comm comm, const double *sorted, size_t n,
                       double share)
{
    long long all = quantile_sum(comm, (long long)n);
    /* Less a rounding error: 0.07 x 300 is above 21. */
    long long wanted = (long long)ceil(share * (double)all * (1.0 - 1e-12));
    uint64_t low = 0;
    uint64_t high = UINT64_C(0x7ff0000000000000); /* infinity */

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        size_t below = quantile_count(sorted, n, quantile_number(middle));

        if (quantile_sum(comm, (long long)below) >= wanted) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return quantile_number(low);
}

double quantile_mean(MPI_Comm comm, const double *samples, size_t n)
{
    double sums[2] = {0.0, (double)n};

    for (size_t i = 0; i < n; i++) {
        sums[0] += samples[i];
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, comm),
              "mean of all ranks");
    return sums[0] / sums[1];
}
