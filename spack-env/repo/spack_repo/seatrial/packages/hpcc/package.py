# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.packages.hpcc.package import Hpcc as BuiltinHpcc

from spack.package import *


class Hpcc(BuiltinHpcc):
    """HPC Challenge: HPL, STREAM, RandomAccess, PTRANS, FFT, latency and bandwidth.

    The stock recipe, but HPL calls functions of MPI-1 by the names that MPI-2 gave them:
    MPI-3 removed the old ones, and a distribution's Open MPI has them no more."""

    def patch(self):
        super().patch()
        for file in find("hpl/src", "*.c"):
            filter_file(r"\bMPI_Address\b", "MPI_Get_address", file)
            filter_file(r"\bMPI_Type_struct\b", "MPI_Type_create_struct", file)
