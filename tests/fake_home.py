"""A small home of the suite for tests: real ReFrame, local scheduler, quick checks."""

import json
from pathlib import Path
from typing import Any

CHECK = """
import json
import reframe as rfm
import reframe.utility.typecheck as typ
import reframe.utility.sanity as sn
from reframe.core.builtins import *

from seatrial.checks.reframe_patches import patch_reframe

patch_reframe()


class Base(rfm.RunOnlyRegressionTest):
    usable_nodes = variable(typ.Dict[str, int], value={})
    typical_s = variable(int, value=5)
    extent = variable(str, value="one class")
    pause = variable(str, value="0")
    text = variable(str, value="latency 3.0")
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    executable = "echo"
    reference_file = "echo.yaml"
    max_pending_time = 5

    @run_before("run")
    def arguments(self):
        nodes = min(self.usable_nodes.values(), default=0)
        self.executable_opts = [self.text, f"nodes {nodes}"]
        self.prerun_cmds = [f"sleep {self.pause}", "echo kept > kept.txt"]
        self.keep_files = ["kept.txt"]

    @sanity_function
    def rows(self):
        return sn.assert_found("latency", self.stdout)

    @run_after("sanity")
    def record(self):
        with open(f"{self.stagedir}/rfm_job.out") as file:
            value = float(file.read().split()[1])
        node = "cn02" if getattr(self, "x", 1) == 2 else "cn01"
        record = {
            "check": type(self).__name__,
            "environment": self.current_environ.name,
            "parameters": {"x": getattr(self, "x", None)},
            "job_id": "7",
            "nodes": [node],
            "declared": ["latency_8B"],
            "payload_s": 0.5,
            "samples": [
                {"metric": "latency", "value": value, "size_bytes": 8, "node": node}
            ],
        }
        with open(f"{self.stagedir}/seatrial.json", "w") as file:
            json.dump(record, file)


@rfm.simple_test
class Echo(Base):
    x = parameter([1, 2])

    @run_after("setup")
    def not_everywhere(self):
        self.skip_if(
            self.x == 2 and self.current_environ.name == "mpich", "not for mpich"
        )


@rfm.simple_test
class Slow(Base):
    pause = "30"


@rfm.simple_test
class Silent(Base):
    text = "nothing"


@rfm.simple_test
class Gpu(Base):
    needs = variable(list, value=["+mpi", "+gpu"])
    valid_prog_environs = ["+gpu"]
"""

CAMPAIGNS = {
    "smoke": "blocks: [{name: echo, checks: [Echo]}]\n",
    "two": (
        "description: all of it, twice\n"
        "repeats: 2\n"
        "blocks:\n"
        "  - {name: echo, checks: [Echo, Gpu]}\n"
        "  - {name: silent, checks: [Silent]}\n"
    ),
    "slow": "blocks: [{name: slow, checks: [Slow]}]\n",
    "wrong": "blocks: [{name: wrong, checks: [Echo, Ehco]}]\n",
    "high": (
        "blocks: [{name: echo, checks: [Echo], variables: {text: latency 30.0}}]\n"
    ),
}

CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c}
criteria:
  - check: Echo
    model: every
    limits: {latency_8B: 10 us}
"""

TOLERANT = CRITERIA + "    optional: true\n"
"""They permit the case that Echo skips with mpich."""

SYSTEM: dict[str, Any] = {
    "schema": 1,
    "system": "lab",
    "description": "a fake",
    "demonstration": True,
    "model": True,
    "login": "head",
    "nodes": [
        {"name": "cn01", "facts": {"cpus": 2}},
        {"name": "cn02", "facts": {"cpus": 2}},
    ],
    "software": {"slurm": "22.05.8", "stacks": [{"name": "openmpi"}]},
    "suite": {"version": "0.1.0", "git_commit": "abc", "dirty": False},
}

SETTINGS: dict[str, Any] = {
    "systems": [
        {
            "name": "lab",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "batch",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["openmpi", "mpich"],
                    "extras": {"nodes": ["cn01", "cn02"]},
                }
            ],
        }
    ],
    "environments": [
        {"name": "openmpi", "features": ["mpi"]},
        {"name": "mpich", "features": ["mpi"]},
    ],
}


def write_home(folder: Path, criteria: str = CRITERIA) -> Path:
    """Write a home with the system `lab`, provisioned, and some campaigns."""
    for name, text in CAMPAIGNS.items():
        write(folder / "reframe-checks" / "campaigns" / f"{name}.yaml", text)
    write(folder / "reframe-checks" / "checks" / "fake" / "fake.py", CHECK)
    write(folder / "reference-data" / "lab" / "criteria.yaml", criteria)
    write(folder / "etc" / "lab" / "system.json", json.dumps(SYSTEM))
    write(folder / "etc" / "lab" / "settings.yaml", json.dumps(SETTINGS))
    write(folder / "inventories" / "lab" / "hosts.yml", "{}")
    return folder


def write(file: Path, text: str) -> None:
    """Write a file and the folders above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def fake_program(folder: Path, name: str, script: str) -> None:
    """Write a program as a shell script, to be put first on PATH."""
    file = folder / name
    write(file, f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
