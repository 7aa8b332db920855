"""The lab's network: one bridge in a namespace of its own, one veth pair per node.

The machine's own network stays unchanged: bridge and cables live in namespaces.
systemd-nspawn creates a node's cable: `host0` in the node, `vb-NODE` on the bridge.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.lab.shell import run, succeeds
from seatrial.system.lab.state import LabState

NAMESPACES = Path("/run/netns")
"""Where ip(8) mounts network namespaces."""

FABRIC = "seatrial-fabric"
BRIDGE = "fabric0"
PREFIX_LENGTH = 24


@dataclass(frozen=True)
class Network:
    """A network of virtual machines: their device, and its MTU in bytes.

    `subnet` is the third part of its addresses; 0: as in the nodes' own.
    """

    device: str
    bridge: str
    mtu: int
    subnet: int = 0

    def address(self, node: str) -> str:
        """Return the device's address with its prefix, from that of its node."""
        one, two, three, four = node.split(".")
        return f"{one}.{two}.{self.subnet or three}.{four}/{PREFIX_LENGTH}"


RAILS = (Network("rail0", "rails0", 4500, 1), Network("rail1", "rails1", 4500, 2))
NETWORKS = (Network("host0", BRIDGE, 1500), *RAILS)
"""Networks of a virtual machine, in the order in which its kernel finds devices."""


def exists(name: str) -> bool:
    """Return True if a network namespace of that name is there.

    Where /run outlives a boot, an empty file of it may be left.
    """
    return os.path.ismount(NAMESPACES / name)


def ensure_fabric(state: LabState) -> bool:
    """Create the bridge; return True if that changed anything.

    Its address is the last one of the nodes' network.
    """
    address = next(iter(state.nodes.values())).rpartition(".")[0] + ".254"
    state.owns_fabric = True
    state.save()  # before the namespace exists
    if not exists(FABRIC):
        (NAMESPACES / FABRIC).unlink(missing_ok=True)
        run("ip", "netns", "add", FABRIC)
    show = ("ip", "-n", FABRIC, "-o", "addr", "show", "dev", BRIDGE)
    if succeeds(*show) and f" {address}/" in run(*show):
        return False
    run("ip", "-n", FABRIC, "link", "set", "lo", "up")
    if not succeeds("ip", "-n", FABRIC, "link", "show", BRIDGE):
        run("ip", "-n", FABRIC, "link", "add", BRIDGE, "type", "bridge")
    run("ip", "-n", FABRIC, "link", "set", BRIDGE, "up")
    run("ip", "-n", FABRIC, "addr", "add", f"{address}/{PREFIX_LENGTH}", "dev", BRIDGE)
    return True


def ensure_rails() -> None:
    """Create the bridges of the virtual machines' rails."""
    for rail in RAILS:
        if not succeeds("ip", "-n", FABRIC, "link", "show", rail.bridge):
            run("ip", "-n", FABRIC, "link", "add", rail.bridge, "type", "bridge")
        run("ip", "-n", FABRIC, "link", "set", rail.bridge, "up")


def remove(state: LabState) -> bool:
    """Remove the lab's own namespace and everything in it."""
    if not state.owns_fabric:
        return False
    changed = exists(FABRIC)
    if changed:
        run("ip", "netns", "delete", FABRIC)
    state.owns_fabric = False
    state.save()
    return changed


def refuse_foreign(state: LabState) -> None:
    """Raise SeatrialError if the lab's namespace exists but is not its own."""
    if exists(FABRIC) and not state.owns_fabric:
        raise SeatrialError(
            f"network namespace {FABRIC} exists and was not made by the lab; nothing "
            f"was changed. If it is not needed, remove it: `ip netns delete {FABRIC}`"
        )


def limit_rate(node: str, pid: int, rate: str | None) -> None:
    """Limit both directions of a node's link to `rate` (as tc spells it), or lift it.

    Each end of the cable shapes what it sends: `host0`, in the network namespace of
    the node's process `pid`, what the node sends; the bridge's end what it receives.
    """
    for path, device in (
        (f"/proc/{pid}/ns/net", "host0"),
        (f"{NAMESPACES / FABRIC}", f"vb-{node}"),
    ):
        qdisc = ("nsenter", f"--net={path}", "tc", "qdisc")
        if rate is None:
            succeeds(*qdisc, "del", "dev", device, "root")
        else:
            shape = ("tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
            run(*qdisc, "replace", "dev", device, "root", *shape)
