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
"""Slurm's reasons of jobs that may wait for lost nodes; no reason proves it."""

_HOLDING = ("RUNNING", "CONFIGURING", "SUSPENDED")


class NodesLostError(SeatrialError):
    """A waiting job needs more nodes than are left."""


@dataclass
class NodeWatch:
    """Notes lost nodes, and finds jobs that wait for them in vain.

    `comment` is that of the session's jobs. `blocked` receives the lost nodes that such
    jobs wait for, by job id. Without `may_stop` they go on waiting.
    """

    comment: str
    log: NodeLog
    blocked: dict[str, str]
    display: Display
    may_stop: bool = True
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
                self._show(job, causes[job] or f"job {job}: {why}")
        self._waits = reasons
        self._warn_of_silent(look)
        stuck = {job: cause for job, cause in causes.items() if cause}
        again = stuck.keys() & self.blocked.keys()
        self.blocked.clear()
        self.blocked.update(stuck)
        if again and self.may_stop and look.usable & self.log.names:
            jobs = slurm.jobs(self.comment, os.getuid())
            if jobs is not None and not any(job.state in _HOLDING for job in jobs):
                raise NodesLostError("; ".join(stuck[job] for job in sorted(again)))

    def _cause(self, job: str, reason: str, look: NodeLook) -> str:
        """Return the lost nodes that a job waits for; '' if it waits for others."""
        request = slurm_nodes.request(job) if _NODES_LACK.match(reason) else None
        if request is None:
            return ""
        partitions = (look.members.get(name, ()) for name in request.partitions)
        names = self.log.names & {node for nodes in partitions for node in nodes}
        lost = [look.lost[name] for name in sorted(names) if name in look.lost]
        if not lost or len(names & look.usable) >= request.num_nodes:
            return ""
        return (
            f"job {job} ({request.name}) needs {request.num_nodes} nodes; "
            f"{', '.join(at_present(self.log.since(event)) for event in lost)}"
        )

    def _warn_of_silent(self, look: NodeLook) -> None:
        """Warn of jobs on silent nodes; Slurm decides when to end them."""
        for name, event in look.lost.items():
            if event.state != "not responding" or name not in self.log.names:
                continue
            for job, check in slurm_nodes.jobs_on(name, self.comment).items():
                since = clock(self.log.since(event).time)
                self._show(
                    job,
                    f"job {job} ({check}) runs on {name}, which does not respond since "
                    f"{since}; Slurm ends it after its SlurmdTimeout",
                )

    def _show(self, job: str, text: str) -> None:
        """Print the reason why a job waits, once until it changes."""
        if self._shown.get(job) != text:
            self._shown[job] = text
            self.display.warn(f"waiting: {text}")
        self.display.note(f"waiting: {text}")
