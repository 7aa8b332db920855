"""The pace of a stability phase: a round lasts its declared time, at least."""

import time

from seatrial.campaign.node_log import NodeLog
from seatrial.progress import Display, duration
from seatrial.system import slurm_nodes

_LOOK_S = 10.0


def hold(until: float, log: NodeLog, display: Display) -> None:
    """Wait until a time (UTC seconds), and look at the nodes meanwhile."""
    if until > time.time():
        display.note(f"idle for {duration(until - time.time())}: the round is not over")
    while (left := until - time.time()) > 0:
        observe(log)
        time.sleep(min(left, _LOOK_S))
    observe(log)


def observe(log: NodeLog) -> None:
    """Look at the nodes once."""
    look = slurm_nodes.look()
    now = time.time()
    if look is None:
        log.journal.unanswered(now)
    else:
        log.note(look, now)
