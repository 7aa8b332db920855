"""Cases: before they run, as they ran in a session, and their key."""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

CaseResult = Literal["pass", "fail", "skip"]
TOO_FEW = "nodes needed: "
"""A case that was skipped for them has a reason that begins so, and their number."""

_PARAMETER = re.compile(r"%(\S+?)=(.*?)(?= %|$)")


@dataclass(frozen=True)
class ListedCase:
    """A case before it runs: display name, full partition name, environment."""

    case: str
    partition: str
    environment: str

    @property
    def check(self) -> str:
        """The class name of the check."""
        return self.case.split(" ", 1)[0]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters in the display name."""
        return parameters_of(self.case)

    def __str__(self) -> str:
        return f"{self.case} @{self.partition}+{self.environment}"


def parameters_of(display_name: str) -> dict[str, str]:
    """Read the parameters of a check from its display name, as text."""
    return dict(_PARAMETER.findall(display_name))


class CaseKey(NamedTuple):
    """Key of a case, the same in all repeats."""

    check: str
    case: str
    partition: str
    environment: str

    @property
    def listed(self) -> ListedCase:
        """The case as `seatrial plan` lists it before it runs."""
        return ListedCase(self.case, self.partition, self.environment)


@dataclass(frozen=True)
class NodeEvent:
    """A delivered node that became unavailable, as Slurm reports it.

    `state` is `drained`, `down`, `failed` or `not responding`, since `time` in UTC
    seconds since the epoch. `reason` and `user` are Slurm's, '' where it has none.
    """

    node: str
    state: str
    reason: str
    user: str
    time: float


@dataclass(frozen=True)
class Case:
    """A check with its parameters, environment and nodes, as it went in one session.

    `result` is ReFrame's quick verdict; `phase` and `reason` say where and why it
    failed, or why it was skipped. `declared` are the flat names of the metrics that
    need a value and a criterion. Times are UTC seconds since the epoch. `replay`: the
    output was recorded before, and is no measurement. `attempt` counts the tries of a
    case in its session; each is a case of its own. `start_crashes` are the starts of
    programs in its job that died in MPI_Init, with the keys `step`, `try`, `reason`,
    `ranks`, `dead` (nodes of the dead ranks) and `nodes` (of all ranks); those with a
    try left were repeated. `node_events` are the delivered nodes that Slurm lost during
    the case, and those of its own nodes that Slurm found lost soon after it failed.
    `waited_for` are lost nodes for which its job waited in vain, or that a skipped case
    lacked.
    `whole_class`: it takes every node of its class that is up; None if not recorded.
    `draws_pairs`: it measured some pairs of its nodes, and perhaps others in a repeat.
    """

    session: str
    repeat: int
    check: str
    case: str
    partition: str
    environment: str
    parameters: dict[str, Any]
    result: CaseResult
    phase: str | None = None
    reason: str | None = None
    job_id: str | None = None
    nodes: tuple[str, ...] = ()
    start_time: float | None = None
    elapsed_s: float | None = None
    payload_s: float | None = None
    raw: str | None = None
    declared: tuple[str, ...] = ()
    replay: bool = False
    attempt: int = 1
    start_crashes: tuple[dict[str, Any], ...] = ()
    node_events: tuple[NodeEvent, ...] = ()
    whole_class: bool | None = None
    waited_for: tuple[NodeEvent, ...] = ()
    draws_pairs: bool = False

    @property
    def key(self) -> CaseKey:
        """The key that the case has in common with its repeats."""
        return CaseKey(self.check, self.case, self.partition, self.environment)


def parameters_text(parameters: dict[str, Any]) -> str:
    """Format parameters as in a measurement."""
    return json.dumps(parameters, sort_keys=True)
