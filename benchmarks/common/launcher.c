/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

#include <stdlib.h>

/* Slurm's come last: mpiexec in a batch job inherits those of its script. */
static const char *const LAUNCHER_RANKS[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL,
};
static const char *const LAUNCHER_LOCAL_RANKS[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PMI_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
    NULL,
};

static long launcher_number(const char *const *variables)
{
    for (; *variables != NULL; variables++) {
        const char *text = getenv(*variables);

        if (text != NULL) {
            char *end = NULL;
            long number = strtol(text, &end, 10);

            return end != text && *end == '\0' && number >= 0 ? number : -1;
        }
    }
    return -1;
}

long launcher_rank(void)
{
    return launcher_number(LAUNCHER_RANKS);
}

long launcher_local_rank(void)
{
    return launcher_number(LAUNCHER_LOCAL_RANKS);
}
