# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Perftest(AutotoolsPackage):
    """Latency and bandwidth of InfiniBand and RoCE verbs, below MPI: ib_write_lat,
    ib_write_bw, ib_send_lat and so on."""

    homepage = "https://github.com/linux-rdma/perftest"
    git = "https://github.com/linux-rdma/perftest.git"

    license("GPL-2.0-only OR BSD-2-Clause")

    version("26.04.17", tag="26.04.17", commit="720b61082454e189b1f21835ec175536a944afc3")

    depends_on("c", type="build")
    depends_on("cxx", type="build")  # configure looks for a C++ compiler

    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")

    depends_on("numactl", when="@26:")
    depends_on("pciutils")
    depends_on("rdma-core")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()
