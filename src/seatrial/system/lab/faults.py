"""Faults that can be planted in a node of the lab, and lifted again at any time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from seatrial.errors import SeatrialError
from seatrial.system.lab import cluster, container, state
from seatrial.system.lab.shell import run

LINK_RATE = "100mbit"
CPU_SHARE = 0.4
"""Of one core: what a node with a slow processor gets."""

_BUFFERS = ("tcp_rmem", "tcp_wmem")
_SSH_S = 30
_SLURM_S = 60
_UP = ("idle", "mixed", "allocated", "completing")


@dataclass(frozen=True)
class LabFault:
    """A fault of a node; `plant` and `lift` take its name."""

    what: str
    plant: Callable[[str], None]
    lift: Callable[[str], None]


def _limit_cpu(node: str, cores: float | None) -> None:
    state.require().check_node(node)
    container.limit_cpu(node, cores)


def _stop_slurmd(node: str) -> None:
    _ssh(node, "sudo systemctl stop slurmd")
    _ssh("head", "sudo scontrol reconfigure")  # or Slurm notices only minutes later
    _wait_until(node, answers=False)


def _start_slurmd(node: str) -> None:
    _ssh(node, "sudo systemctl start slurmd")
    _wait_until(node, answers=True)


def _set_buffers(node: str, sizes: str | None) -> None:
    """Set the sizes of TCP's buffers; None: those of the head, which has no fault."""
    for name in _BUFFERS:
        file = f"/proc/sys/net/ipv4/{name}"
        value = sizes or _ssh("head", f"cat {file}").strip()
        _ssh(node, f"echo {value} | sudo tee {file} > /dev/null")


LAB_FAULTS = {
    "slow-link": LabFault(
        f"link limited to {LINK_RATE}",
        partial(cluster.slow_link, rate=LINK_RATE),
        partial(cluster.slow_link, rate=None),
    ),
    "slow-cpu": LabFault(
        f"processor limited to {100 * CPU_SHARE:.0f} % of a core",
        partial(_limit_cpu, cores=CPU_SHARE),
        partial(_limit_cpu, cores=None),
    ),
    "dead-daemon": LabFault("slurmd is stopped", _stop_slurmd, _start_slurmd),
    "wrong-setting": LabFault(
        "net.ipv4.tcp_rmem and tcp_wmem of 4 KiB",
        partial(_set_buffers, sizes="4096 4096 4096"),
        partial(_set_buffers, sizes=None),
    ),
}


def _wait_until(node: str, *, answers: bool) -> None:
    """Wait until Slurm knows whether the daemon of a node answers."""
    deadline = time.monotonic() + _SLURM_S
    state = ""
    while time.monotonic() < deadline:
        state = _ssh("head", f"sinfo --noheader --nodes={node} --format=%T").strip()
        if (state in _UP) == answers:
            return
        time.sleep(1)
    raise SeatrialError(
        f"node {node}: Slurm says {state!r} for {_SLURM_S} s, expected that its slurmd "
        f"{'answers' if answers else 'does not answer'}; see `seatrial lab status`"
    )


def _ssh(node: str, command: str) -> str:
    """Run a command on a node of the lab; return its standard output."""
    lab = state.require()
    lab.check_node(node)
    return run(*cluster.ssh(lab, node, command), limit_s=_SSH_S)
