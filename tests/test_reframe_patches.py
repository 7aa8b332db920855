"""ReFrame as it is once seatrial.checks.base is imported: states, and warnings."""

import inspect
import io
import warnings
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from reframe.core import fields, logging, pipeline, variables
from reframe.core.schedulers import slurm
from reframe.core.warnings import ReframeDeprecationWarning, suppress_deprecations

import seatrial.checks.base  # noqa: F401  (patches ReFrame)
from seatrial.checks.reframe_patches import once_for_nodes, unless_suppressed


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


@pytest.mark.parametrize("module", [fields, variables])
def test_every_module_that_warns_is_patched(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "stack", lambda: pytest.fail("looked at the stack"))
    with suppress_deprecations():
        module.user_deprecation_warning("old is deprecated")


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


class Case:
    """A case as ReFrame's loggers see it; it counts how often `size` is read."""

    reads = 0
    raw_params: ClassVar[dict[str, Any]] = {}

    @classmethod
    def loggable_attrs(cls) -> list[tuple[str, str | None]]:
        return [("size", None)]

    @property
    def size(self) -> int:
        self.reads += 1
        return 7

    def info(self) -> str:
        return "Case @lab:batch+openmpi"


def test_only_the_performance_log_reads_the_variables_of_a_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, log, performance = Case(), logging.Logger("log"), logging.Logger("perf")
    monkeypatch.setattr(logging, "_logger", log)
    for logger, reads, size in ((log, 0, None), (performance, 1, 7)):
        adapter = logging.LoggerAdapter(logger, case)
        _, words = adapter.process("Entering stage: run", {})
        assert case.reads == reads
        assert words["extra"]["check_info"] == "Case @lab:batch+openmpi"
        assert words["extra"].get("check_size") == size


def test_nodes_of_ended_jobs_are_expanded_once() -> None:
    asked: list[tuple[str, str]] = []

    def expand(job: Any) -> list[str]:
        asked.append((job.state, job._nodespec))
        return [f"expanded {job._nodespec}"]

    nodes = once_for_nodes(expand)
    for state, of in [("RUNNING", "a"), *3 * [("COMPLETED", "a"), ("FAILED", "b")]]:
        job = SimpleNamespace(state=state, _nodespec=of)
        assert nodes(job) == [f"expanded {of}"]
    assert asked == [("RUNNING", "a"), ("COMPLETED", "a"), ("FAILED", "b")]


def test_references_are_parsed_once_for_each_content() -> None:
    load = pipeline.yaml.safe_load
    first, again, other = (load(io.StringIO(t)) for t in ("a: 1", "a: 1", "a: 2"))
    assert first is again
    assert (first, other) == ({"a": 1}, {"a": 2})
