"""Adapters, sizes and times of operations, shared by stand-ins below MPI."""

from collections.abc import Iterator

from seatrial.standins.pairs import SHARING
from seatrial.standins.rows import OWN_OPTIONS, Value
from seatrial.standins.run import Run, UsageError

VERBS_OPTIONS = (
    *OWN_OPTIONS,
    "--device",
    "--peer-device",
    "--gid-index",
    "--mtu",
    "--inline",
    "--doorbell",
    "--rdma-cm",
    "--timeout",
    "--sizes",
    "--factor",
)
"""Options of all of our own programs of two nodes."""

CLOCK_US = 0.022
OF_MPI = {"send": 0.92, "write": 0.85, "read": 1.7, "atomic": 1.75}
"""Time of an operation over half a round trip of MPI; the last two are whole ones."""

Nodes = tuple[str, str]
"""The node with rank 0, and the other one."""


def two_nodes(run: Run) -> Nodes:
    """Return both nodes; UsageError if all ranks are on one."""
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    if nodes[0] == nodes[1]:
        raise UsageError(f"found {run.job.ranks} ranks on 1 node: pairs take two nodes")
    return nodes


def operation_us(
    run: Run, operation: str, nodes: Nodes, size: int, pairs: int = 1
) -> float:
    """Return the time of an operation while that many pairs share the link.

    Of send and write it is half the round trip.
    """
    latency, bandwidth = run.machine.pair(*nodes)
    shared = OF_MPI[operation] * latency * (1 + SHARING * (pairs - 1))
    return (shared + pairs * size / bandwidth) * run.machine.noise()


def devices(run: Run) -> list[str]:
    """Return the ports of --device, each with its number: 1 by default."""
    names = run.options.get("--device", "model0").split(",")
    return [name if ":" in name else f"{name}:1" for name in names]


def link_fields(run: Run, nodes: Nodes) -> dict[str, Value]:
    """Return the fields of nodes, adapters and connection, of the first port."""
    options = run.options
    device, *_ = devices(run)
    addressing = "lid"
    if "--rdma-cm" in options:
        addressing = "rdma_cm"
    elif "--gid-index" in options:
        addressing = "roce_v2_ipv4"
    return {
        "source": nodes[0],
        "destination": nodes[1],
        "device": device,
        "peer_device": options.get("--peer-device", device),
        "addressing": addressing,
        "gid_index": run.number("--gid-index", 0) if "--gid-index" in options else None,
        "mtu_bytes": run.number("--mtu", 4096),
        "inline_bytes": run.number("--inline", 0),
        "doorbell": "only" if "--doorbell" in options else "driver",
    }


def span(run: Run, name: str, default: str) -> tuple[int, int]:
    """Return both numbers of [MIN:]MAX; UsageError if MIN is below 1."""
    least, text = default.partition(":")[0], run.options.get(name, default)
    low, colon, high = text.partition(":")
    first, last = (low, high) if colon else (least, low)
    if not (first.isdecimal() and last.isdecimal() and int(first) > 0):
        raise UsageError(f"{name} {text}, expected [MIN:]MAX, from 1 on")
    return int(first), int(last)


def doubled(low: int, high: int) -> Iterator[int]:
    """Return the numbers from `low`, doubled up to `high`."""
    while low <= high:
        yield low
        low *= 2


def sizes(run: Run, default: str) -> Iterator[int]:
    """Return the sizes of --sizes by --factor; above 2, the largest is always one."""
    size, most = span(run, "--sizes", default)
    factor = run.number("--factor", 2)
    if factor < 2:
        raise UsageError(f"--factor {factor}, expected 2 at least")
    while size <= most:
        yield size
        after = factor * size
        size = most if factor > 2 and size < most < after else after


def pair_counts(run: Run) -> list[int]:
    """Return the numbers of pairs: doubled, and the largest; a MAX of 0 is all."""
    room = run.job.ranks // 2
    low, high = span(run, "--pairs", "1:0")
    most = high or room
    if not low <= most <= room:
        raise UsageError(f"--pairs {low}:{most}, there is room for {room}")
    return [*doubled(low, most - 1), most]


def iterations(run: Run, us: float) -> int:
    """Return the iterations that --time has room for, if each takes that long."""
    wanted, time_ms = run.number("--iterations", 100), run.number("--time", 0)
    return max(1, min(wanted, int(1e3 * time_ms / us))) if time_ms else wanted
