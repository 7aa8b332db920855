"""Choice of the nodes of a night: watched nodes first, then those unseen longest."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from seatrial.errors import SeatrialError
from seatrial.names import natural_key, node_set
from seatrial.nightly.slurm_actions import read_slurm
from seatrial.system.slurm import host_names

FEWEST = 2
"""Nodes of a class that a night measures at least: one has no partner."""


@dataclass(frozen=True)
class Choice:
    """The nodes of a night by class, and why a class has none.

    `needed` counts the nodes that are due, `over_budget` those of them that the
    node-hours do not pay for.
    """

    nodes: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]
    needed: int
    over_budget: int


def free_nodes(classes: Mapping[str, tuple[Sequence[str], str]]) -> set[str]:
    """Return the nodes that are free for us.

    `classes` have the nodes of each class and the reservation of its jobs, '' without.
    Without one, a node is free if it is exactly idle. With one, its reserved nodes are.
    Raises SeatrialError if Slurm does not answer, or does not know the reservation.
    """
    slurm = read_slurm()
    free: set[str] = set()
    for nodes, name in classes.values():
        wanted, of_class = "idle", set(nodes)
        if name:
            if name not in slurm.reservations:
                raise SeatrialError(f"Slurm knows no reservation {name}")
            wanted = "reserved"
            of_class &= set(host_names(slurm.reservations[name].nodes))
        known = of_class & slurm.nodes.keys()
        free |= {node for node in known if slurm.nodes[node].state == wanted}
    return free


def choose(
    classes: Mapping[str, Sequence[str]],
    free: set[str],
    watched: Collection[str],
    unseen: Mapping[str, int],
    *,
    every: int,
    most: int,
) -> Choice:
    """Choose nodes of each class: at least one of `every`, at most `most` of all.

    `watched` nodes come first, then those that were not measured for the most nights
    (`unseen`; a node that is not in it was never measured).
    """
    never = 1 + max(unseen.values(), default=0)
    due: dict[str, list[str]] = {}
    left_out = {}
    for name, nodes in classes.items():
        idle = sorted(free.intersection(nodes), key=natural_key)
        if len(idle) < FEWEST:
            busy = node_set(set(nodes) - free)
            left_out[name] = f"{len(idle)} of {len(nodes)} nodes are idle; not: {busy}"
            continue
        order = sorted(
            idle, key=lambda node: (node not in watched, -unseen.get(node, never))
        )
        count = a_night(len(nodes), every) + sum(node in watched for node in idle)
        due[name] = order[:count]
    needed = sum(map(len, due.values()))
    chosen: dict[str, list[str]] = {name: [] for name in due}
    for name, node in _in_turns(due):
        if sum(map(len, chosen.values())) < most:
            chosen[name].append(node)
    kept = {
        name: tuple(nodes) for name, nodes in chosen.items() if len(nodes) >= FEWEST
    }
    for name in due.keys() - kept.keys():
        left_out[name] = "the node-hours of a night do not pay for two of its nodes"
    count = sum(map(len, kept.values()))
    return Choice(kept, left_out, needed, needed - count)


def a_night(nodes: int, every: int) -> int:
    """Return the nodes of a class that a night measures, so that all have their turn.

    None of a class of one node.
    """
    return 0 if nodes < FEWEST else max(FEWEST, math.ceil(nodes / every))


def _in_turns(due: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return classes and nodes, one of each class in turn."""
    longest = max(map(len, due.values()), default=0)
    return [
        (name, nodes[place])
        for place in range(longest)
        for name, nodes in due.items()
        if place < len(nodes)
    ]
