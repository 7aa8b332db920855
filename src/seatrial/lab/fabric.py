"""The lab's network: one bridge in a namespace of its own, one veth pair per node.

The machine's own network is never touched: bridge and cables live in namespaces. A
node's cable is `eth0` inside the node and carries the node's name on the bridge.
"""

from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.lab.shell import run, succeeds
from seatrial.lab.state import LabState

FABRIC = "seatrial-fabric"
BRIDGE = "fabric0"
PREFIX_LENGTH = 24


def namespace(node: str) -> str:
    """Name a node's network namespace."""
    return f"seatrial-{node}"


def exists(name: str) -> bool:
    """Whether a network namespace of that name is there."""
    return Path("/run/netns", name).exists()


def gateway(address: str) -> str:
    """Address of the bridge: the last one of the node's network."""
    return address.rsplit(".", 1)[0] + ".254"


def ensure_fabric(state: LabState, address: str) -> bool:
    """Make the bridge and give it `address`; True if that changed anything."""
    _claim(state, FABRIC)
    if _has_address(FABRIC, BRIDGE, address):
        return False
    run("ip", "-n", FABRIC, "link", "set", "lo", "up")
    if not succeeds("ip", "-n", FABRIC, "link", "show", BRIDGE):
        run("ip", "-n", FABRIC, "link", "add", BRIDGE, "type", "bridge")
    run("ip", "-n", FABRIC, "link", "set", BRIDGE, "up")
    run("ip", "-n", FABRIC, "addr", "add", f"{address}/{PREFIX_LENGTH}", "dev", BRIDGE)
    return True


def ensure_cable(state: LabState, node: str, address: str) -> bool:
    """Connect a node to the bridge; True if that changed anything."""
    name = namespace(node)
    _claim(state, name)
    if _has_address(name, "eth0", address):
        return False
    if not succeeds("ip", "-n", FABRIC, "link", "show", node):
        run(
            *("ip", "-n", FABRIC, "link", "add", node, "type", "veth"),
            *("peer", "name", "eth0", "netns", name),
        )
    run("ip", "-n", FABRIC, "link", "set", node, "master", BRIDGE, "up")
    run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", name, "link", "set", "eth0", "up")
    run("ip", "-n", name, "addr", "add", f"{address}/{PREFIX_LENGTH}", "dev", "eth0")
    return True


def remove(state: LabState, name: str) -> bool:
    """Remove one of the lab's own namespaces with all that is in it."""
    changed = exists(name)
    if changed:
        run("ip", "netns", "delete", name)
    if name in state.namespaces:
        state.namespaces.remove(name)
        state.save()
    return changed


def refuse_foreign(state: LabState, names: list[str]) -> None:
    """SeatrialError if a namespace that the lab needs is there but not its own."""
    foreign = [name for name in names if exists(name) and name not in state.namespaces]
    if foreign:
        raise SeatrialError(
            f"network namespace {', '.join(foreign)} exists and was not made by the "
            "lab; nothing was touched. Remove it yourself (`ip netns delete NAME`) if "
            "nobody needs it"
        )


def limit_rate(node: str, rate: str | None) -> None:
    """Limit both directions of a node's link to `rate` (as tc spells it), or lift it.

    Each end of the cable shapes what it sends: `eth0` what the node sends, the bridge's
    end what the node receives.
    """
    for name, device in ((namespace(node), "eth0"), (FABRIC, node)):
        where = ("-n", name, "qdisc")
        if rate is None:
            succeeds("tc", *where, "del", "dev", device, "root")
        else:
            shape = ("tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
            run("tc", *where, "replace", "dev", device, "root", *shape)


def _has_address(name: str, device: str, address: str) -> bool:
    """Whether a device of a namespace is there and has that address, the last step."""
    where = ("ip", "-n", name, "-o", "addr", "show", "dev", device)
    return succeeds(*where) and f" {address}/" in run(*where)


def _claim(state: LabState, name: str) -> None:
    """Make a namespace unless it is ours already; write it down first."""
    refuse_foreign(state, [name])
    if name not in state.namespaces:
        state.namespaces.append(name)
        state.save()
    if not exists(name):
        run("ip", "netns", "add", name)
