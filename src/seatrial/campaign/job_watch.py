"""What Slurm says of a session's jobs while ReFrame waits for them."""

import time

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
    """Slurm forgot a job for which ReFrame would wait for ever.

    That becomes of a job that was submitted shortly before slurmctld died.
    """


class Watch:
    """Looks at Slurm now and then: why jobs wait, and whether it still knows them.

    `comment` is that of the jobs, `started` the start of their session in UTC seconds;
    `pending` is given the reasons by job id. `all_jobs`: whatever the session runs is a
    job of Slurm. `nodes` looks after the nodes at the same moments.
    """

    def __init__(
        self,
        comment: str,
        started: float,
        pending: dict[str, str],
        display: Display,
        *,
        all_jobs: bool = True,
        nodes: NodeWatch | None = None,
    ) -> None:
        self._comment = comment
        self._started = started
        self._pending = pending
        self._display = display
        self._all_jobs = all_jobs
        self._nodes = nodes
        self._next = time.monotonic() + _FIRST_LOOK_S
        self._missing_since: float | None = None
        self._lost_since: float | None = None

    def silent(self) -> None:
        """Take note of what Slurm says, while ReFrame says nothing.

        Raises SeatrialError after `CONTROLLER_LIMIT_S` without answer, LostJobError
        after `LOST_AFTER_S` without any job, and NodesLostError as `NodeWatch` does.
        """
        now = time.monotonic()
        if now < self._next:
            return
        reasons = slurm.pending_reasons(self._comment)
        self._next = time.monotonic() + _NEXT_LOOK_S
        if reasons is None:
            self._missing(now)
            return
        if self._missing_since is not None:
            self._display.warn("Slurm's controller answers again; the run goes on")
        self._missing_since = None
        self._pending.update(reasons)
        for job_id, reason in reasons.items():
            self._display.note(f"job {job_id} waits: {reason}")
        if self._nodes is not None:
            self._nodes.look(reasons)
        if self._all_jobs:
            self._look_for_lost(now)

    def heard(self) -> None:
        """Take note that ReFrame said something."""
        self._lost_since = None

    def _missing(self, now: float) -> None:
        minutes = f"{CONTROLLER_LIMIT_S / 60:.0f} minutes"
        if self._missing_since is None:
            self._missing_since = now
            self._display.warn(
                "Slurm's controller does not answer; waiting for slurmctld, up to "
                + minutes
            )
        if now - self._missing_since > CONTROLLER_LIMIT_S:
            raise SeatrialError(
                f"Slurm's controller did not answer for {minutes}; start slurmctld, "
                "then go on with `seatrial run SYSTEM --resume`"
            )

    def _look_for_lost(self, now: float) -> None:
        lost = slurm.lost_jobs(self._comment, self._started)
        if lost is None:
            self._lost_since = None
            return
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since >= LOST_AFTER_S:
            named = ""
            if lost:
                named = (
                    f", its accounting believes that {', '.join(lost)} goes on "
                    "(`sacctmgr show runawayjobs` mends that)"
                )
            raise LostJobError(
                f"Slurm lost the job for which ReFrame waits: its controller knows "
                f"none{named}; go on with `seatrial run SYSTEM --resume`"
            )
