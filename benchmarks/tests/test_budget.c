/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"
#include "check.h"
#include "unit.h"

static void test_fit(void)
{
    EXPECT(budget_fit(10.0, 1000, 1000.0) == 100);
    EXPECT(budget_fit(10.0, 50, 1000.0) == 50);
    EXPECT(budget_fit(10.0, 1000, 1009.0) == 100);
    EXPECT(budget_fit(1e9, 1000, 1000.0) == 1);
    EXPECT(budget_fit(0.0, 1000, 1000.0) == 1000);
    EXPECT(budget_fit(0.0, SETTINGS_MAX_ITERATIONS,
                      SETTINGS_MAX_TIME_MS * 1e3) == SETTINGS_MAX_ITERATIONS);
}

/* The last rank is the slowest: it takes 10 us per rank. */
static void test_slowest_rank_decides(void)
{
    int np = 0;
    int rank = 0;

    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &np), "all ranks");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
    EXPECT(budget_iterations(MPI_COMM_WORLD, 10.0 * (rank + 1), 1000,
                             np * 1000.0) == 100);
    EXPECT(budget_iterations(MPI_COMM_WORLD, rank == 0 ? 1e9 : 0.0, 1000,
                             1000.0) == 1);
}

static void test_warmup_keeps_its_share(void)
{
    const struct settings_common common = {.iterations = 1000, .warmup = 200};
    const struct settings_common none = {.iterations = 1000, .warmup = 0};
    const struct settings_common most = {.iterations = SETTINGS_MAX_ITERATIONS,
                                         .warmup = SETTINGS_MAX_ITERATIONS};

    EXPECT(budget_warmup(&common, 1000) == 200);
    EXPECT(budget_warmup(&common, 10) == 2);
    EXPECT(budget_warmup(&common, 1) == 0);
    EXPECT(budget_warmup(&none, 1000) == 0);
    EXPECT(budget_warmup(&most, SETTINGS_MAX_ITERATIONS) ==
           SETTINGS_MAX_ITERATIONS);
}

int main(int argc, char **argv)
{
    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    test_fit();
    test_slowest_rank_decides();
    test_warmup_keeps_its_share();
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}
