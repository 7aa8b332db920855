"""The nodes that a session's jobs wait for, or run on."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.campaign.node_log import NodeLog, at_present, clock
from seatrial.errors import SeatrialError
from seatrial.progress import Display
from seatrial.system import slurm, slurm_nodes
from seatrial.system.slurm_nodes import NodeLook

_NODES_LACK = re.compile(r"ReqNodeNotAvail|Nodes required for job are DOWN")
"""Slurm's reasons of jobs that may wait for lost nodes; none of them proves it."""

_HOLDING = ("RUNNING", "CONFIGURING", "SUSPENDED")


class NodesLostError(SeatrialError):
    """A waiting job needs more nodes than are left."""


@dataclass
class NodeWatch:
    """Notes lost nodes, and finds jobs that wait for them in vain.

    `comment` is that of the session's jobs. `blocked` receives, by job id, the lost
    nodes that such jobs wait for. Without `may_stop` they go on waiting.
    """

    comment: str
    log: NodeLog
    blocked: dict[str, str]
    display: Display
    may_stop: bool = True
    _shown: dict[str, str] = field(default_factory=dict, init=False)
    _waits: Mapping[str, str] = field(default_factory=dict, init=False)

    def look(self, reasons: Mapping[str, str]) -> None:
        """Look at the nodes, and at the waiting jobs, whose reasons are by job id.

        Raises NodesLostError if one needs nodes that are lost, at two looks, and no job
        of the session runs.
        """
        found = slurm_nodes.look()
        if found is None:
            return
        for event in self.log.note(found, time.time()):
            self.display.warn(f"lost: {at_present(event)}")
        causes = {job: self._cause(job, why, found) for job, why in reasons.items()}
        for job, why in reasons.items():
            if causes[job] or self._waits.get(job) == why:
                self._say(job, causes[job] or f"job {job}: {why}")
        self._waits = reasons
        self._warn_of_silent(found)
        stuck = {job: cause for job, cause in causes.items() if cause}
        again = stuck.keys() & self.blocked.keys()
        self.blocked.clear()
        self.blocked.update(stuck)
        left = found.usable & self.log.names
        if again and left and self.may_stop and not self._others_run():
            raise NodesLostError("; ".join(stuck[job] for job in sorted(again)))

    def _cause(self, job: str, reason: str, found: NodeLook) -> str:
        """Return the lost nodes that a job waits for; '' if it waits for others."""
        wanted = slurm_nodes.request(job) if _NODES_LACK.match(reason) else None
        if wanted is None:
            return ""
        members = {n for each in wanted.partitions for n in found.members.get(each, ())}
        names = members & self.log.names
        lost = [
            self.log.since(found.lost[name])
            for name in sorted(names)
            if name in found.lost
        ]
        if not lost or len(names & found.usable) >= wanted.num_nodes:
            return ""
        return (
            f"job {job} ({wanted.name}) needs {wanted.num_nodes} nodes; "
            f"{', '.join(map(at_present, lost))}"
        )

    def _warn_of_silent(self, found: NodeLook) -> None:
        """Warn of jobs on nodes that do not respond; Slurm decides when to end them."""
        for name, event in found.lost.items():
            if event.state != "not responding" or name not in self.log.names:
                continue
            for job, what in slurm_nodes.jobs_on(name, self.comment).items():
                since = clock(self.log.since(event).time)
                self._say(
                    job,
                    f"job {job} ({what}) runs on {name}, which does not respond since "
                    f"{since}; Slurm ends it after its SlurmdTimeout",
                )

    def _say(self, job: str, text: str) -> None:
        """Print what a job waits for, once until that changes."""
        if self._shown.get(job) != text:
            self._shown[job] = text
            self.display.warn(f"waiting: {text}")
        self.display.note(f"waiting: {text}")

    def _others_run(self) -> bool:
        jobs = slurm.jobs(self.comment, os.getuid())
        return jobs is None or any(job.state in _HOLDING for job in jobs)
