"""Growth of typical times of checks with nodes, cores, memory and steps.

A check states `typical_s` on the lab's four nodes. Times of checks that are not listed
in GROWTH depend on none of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.checks.hpcc_input import (
    MATRIX_S_OF_HPL,
    OTHER_TESTS_S,
    hpl_seconds,
    order_for_memory,
    order_within,
)
from seatrial.checks.hpcg_input import hpcg_seconds, points_within
from seatrial.checks.job_mix import CHECK as JOB
from seatrial.checks.job_mix import job_of
from seatrial.checks.lammps_problems import PROBLEMS
from seatrial.checks.node_numbers import spread
from seatrial.checks.npb_sizes import largest_class, npb_seconds, ranks_of

LAB_NODES = 4
"""Nodes on which typical times are measured."""
_MIB = 1 << 20
_NODE_MIB_PER_S, _SERVERS_MIB_PER_S = 2_000.0, 100_000.0
_FILES_PER_S = 2_000.0
"""Files and folders that one server creates, looks up, reads and removes."""
_HPCG_S = 5
"""Seconds of the timed part in the typical time of Hpcg."""


@dataclass(frozen=True)
class Place:
    """A class of nodes: their number, and cores and memory of a node; 0: unknown.

    `rack_nodes` are those of the largest rack.
    """

    nodes: int = 0
    cores: int = 0
    memory_mib: float = 0
    rack_nodes: int = 0


Variables = Mapping[str, Any]
Growth = Callable[[float, Place, Variables], float]


def rounds(typical_s: float, place: Place, variables: Variables) -> float:
    """N - 1 rounds of all pairs, or `rounds`, each of four phases."""
    odd = place.nodes % 2
    most = variables.get("rounds") or place.nodes
    further = max(0, min(most, place.nodes - 1 + odd) - (LAB_NODES - 1))
    return typical_s + further * 4 * float(variables["milliseconds_per_size"]) / 1000


def levels(typical_s: float, place: Place, variables: Variables) -> float:
    """1, 2, 4 and so on up to all nodes."""
    return typical_s * _levels(place.nodes) / _levels(LAB_NODES)


def starts(typical_s: float, place: Place, variables: Variables) -> float:
    """Starts on at most `counts` numbers of nodes."""
    numbers = [len(spread(n, variables["counts"])) for n in (place.nodes, LAB_NODES)]
    return typical_s * numbers[0] / numbers[1]


def _levels(nodes: int) -> int:
    return (nodes - 1).bit_length() + 1


def node_sweep(typical_s: float, place: Place, variables: Variables) -> float:
    """HPL on every node, of order `n` or of `memory_percent`."""
    if not (place.cores and place.memory_mib):
        return typical_s
    memory = float(variables["memory_percent"]) / 100 * place.memory_mib * _MIB
    n = variables["n"] or order_for_memory(memory, variables["block"])
    return typical_s + hpl_seconds(n, place.cores)


def hpcc(typical_s: float, place: Place, variables: Variables) -> float:
    """HPL by memory on all nodes, and the other tests."""
    fraction, ranks = _fraction(place, variables), _ranks(place, variables)
    if not fraction:
        return typical_s
    memory = fraction * place.nodes * place.memory_mib * _MIB
    block, longest_s = variables["block"], variables["longest_s"]
    n = order_within(memory, ranks, block, longest_s)
    return OTHER_TESTS_S + hpl_seconds(n, ranks)


def hpl(typical_s: float, place: Place, variables: Variables) -> float:
    """HPL by memory on all nodes."""
    return _hpl(typical_s, place, variables, place.nodes)


def hpl_of_nodes(typical_s: float, place: Place, variables: Variables) -> float:
    """HPL by memory on each node, all at the same time."""
    return _hpl(typical_s, place, variables, 1)


def hpl_of_racks(typical_s: float, place: Place, variables: Variables) -> float:
    """HPL by memory on the largest rack; without racks, the case is skipped."""
    if place.cores and not place.rack_nodes:
        return 0.0
    return _hpl(typical_s, place, variables, place.rack_nodes)


def _hpl(typical_s: float, place: Place, variables: Variables, nodes: int) -> float:
    fraction, cores = _fraction(place, variables), nodes * place.cores
    if not fraction:
        return typical_s
    memory = fraction * nodes * place.memory_mib * _MIB
    n = order_within(memory, cores, variables["block"], variables["longest_s"])
    return (1 + MATRIX_S_OF_HPL) * hpl_seconds(n, cores)


def hpcg(typical_s: float, place: Place, variables: Variables) -> float:
    """The timed part, and sets besides it by the memory of a rank."""
    fraction, seconds = _fraction(place, variables), int(variables["seconds"])
    if not fraction:
        return typical_s + seconds - _HPCG_S
    ranks = variables["ppn"] or place.cores
    points = points_within(fraction * place.memory_mib * _MIB / ranks)
    return hpcg_seconds(points, seconds)


def npb(typical_s: float, place: Place, variables: Variables) -> float:
    """Runs of the class by memory, without and with timers."""
    fraction = _fraction(place, variables)
    if not fraction:
        return typical_s
    benchmark, ppn = variables["benchmark"], variables["ppn"] or place.cores
    memory = fraction * place.memory_mib * _MIB
    size = largest_class(benchmark, memory, [place.nodes], ppn)
    spread = size and ranks_of(benchmark, size, place.nodes, ppn)
    if not size or not spread:
        return 0.0
    runs = 2 if variables["communication"] else 1
    return runs * npb_seconds(benchmark, size, spread[0] * spread[1])


def lammps(typical_s: float, place: Place, variables: Variables) -> float:
    """Copies by memory on all nodes."""
    fraction, ranks = _fraction(place, variables), _ranks(place, variables)
    if not fraction:
        return typical_s
    problem = PROBLEMS[variables.get("problem", "rhodo")]  # LammpsRhodo has no choice
    memory = fraction * place.nodes * place.memory_mib * _MIB
    return problem.typical_s(problem.copies_in(memory, ranks), ranks)


def stability_job(typical_s: float, place: Place, variables: Variables) -> float:
    """The seconds that the name of the job states."""
    return float(job_of(variables["mix"])[1])


def ior(typical_s: float, place: Place, variables: Variables) -> float:
    """Data of all nodes, at a usual bandwidth of nodes and of servers."""
    by_memory = float(variables["memory_percent"]) / 100 * place.memory_mib
    mib = place.nodes * max(float(variables["mib_per_node"]), by_memory)
    layouts, passes = 2, 3  # write, read, verify
    seconds = mib / min(place.nodes * _NODE_MIB_PER_S, _SERVERS_MIB_PER_S)
    return layouts * passes * len(variables["transfers"]) * seconds


def mdtest(typical_s: float, place: Place, variables: Variables) -> float:
    """Files and folders of all nodes, at usual rates of one server of metadata."""
    return place.nodes * float(variables["files_per_node"]) / _FILES_PER_S


def _fraction(place: Place, variables: Variables) -> float:
    """Return the share of the memory that a case fills; 0 if it is fixed or unknown."""
    known = place.cores and place.memory_mib
    return float(variables["memory_fraction"]) if known else 0.0


def _ranks(place: Place, variables: Variables) -> int:
    return place.nodes * (variables["ppn"] or place.cores)


GROWTH: Mapping[str, Growth] = {
    **dict.fromkeys(("PairSweep", "VerbsPairSweep"), rounds),
    "Startup": starts,
    **dict.fromkeys(("OsuCollective", "OsuBarrier"), levels),
    "NodeSweep": node_sweep,
    "Hpcc": hpcc,
    "Hpl": hpl,
    "HplNodes": hpl_of_nodes,
    "HplRacks": hpl_of_racks,
    "Hpcg": hpcg,
    "Npb": npb,
    **dict.fromkeys(("LammpsRhodo", "LammpsFixed", "LammpsScaled"), lammps),
    JOB: stability_job,
    "Ior": ior,
    "Mdtest": mdtest,
}
