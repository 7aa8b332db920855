"""The kinds of machines that a study simulates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from seatrial.calibration.simulate.machine import Kind, Machine

Model = Literal["any", "normal", "lognormal"]
"""Models of noise that a criterion can declare."""


@dataclass(frozen=True)
class Scenario:
    """A kind of machine with its faults, as changes of a base machine."""

    name: str
    meaning: str
    kind: Kind
    changes: Mapping[str, Any]

    def machine(self, base: Machine) -> Machine:
        """Return the machine; a drift or a level of the base is changed last."""
        same = self.kind == "sameness"
        level = 1.0 if same else base.level
        changes = dict(self.changes)
        if changes.get("slow_level") == "limit":
            changes["slow_level"] = 1 - base.tolerance if same else 1.0
        return replace(base, **{"kind": self.kind, "level": level} | changes)


_EVEN = {"level": 1.0, "spread": 0.0}
_ONE_SLOW = {"slow_nodes": 1}
_BORDERLINE = {"slow_nodes": 1, "slow_level": "limit"}

_ROWS: tuple[tuple[str, str, Kind, dict[str, Any]], ...] = (
    ("healthy", "all nodes above the limit", "nodes", {}),
    ("at-limit", "all nodes exactly at the limit", "nodes", _EVEN),
    ("borderline", "one node exactly at the limit", "nodes", _BORDERLINE),
    ("slow-node", "one node below the limit", "nodes", _ONE_SLOW),
    (
        "correlated",
        "the same, metrics of a node alike",
        "nodes",
        _ONE_SLOW | {"shared": 0.7},
    ),
    ("drift", "healthy, but all fall by 10 % in the campaign", "nodes", {"drift": 0.1}),
    ("value", "one value exactly at its limit", "value", _EVEN | {"metrics": 1}),
    ("same", "nodes held to each other", "sameness", {}),
    ("same-borderline", "one node exactly at the tolerance", "sameness", _BORDERLINE),
    ("same-slow", "one node below the others", "sameness", _ONE_SLOW),
    (
        "same-drift",
        "all fall by 10 %, one is below",
        "sameness",
        {"slow_nodes": 1, "drift": 0.1},
    ),
    ("pairs", "all pairs above the limit", "pairs", {"metrics": 2}),
    ("slow-link", "one pair below the limit", "pairs", {"slow_links": 1, "metrics": 2}),
    (
        "slow-node-link",
        "all pairs of one node below the limit",
        "pairs",
        {"slow_nodes": 1, "metrics": 2},
    ),
)

SCENARIOS = {row[0]: Scenario(*row) for row in _ROWS}

STORY = (
    "healthy",
    "at-limit",
    "borderline",
    "slow-node",
    "drift",
    "same-slow",
    "slow-link",
    "slow-node-link",
)
"""The scenarios that tell most; the others are for a closer look."""
