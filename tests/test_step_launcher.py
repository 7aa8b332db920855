"""Job steps that a job starts: what their ends cost the controller."""

import os
from pathlib import Path

import pytest
from fake_home import fake_program

from seatrial.checks.job_control import Limit
from seatrial.checks.srun_steps import Step
from seatrial.checks.step_launcher import Launcher

NODES = tuple(f"cn{number:02}" for number in range(1, 9))


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for Slurm: steps with `false` fail, and all go on without srun."""
    fake_program(tmp_path, "srun", 'for program; do :; done; exec "$program"')
    steps = "for i in $(seq 9); do echo 1.$i seatrial-$i; done"
    fake_program(tmp_path, "squeue", f'echo "$*" >>{tmp_path}/asked; {steps}')
    fake_program(tmp_path, "scancel", f'echo "$*" >>{tmp_path}/cancelled')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    return tmp_path


def steps_of(folder: Path, **programs: str) -> list[Step]:
    """Start a step on each node, `true` if no other program; wait for its end."""
    steps = [
        Step(
            [node],
            [programs.get(node, "true")],
            folder / node,
            Limit(60),
            name="hpcc",
        )
        for node in NODES
    ]
    Launcher(["srun"], 0).start(steps)
    for step in steps:
        assert step.process is not None
        step.process.wait()
    return steps


def test_steps_that_fail_together_cost_two_requests(slurm: Path) -> None:
    steps = steps_of(slurm, **dict.fromkeys(NODES[1:], "false"))
    ended = Launcher(["srun"], 0).wait(steps)
    assert [ended[step].status for step in steps] == [0, *[1] * 7]
    asked = (slurm / "asked").read_text().splitlines()
    assert asked == ["--steps --noheader --jobs=1 --format=%i %j"]
    cancelled = (slurm / "cancelled").read_text().splitlines()
    assert cancelled == ["1.2 1.3 1.4 1.5 1.6 1.7 1.8"]


def test_steps_that_end_well_cost_no_request(slurm: Path) -> None:
    steps = steps_of(slurm)
    ended = Launcher(["srun"], 0).wait(steps)
    assert {end.status for end in ended.values()} == {0}
    assert not (slurm / "asked").exists()


def test_the_nodes_of_a_step_are_written_as_slurm_does(slurm: Path) -> None:
    words = f'echo "$*" >{slurm}/words'
    fake_program(slurm, "srun", f'{words}; for program; do :; done; exec "$program"')
    step = Step([*NODES], ["true"], slurm / "all", Limit(60), name="hpcc")
    Launcher(["srun"], 0).start([step])
    assert step.process is not None
    step.process.wait()
    assert "--nodelist=cn[01-08] " in (slurm / "words").read_text()
