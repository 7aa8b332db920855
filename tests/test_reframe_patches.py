"""ReFrame as it is once seatrial.checks.base is imported: states, and warnings."""

import inspect
import warnings

import pytest
from reframe.core import fields
from reframe.core.schedulers import slurm
from reframe.core.warnings import ReframeDeprecationWarning, suppress_deprecations

import seatrial.checks.base  # noqa: F401  (patches ReFrame)
from seatrial.checks.reframe_patches import unless_suppressed


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


class Check:
    """Has a deprecated variable, as every check of ReFrame."""

    old = fields.DeprecatedField(fields.TypedField(int), "old is deprecated")

    def __init__(self) -> None:
        with suppress_deprecations():
            self.old = 1


def test_warning_that_is_suppressed_costs_no_look_at_the_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = Check()
    monkeypatch.setattr(inspect, "stack", lambda: pytest.fail("looked at the stack"))
    with suppress_deprecations():
        assert check.old == 1


def test_warning_that_is_heard_stays() -> None:
    check = Check()
    with pytest.warns(ReframeDeprecationWarning, match="old is deprecated"):
        assert check.old == 1
    with suppress_deprecations():
        pass
    with pytest.warns(ReframeDeprecationWarning, match="old is deprecated"):
        check.old = 2


def test_other_filters_suppress_nothing() -> None:
    heard: list[str] = []
    warn = unless_suppressed(lambda message, from_version: heard.append(message))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warn("one")
        warnings.simplefilter("ignore", ReframeDeprecationWarning)
        warn("two")
        warnings.resetwarnings()
        warn("three")
    assert heard == ["one", "three"]
