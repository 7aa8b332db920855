"""The criteria of the scale lab fit its model: what they find, and what passes.

The numbers are those of the model, drawn in this process: no Slurm, and no programs.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from judge_samples import CASE, make_run, sample

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.judge.judge import judge
from seatrial.model.cases import Case
from seatrial.model.records import Measurement
from seatrial.standins.hostlist import expand
from seatrial.standins.machine import Machine
from seatrial.standins.truth import Faults, SlowLeaf, SlowLink, SlowNode, Truth

CRITERIA = Path(__file__).parents[1] / "reference-data" / "scale-lab" / "criteria.yaml"
SMOKE, ACCEPTANCE = 4, 8
"""Repeats of these campaigns."""

AREAS = {"mem_bw": "memory", "dgemm": "compute", "hpl": "compute"}
NUMBERS = {"memory": "memory_gb_per_s", "compute": "gflops"}


def node_rows(case: Case, machine: Machine) -> Iterator[Measurement]:
    """Return the rates of every node, as NodeSweep measures them."""
    for node in case.nodes:
        for metric, area in AREAS.items():
            rate = machine.numbers[NUMBERS[area]] / machine.slowness(node, area)
            value = rate * machine.noise()
            yield sample(case, value, metric=metric, size=None, node=node)


def pair_rows(case: Case, machine: Machine) -> Iterator[Measurement]:
    """Return latency and bandwidth of all pairs, as PairSweep measures them."""
    for i, first in enumerate(case.nodes):
        for second in case.nodes[i + 1 :]:
            latency, rate = machine.pair(first, second)
            pair = f"{first} {second}"
            own: dict[str, Any] = {"metric": "latency", "statistic": "p50"}
            yield sample(case, latency * machine.noise(), size=8, pair=pair, **own)
            yield sample(case, rate * machine.noise(), size=1 << 20, pair=pair)


CHECKS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "NodeSweep": (node_rows, tuple(AREAS)),
    "PairSweep": (pair_rows, ("latency_8B", "bw_1MiB")),
}


def verdicts(
    check: str, nodes: int, repeats: int, seed: int, **faults: Any
) -> dict[str, set[str]]:
    """Measure and judge a model machine; the places by their verdict on sameness."""
    truth = Truth(seed, f"n[0001-{nodes:04}]", faults=Faults(**faults))
    names, known = expand(truth.nodes), msgspec.to_builtins(truth)
    measure, declared = CHECKS[check]
    first = replace(
        CASE,
        check=check,
        case=check,
        partition="scale-lab:batch",
        declared=declared,
        nodes=tuple(names),
    )
    numbers = range(1, repeats + 1)
    cases = [replace(first, session=f"all-{i}", repeat=i) for i in numbers]
    rows = [
        row for case in cases for row in measure(case, Machine(known, case.session))
    ]
    run = make_run(cases, rows, nodes=names)
    for at, node in enumerate(run.manifest["nodes"]):
        node["facts"]["leaf"] = f"leaf{at // truth.leaf_nodes + 1:02}"
    by_verdict: dict[str, set[str]] = {}
    for finding in judge(run, Criteria.load(CRITERIA, known=ANY)).findings:
        if finding.check == check and finding.metric in declared:
            by_verdict.setdefault(finding.verdict, set()).add(finding.place)
    return by_verdict


def slow(area: Any, factor: float, *names: str) -> tuple[SlowNode, ...]:
    return tuple(SlowNode(name, factor, area) for name in names)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sound_machine_of_two_leafs_passes_smoke(check: str, seed: int) -> None:
    assert verdicts(check, 64, SMOKE, seed).keys() == {"pass"}


@pytest.mark.parametrize("repeats", [SMOKE, ACCEPTANCE])
def test_a_node_is_found_from_10_percent_on(repeats: int) -> None:
    faults = slow("memory", 1.1, "n0014") + slow("compute", 1.1, "n0140")
    found = verdicts("NodeSweep", 256, repeats, 1, slow_nodes=faults)
    assert found["fail"] == {"n0014", "n0140"}
    assert found.keys() == {"pass", "fail"}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_port_and_a_link_are_found_from_15_percent_on(seed: int) -> None:
    found = verdicts(
        "PairSweep",
        64,
        SMOKE,
        seed,
        slow_nodes=slow("network", 1.15, "n0014"),
        slow_links=(SlowLink(("n0003", "n0050"), 1.15),),
    )
    assert found["fail"] == {"n0014", "n0003 - n0050"}


@pytest.mark.slow
def test_a_leaf_is_found_from_15_percent_on() -> None:
    leafs = (SlowLeaf(1, 1.15),)
    found = verdicts("PairSweep", 128, ACCEPTANCE, 1, slow_leaves=leafs)
    assert found["fail"] == {"leaf leaf02"}
    assert found.keys() == {"pass", "fail"}
