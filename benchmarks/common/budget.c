/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"

#include "check.h"

#include <math.h>

long budget_fit(double iteration_us, long wanted, double budget_us)
{
    double fit = budget_us / fmax(iteration_us, 1e-3);

    return (long)fmax(1.0, fmin((double)wanted, fit));
}

long budget_iterations(MPI_Comm comm, double iteration_us, long wanted,
                       double budget_us)
{
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &iteration_us, 1, MPI_DOUBLE, MPI_MAX,
                            comm),
              "pilot");
    return budget_fit(iteration_us, wanted, budget_us);
}

long budget_warmup(const struct settings_common *common, long iterations)
{
    return common->warmup * iterations / common->iterations;
}

struct settings_common budget_windows(const struct settings_common *common,
                                      long windows)
{
    struct settings_common result = *common;

    result.iterations = windows;
    result.warmup = budget_warmup(common, windows);
    return result;
}

struct settings_common budget_longest(const struct settings_common *common,
                                      long windows)
{
    return windows > common->iterations ? budget_windows(common, windows)
                                        : *common;
}
