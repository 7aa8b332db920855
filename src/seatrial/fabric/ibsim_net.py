"""Networks for ibsim, the simulator of InfiniBand fabrics, from a plan.

Format: net-examples of linux-rdma/ibsim. ibsim 0.10 knows speeds up to HDR.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from seatrial.fabric.plan import Cable, PlannedKind
from seatrial.fabric.records import End

_STEP = 256
"""Between the GUIDs of two devices: ibsim gives the next ones to their ports."""

_HOSTS, _SWITCHES = 0x100000000, 0x200000000
_MOST_PORTS = 36
"""A switch of the network has as many ports, or more if the plan uses more."""

Place = tuple[str, str]
"""A device of the network: node and HCA, or switch and ''."""


def ibsim_network(
    cables: Iterable[Cable],
    kinds: Mapping[str, PlannedKind],
) -> str:
    """Return the network; each HCA of a host is a device of its own."""
    wires: dict[Place, dict[int, tuple[Place, int, str]]] = defaultdict(dict)
    for cable in cables:
        rate = f"{cable.width or 4}x{cable.speed or 'HDR'}"
        a, b = (_place(end, kinds) for end in (cable.a, cable.b))
        wires[a[0]][a[1]] = (*b, rate)
        wires[b[0]][b[1]] = (*a, rate)
    numbers = _numbers(wires)
    blocks = ("\n".join(_block(place, wires[place], numbers[place])) for place in wires)
    return "\n\n".join(blocks) + "\n"


def node_id(place: Place) -> str:
    """Return the name by which ibsim's console knows a device."""
    name, hca = place
    return f"{name}/{hca}" if hca else name


def _numbers(places: Iterable[Place]) -> dict[Place, int]:
    return {
        place: (_HOSTS if place[1] else _SWITCHES) + index * _STEP
        for index, place in enumerate(places, 1)
    }


def _place(end: End, kinds: Mapping[str, PlannedKind]) -> tuple[Place, int]:
    """Return the device of a network and the number of its port."""
    if kinds[end.device] == "switch":
        return (end.device, ""), int(end.port)
    hca, _, port = end.port.rpartition(":")
    return (end.device, hca or "mlx5_0"), int(port)


def _block(
    place: Place, ports: Mapping[int, tuple[Place, int, str]], guid: int
) -> Iterator[str]:
    name, hca = place
    kind = "Ca" if hca else "Switch"
    count = max(ports) if hca else max(_MOST_PORTS, *ports)
    yield f"{kind.lower()}guid=0x{guid:x}"
    yield f'{kind}\t{count} "{node_id(place)}"\t\t# "{f"{name} {hca}".strip()}"'
    for port, (far, far_port, rate) in sorted(ports.items()):
        yield f'[{port}]\t"{node_id(far)}"[{far_port}]\t\t# "" lid 0 {rate}'
