"""The state of nodes in Slurm: usable or lost, since when and why."""

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from seatrial.model.cases import NodeEvent
from seatrial.names import node_set
from seatrial.system.slurm import (
    TIME_FORMAT,
    availability,
    host_names,
    printed_rows,
)

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
"""Slurm's states of a lost node, the worst first, and ours."""

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
    """Name, partitions, number of nodes and excluded nodes of a waiting job."""

    name: str
    partitions: tuple[str, ...]
    num_nodes: int
    excluded: frozenset[str] = frozenset()


def look() -> NodeLook | None:
    """Ask for the state of all nodes; None if Slurm does not answer."""
    rows = printed_rows(6, "sinfo", "-N", "-h", "-o", "%N|%P|%T|%u|%H|%E")
    if rows is None:
        return None
    members: dict[str, set[str]] = {}
    usable, lost = set(), {}
    for name, partition, state, user, since, reason in rows:
        members.setdefault(partition.rstrip("*"), set()).add(name)
        if availability(state, reason)[0]:
            usable.add(name)
        elif kind := lost_state(state):
            moment = _seconds(since) or time.time()
            lost[name] = NodeEvent(name, kind, _known(reason), _known(user), moment)
    frozen = {partition: frozenset(names) for partition, names in members.items()}
    return NodeLook(frozen, frozenset(usable), lost)


def past_losses(since: float) -> list[NodeEvent]:
    """Read the losses that began at `since` (UTC seconds) or later in the accounting.

    There are none without accounting, or if it does not show events to users.
    """
    start = time.strftime(TIME_FORMAT, time.localtime(since))
    columns = "format=NodeName,State,User,TimeStart,Reason"
    options = ("-nP", "list", "event", f"start={start}", columns)
    losses = []
    for name, state, user, began, reason in printed_rows(5, "sacctmgr", *options) or ():
        kind, moment = lost_state(state), _seconds(began)
        if name and kind and moment is not None and moment >= int(since):
            user = re.sub(r"\(\d+\)$", "", user)
            losses.append(NodeEvent(name, kind, _known(reason), _known(user), moment))
    return losses


def lost_state(state: str) -> str | None:
    """Return the loss that a state of sinfo or sacctmgr means; None if it is none."""
    parts = state.lower().split("+")
    words = {part.rstrip("*~#!%$@^-") for part in parts}
    for word, kind in _STATES.items():
        if word in words:
            return kind
    return "not responding" if any("*" in part for part in parts) else None


def node_failures(text: str) -> list[str]:
    """Return the nodes that failed by srun's standard error."""
    return list(dict.fromkeys(_NODE_FAILURE.findall(text)))


def request(job_id: str) -> JobRequest | None:
    """Return the request of a job; None if Slurm does not answer."""
    rows = printed_rows(4, "squeue", "-h", "-j", job_id, "-o", "%P|%D|%x|%j")
    for partitions, nodes, excluded, name in rows or ():
        if nodes.isdigit():
            among = tuple(partitions.split(","))
            away = frozenset(host_names(excluded) if excluded else ())
            return JobRequest(_check(name), among, int(nodes), away)
    return None


def jobs_on(nodes: Collection[str], comment: str) -> dict[str, tuple[str, list[str]]]:
    """Return our jobs on some nodes by job id: the check, and which of the nodes.

    `comment` begins that of our jobs. Slurm's controller is asked once.
    """
    options = ("--me", "-h", "-t", "R", "-w", node_set(nodes), "-o", "%i|%N|%k|%j")
    rows = printed_rows(4, "squeue", *options) or ()
    jobs = {}
    for job, names, text, name in rows:
        if not text.startswith(comment):
            continue
        if there := [node for node in host_names(names) if node in nodes]:
            jobs[job] = (_check(name), there)
    return jobs


def _check(job: str) -> str:
    """Return the check of a job's name; ReFrame adds a prefix and a hash."""
    return re.sub(r"_[0-9a-f]{8}$", "", job.removeprefix("rfm_"))


def _known(text: str) -> str:
    return "" if text.lower() in ("none", "unknown") else text.strip()


def _seconds(text: str) -> float | None:
    """Convert a time as Slurm prints it, in the local zone, to UTC seconds."""
    try:
        return time.mktime(time.strptime(text, TIME_FORMAT))
    except ValueError:
        return None
