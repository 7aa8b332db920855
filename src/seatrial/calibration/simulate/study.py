"""Judge many machines of a kind, by our judge and by the rules of other suites."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seatrial.calibration.simulate.machine import (
    SHAPES,
    Drawn,
    Kind,
    Machine,
    Shape,
    draw,
)
from seatrial.calibration.simulate.rates import Tally
from seatrial.calibration.simulate.rules import RULES, flagged_nodes
from seatrial.calibration.simulate.runs import Model, criteria_for, run_of
from seatrial.judge.findings import Judgement, Verdict
from seatrial.judge.judge import judge

OURS = "seatrial"


@dataclass(frozen=True)
class Scenario:
    """A kind of machine: what is asked of it, and what is wrong with it."""

    name: str
    meaning: str
    kind: Kind
    changes: Mapping[str, Any]

    def machine(self, base: Machine) -> Machine:
        """Give the machine; a drift or a level of the base is changed last."""
        same = self.kind == "sameness"
        level = 1.0 if same else base.level
        changes = dict(self.changes)
        if changes.get("slow_level") == "limit":
            changes["slow_level"] = 1 - base.tolerance if same else 1.0
        return replace(base, **{"kind": self.kind, "level": level} | changes)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("healthy", "all nodes above the limit", "nodes", {}),
        Scenario(
            *("at-limit", "all nodes exactly at the limit", "nodes"),
            {"level": 1.0, "spread": 0.0},
        ),
        Scenario(
            *("borderline", "one node exactly at the limit", "nodes"),
            {"slow_nodes": 1, "slow_level": "limit", "slow_metrics": 1},
        ),
        Scenario("slow-node", "one node below the limit", "nodes", {"slow_nodes": 1}),
        Scenario(
            *("correlated", "the same, metrics of a node alike", "nodes"),
            {"slow_nodes": 1, "shared": 0.7},
        ),
        Scenario(
            *("drift", "healthy, but all fall by 10 % in the campaign", "nodes"),
            {"drift": 0.1},
        ),
        Scenario(
            *("value", "one value exactly at its limit", "value"),
            {"level": 1.0, "spread": 0.0, "metrics": 1},
        ),
        Scenario("same", "nodes held to each other", "sameness", {}),
        Scenario(
            *("same-borderline", "one node exactly at the tolerance", "sameness"),
            {"slow_nodes": 1, "slow_level": "limit"},
        ),
        Scenario(
            "same-slow", "one node below the others", "sameness", {"slow_nodes": 1}
        ),
        Scenario(
            *("same-drift", "all fall by 10 %, one is below", "sameness"),
            {"slow_nodes": 1, "drift": 0.1},
        ),
        Scenario("pairs", "all pairs above the limit", "pairs", {"metrics": 2}),
        Scenario(
            *("slow-link", "one pair below the limit", "pairs"),
            {"slow_links": 1, "metrics": 2},
        ),
        Scenario(
            *("slow-node-link", "all pairs of one node below the limit", "pairs"),
            {"slow_nodes": 1, "metrics": 2},
        ),
    )
}

STORY = (
    *("healthy", "at-limit", "borderline", "slow-node"),
    *("drift", "same-slow", "slow-link", "slow-node-link"),
)
"""The scenarios that tell most; the others are for a closer look."""


@dataclass(frozen=True)
class Result:
    """What came out for machines of one scenario and one shape of the noise."""

    scenario: Scenario
    machine: Machine
    model: Model
    runs: int
    tallies: Mapping[str, Tally]


def study(
    base: Machine,
    scenarios: Iterable[Scenario],
    shapes: Iterable[Shape] = tuple(SHAPES),
    *,
    model: Model = "any",
    runs: int = 100,
    seed: int = 1,
    judged: Callable[[], object] = lambda: None,
) -> list[Result]:
    """Judge `runs` machines of each scenario and shape; `judged` is called after each.

    The same seed gives the same machines, whatever other scenarios there are.
    """
    shapes = tuple(shapes)
    return [
        _result(scenario, replace(base, shape=shape), model, runs, seed, judged)
        for scenario in scenarios
        for shape in shapes
    ]


def _result(
    scenario: Scenario,
    base: Machine,
    model: Model,
    runs: int,
    seed: int,
    judged: Callable[[], object],
) -> Result:
    machine = scenario.machine(base)
    criteria = criteria_for(machine, model)
    tallies = {rule: Tally() for rule in (OURS, *RULES)}
    stream = [seed, *scenario.name.encode(), *machine.shape.encode()]
    for generator in np.random.default_rng(stream).spawn(runs):
        drawn = draw(machine, generator)
        judgement = judge(run_of(drawn), criteria)
        tallies[OURS].add(
            drawn, judgement.verdict, blamed(judgement), judgement.suspects
        )
        add_rules(tallies, drawn)
        judged()
    return Result(scenario, machine, model, runs, tallies)


def add_rules(tallies: Mapping[str, Tally], drawn: Drawn) -> None:
    """Judge a machine by the rules of other suites; they know pass and fail only."""
    for name, rule in RULES.items():
        if drawn.machine.kind == "value" and name != "5 %":
            continue  # there is nothing that the one value could be compared with
        flags = rule(drawn)
        verdict: Verdict = "fail" if flags.any() else "pass"
        tallies[name].add(drawn, verdict, flagged_nodes(drawn, flags))


def blamed(judgement: Judgement) -> frozenset[str]:
    """Name the nodes and pairs that a judgement convicts."""
    failed = {f.node for f in judgement.findings if f.verdict == "fail" and f.place}
    return frozenset(judgement.convicted) | failed
