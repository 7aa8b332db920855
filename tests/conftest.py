"""Fixtures of many tests: the lab cluster, and the C benchmarks with each MPI."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmark_builds import Build, build_with
from hypothesis import settings

from seatrial.commands.lab import require_root_on_debian
from seatrial.system.lab import cluster
from seatrial.system.playbooks import playbook

HOME = Path(__file__).resolve().parents[1]
UNTIL = float(os.environ.get("SEATRIAL_TEST_UNTIL", "inf"))
"""Tests that would begin later (UTC seconds) are skipped: see .ci/run."""

LAB_HOME = Path("/var/lib/seatrial-lab")

# An example may take long where the machine is busy: that is no fault.
settings.register_profile("seatrial", deadline=None)
settings.load_profile("seatrial")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the C benchmarks, which other tests would disturb.

    A test of what is the same under any MPI is slow under Open MPI, whose start is:
    it takes ten times that of MPICH. Tests that take the lab down come last, so the lab
    that `make accept` left is not built again.
    """
    items.sort(key=lambda item: "no_lab" in getattr(item, "fixturenames", ()))
    for item in items:
        if isinstance(item, pytest.Function) and "build" in item.fixturenames:
            item.add_marker("measures")
            mpi = item.callspec.params["build"]
            if mpi == "openmpi" and item.get_closest_marker("any_mpi"):
                item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip a test that would begin too late, before its fixtures start."""
    if time.time() > UNTIL:
        pytest.skip("left out: the time for tests is over")


@pytest.fixture(scope="session", params=["openmpi", "mpich"])
def build(request: pytest.FixtureRequest) -> Build:
    """Build the C benchmarks with an MPI."""
    return build_with(request.param, request.param)


@dataclass(frozen=True)
class Lab:
    """The running lab: play a playbook, or a command on one of its nodes."""

    logs: Path
    system: str = "lab"

    @property
    def head(self) -> str:
        """The name of its head."""
        return "head" if self.system == "lab" else "mhead"

    def play(self, name: str, *options: str) -> int:
        """Run a playbook on the lab; give the number of changes."""
        log = self.logs / f"{name}.log"
        return playbook(HOME, self.system, name, log, *options)

    def ssh(self, node: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command on a node as the benchmark user."""
        config = str(cluster.ssh_config(LAB_HOME))
        return subprocess.run(
            ["ssh", "-F", config, node, command],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )


@pytest.fixture(scope="session")
def bare_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab whose nodes run, with nothing provisioned by this test session."""
    require_root_on_debian()
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.play("lab")
    return lab


@pytest.fixture(scope="session")
def lab(bare_lab: Lab) -> Lab:
    """A lab with Slurm and the suite."""
    bare_lab.play("cluster")
    bare_lab.play("site")
    return bare_lab


@pytest.fixture
def no_lab(tmp_path: Path) -> Iterator[Lab]:
    """No lab at all, before and after the test."""
    require_root_on_debian()
    cluster.down(LAB_HOME)
    yield Lab(tmp_path)
    cluster.down(LAB_HOME)
