"""Parsing of Slurm's messages."""

import pytest

from seatrial.system.slurm import first_death

KILLED = "srun: error: cn01: tasks 0-1: Killed"


@pytest.mark.parametrize(
    ("lines", "death"),
    [
        ([], None),
        (["no device", "srun: Job step aborted: Waiting up to 32 seconds"], None),
        (
            [KILLED, "srun: error: cn03: task 4: Segmentation fault", KILLED],
            "cn03: task 4: Segmentation fault",
        ),
        (
            ["srun: error: cn02: task 2: Out Of Memory", KILLED],
            "cn02: task 2: Out Of Memory",
        ),
        (
            ["srun: error: Node failure on cn04", "srun: error: cn01: task 0: Exited"],
            "Node failure on cn04",
        ),
        (
            ["srun: error: cn03: task 2: Exited", "srun: error: Node failure on cn04"],
            "Node failure on cn04",
        ),
        ([KILLED, KILLED.replace("cn01", "cn02")], "cn01: tasks 0-1: Killed"),
    ],
)
def test_first_death_is_no_consequence_of_another(
    lines: list[str], death: str | None
) -> None:
    assert first_death(lines) == death
