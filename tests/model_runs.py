"""Run checks on a model machine: real ReFrame, no Slurm, and programs of stand-ins."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe_runs import HOME, SETTINGS, check_paths, reframe_within

from seatrial.standins.install import install
from seatrial.standins.programs import names
from seatrial.standins.truth import Truth

STAND_INS = Path(__file__).parent / "data" / "standins"
REPLAY = Path(__file__).parent / "data" / "replay"
_OWN = (
    "affinity balance bufreuse congestion fixedwork halo2d logp memlat mpair mq_posted "
    "mq_unexp osnoise pairsweep mp_rdma_bw mp_rdma_lat mqp_lat mr_cost "
    "pairsweep_verbs winbw"
)
_LAUNCHER = """
import json
from reframe.core.launchers.mpi import SrunLauncher

def command(self, job):
    tasks, each = job.num_tasks, job.num_tasks_per_node or 1
    options = f"--nodes={{tasks // each}}", f"--ntasks={{tasks}}"
    return ["srun", *options, f"--ntasks-per-node={{each}}"]

SrunLauncher.command = command
site_configuration = json.loads({settings!r})
"""
"""ReFrame's settings: without Slurm, srun must be told of nodes and ranks."""


def node_names(count: int) -> list[str]:
    """Return the names of that many nodes."""
    return [f"mn{number:04}" for number in range(1, count + 1)]


def model_truth(nodes: int, **values: Any) -> Truth:
    """Return the truth of a machine of that many nodes."""
    return Truth(**{"seed": 1, "nodes": f"mn[0001-{nodes:04}]", **values})


def _settings(nodes: int, machine: Path, demonstration: bool) -> dict[str, Any]:
    """Return settings with one stack, whose programs are the stand-ins."""
    settings: dict[str, Any] = json.loads(SETTINGS.read_text())
    partition = settings["systems"][0]["partitions"][0]
    partition["extras"]["nodes"] = node_names(nodes)
    partition["extras"]["demonstration"] = demonstration
    partition["environs"] = ["model"]
    partition["launcher"] = "srun"
    partition["extras"] |= {
        "rails": ["model0:1"],
        "file_systems": [{"name": "scratch", "path": str(machine), "share": 0.5}],
        "gid_indexes": {},
        "cpu_frequencies": [1_800_000, 2_400_000],
        "cpu_clock_file": f"{machine}/clock/$SLURM_CPU_FREQ_REQ",
        "peak_gflops": 2500,
        "racks": {"r1": node_names(nodes)[::2], "r2": node_names(nodes)[1::2]},
    }
    partition["features"] = ["slurm", "verbs"]
    features = [
        *_OWN.split(),
        "rr64",
        "mpi",
        "imb",
        "osu",
        "hpcc",
        "npb",
        "lammps",
        "ior",
        "hpcg",
        "hpl",
    ]
    inputs = settings["environments"][0]["extras"]["lammps_inputs"]
    cache = settings["environments"][0]["extras"]["registration_cache"]
    settings["environments"] = [
        {
            "name": "model",
            "features": features,
            "extras": {
                "programs": names(),
                "lammps_inputs": inputs,
                "registration_cache": cache,
            },
        }
    ]
    return settings


def run_checks(
    folder: Path,
    truth: Truth,
    nodes: int,
    checks: Sequence[str],
    *options: str,
    extras: Mapping[str, Any] | None = None,
    demonstration: bool = True,
) -> list[dict[str, Any]]:
    """Run checks on a model machine in one session; the rows of ReFrame's report.

    `extras` replace those of the partition.
    """
    install(folder / "model", truth)
    bench = folder / "bench"
    bench.mkdir()
    settings = _settings(nodes, folder / "model", demonstration)
    settings["systems"][0]["partitions"][0]["extras"] |= extras or {}
    for name in settings["environments"][0]["extras"]["lammps_inputs"]:
        (bench / name).touch()
    (folder / "settings.py").write_text(_LAUNCHER.format(settings=json.dumps(settings)))
    wanted = [word for check in checks for word in ("-n", rf"^{check}\b")]
    path = (folder / "model" / "bin", STAND_INS, REPLAY, os.environ["PATH"])
    words = ["-C", "settings.py", *check_paths(*wanted), "-r", "--keep-stage-files"]
    words += ["--prefix", str(folder), "--report-file", "report.json"]
    variables = {
        "PATH": ":".join(map(str, path)),
        "SEATRIAL_HOME": str(HOME),
        "SEATRIAL_LAMMPS_BENCH": str(bench),
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": ",".join(node_names(nodes)),
        "SLURM_JOB_CPUS_PER_NODE": f"2(x{nodes})",
        "RFM_REFERENCE_PREFIX": str(HOME / "reference-data" / "lab"),
    }
    result = reframe_within(900, [*words, *wanted, *options], folder, variables)
    file = folder / "report.json"
    assert file.is_file(), result.stdout + result.stderr
    rows: list[dict[str, Any]] = json.loads(file.read_text())["runs"][-1]["testcases"]
    return rows


def samples(row: Mapping[str, Any], metric: str) -> list[dict[str, Any]]:
    """Return the samples of a metric in the record of a case."""
    record = json.loads(Path(row["stagedir"], "seatrial.json").read_text())
    return [sample for sample in record["samples"] if sample["metric"] == metric]


def step_variables(nodes: Sequence[str], **more: str) -> dict[str, str]:
    """Return the variables that Slurm sets on rank 0 of a step, a rank on each node."""
    return {
        "PATH": os.environ["PATH"],
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": ",".join(nodes),
        "SLURM_STEP_NUM_TASKS": str(len(nodes)),
        "SLURM_PROCID": "0",
        "SLURMD_NODENAME": nodes[0],
        **more,
    }


def start(
    machine: Path, command: str, nodes: Sequence[str], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a stand-in of an installed machine on rank 0 of a step, in its folder."""
    program, *arguments = command.split()
    return subprocess.run(
        [str(machine / "bin" / program), *arguments],
        cwd=machine,
        env=step_variables(nodes, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
