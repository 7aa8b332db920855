"""The truth of a model machine: its file, checked.

Percentages are coefficients of variation of lognormal factors. A factor is how much
slower something is: 1.1 makes a time 10 % longer, and a rate that much lower.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from seatrial.standins.hostlist import expand

Positive = Annotated[float, Meta(gt=0)]
Percent = Annotated[float, Meta(ge=0, le=50)]
Factor = Annotated[float, Meta(ge=1)]
Count = Annotated[int, Meta(ge=1)]
Network = Literal["network", "latency", "bandwidth"]
Area = Literal["all", "network", "latency", "bandwidth", "memory", "compute", "noise"]
"""`noise` is that of the operating system, which `all` leaves out."""


class TruthError(Exception):
    """A file that describes no machine; the message says why."""


class Numbers(Struct, frozen=True, forbid_unknown_fields=True):
    """A sound node, with all of its cores, and a sound pair of nodes.

    `latency_us` is of 8 B between two nodes of a leaf, `hop_us` what another leaf adds;
    `gap_us` is the time between small messages of one rank. `shared_*` are those within
    a node. `gflops` is HPL's rate, `memory_gb_per_s` STREAM's triad.
    """

    latency_us: Positive = 1.4
    hop_us: Positive = 0.3
    gap_us: Positive = 0.2
    bandwidth_mb_per_s: Positive = 12_000.0
    shared_latency_us: Positive = 0.5
    shared_bandwidth_mb_per_s: Positive = 15_000.0
    memory_gb_per_s: Positive = 200.0
    memory_latency_ns: Positive = 95.0
    gflops: Positive = 2_000.0


class SlowNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node that is slower than the others, in one area."""

    node: str
    factor: Factor
    area: Area = "all"


class SlowLink(Struct, frozen=True, forbid_unknown_fields=True):
    """A pair of nodes that is slower than other pairs of the same nodes."""

    nodes: tuple[str, str]
    factor: Factor
    area: Network = "network"


class SlowLeaf(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf, counted from 0, whose up-links are slow: pairs with other leaves."""

    leaf: Annotated[int, Meta(ge=0)]
    factor: Factor
    area: Network = "network"


class DeadNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node that dies when `program` starts on it, and stays dead.

    A preflight is no start of pairsweep: the node dies in the sweep. Its rank hangs, or
    ends with status 1; FOLDER/dead has a file of its name then.
    """

    node: str
    program: str
    how: Literal["hang", "exit"] = "hang"


class LateNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node on which every program starts some seconds late."""

    node: str
    seconds: Positive


class Faults(Struct, frozen=True, forbid_unknown_fields=True):
    """The faults of the machine."""

    slow_nodes: tuple[SlowNode, ...] = ()
    slow_links: tuple[SlowLink, ...] = ()
    slow_leaves: tuple[SlowLeaf, ...] = ()
    dead_nodes: tuple[DeadNode, ...] = ()
    late_nodes: tuple[LateNode, ...] = ()

    def nodes(self) -> set[str]:
        """Return the names of all nodes with a fault."""
        return {
            *(slow.node for slow in self.slow_nodes),
            *(dead.node for dead in self.dead_nodes),
            *(late.node for late in self.late_nodes),
            *(node for link in self.slow_links for node in link.nodes),
        }


class Truth(Struct, frozen=True, forbid_unknown_fields=True):
    """A machine: nodes, as a list of Slurm, `leaf_nodes` of them below each leaf.

    `noise_percent` is the scatter of every number; `node_spread_percent` and
    `pair_spread_percent` are what distinguishes sound nodes, and sound pairs, for good.
    `clocks_khz` are the clocks that its CPUs can have; the highest is usual. A program
    waits the share `time_scale` of the time that it would have taken.
    """

    seed: int
    nodes: str
    leaf_nodes: Count = 32
    noise_percent: Percent = 1.0
    node_spread_percent: Percent = 0.3
    pair_spread_percent: Percent = 0.3
    clocks_khz: Annotated[tuple[Count, ...], Meta(min_length=1)] = (
        1_800_000,
        2_400_000,
    )
    time_scale: Annotated[float, Meta(ge=0)] = 0.0
    machine: Numbers = Numbers()
    faults: Faults = Faults()

    def verify(self) -> None:
        """Raise TruthError unless every fault is of a node or leaf of the machine."""
        try:
            nodes = expand(self.nodes)
        except ValueError as error:
            raise TruthError(f"nodes: {error}") from None
        if len({*nodes}) < len(nodes):
            raise TruthError(f"nodes: {self.nodes} has a node twice")
        if unknown := sorted(self.faults.nodes() - {*nodes}):
            raise TruthError(f"faults: {unknown[0]} is none of the nodes {self.nodes}")
        leaves = -(-len(nodes) // self.leaf_nodes)
        for slow in self.faults.slow_leaves:
            if slow.leaf >= leaves:
                known = f"expected a number below {leaves}"
                raise TruthError(f"faults.slow_leaves: leaf {slow.leaf}, {known}")
        for link in self.faults.slow_links:
            if link.nodes[0] == link.nodes[1]:
                raise TruthError(f"faults.slow_links: {link.nodes[0]} with itself")


def parse_truth(text: str) -> Truth:
    """Read a truth of YAML or JSON; raises TruthError, with the key that is wrong."""
    try:
        truth = msgspec.convert(yaml.safe_load(text), Truth)
    except yaml.YAMLError as error:
        raise TruthError(f"no YAML: {' '.join(str(error).split())}") from None
    except msgspec.ValidationError as error:
        raise TruthError(re.sub(r" - at `\$\.?(.*)`$", r" in \1", str(error))) from None
    truth.verify()
    return truth


def load_truth(file: Path) -> Truth:
    """Read the file of a truth; raises TruthError that names it."""
    try:
        return parse_truth(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TruthError(f"{file}: {error.strerror}") from None
    except (TruthError, UnicodeDecodeError) as error:
        raise TruthError(f"{file}: {error}") from None
