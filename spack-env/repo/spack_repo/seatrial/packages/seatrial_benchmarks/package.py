# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

#: Where `make dist` writes, when this repository lies in a checkout of the project.
DIST = Path(__file__).resolve().parents[6] / "build" / "dist"


class SeatrialBenchmarks(CMakePackage):
    """The C benchmarks of Seatrial, for what no maintained tool measures: balance,
    halo2d, logp, mpair, pairsweep and so on."""

    url = f"file://{DIST}/seatrial-benchmarks-0.1.0.tar.gz"
    manual_download = True

    license("Apache-2.0")

    # `make dist` writes the checksum.
    version("0.1.0", sha256="38f809497b3d36e8c13cabbb91fa764a181266fbbdf01db79bbec71d80961713")

    variant("verbs", default=True, description="Build the programs of RDMA verbs")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")

    depends_on("mpi@3:")
    depends_on("rdma-core", when="+verbs")

    @property
    def download_instr(self):
        sha256 = self.versions[self.version]["sha256"]
        return (
            f"No {self.url} and none in a mirror (sha256 {sha256}): run `make dist` in a "
            "checkout of Seatrial, or put what it makes into a source mirror as "
            f"_source-cache/archive/{sha256[:2]}/{sha256}.tar.gz"
        )

    def cmake_args(self):
        sha256 = self.versions[self.version]["sha256"]
        return [
            self.define("BUILD_TESTING", False),
            self.define("SEATRIAL_VERBS", "ON" if "+verbs" in self.spec else "OFF"),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("SEATRIAL_COMMIT", f"tarball {sha256[:12]}"),
        ]
