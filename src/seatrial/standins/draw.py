"""Draw the faults of a machine by a seed."""

import random

from seatrial.standins.hostlist import expand
from seatrial.standins.truth import (
    Area,
    DeadNode,
    Faults,
    LateNode,
    SlowLeaf,
    SlowLink,
    SlowNode,
    Truth,
    TruthError,
)

_AREAS: tuple[Area, ...] = ("memory", "compute", "network")
_SECONDS = 5.0
COUNTS = {
    "slow_nodes": 3,
    "slow_links": 2,
    "slow_leaves": 1,
    "dead_nodes": 0,
    "late_nodes": 1,
}
"""Numbers of faults, unless others are asked for."""


def draw(
    nodes: str,
    seed: int,
    leaf_nodes: int = 32,
    **counts: int,
) -> Truth:
    """Return a truth with that many faults, at nodes, links and leaves of chance.

    Slow nodes take the areas memory, compute and network in turns. A node has one fault
    at most; dead nodes die in pairsweep. Raises TruthError if the machine has too few
    nodes or leaves for them.
    """
    count = {**COUNTS, **counts}
    single = sum(count[f"{kind}_nodes"] for kind in ("slow", "dead", "late"))
    chance = random.Random(f"faults {seed}")
    try:
        names = expand(nodes)
        taken = chance.sample(names, single + 2 * count["slow_links"])
        leaves = chance.sample(
            range(-(-len(names) // leaf_nodes)), count["slow_leaves"]
        )
    except ValueError as error:
        raise TruthError(
            f"{nodes}: too few nodes or leaves for the faults: {error}"
        ) from None
    chosen = iter(taken)
    faults = Faults(
        slow_nodes=tuple(
            SlowNode(next(chosen), _factor(chance), _AREAS[i % len(_AREAS)])
            for i in range(count["slow_nodes"])
        ),
        slow_links=tuple(
            SlowLink((next(chosen), next(chosen)), _factor(chance, 1.5))
            for _ in range(count["slow_links"])
        ),
        slow_leaves=tuple(SlowLeaf(leaf, _factor(chance)) for leaf in leaves),
        dead_nodes=tuple(
            DeadNode(next(chosen), "pairsweep") for _ in range(count["dead_nodes"])
        ),
        late_nodes=tuple(
            LateNode(next(chosen), _SECONDS) for _ in range(count["late_nodes"])
        ),
    )
    truth = Truth(seed=seed, nodes=nodes, leaf_nodes=leaf_nodes, faults=faults)
    truth.verify()
    return truth


def _factor(chance: random.Random, least: float = 1.1) -> float:
    return round(least + 0.3 * chance.random(), 3)
