"""The state of a session's jobs in Slurm, while ReFrame waits for them."""

import time
from dataclasses import dataclass

from seatrial.campaign.node_watch import NodeWatch
from seatrial.errors import SeatrialError
from seatrial.progress import Display
from seatrial.system import slurm

CONTROLLER_LIMIT_S = 1800.0
"""How long a run waits for a controller that does not answer."""

LOST_AFTER_S = 90.0
"""How long ReFrame may be silent while Slurm knows no job of the session."""

_FIRST_LOOK_S = 2.0
_NEXT_LOOK_S = 10.0


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
            self._note_missing(now)
            return
        if self._missing_since is not None:
            self.display.warn("Slurm's controller answers again; the run goes on")
        self._missing_since = None
        self.pending.update(reasons)
        for job_id, reason in reasons.items():
            self.display.note(f"job {job_id} waits: {reason}")
        if self.nodes is not None:
            self.nodes.look(reasons)
        if self.all_jobs:
            self._look_for_lost(now)

    def heard(self) -> None:
        """Note that ReFrame printed something."""
        self._lost_since = None

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
