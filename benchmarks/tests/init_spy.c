/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded by a test: tells what a variable is at the very start of MPI. */
#include "launcher.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int MPI_Init(int *argc, char ***argv)
{
    const char *value = getenv("SEATRIAL_TEST_RAIL");

    (void)fprintf(stderr, "MPI_Init: place %ld, rail %s\n",
                  launcher_local_rank(), value != NULL ? value : "none");
    return PMPI_Init(argc, argv);
}
