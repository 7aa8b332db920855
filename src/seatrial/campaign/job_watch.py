"""The jobs and nodes of a session in Slurm, while ReFrame waits for them."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.campaign.node_log import NodeLog, Wait, at_present, clock
from seatrial.errors import SeatrialError
from seatrial.names import node_set
from seatrial.progress import Display
from seatrial.system import slurm, slurm_nodes
from seatrial.system.slurm_nodes import NodeLook

CONTROLLER_LIMIT_S = 1800.0
"""Longest wait of a run for a controller that does not answer."""

LOST_AFTER_S = 90.0
"""Longest silence of ReFrame while Slurm knows no job of the session."""

_FIRST_LOOK_S = 2.0
_NEXT_LOOK_S = 10.0

_NODES_LACK = re.compile(r"ReqNodeNotAvail|Nodes required for job are DOWN")
"""Slurm's reasons of jobs that may wait for lost nodes; no reason proves it."""

_HOLDING = ("RUNNING", "CONFIGURING", "SUSPENDED")


class NodesLostError(SeatrialError):
    """A waiting job needs more nodes than are left."""


@dataclass
class NodeWatch:
    """Notes lost nodes, and finds jobs that wait for them in vain.

    `comment` is that of the session's jobs. `blocked` receives the lost nodes that such
    jobs wait for, by job id.
    """

    comment: str
    log: NodeLog
    blocked: dict[str, Wait]
    display: Display
    _shown: dict[str, str] = field(default_factory=dict, init=False)
    _waits: Mapping[str, str] = field(default_factory=dict, init=False)

    def look(self, reasons: Mapping[str, str]) -> None:
        """Look at the nodes, and at the waiting jobs; `reasons` are by job id.

        Raises NodesLostError if one needs lost nodes, at two looks, and no job of the
        session runs.
        """
        look = slurm_nodes.look()
        if look is None:
            return
        for event in self.log.note(look, time.time()):
            self.display.warn(f"lost: {at_present(event)}")
        causes = {job: self._cause(job, why, look) for job, why in reasons.items()}
        for job, why in reasons.items():
            if causes[job] or self._waits.get(job) == why:
                cause = causes[job]
                self._show(job, cause.words if cause else f"job {job}: {why}")
        self._waits = reasons
        self._warn_of_silent(look)
        stuck = {job: cause for job, cause in causes.items() if cause}
        again = stuck.keys() & self.blocked.keys()
        self.blocked.clear()
        self.blocked.update(stuck)
        if again and look.usable & self.log.names:
            jobs = slurm.jobs(self.comment, os.getuid())
            if jobs is not None and not any(job.state in _HOLDING for job in jobs):
                raise NodesLostError(
                    "; ".join(stuck[job].words for job in sorted(again))
                )

    def _cause(self, job: str, reason: str, look: NodeLook) -> Wait | None:
        """Return the wait of a job for lost nodes; None if it waits for others."""
        request = slurm_nodes.request(job) if _NODES_LACK.match(reason) else None
        if request is None:
            return None
        partitions = (look.members.get(name, ()) for name in request.partitions)
        names = self.log.names & {node for nodes in partitions for node in nodes}
        names -= request.excluded
        lost = [look.lost[name] for name in sorted(names) if name in look.lost]
        if not lost or len(names & look.usable) >= request.num_nodes:
            return None
        lost = [self.log.since(event) for event in lost]
        words = (
            f"job {job} ({request.name}) needs {request.num_nodes} nodes; "
            f"{', '.join(map(at_present, lost))}"
        )
        return Wait(words, tuple(lost))

    def _warn_of_silent(self, look: NodeLook) -> None:
        """Warn of jobs on silent nodes; Slurm decides when to end them."""
        silent = {
            name: self.log.since(event).time
            for name, event in look.lost.items()
            if event.state == "not responding" and name in self.log.names
        }
        if not silent:
            return
        for job, (check, nodes) in slurm_nodes.jobs_on(silent, self.comment).items():
            since = clock(min(silent[node] for node in nodes))
            do = "does" if len(nodes) == 1 else "do"
            self._show(
                job,
                f"job {job} ({check}) runs on {node_set(nodes)}, which {do} not "
                f"respond since {since}; Slurm ends it after its SlurmdTimeout",
            )

    def _show(self, job: str, text: str) -> None:
        """Print the reason why a job waits, once until it changes."""
        if self._shown.get(job) != text:
            self._shown[job] = text
            self.display.warn(f"waiting: {text}")
        self.display.note(f"waiting: {text}")


class LostJobError(SeatrialError):
    """Slurm forgot a job, submitted shortly before slurmctld died: ReFrame waits."""


@dataclass
class Watch:
    """Asks Slurm regularly why jobs wait, and whether it still knows them.

    `comment` is that of the jobs, `started` the start of their session in UTC seconds;
    `pending` receives the reasons by job id. `all_jobs`: the session runs jobs of Slurm
    only. `nodes` looks at the nodes at the same moments.
    """

    comment: str
    started: float
    pending: dict[str, str]
    display: Display
    all_jobs: bool = True
    nodes: NodeWatch | None = None

    def __post_init__(self) -> None:
        """Schedule the first look."""
        self._next = time.monotonic() + _FIRST_LOOK_S
        self._missing_since: float | None = None
        self._lost_since: float | None = None

    def silent(self) -> None:
        """Look at Slurm while ReFrame prints nothing.

        Raises SeatrialError after `CONTROLLER_LIMIT_S` without answer, LostJobError
        after `LOST_AFTER_S` without any job, and NodesLostError as `NodeWatch` does.
        """
        now = time.monotonic()
        if now < self._next:
            return
        reasons = slurm.pending_reasons(self.comment)
        self._next = time.monotonic() + _NEXT_LOOK_S
        if reasons is None:
            if self.nodes is not None:
                self.nodes.log.journal.unanswered(time.time())
            self._note_missing(now)
            return
        if self._missing_since is not None:
            self.display.warn("Slurm's controller answers again; the run goes on")
        self._missing_since = None
        self.pending.update(reasons)
        for job_id, reason in reasons.items():
            self.display.note(f"job {job_id} waits: {reason}")
        if self.nodes is not None:
            known = {*self.nodes.blocked}
            self.nodes.look(reasons)
            if self.nodes.blocked.keys() - known:
                self._next = time.monotonic() + _FIRST_LOOK_S
        if self.all_jobs:
            self._look_for_lost(now)

    def heard(self) -> None:
        """Note that ReFrame printed something: after a loss, look soon at the case."""
        self._lost_since = None
        if self.nodes is not None and self.nodes.log.events:
            self._next = min(self._next, time.monotonic() + _FIRST_LOOK_S)

    def _note_missing(self, now: float) -> None:
        minutes = f"{CONTROLLER_LIMIT_S / 60:.0f} minutes"
        if self._missing_since is None:
            self._missing_since = now
            self.display.warn(
                "Slurm's controller does not answer; waiting for slurmctld, up to "
                + minutes
            )
        if now - self._missing_since > CONTROLLER_LIMIT_S:
            raise SeatrialError(
                f"Slurm's controller did not answer for {minutes}; start slurmctld, "
                "then go on with `seatrial run SYSTEM --resume`"
            )

    def _look_for_lost(self, now: float) -> None:
        lost = slurm.lost_jobs(self.comment, self.started)
        if lost is None:
            self._lost_since = None
            return
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since < LOST_AFTER_S:
            return
        jobs = ""
        if lost:
            jobs = (
                f", its accounting lists {', '.join(lost)} as unfinished (`sacctmgr "
                "show runawayjobs` fixes that)"
            )
        raise LostJobError(
            "Slurm lost the job for which ReFrame waits: its controller knows none"
            f"{jobs}; go on with `seatrial run SYSTEM --resume`"
        )
