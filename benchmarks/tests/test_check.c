/* SPDX-License-Identifier: Apache-2.0 */
/* A call that MPI must refuse; what is printed of it is compared by CTest. */
#include "check.h"

int main(int argc, char **argv)
{
    int nobody = 99;

    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "all ranks");
    CHECK_MPI(MPI_Send(&nobody, 1, MPI_INT, nobody, 0, MPI_COMM_WORLD),
              "to rank %d", nobody);
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}
