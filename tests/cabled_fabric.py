"""A fabric as cabled: a plan, and what was done wrong, as discovered records.

It shares nothing with the comparison but the records.
"""

from dataclasses import dataclass, field
from typing import Any

from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.plan import Cable, Plan, plan_csv, read_plan
from seatrial.fabric.records import (
    Device,
    End,
    Fabric,
    Link,
    Manager,
    OpenPort,
    leafs_of,
)

MASTER = Manager("0x0000000000000001", 14, "master", 1)


def planned(**numbers: Any) -> Plan:
    """Return a plan from numbers, through its CSV."""
    shape = Shape(**{"kind": "fat-tree-2", "hosts": 64, "radix": 16, **numbers})
    return read_plan(plan_csv(generate(shape)), "plan.csv")


@dataclass
class Cabled:
    """Cables by both ends, which tests change, and devices that do not answer."""

    plan: Plan
    links: dict[End, End] = field(default_factory=dict)
    rates: dict[End, tuple[int, str]] = field(default_factory=dict)
    states: dict[End, str] = field(default_factory=dict)
    silent: set[End] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    firmware: dict[str, str] = field(default_factory=dict)
    managers: tuple[Manager, ...] | None = (MASTER,)

    def __post_init__(self) -> None:
        for cable in self.plan.cables:
            self.connect(cable.a, cable.b)

    def connect(self, a: End, b: End) -> None:
        """Put the plugs of a cable into two ports."""
        self.links[a], self.links[b] = b, a

    def unplug(self, end: End) -> None:
        """Remove the cable of a port."""
        far = self.links.pop(end)
        del self.links[far]

    def rotate(self, *ends: End) -> None:
        """Move the plug of each port to the next one, the last to the first."""
        fars = [self.links[end] for end in ends]
        for end, far in zip((*ends[1:], ends[0]), fars, strict=True):
            self.connect(end, far)

    def cable(self, a: str) -> Cable:
        """Return the first planned cable of a device."""
        return next(
            one for one in self.plan.cables if a in (one.a.device, one.b.device)
        )

    def fabric(self) -> Fabric:
        """Return what tools would see."""
        devices = []
        for index, (name, kind) in enumerate(self.plan.kinds.items()):
            if name not in self.gone:
                hcas = {""} if kind == "switch" else {"mlx5_0"}
                for hca in sorted(hcas):
                    devices.append(
                        Device(
                            self.names.get(name, name),
                            kind,
                            f"0x{index + 1:016x}",
                            hca,
                            f"{self.names.get(name, name)} {hca}".strip(),
                            model="MQM8700" if kind == "switch" else "",
                            firmware=self.firmware.get(name, "27.2010.1000")
                            if kind == "switch"
                            else "",
                        )
                    )
        links = []
        open_ports = []
        for end, far in sorted(self.links.items()):
            down = {end.device, far.device} & self.gone
            if down or end in self.silent or far in self.silent:
                if end.device not in self.gone:
                    silent = end in self.silent or far in self.silent
                    state = ("Active", "LinkUp") if silent else ("Down", "Polling")
                    open_ports.append(OpenPort(self._named(end), *state, silent))
            elif end < far:
                width, speed = self.rates.get(end) or self.rates.get(far) or (4, "HDR")
                state_of = self.states.get(end) or self.states.get(far) or "Active"
                links.append(
                    Link(
                        self._named(end),
                        self._named(far),
                        width,
                        speed,
                        state_of,
                        "LinkUp",
                    )
                )
        unplugged = [
            end
            for cable in self.plan.cables
            for end in (cable.a, cable.b)
            if end not in self.links and end.device not in self.gone
        ]
        open_ports += [
            OpenPort(self._named(end), "Down", "Polling") for end in unplugged
        ]
        return Fabric(
            tuple(devices),
            tuple(links),
            tuple(open_ports),
            managers=self.managers,
            leafs=leafs_of(tuple(devices), tuple(links)),
        )

    def _named(self, end: End) -> End:
        return End(self.names.get(end.device, end.device), end.port)
