"""Judge many machines of a kind, by our judge and by the rules of other suites."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import SHAPES, Machine, Shape
from seatrial.calibration.simulate.rates import Tally
from seatrial.calibration.simulate.rules import RULES, flagged_nodes
from seatrial.calibration.simulate.runs import criteria_for, run_of
from seatrial.calibration.simulate.scenarios import Model, Scenario
from seatrial.judge.findings import Judgement, Verdict
from seatrial.judge.judge import judge

OURS = "seatrial"


@dataclass(frozen=True)
class Result:
    """Results for machines of one scenario and one noise distribution."""

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

    The same seed gives the same machines, with any other scenarios.
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
        for name, rule in RULES.items():
            if machine.kind == "value" and name != "5 %":
                continue  # there is nothing to compare the one value with
            flags = rule(drawn)
            verdict: Verdict = "fail" if flags.any() else "pass"
            tallies[name].add(drawn, verdict, flagged_nodes(drawn, flags))
        judged()
    return Result(scenario, machine, model, runs, tallies)


def blamed(judgement: Judgement) -> frozenset[str]:
    """Return the nodes and pairs that a judgement convicts."""
    failed = {f.node for f in judgement.findings if f.verdict == "fail" and f.place}
    return frozenset(judgement.convicted) | failed
