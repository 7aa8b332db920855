/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"
#include "unit.h"

/* A test may run below a launcher itself. */
static void forget(void)
{
    static const char *const VARIABLES[] = {
        "OMPI_COMM_WORLD_RANK",
        "PMIX_RANK",
        "PMI_RANK",
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "PMI_LOCAL_RANK",
        "PALS_LOCAL_RANKID",
        "SLURM_LOCALID",
    };

    for (size_t i = 0; i < sizeof(VARIABLES) / sizeof(VARIABLES[0]); i++) {
        EXPECT(unsetenv(VARIABLES[i]) == 0);
    }
}

static void set(const char *name, const char *value)
{
    EXPECT(setenv(name, value, 1) == 0);
}

int main(void)
{
    forget();
    EXPECT(launcher_rank() == -1 && launcher_local_rank() == -1);

    /* The script of a batch job has the last two; its mpiexec sets its own. */
    set("SLURM_PROCID", "0");
    set("SLURM_LOCALID", "0");
    EXPECT(launcher_rank() == 0 && launcher_local_rank() == 0);
    set("PMI_RANK", "12");
    set("MPI_LOCALRANKID", "3");
    EXPECT(launcher_rank() == 12 && launcher_local_rank() == 3);

    set("PMI_RANK", "");
    set("MPI_LOCALRANKID", "3x");
    EXPECT(launcher_rank() == -1 && launcher_local_rank() == -1);
    return 0;
}
