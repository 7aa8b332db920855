"""The record of everything that the lab created on this machine, to remove only that.

It lies in the machine's run folder and names its boot. A name is recorded before its
object is created: `down` can follow the record of a half-failed `up`, and a namespace
without a record is foreign.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from seatrial.errors import SeatrialError

RUN = Path("/run/seatrial-lab")
RECORD = RUN / "lab.json"
LOCK = Path("/run/seatrial-lab.lock")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass
class LabState:
    """The record: `home` is the lab's folder, `nodes` maps node names to addresses.

    The first node is the login node.

    `owns_fabric`: the lab created its network namespace; `slow` maps a node to the
    rate limit of its link.

    `machines` are the nodes that are virtual machines; `accelerator` is that of QEMU.

    `scale` is the number of Slurm nodes that the containers carry; 0 if each is one.
    """

    home: str
    boot: str
    nodes: dict[str, str] = field(default_factory=dict)
    owns_fabric: bool = False
    slow: dict[str, str] = field(default_factory=dict)
    machines: list[str] = field(default_factory=list)
    accelerator: str = ""
    scale: int = 0

    @property
    def login(self) -> str:
        """Return the name of the login node."""
        return next(iter(self.nodes))

    @property
    def size(self) -> str:
        """Return the nodes in words."""
        if self.scale:
            return f"{self.scale} model nodes"
        return f"nodes {', '.join(self.nodes)}"

    def refuse_another(self, wanted: "LabState") -> None:
        """Raise SeatrialError if this lab runs and is not the wanted one."""
        if self.nodes and (self.nodes, self.scale) != (wanted.nodes, wanted.scale):
            raise SeatrialError(
                f"the lab runs with {self.size}, asked for {wanted.size}; stop it "
                "first with `seatrial lab down`"
            )

    def check_node(self, node: str) -> None:
        """Raise SeatrialError if the lab does not have a node."""
        if node not in self.nodes:
            names = ", ".join(self.nodes)
            raise SeatrialError(f"the lab has no node {node}; it has {names}")

    def save(self) -> None:
        """Write the record in one step."""
        RUN.mkdir(parents=True, exist_ok=True)
        partial = RECORD.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=2))
        partial.replace(RECORD)


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return BOOT_ID.read_text().strip()


def load() -> LabState | None:
    """Return the record of this boot; None if no lab was started since."""
    if not RECORD.exists():
        return None
    try:
        state = LabState(**json.loads(RECORD.read_text()))
    except (ValueError, TypeError) as error:
        raise SeatrialError(f"{RECORD}: not a record of the lab: {error}") from None
    return state if state.boot == boot_id() else None


def require() -> LabState:
    """Return the record; SeatrialError if the lab is down."""
    state = load()
    if state is None or not state.nodes:
        raise SeatrialError("the lab is down; start it with `seatrial lab up`")
    return state


@contextmanager
def locked() -> Iterator[None]:
    """Lock the lab: one process at a time changes it."""
    with LOCK.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
