"""Stand-ins for release archives of programs, which build as those do."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

PROGRAM_C = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n"
PROGRAM_F90 = (
    "program p\nuse mpi\ninteger :: error\ncall MPI_Init(error)\nend program\n"
)
CONFIGURE = """#!/bin/sh
set -eu
for option; do
    case $option in
    --prefix=*) prefix=${option#*=} ;;
    CC=*) cc=${option#*=} ;;
    esac
done
source=$(dirname "$0")
cat >Makefile <<END
osu_latency: $source/program.c
\t$cc -o \\$@ $source/program.c
install: osu_latency
\tmkdir -p $prefix/libexec
\tcp osu_latency $prefix/libexec
END
"""
NPB_MAKEFILE = """include ../config/make.def
$(BINDIR)/{0}.$(CLASS).x: program.f90
\t$(MPIFC) $(FFLAGS) -o $@ program.f90
"""
BENCHMARKS = ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp")


def write_archive(file: Path, files: dict[str, str]) -> Path:
    """Write a tar.gz whose files are below one folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"folder/{name}")
            info.size, info.mode = len(text.encode()), 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
    return file


def osu_archive(folder: Path, version: str = "7.5.2", source: str = PROGRAM_C) -> Path:
    """Write a stand-in for OSU with one program."""
    files = {"configure": CONFIGURE, "program.c": source}
    return write_archive(folder / f"osu-micro-benchmarks-{version}.tar.gz", files)


def npb_archive(folder: Path) -> Path:
    """Write a stand-in for NPB with all programs."""
    files = {"NPB3.4-MPI/config/make.def.template": ""}
    for name in BENCHMARKS:
        place = f"NPB3.4-MPI/{name.upper()}"
        files[f"{place}/Makefile"] = NPB_MAKEFILE.format(name)
        files[f"{place}/program.f90"] = PROGRAM_F90
    return write_archive(folder / "NPB3.4.3.tar.gz", files)


def digest(file: Path) -> str:
    """Compute the SHA-256 of a file."""
    return sha256(file.read_bytes()).hexdigest()


def list_sums(folder: Path) -> None:
    """Write SHA256SUMS of a folder."""
    lines = [f"{digest(file)}  {file.name}\n" for file in sorted(folder.glob("*.gz"))]
    (folder / "SHA256SUMS").write_text("".join(lines))


def write_pins(file: Path, url: str, archive: Path | None = None) -> Path:
    """Write pins of OSU, with the checksum of an archive or of none."""
    pin: dict[str, Any] = {
        "name": "OSU Micro-Benchmarks",
        "version": "7.5.2",
        "url": f"{url}/osu-micro-benchmarks-7.5.2.tar.gz",
        "sha256": digest(archive) if archive else "0" * 64,
        "names": r"osu-micro-benchmarks-(\d[\w.-]*?)\.(?:tar\.gz|tgz)",
    }
    file.write_text(json.dumps({"osu": pin}))
    return file


_DLAMCH = "double HPL_dlamch(void) { return 1e-16; }\n"
_PDINFO = """#include <hpl.h>
int HPCC_Defaults();
int HPL_pdinfo(void) {
    int fid = 6;
    char file[] = "HPL.out";
    FILE *in = fopen("hpccinf.txt", "r");
      fid = 8; /* always write to a file */
      strcpy( file, "hpccoutf.txt" );
    puts(file);
    return in == 0 ? HPCC_Defaults() : fid;
}
"""
_PDDRIVER = """#include <hpl.h>
int HPL_pdinfo(void);
int HPL_main(int count, char **words, HPL_RuntimeData *best, int *failed) {
    printf("device %d\\n", HPL_pdinfo());
    return 0;
}
"""
_HPL_H = """#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { double Gflops; } HPL_RuntimeData;
"""


def hpl_files(folder: str = "") -> dict[str, str]:
    """Return a source of HPL with a program of its own."""
    return {
        f"{folder}include/hpl.h": _HPL_H,
        f"{folder}src/auxil/HPL_dlamch.c": _DLAMCH,
        f"{folder}src/comm/HPL_pack.c": "int MPI_Get_address(void);\n"
        "int pack(void) { return MPI_Address(); }\n",
        f"{folder}testing/ptest/HPL_pdtest.c": "int MPI_Get_address(void) "
        "{ return 0; }\n",
    }


def hpl_archive(folder: Path) -> Path:
    """Write a stand-in for HPL 2.3."""
    main = {"testing/ptest/HPL_pddriver.c": "int main(void) { return 0; }\n"}
    return write_archive(folder / "hpl-2.3.tar.gz", {**hpl_files(), **main})


def hpcc_archive(folder: Path) -> Path:
    """Write a stand-in for HPCC 1.5.0, whose HPL is a function."""
    own = {
        "hpl/testing/ptest/HPL_pdinfo.c": _PDINFO,
        "hpl/testing/ptest/HPL_pddriver.c": _PDDRIVER,
        "src/hpcc.c": "#error HPCC itself is not built\n",
    }
    return write_archive(
        folder / "hpcc_1.5.0.orig.tar.gz", {**hpl_files("hpl/"), **own}
    )


def hpcg_archive(folder: Path, source: str = "int main() { return 0; }\n") -> Path:
    """Write a stand-in for HPCG."""
    files = {"src/main.cpp": source, "src/ComputeSYMGS_ref.cpp": "int symgs;\n"}
    return write_archive(folder / "hpcg-3.1.tar.gz", files)
