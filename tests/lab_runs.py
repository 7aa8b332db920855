"""What tests of campaigns on the lab share: runs of them, and faults that end."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import HOME, Lab

from seatrial.results import Run, load_run


def seatrial(*arguments: str, results: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["seatrial", *arguments],
        cwd=HOME,
        env=os.environ | {"SEATRIAL_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def only_run(results: Path) -> Run:
    (path,) = (results / "lab").iterdir()
    return load_run(path)


@contextmanager
def stopped(lab: Lab, service: str, node: str) -> Iterator[None]:
    assert lab.ssh(node, f"sudo systemctl stop {service}").returncode == 0
    try:
        yield
    finally:
        lab.ssh(node, f"sudo systemctl start {service}")


def wait_idle(lab: Lab, nodes: int) -> None:
    deadline = time.monotonic() + 60
    command = "sinfo --noheader --Node --states=idle --format=%N"
    while len(lab.ssh("head", command).stdout.split()) != nodes:
        assert time.monotonic() < deadline, "the lab's nodes do not come back"
        time.sleep(0.5)
