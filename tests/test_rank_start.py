"""Start of ranks by srun or the stack's mpirun, and their binding."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_home import fake_program
from test_program_checks import dry_run

from seatrial.checks import rank_start

SCRIPT = Path(rank_start.__file__).with_name(rank_start.SCRIPT)
PRINT = """
echo "$@"
echo "tasks=$SLURM_TASKS_PER_NODE nodes=$SLURM_JOB_NODELIST count=$SLURM_JOB_NUM_NODES"
echo "overlap=$SLURM_OVERLAP type=$SLURM_MPI_TYPE own=${SLURM_NTASKS_PER_NODE-none}"
echo "pin=${I_MPI_PIN-} ${I_MPI_PIN_DOMAIN-} ${MV2_ENABLE_AFFINITY-}" "in $PWD"
"""
MPIRUN = {"kind": "openmpi", "program": "/opt/ompi/bin/mpirun"}


def start(
    folder: Path, *arguments: str, kind: str = "openmpi", version: str = ""
) -> list[str]:
    """Return what a stand-in of mpirun prints of its arguments and environment."""
    text = f"[ \"$1\" = --version ] && {{ echo '{version}'; exit; }}\n{PRINT}"
    fake_program(folder, "mpirun", text)
    fake_program(folder, "srun", 'echo "srun $*"')
    numbers = """[ "$3" = 'n[3-4]' ] && numbers='3 4' || numbers='1 2 3 4'"""
    fake_program(folder, "scontrol", f"{numbers}\nprintf 'n%s\\n' $numbers")
    job = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4"}
    job |= {"SLURM_NTASKS": "8", "SLURM_NTASKS_PER_NODE": "2"}
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", SCRIPT, kind, str(folder / "mpirun"), *arguments],
        env={"PATH": path, **job},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).splitlines()


def test_openmpi_starts_all_ranks_of_a_job(tmp_path: Path) -> None:
    lines = start(tmp_path, "--kill-on-bad-exit=1", "program", "--nodes=9")
    assert lines == [
        "-np 8 --map-by slot program --nodes=9",
        "tasks=2(x4) nodes=n1,n2,n3,n4 count=4",
        "overlap=1 type=none own=none",
        f"pin=   in {tmp_path}",
    ]


STEP = ("--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--distribution=cyclic")


def test_a_step_has_its_own_nodes_ranks_binding_and_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    more = ("--nodelist=n[3-4]", "--cpu-bind=ldoms", "--chdir=sub", "--overlap")
    lines = start(tmp_path, *STEP, *more, "--job-name=x", "program")
    assert lines[0] == "-np 8 --map-by node --bind-to numa program"
    assert lines[1] == "tasks=4(x2) nodes=n3,n4 count=2"
    assert lines[3].endswith(f"in {tmp_path}/sub")


def test_hydra_places_and_binds_by_its_own_options(tmp_path: Path) -> None:
    lines = start(tmp_path, *STEP, "--cpu-bind=cores", "program", kind="hydra")
    assert lines[0] == (
        "-bootstrap slurm -hosts n1,n2 -ppn 1 -n 8 -bind-to core program"
    )
    assert lines[3].startswith("pin=1 core 0")
    block = start(tmp_path, *STEP[:3], "program", kind="hydra")
    assert block[0] == "-bootstrap slurm -hosts n1,n2 -ppn 4 -n 8 program"
    intel = "Intel(R) MPI Library for Linux* OS, Version 2021.12"
    lines = start(tmp_path, "--cpu-bind=none", "program", kind="hydra", version=intel)
    assert lines[0] == "-bootstrap slurm -hosts n1,n2,n3,n4 -ppn 2 -n 8 program"
    assert lines[3].startswith("pin=0 ")


def test_what_mpirun_cannot_do_is_refused_or_left_to_srun(tmp_path: Path) -> None:
    assert start(tmp_path, "--nodes=1", "--mpi=none", "sensors") == [
        "srun --nodes=1 --mpi=none sensors"
    ]
    assert start(tmp_path, "--cpu-freq=1500", "program") == [
        "mpirun.sh: error: mpirun has no option like srun's --cpu-freq=1500"
    ]


@pytest.mark.parametrize(
    ("kind", "name"), [("openmpi", "mpirun.openmpi"), ("hydra", "mpirun.mpich")]
)
def test_real_mpirun_starts_and_binds_ranks_on_this_node(
    kind: str, name: str, tmp_path: Path
) -> None:
    program = shutil.which(name)
    if not program:
        pytest.skip(f"no {name}")
    host = socket.gethostname()
    # Hydra starts its proxy of the only node by srun, without Slurm here.
    find_proxy = 'while [ "${1%proxy}" = "$1" ]; do shift; done'
    fake_program(tmp_path, "srun", f'{find_proxy}; SLURM_NODEID=0 exec "$@"')
    job = {"SLURM_JOB_NODELIST": host, "SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "1"}
    job |= {"SLURM_JOBID": "1", "SLURM_JOB_ID": "1"} if kind == "openmpi" else {}
    job |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ["--nodes=1", "--ntasks=2", "--ntasks-per-node=2", f"--nodelist={host}"]
    options += ["--cpu-bind=none", "sh", "-c", rank_start._PRINT_CPUS]
    done = subprocess.run(
        ["bash", SCRIPT, kind, program, *options],
        env={**os.environ, **job, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = sorted(line.split() for line in done.stdout.splitlines())
    assert [row[1] for row in rows] == ["0", "1"], done.stderr


def job_script(folder: Path) -> str:
    (file,) = folder.rglob("rfm_job.sh")
    return file.read_text()


def test_a_job_starts_by_mpirun_and_records_its_binding(tmp_path: Path) -> None:
    dry_run(tmp_path, "Hpcc", mpirun=MPIRUN, binding="numa")
    script = job_script(tmp_path)
    launch = "bash mpirun.sh openmpi /opt/ompi/bin/mpirun --cpu-bind=ldoms"
    assert f"bash start.sh {launch} --kill-on-bad-exit=1 hpcc" in script
    assert f"{launch} --kill-on-bad-exit=1 sh -c" in script
    assert ">affinity.txt" in script
    (copy,) = tmp_path.rglob("mpirun.sh")
    assert copy.read_text() == SCRIPT.read_text()


def test_conductors_and_steps_start_by_mpirun_too(tmp_path: Path) -> None:
    dry_run(tmp_path, "PairSweep|NodeSweep|Startup", mpirun=MPIRUN)
    files = [file for file in tmp_path.rglob("rfm_job.sh") if "openmpi" in file.parts]
    assert len(files) == 3
    for file in files:
        script = file.read_text()
        assert "bash mpirun.sh openmpi /opt/ompi/bin/mpirun" in script
        assert "srun" not in script.replace("# srun fails", "")


@pytest.mark.parametrize(
    ("stack", "option"), [({}, "ldoms"), ({"binding": "cores"}, "cores")]
)
def test_a_binding_of_the_stack_precedes_that_of_the_class(
    stack: dict[str, Any], option: str, tmp_path: Path
) -> None:
    partition = {"binding": "numa"}
    dry_run(tmp_path, "Hpcc", of_class=partition, **stack)
    assert f"srun --mpi=pmix --cpu-bind={option} --kill" in job_script(tmp_path)


def test_without_a_declared_binding_none_is_set_nor_recorded(tmp_path: Path) -> None:
    dry_run(tmp_path, "Hpcc")
    script = job_script(tmp_path)
    assert "cpu-bind" not in script
    assert "affinity" not in script


def test_clocks_are_not_set_by_mpirun(tmp_path: Path) -> None:
    output = dry_run(tmp_path, "OsuClock", mpirun=MPIRUN)
    assert "is started by mpirun, which cannot set the clock" in output
