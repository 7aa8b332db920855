"""The state of nodes in Slurm: usable or lost, since when and why."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.cases import NodeEvent
from seatrial.system.slurm import SlurmNode, availability, printed

_STATES = {
    "down": "down",
    "error": "down",
    "fail": "failed",
    "failing": "failed",
    "drain": "drained",
    "drained": "drained",
    "draining": "drained",
    "not_responding": "not responding",
    "no_respond": "not responding",
}
"""Slurm's states of a lost node, the gravest first, and ours."""

_NODE_FAILURE = re.compile(r"^srun: error: Node failure on (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class NodeLook:
    """The nodes at one moment: by partition all and the usable ones, by name the lost.

    A node that is neither usable nor lost, for example powered down, comes back.
    """

    members: Mapping[str, frozenset[str]]
    usable: frozenset[str]
    lost: Mapping[str, NodeEvent]


@dataclass(frozen=True)
class JobRequest:
    """What a waiting job asks for: its name, its partitions and a number of nodes."""

    name: str
    partitions: tuple[str, ...]
    num_nodes: int


def look() -> NodeLook | None:
    """Ask for the state of all nodes; None if Slurm does not answer."""
    lines = printed("sinfo", "-N", "-h", "-o", "%N|%P|%T|%u|%H|%E")
    if lines is None:
        return None
    members: dict[str, set[str]] = {}
    usable, lost = set(), {}
    for line in lines:
        if line.count("|") < 5:
            continue
        name, partition, state, user, since, reason = line.split("|", 5)
        members.setdefault(partition.rstrip("*"), set()).add(name)
        if availability(SlurmNode(state, reason))[0]:
            usable.add(name)
            continue
        kind = lost_state(state)
        if kind is not None:
            moment = _seconds(since) or time.time()
            lost[name] = NodeEvent(name, kind, _known(reason), _known(user), moment)
    frozen = {partition: frozenset(names) for partition, names in members.items()}
    return NodeLook(frozen, frozenset(usable), lost)


def past_losses(since: float) -> list[NodeEvent]:
    """Read the losses that began `since` then (UTC seconds) from the accounting.

    None where there is no accounting, or where it does not show events to users.
    """
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
    columns = "format=NodeName,State,User,TimeStart,Reason"
    lines = printed("sacctmgr", "-nP", "list", "event", f"start={start}", columns)
    losses = []
    for line in lines or ():
        if line.count("|") < 4 or line.startswith("|"):
            continue
        name, state, user, began, reason = line.split("|", 4)
        kind, moment = lost_state(state), _seconds(began)
        if kind is not None and moment is not None and moment >= int(since):
            user = re.sub(r"\(\d+\)$", "", user)
            losses.append(NodeEvent(name, kind, _known(reason), _known(user), moment))
    return losses


def lost_state(state: str) -> str | None:
    """Name the loss that a state of sinfo or sacctmgr tells of; None if it is none."""
    parts = re.split(r"\+", state.lower())
    words = {part.rstrip("*~#!%$@^-") for part in parts}
    for word, kind in _STATES.items():
        if word in words:
            return kind
    return "not responding" if any("*" in part for part in parts) else None


def node_failures(text: str) -> list[str]:
    """Name the nodes on whose failure srun reports in its standard error."""
    return list(dict.fromkeys(_NODE_FAILURE.findall(text)))


def request(job_id: str) -> JobRequest | None:
    """Ask what a job asked for; None if Slurm does not say."""
    for line in printed("squeue", "-h", "-j", job_id, "-o", "%P|%D|%j") or ():
        fields = line.split("|", 2)
        if len(fields) == 3 and fields[1].isdigit():
            name = _check(fields[2])
            return JobRequest(name, tuple(fields[0].split(",")), int(fields[1]))
    return None


def jobs_on(node: str, comment: str) -> dict[str, str]:
    """Name our jobs that run on a node, by job id; `comment` is how theirs begins."""
    options = ("--me", "-h", "-t", "R", "-w", node, "-o", "%i|%k|%j")
    rows = (line.split("|", 2) for line in printed("squeue", *options) or ())
    return {
        row[0]: _check(row[2])
        for row in rows
        if len(row) == 3 and row[1].startswith(comment)
    }


def _check(job: str) -> str:
    """Return the check of a job's name; ReFrame adds a prefix and a hash."""
    return re.sub(r"_[0-9a-f]{8}$", "", job.removeprefix("rfm_"))


def _known(text: str) -> str:
    return "" if text.lower() in ("none", "unknown") else text.strip()


def _seconds(text: str) -> float | None:
    """Convert a time as Slurm prints it, in the local zone, to UTC seconds."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
