"""Time and nodes of cases that never ran, as their checks state them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seatrial.checks.growth import GROWTH, LAB_NODES, Place
from seatrial.checks.job_mix import job_of, nodes_of
from seatrial.checks.listing import UNDEFINED, describe_checks
from seatrial.errors import SeatrialError

NODES_OF_EXTENT = {"one node": 1, "two nodes": 2}
"""Nodes of a case by its extent; other cases take all of their class."""


@dataclass(frozen=True)
class Typical:
    """Seconds and nodes that a check states for one of its cases.

    `seconds` are those on the lab. `nodes` is 0 for a case on all nodes of its class.
    `variables` are those of the check in this case.
    """

    seconds: float
    nodes: int = 0
    variables: Mapping[str, Any] = field(default_factory=dict)

    def nodes_on(self, place: Place) -> int:
        """Return the nodes that the case takes; 0 if they are unknown."""
        if job := self.variables.get("mix"):
            return nodes_of(job_of(job)[0], place.nodes)
        return self.nodes or place.nodes

    def seconds_on(
        self, check: str, place: Place, chosen: Mapping[str, Any] | None = None
    ) -> float:
        """Return the seconds of the case with the `chosen` variables of a campaign.

        On an unknown number of nodes they are those on the lab's.
        """
        growth = GROWTH.get(check)
        if growth is None:
            return self.seconds
        place = place if place.nodes else replace(place, nodes=LAB_NODES)
        own = {
            name.removeprefix(f"{check}."): value
            for name, value in (chosen or {}).items()
        }
        return growth(self.seconds, place, {**self.variables, **own})


Stated = Mapping[str, Mapping[str, Typical]]
"""Typical times and nodes, by check and by the display name of a case."""


def typical_cases(checks: Path, home: Path, mix: str = "") -> Stated:
    """Read what all checks state; `mix`: the jobs of a stability phase.

    Raises SeatrialError if a check cannot be loaded, or does not state its time.
    """
    stated: dict[str, dict[str, Typical]] = defaultdict(dict)
    for case in describe_checks(checks, home, mix):
        if case["typical_s"] == UNDEFINED:
            raise SeatrialError(
                f"{case['@file']}: {case['@class']}: typical_s is missing; state the "
                "seconds of a case"
            )
        stated[case["@class"]][case["display_name"]] = Typical(
            seconds=float(case["typical_s"]),
            nodes=case.get("num_nodes") or NODES_OF_EXTENT.get(case["extent"], 0),
            variables=case,
        )
    return stated
