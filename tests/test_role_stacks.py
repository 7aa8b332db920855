"""The role mpi: modules of a stack, its start, and the MPI library it is."""

import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import test_role_scripts
import yaml
from fake_home import fake_program
from test_spack_stack import render

MODULE = """module() {
    case "$1 $2" in
    "use $FOLDER") HAS_GCC=yes ;;
    "load gcc/13.2") [ -n "$HAS_GCC" ] && HAS_OPENMPI=yes ;;
    "load openmpi/5.0")
        [ -n "$HAS_OPENMPI" ] || { printf 'Lmod: error:\\n none' >&2; return 1; }
        export LOADED=$2 ;;
    esac
}
"""


@pytest.fixture
def programs() -> ModuleType:
    return test_role_scripts.load("mpi/module_utils/mpi_programs.py")


@pytest.fixture
def identity() -> ModuleType:
    return test_role_scripts.load("mpi/module_utils/mpi_identity.py")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login shell with modules in a hierarchy; returns its folder."""
    folder = tmp_path / "module files"
    folder.mkdir()
    (tmp_path / ".bash_profile").write_text(f"FOLDER='{folder}'\n{MODULE}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def test_modules_of_a_hierarchy_load_from_their_folder_in_order(
    programs: ModuleType, modules: Path
) -> None:
    names = ["gcc/13.2", "openmpi/5.0"]
    loaded = programs.login_environment(names, [str(modules)])
    assert loaded["LOADED"] == "openmpi/5.0"
    problem = (
        "modules openmpi/5.0 gcc/13.2 do not load: Lmod: error: none; "
        "name each in the order of the hierarchy, the compiler first"
    )
    with pytest.raises(programs.ProblemError, match=problem):
        programs.login_environment(names[::-1], [str(modules)])


def test_program_of_a_vendor_may_be_a_script(
    programs: ModuleType, tmp_path: Path
) -> None:
    """ldd cannot tell its MPI; a program that loads another one is refused."""
    fake_program(tmp_path, "hpl.sh", "exec ./xhpl-of-the-vendor")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    own = ["/opt/mpi/lib/libmpi.so.40"]
    for feature in ("hpl", "hpcg"):
        found = programs.find_program(feature, "hpl.sh", own, env)
        assert found == str(tmp_path / "hpl.sh")
    with pytest.raises(programs.ProblemError, match="uses no MPI library"):
        programs.find_program("hpcc", "hpl.sh", own, env)
    with pytest.raises(programs.ProblemError, match="uses no MPI library"):
        programs.find_program("hpl", "/bin/ls", own, env)


def test_a_folder_of_modules_must_be_there(programs: ModuleType) -> None:
    with pytest.raises(programs.ProblemError, match="module_folders: no folder /no/x;"):
        programs.login_environment([], ["/no/x"])


DEBIAN_OPENMPI = (
    "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, "
    "May 26, 2022"
)
HPCX = (
    "Open MPI v4.1.7a1, package: Open MPI root@hpc-kernel-03 Distribution, ident: "
    "4.1.7a1, repo rev: v4.1.5-106-gefbeca7056, Unreleased developer copy"
)
INTEL = """Intel(R) MPI Library for Linux* OS, Version 2021.12 Build 20240213 (id: 4f5)
Copyright 2003-2024, Intel Corporation.
"""
MPICH = """MPICH Version:    	4.0.2
MPICH Release date:	Thu Apr  7 12:34:45 CDT 2022
MPICH Device:    	ch4:ucx
"""
OMPI_INFO = """package:Debian OpenMPI
ompi:version:full:4.1.4
ompi:version:repo:v4.1.4
path:prefix:/usr
"""


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        (DEBIAN_OPENMPI, "openmpi", "4.1.4"),
        (OMPI_INFO, "openmpi", "4.1.4"),
        (
            "Open MPI v5.0.10, package: Open MPI brew, ident: 5.0.10",
            "openmpi",
            "5.0.10",
        ),
        ("mpirun (Open MPI) 5.0.9", "openmpi", "5.0.9"),
        ("HYDRA build details:\n    Version:    4.0.2\n", "mpich", "4.0.2"),
        ("mpirun.openmpi (OpenRTE) 4.1.4", "openmpi", "4.1.4"),
        (MPICH, "mpich", "4.0.2"),
        (MPICH.replace("MPICH", "MVAPICH"), "mvapich", "4.0.2"),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release", "mvapich2", "2.3.7"),
        ("MVAPICH2 2.3.7 Wed March 02 22:00:00 EST 2022 ch3", "mvapich2", "2.3.7"),
        (INTEL, "intel-oneapi-mpi", "2021.12"),
        ("Intel(R) MPI Library 2021.13 for Linux* OS", "intel-oneapi-mpi", "2021.13"),
    ],
)
def test_mpi_library_is_recognised_by_its_own_text(
    identity: ModuleType, text: str, name: str, version: str
) -> None:
    assert identity.library_of(text) == {"mpi_name": name, "version": version}


def test_hpcx_is_recognised_by_its_folder(identity: ModuleType) -> None:
    compiler = "/opt/hpcx-v2.20-gcc-mlnx_ofed-redhat9-cuda12-x86_64/ompi/bin/mpicc"
    library = identity.library_of(HPCX, compiler)
    assert library["mpi_name"] == "hpcx"
    assert (library["version"], library["package_version"]) == ("4.1.7a1", "2.20")
    assert identity.library_of(HPCX, "/opt/ompi/bin/mpicc")["mpi_name"] == "openmpi"
    assert identity.library_of("gcc (GCC) 13.2") == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mpirun (Open MPI) 5.0.9\n", "openmpi"),
        ("mpirun.openmpi (OpenRTE) 4.1.4\n", "openmpi"),
        ("HYDRA build details:\n    Version:    4.0.2\n", "hydra"),
        (INTEL, "hydra"),
        ("slurm 23.02.7", ""),
    ],
)
def test_kind_of_mpirun(identity: ModuleType, text: str, kind: str) -> None:
    assert identity.mpirun_kind(text) == kind


SLURM_20_11 = """srun: MPI types are...
srun: cray_shasta
srun: none
srun: pmi2
srun: pmix
srun: pmix_v3
"""
SLURM_22_05 = """MPI plugin types are...
\tnone
\tcray_shasta
\tpmi2
\tpmix
specific pmix plugin versions available: pmix_v3,pmix_v4
"""


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (SLURM_20_11, ["cray_shasta", "none", "pmi2", "pmix", "pmix_v3"]),
        (SLURM_22_05, ["none", "cray_shasta", "pmi2", "pmix", "pmix_v3", "pmix_v4"]),
        ("none\npmi2\n", ["none", "pmi2"]),
        ("srun: error: Unable to contact slurm controller", []),
    ],
)
def test_types_of_srun_mpi_by_several_versions(
    identity: ModuleType, text: str, types: list[str]
) -> None:
    assert identity.mpi_plugins(text) == types


def test_srun_mpi_must_be_offered_by_slurm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = test_role_scripts.load("mpi/library/mpi_stack_info.py")
    stacks = [{"name": "a", "srun_mpi": "pmix"}, {"name": "b", "srun_mpi": "pmi2"}]
    stacks.append({"name": "c", "launcher": "mpirun"})
    monkeypatch.setattr(info, "login_environment", lambda modules: dict(os.environ))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    fake_program(tmp_path, "srun", "printf 'MPI plugin types are...\\n\\tpmix\\n' >&2")
    [problem] = info.verify_srun_mpi(stacks)
    assert problem == (
        "stack b: srun_mpi: expected one of pmix, which Slurm offers, got 'pmi2'; or "
        "set launcher: mpirun"
    )
    fake_program(tmp_path, "srun", "echo 'srun: error: no plugin' >&2; exit 1")
    [problem] = info.verify_srun_mpi(stacks)
    assert problem == "`srun --mpi=list` fails: srun: error: no plugin"


def test_a_probe_runs_where_programs_can_be_executed(
    identity: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noexec, shared = tmp_path / "noexec", tmp_path / "shared"
    shared.mkdir()
    noexec.mkdir()
    run = identity.run
    monkeypatch.setattr(
        identity,
        "run",
        lambda argv, env: (126, "") if "noexec" in argv[0] else run(argv, env),
    )
    assert identity.executable_folder(["", str(noexec), str(shared)]) == str(shared)
    problem = "no programs can be executed in .*/noexec, /no/such .* seatrial_prefix"
    with pytest.raises(identity.ProblemError, match=problem):
        identity.executable_folder([str(noexec), "/no/such"])


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_compiler_is_examined_with_its_own_library(
    identity: ModuleType, name: str, tmp_path: Path
) -> None:
    if not shutil.which(f"mpicc.{name}"):
        pytest.skip(f"no mpicc.{name}")
    stack = {"name": "s", "compiler": f"mpicc.{name}"}
    facts = identity.compiler_facts(stack, dict(os.environ), [str(tmp_path)])
    assert facts["mpi_name"] == name
    assert (
        facts["version"]
        == identity.library_of(identity.tool_text(facts["compiler"], dict(os.environ)))[
            "version"
        ]
    )
    assert facts["libraries"]


def test_the_mpirun_of_a_stack_is_beside_its_compiler(tmp_path: Path) -> None:
    info = test_role_scripts.load("mpi/library/mpi_stack_info.py")
    stack: dict[str, Any] = {
        "launcher": "mpirun",
        "compiler": str(tmp_path / "mpicc.x"),
    }
    env = {"PATH": str(tmp_path / "none")}
    with pytest.raises(info.ProblemError, match="mpirun on PATH; set launcher"):
        info.add_mpirun(stack, env)
    fake_program(tmp_path, "mpirun.x", "echo 'HYDRA build details:'")
    info.add_mpirun(stack, env)
    program = str(tmp_path / "mpirun.x")
    assert stack["mpirun"] == {"kind": "hydra", "program": program}
    fake_program(tmp_path, "mpirun.x", "echo site wrapper")
    with pytest.raises(info.ProblemError, match="prints 'site wrapper'; expected"):
        info.add_mpirun(stack, env)


def test_settings_name_the_start_and_binding_of_a_stack() -> None:
    stack: dict[str, Any] = {"name": "s", "programs": {}, "binding": "numa"}
    stack["launcher"] = "mpirun"
    stack |= {"mpirun": {"kind": "hydra", "program": "/x/mpirun"}}
    facts = dict.fromkeys(
        ("memory_mib", "cpus", "threads_per_core", "cores_per_socket", "sockets"), 1
    )
    found = {
        "name": "c",
        "facts": {**facts, "cpu_model": "x"},
        "access": [],
        "nodes": [],
    }
    text = render(
        "suite/templates/settings.yml.j2",
        mpi_found={"stacks": [stack]},
        nodes_found={"classes": [found]},
        seatrial_prefix="/x",
        seatrial_demonstration=False,
        node_classes=[
            {
                "name": "c",
                "binding": "cores",
                "cpu_clock_file": "/f/$cpu",
                "power_command": "ipmi-watts --node '$SLURMD_NODENAME'",
            }
        ],
        suite_description="x",
        suite_modules_system="lmod",
        suite_poll_rate_min=1,
        benchmarks_programs=[],
        suite_file_systems=[{"name": "scratch", "path": "/s", "share": 0.1}],
    )
    settings = yaml.safe_load(text)
    assert settings["environments"][0]["extras"] == {
        "launcher": "mpirun",
        "mpirun": {"kind": "hydra", "program": "/x/mpirun"},
        "binding": "numa",
    }
    extras = settings["systems"][0]["partitions"][0]["extras"]
    assert (extras["binding"], extras["cpu_clock_file"]) == ("cores", "/f/$cpu")
    assert extras["file_systems"] == [{"name": "scratch", "path": "/s", "share": 0.1}]
    assert extras["power_command"] == "ipmi-watts --node '$SLURMD_NODENAME'"


def test_standins_are_sorted_into_features_and_have_the_version_of_their_truth(
    tmp_path: Path,
) -> None:
    info = test_role_scripts.load("mpi/library/mpi_stack_info.py")
    folder = tmp_path / "standins"
    names = ["IMB-MPI1", "IMB-RMA", "cg.S.x", "hpcc", "lmp", "memlat", "osu_bw", "rr64"]
    for name in names:
        fake_program(folder / "bin", name, "exit 0")
    (folder / "truth.yaml").write_text("seed: 1\n")
    stack: dict[str, Any] = {"name": "model", "provider": "standins"}
    info.examine(stack, str(tmp_path), {})
    assert stack["benchmarks"] == ["memlat", "rr64"]
    assert stack["executables"] == [
        "IMB-MPI1",
        "IMB-RMA",
        "cg.S.x",
        "hpcc",
        "lmp",
        "osu_bw",
    ]
    assert sorted(stack["programs"]) == ["hpcc", "imb", "lammps", "npb", "osu"]
    assert stack["paths"] == [str(folder / "bin")]
    version = stack["version"]
    (folder / "truth.yaml").write_text("seed: 2\n")
    info.examine(stack, str(tmp_path), {})
    assert stack["version"] != version
