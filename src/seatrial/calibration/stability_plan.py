"""Tests of a planned stability phase, and their operating curves."""

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.campaign.stability_phase import StabilityPhase
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.stability import StabilityCriterion
from seatrial.model.spans import span_text
from seatrial.model.units import counted, rounded
from seatrial.stability.demonstration import Point
from seatrial.stability.phase import test_of


@dataclass(frozen=True)
class PlannedTest:
    """The test of a criterion in the declared duration.

    `keeps`: both risks are kept; they are from `needed_h` on. `curve` has the chances
    by true quality: MTBF in hours, or share of good intervals.
    """

    criterion: str
    measure: str
    hours: float
    numbers: str
    seller: float
    buyer: float
    accepted: float
    rejected: float
    keeps: bool
    needed_h: float
    curve: tuple[Point, ...]

    @property
    def words(self) -> str:
        """Describe the test in a line."""
        risks = f"risks: seller {self.seller:g}, buyer {self.buyer:g}"
        values = f"accepted {rounded(self.accepted)}, rejected {rounded(self.rejected)}"
        needed = f"both risks are kept from {rounded(self.needed_h)} h"
        if self.needed_h == float("inf"):
            needed = "no duration keeps both risks"
        missing = "" if self.keeps else "; TOO SHORT: may end undecided"
        return f"{self.numbers} ({values}; {risks}); {needed}{missing}"


@dataclass(frozen=True)
class PlannedPhase:
    """A declared phase, the jobs of a round by class, and its tests."""

    duration_s: float
    load: float
    rounds: int
    jobs: Mapping[str, int]
    tests: tuple[PlannedTest, ...]

    @property
    def words(self) -> str:
        """Describe the phase in a line."""
        each = self.jobs.items()
        jobs = ", ".join(f"{counted(count, 'job')} on {name}" for name, count in each)
        return (
            f"stability phase: {span_text(self.duration_s)} in "
            f"{counted(self.rounds, 'round')} at "
            f"{100 * self.load:.3g} % of the node-hours"
            + (f"; a round: {jobs}" if jobs else "")
        )


def planned_phase(
    phase: StabilityPhase, criteria: Criteria | None, classes: Mapping[str, int]
) -> PlannedPhase:
    """Plan a phase by the criteria of the system, for classes with their nodes."""
    hours, nodes = phase.duration_s / 3600, float(sum(classes.values()) or 1)
    declared = criteria.declared if criteria else ()
    rules = [rule for rule in declared if isinstance(rule, StabilityCriterion)]
    return PlannedPhase(
        phase.duration_s,
        phase.load,
        phase.rounds,
        {name: sum(phase.counts(count)) for name, count in classes.items()},
        tuple(
            _planned(rule, hours, nodes)
            for rule in rules
            if rule.measure != "availability"
        ),
    )


def _planned(rule: StabilityCriterion, hours: float, nodes: float) -> PlannedTest:
    test = test_of(rule, nodes)
    needed = test.needed_hours()
    return PlannedTest(
        criterion=rule.name,
        measure=rule.measure,
        hours=hours,
        numbers=test.words(hours),
        seller=rule.seller,
        buyer=rule.buyer,
        accepted=rule.accepted,
        rejected=rule.rejected,
        keeps=hours >= needed * (1 - 1e-6),
        needed_h=needed,
        curve=tuple(test.curve(hours)),
    )
