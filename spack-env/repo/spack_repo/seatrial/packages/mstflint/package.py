# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Mstflint(AutotoolsPackage):
    """Firmware and settings of NVIDIA (Mellanox) adapters: mstflint, mstconfig,
    mstlink and so on."""

    homepage = "https://github.com/Mellanox/mstflint"
    git = "https://github.com/Mellanox/mstflint.git"

    license("GPL-2.0-only OR BSD-2-Clause")

    version("4.36.0-1", tag="v4.36.0-1", commit="b9d9e844a14ae1c85cb90c76ccd4a56a0eccd599")

    variant("inband", default=True, description="Reach devices through MADs of InfiniBand")

    depends_on("c", type="build")
    depends_on("cxx", type="build")

    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("openssl")
    depends_on("python", type="run")
    depends_on("rdma-core", when="+inband")
    depends_on("zlib-api")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        return self.enable_or_disable("inband")
