"""Sensors beside a load, and binding, on real Slurm: nodes as machines of their own.

The nodes of the lab share one machine, so it reads no sensors and asks for no binding.
Here its settings say otherwise while one check runs.
"""

import json
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import Lab
from lab_runs import check_run

pytestmark = pytest.mark.lab

NODES = ["cn01", "cn02", "cn03", "cn04"]
SETTINGS = "/home/seatrial/seatrial/etc/lab/settings.yaml"
POWER = (
    "case $SLURMD_NODENAME in cn03) exit 3;; "
    "cn04) [ ! -e read.cn04 ] || kill -KILL $PPID; : >read.cn04; echo 250;; "
    "*) echo 250 W;; esac"
)
"""That of cn03 fails. That of cn04 kills the sensors at their last reading."""


@dataclass(frozen=True)
class Load:
    """A load that ran: ReFrame's entry, its record, and its steps by sacct.

    A step is name, start and end. `violations` is the file of threads out of place,
    `left` are nodes where the sensors still run.
    """

    result: Any
    record: Any
    steps: list[list[str]]
    violations: str
    left: list[str]

    def values(self, metric: str, statistic: str) -> dict[str, float]:
        """Return the numbers of the nodes."""
        return {
            sample["node"]: sample["value"]
            for sample in self.record["samples"]
            if (sample["metric"], sample["statistic"]) == (metric, statistic)
        }


@contextmanager
def machines_of_their_own(lab: Lab) -> Iterator[None]:
    """Let settings say that nodes do not share a machine, and show their power."""
    power = f"\\1power_command: {json.dumps(POWER)}"
    edit = f"s/^( *)demonstration: true$/\\1demonstration: false\\n{power}/"
    try:
        lab.ssh("head", f"cp -p {SETTINGS} {SETTINGS}.kept")
        done = lab.ssh("head", f"sed -E -i {shlex.quote(edit)} {SETTINGS}")
        assert done.returncode == 0, done.stderr
        yield
    finally:
        lab.ssh("head", f"mv {SETTINGS}.kept {SETTINGS}")


def ended_steps(lab: Lab, job_id: str) -> list[list[str]]:
    """Wait until accounting knows the end of a job; return its steps."""
    ask = (
        f"sacct --noheader --parsable2 --jobs={job_id} --format=jobid,jobname,start,end"
    )
    deadline = time.monotonic() + 60
    while "Unknown" in (text := lab.ssh("head", ask).stdout) or not text:
        assert time.monotonic() < deadline, text
        time.sleep(0.5)
    rows = [row.split("|") for row in text.splitlines()]
    return [row[1:] for row in rows if re.fullmatch(r"\d+\.\d+", row[0])]


@pytest.fixture(scope="module")
def load(lab: Lab) -> Load:
    """A load of a few seconds, with four steps on all nodes."""
    with (
        machines_of_their_own(lab),
        check_run(lab, "HybridAffinity", milliseconds=50, calibrate=True) as run,
    ):
        said = run.end()
        record = run.record()
        assert record["job_id"], said
        return Load(
            run.result(),
            record,
            ended_steps(lab, record["job_id"]),
            run.output("violations.txt"),
            [n for n in NODES if lab.ssh(n, "pgrep -f loadsensors").returncode == 0],
        )


def test_sensors_are_read_from_before_the_load_to_its_end(load: Load) -> None:
    assert load.result["result"] == "pass", load.result
    (sensors,) = [step for step in load.steps if step[0] == "seatrial-loadsensors"]
    programs = [step for step in load.steps if step != sensors]
    assert len(programs) == 4
    assert sensors[1] <= min(start for _, start, _ in programs)
    assert sensors[2] >= max(end for _, _, end in programs)
    assert load.left == []


def test_sensors_that_fail_or_die_cost_their_own_numbers_only(load: Load) -> None:
    assert load.values("board_power", "mean") == {"cn01": 250.0, "cn02": 250.0}
    absent = load.record["absent_sensors"]
    assert absent["power_command: exit status 3"] == "cn03"
    assert absent["the sensors did not begin, or did not end in time"] == "cn04"
    assert load.values("threads_there", "mean") == dict.fromkeys(NODES, 100.0)


def test_threads_that_slurm_does_not_bind_are_named(load: Load) -> None:
    """The lab has no plugin that binds: `--cpu-bind=cores` has no effect there."""
    placed = load.values("threads_placed", "mean")
    assert placed.keys() == {*NODES}
    assert max(placed.values()) < 100
    assert "expected 1 core" in load.violations
