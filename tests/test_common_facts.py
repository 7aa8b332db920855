"""Common facts of failing nodes: found where they are, and nowhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_samples import CASE, judged, make_run, sample

from seatrial.judge.findings import Judgement
from seatrial.report.chapters import chapters
from seatrial.report.common_facts import RISK, CommonFact, common_facts, node_facts
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
OLD, NEW = "20.31.1014", "20.35.2000"


def machine(
    facts: Mapping[str, Any], failing: Sequence[str], suspects: Sequence[str] = ()
) -> tuple[Run, Judgement]:
    """Build nodes with these facts; some were convicted."""
    run = make_run([CASE], [sample(CASE, 100.0)], nodes=list(facts))
    judgement = judged(run)
    nodes = [{**node, "facts": facts[node["name"]]} for node in run.manifest["nodes"]]
    run = replace(run, manifest={**run.manifest, "nodes": nodes})
    return run, replace(
        judgement, convicted=tuple(failing), suspects=tuple(suspects), findings=()
    )


def adapters(count: int, old: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Add facts to nodes; the listed ones have an older firmware."""
    return {
        f"cn{number}": {
            "kernel": "6.1.0",
            "serial": f"S{number:05}",
            "hcas": [
                {
                    "name": "mlx5_0",
                    "firmware": OLD if number in old else NEW,
                    "guid": f"0x{number:016x}",
                }
            ],
        }
        for number in range(count)
    }


def found(*given: Any) -> tuple[CommonFact, ...]:
    return common_facts(*machine(*given))


def test_firmware_that_slow_nodes_share_is_named() -> None:
    (fact,) = found(adapters(100, [1, 2, 3, 50]), ["cn1", "cn2", "cn3"])
    assert fact.words == (
        "all 3 failing nodes have firmware (hcas.mlx5_0) 20.31.1014; of the 97 others "
        "1 does (p = 2e-05)"
    )
    assert fact == CommonFact(
        fact="hcas.mlx5_0.firmware",
        value=OLD,
        failing=3,
        of_failing=3,
        others=1,
        of_others=97,
        p=fact.p,
        shown=True,
        nodes=("cn1", "cn2", "cn3"),
        kind="failing node",
    )
    assert fact.p == pytest.approx(4 / 161700)


def test_fact_of_most_failing_nodes_is_named_with_its_count() -> None:
    (fact,) = found(adapters(100, [1, 2, 3]), ["cn1", "cn2", "cn3", "cn4"])
    assert fact.words.startswith("3 of 4 failing nodes have firmware (hcas.mlx5_0)")
    assert fact.nodes == ("cn1", "cn2", "cn3")


FEW = "too few to tell whether that is chance"


@pytest.mark.parametrize(
    ("count", "failing", "words"),
    [
        (
            4,
            [1, 2],
            f"all 2 failing nodes {{}}; of the 2 others none does (p = 0.2: {FEW})",
        ),
        (
            2,
            [1],
            f"the failing node (cn1) {{}}; the other node does not (p = 0.5: {FEW})",
        ),
    ],
)
def test_few_nodes_make_no_claim(
    count: int, failing: Sequence[int], words: str
) -> None:
    given = adapters(count, failing)
    for facts in given.values():
        del facts["serial"], facts["hcas"][0]["guid"]
    (fact,) = found(given, [f"cn{number}" for number in failing])
    assert not fact.shown
    have = "has" if len(failing) == 1 else "have"
    assert fact.words == words.format(f"{have} firmware (hcas.mlx5_0) {OLD}")


def test_random_facts_are_claimed_about_as_seldom_as_declared() -> None:
    noise = np.random.default_rng(1)
    runs, wrong = 200, 0
    for _ in range(runs):
        drawn = noise.integers(0, 4, size=(60, 12))
        facts = {
            f"cn{node}": {
                f"fact{number}": int(value) for number, value in enumerate(row)
            }
            for node, row in enumerate(drawn)
        }
        failing = [f"cn{number}" for number in noise.choice(60, 8, replace=False)]
        wrong += any(fact.shown for fact in found(facts, failing))
    assert wrong <= 5 + runs * RISK


def test_what_every_node_has_and_what_names_a_node_say_nothing() -> None:
    given = adapters(40, [])
    assert found(given, ["cn1", "cn2"]) == ()


def test_nodes_worth_a_look_follow_the_failing() -> None:
    given = adapters(100, [1, 2, 3])
    for number in (7, 8, 9):
        given[f"cn{number}"]["kernel"] = "5.10.0"
    first, second = found(given, ["cn1", "cn2", "cn3"], ["cn7", "cn8", "cn9"])
    assert first.value == OLD
    assert second.words == (
        "all 3 nodes worth a look have kernel 5.10.0; of the 94 others none does "
        "(p = 7e-06)"
    )


def test_facts_may_be_missing_and_of_any_shape() -> None:
    run, _ = machine(
        {
            "cn1": {"hcas": [{"name": "mlx5_0", "firmware": OLD}], "memory_mib": 24000},
            "cn2": {"hcas": {"mlx5_0": {"firmware": NEW}}, "flags": ["a", "b"]},
            "cn3": {},
            "cn4": {"kernel": None, "os": "", "cpu": {"model": {"name": "x"}}},
        },
        [],
    )
    run.manifest["nodes"].append({"name": "cn5", "state": "absent", "facts": None})
    run.manifest["nodes"].append({"name": "cn6", "state": "present", "facts": None})
    assert node_facts(run) == {
        "cn1": {
            "hcas.mlx5_0.name": "mlx5_0",
            "hcas.mlx5_0.firmware": OLD,
            "memory_mib": "24000",
        },
        "cn2": {"hcas.mlx5_0.firmware": NEW, "flags.0": "a", "flags.1": "b"},
        "cn3": {},
        "cn4": {"cpu.model.name": "x"},
        "cn6": {},
    }


def test_hostile_facts_are_cut() -> None:
    given = adapters(30, [])
    for number in (1, 2, 3):
        given[f"cn{number}"]["<script>"] = "x" * 10_000
    (fact,) = found(given, ["cn1", "cn2", "cn3"])
    assert len(fact.words) < 250
    assert fact.value == "x" * 10_000


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ([], "No node fails, and none is worth a look."),
        (["cn5"], "The nodes that fail, or are worth a look, share no known"),
    ],
)
def test_chapter_without_any_fact_says_why(failing: list[str], said: str) -> None:
    *_, chapter = chapters(*machine(adapters(10, []), failing), HOME)
    assert chapter.name == "common"
    assert chapter.empty.startswith(said)
    assert chapter.tables == ()


def test_chapter_has_a_row_per_fact() -> None:
    *_, chapter = chapters(*machine(adapters(100, [1, 2]), ["cn1", "cn2"]), HOME)
    ((_, table),) = chapter.tables
    assert [row[:5] for row in table.rows] == [
        ("hcas.mlx5_0.firmware", OLD, "2 of 2", "0 of 98", "0.0002")
    ]
