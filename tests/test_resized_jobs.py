"""ReFrame's own view of Slurm's states, once seatrial.checks.base is imported."""

import pytest
from reframe.core.schedulers import slurm

import seatrial.checks.base  # noqa: F401  (mends ReFrame)


@pytest.mark.parametrize(
    ("state", "completed", "pending"),
    [
        ("RESIZING,COMPLETED", True, False),
        ("RESIZING,RESIZING,FAILED", True, False),
        ("RESIZING,RUNNING", False, False),
        ("RESIZING", False, True),
        ("RUNNING", False, False),
        ("PENDING", False, True),
        ("COMPLETED,RUNNING", False, False),
        ("COMPLETED", True, False),
        (None, False, False),
    ],
)
def test_what_a_job_was_before_it_lost_a_node_does_not_count(
    state: str | None, completed: bool, pending: bool
) -> None:
    assert slurm.slurm_state_completed(state) is completed
    assert slurm.slurm_state_pending(state) is pending
