"""The conductor of a sweep on a cluster with faults; `data/sweep` stands in for it."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep

STAND_INS = Path(__file__).parent / "data" / "sweep"
ROUNDS = 6
"""Of the sweeps that do not take all pairs."""
FOUR = ["cn01", "cn02", "cn03", "cn04"]


@dataclass(frozen=True)
class Swept:
    """A sweep that has ended: what it said, and what the cluster saw of it."""

    done: subprocess.CompletedProcess[str]
    folder: Path
    nodes: list[str]

    @property
    def sweep(self) -> PairSweep:
        """Its file, which accounts for every pair."""
        sweep = parse_pairsweep((self.folder / "out.jsonl").read_text())
        sweep.verify_complete(self.nodes, ROUNDS if sweep.phases else 0)
        return sweep

    @property
    def left_out(self) -> dict[str, tuple[str, str]]:
        """Stage and reason of each node that was left out."""
        return {row.node: (row.stage, row.reason) for row in self.sweep.left_out}

    @property
    def measured(self) -> set[tuple[str, str]]:
        """The pairs with numbers."""
        return {(row.source, row.destination) for row in self.sweep.pairs}

    @property
    def steps(self) -> list[str]:
        """Started programs and their nodes."""
        return (self.folder / "log").read_text().splitlines()


Start = Callable[..., Swept]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Sweep nodes (cn01 to cn04) with faults."""

    def sweep(
        *options: str, nodes: list[str] = FOUR, away: int = 0, **faults: Any
    ) -> Swept:
        faults = {name.replace("_", "-"): fault for name, fault in faults.items()}
        (tmp_path / "faults.json").write_text(json.dumps(faults))
        (tmp_path / "no-controller").write_text("away\n" * away)
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "seatrial.checks.pairsweep",
                    "--output",
                    "out.jsonl",
                ),
                *(*options, "--", "srun", "--mpi=none", "--", "pairsweep", "--json"),
            ],
            cwd=tmp_path,
            env=os.environ
            | {
                "PATH": f"{STAND_INS}:{os.environ['PATH']}",
                "CLUSTER": str(tmp_path),
                "SLURM_JOB_ID": "1",
                "SLURM_JOB_NODELIST": ",".join(nodes),
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Swept(done, tmp_path, nodes)

    return sweep


def pairs(*nodes: str) -> set[tuple[str, str]]:
    return set(combinations(nodes, 2))


def failed(swept: Swept) -> str:
    """The last line of a sweep that gave up."""
    assert swept.done.returncode == 1
    return swept.done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "count", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4)), 9]
)
def test_sound_nodes_take_three_steps(start: Start, count: int) -> None:
    nodes = [f"cn{i:02}" for i in range(1, count + 1)]
    swept = start(nodes=nodes)
    assert swept.done.returncode == 0, swept.done.stderr
    everywhere = " ".join(nodes)
    steps = [f"{what} {everywhere}" for what in ("preflight", "sweep", "preflight")]
    assert swept.steps == steps
    assert swept.measured == pairs(*nodes)
    assert swept.left_out == {}
    assert not (swept.folder / "cancelled").exists()


@pytest.mark.parametrize(
    ("fault", "stage", "reason"),
    [
        ("no-start", "start", "exit status 1; srun: error: Task launch failed on node"),
        ("blocked", "start", "no end in time"),
        ("no-init", "init", "no end in time"),
        ("alone", "hello", "alone it works, together with cn"),
        ("removed", "start", "exit status 1; srun: error: Unable to create step"),
    ],
)
def test_a_node_that_cannot_start_is_left_out(
    start: Start, fault: str, stage: str, reason: str
) -> None:
    swept = start("--step-limit", "1", cn03=fault)
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out["cn03"][0] == stage
    assert reason in swept.left_out["cn03"][1]
    assert list(swept.left_out) == ["cn03"]
    assert swept.measured == pairs("cn01", "cn02", "cn04")
    assert "cn03 is left out" in swept.done.stdout


def test_several_bad_nodes_of_many(start: Start) -> None:
    nodes = [f"cn{i:02}" for i in range(1, 21)]
    faults = {"cn02": "no-start", "cn07": "no-init", "cn08": "alone", "cn20": "blocked"}
    swept = start("--step-limit", "1.5", nodes=nodes, **faults)
    assert swept.done.returncode == 0, swept.done.stderr
    assert {node: stage for node, (stage, _) in swept.left_out.items()} == {
        "cn02": "start",
        "cn07": "init",
        "cn08": "hello",
        "cn20": "start",
    }
    assert swept.measured == pairs(*(node for node in nodes if node not in faults))


def test_of_two_nodes_one_is_left_out_and_named(start: Start) -> None:
    swept = start(nodes=["cn01", "cn02"], cn02="no-start")
    assert swept.done.returncode == 0, swept.done.stderr
    assert list(swept.left_out) == ["cn02"]
    assert swept.measured == set()


def test_two_nodes_that_do_not_reach_each_other_are_both_left_out(
    start: Start,
) -> None:
    swept = start(nodes=["cn01", "cn02"], cn02="alone")
    assert (
        failed(swept)
        == "seatrial.checks.pairsweep: no node can run the program, see above"
    )
    assert {stage for stage, _ in swept.left_out.values()} == {"hello"}
    assert len(swept.left_out) == 2


def test_a_program_that_runs_nowhere_is_no_fault_of_a_node(start: Start) -> None:
    swept = start(**dict.fromkeys(FOUR, "no-exec"))
    assert (
        failed(swept)
        == "seatrial.checks.pairsweep: no node can run the program, see above"
    )
    assert "execve(): pairsweep: No such file" in swept.done.stdout


@pytest.mark.parametrize("row", [1, pytest.param(3, marks=pytest.mark.slow), 6])
def test_a_node_that_dies_is_left_out_and_its_numbers_stay(
    start: Start, row: int
) -> None:
    """The broken last line that the program left is gone."""
    swept = start(dies=[1 + row, "cn03"])
    assert swept.done.returncode == 0, swept.done.stderr
    stage, reason = swept.left_out["cn03"]
    assert stage == "sweep"
    assert "Task launch failed" in reason
    before = set(list(combinations(FOUR, 2))[:row])
    assert swept.measured == before | pairs("cn01", "cn02", "cn04")


def test_a_pair_that_hangs_while_another_node_dies_is_measured(start: Start) -> None:
    swept = start(dies=[2, "cn03"], drags=["cn02", "cn04"])
    assert swept.done.returncode == 0, swept.done.stderr
    assert list(swept.left_out) == ["cn03"]
    assert swept.sweep.hung == ()
    assert swept.measured == pairs("cn01", "cn02", "cn04")


def test_of_two_nodes_one_dies(start: Start) -> None:
    swept = start(nodes=["cn01", "cn02"], dies=[2, "cn02"])
    assert swept.done.returncode == 0, swept.done.stderr
    assert list(swept.left_out) == ["cn02"]


def test_a_program_that_crashes_goes_on(start: Start) -> None:
    swept = start(crash=[3])
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out == {}
    assert swept.measured == pairs(*FOUR)
    assert [run.resumed for run in swept.sweep.runs] == [0, 2]


def test_a_pair_that_hangs_is_skipped(start: Start) -> None:
    swept = start(hung=[["cn02", "cn04"]])
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out == {}
    (hung,) = swept.sweep.hung
    assert (hung.source, hung.destination, hung.round) == ("cn02", "cn04", 1)
    assert hung.reason == "latency: no end within 2 s"
    assert swept.measured == pairs(*FOUR) - {("cn02", "cn04")}
    assert "hung pair cn02 cn04" in swept.done.stderr


def test_a_pair_that_hangs_when_it_is_tested_again_is_skipped(start: Start) -> None:
    swept = start(hung_again=["cn04", "cn02"])
    assert swept.done.returncode == 0, swept.done.stderr
    (hung,) = swept.sweep.hung
    assert (hung.source, hung.destination, hung.mode) == ("cn04", "cn02", "quiet")
    assert swept.measured == pairs(*FOUR)
    assert swept.sweep.answered(FOUR)["cn02"] == (2, 3)
    assert swept.sweep.answered(FOUR)["cn03"] == (3, 3)


def test_a_node_that_hangs_with_many_is_left_out(start: Start) -> None:
    nodes = [f"cn{i:02}" for i in range(1, 7)]
    swept = start(nodes=nodes, hung=[["cn02", other] for other in nodes[2:]])
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out == {"cn02": ("sweep", "it hangs with cn03, cn04, cn05")}
    assert len(swept.sweep.hung) == 3
    assert swept.measured == pairs("cn01", *nodes[2:]) | {("cn01", "cn02")}


def test_a_sweep_that_stands_still_is_ended_and_goes_on(start: Start) -> None:
    began = time.monotonic()
    swept = start("--stall-limit", "1", stall=[3])
    assert time.monotonic() - began < 20
    assert swept.done.returncode == 0, swept.done.stderr
    assert "no new row for 1 s" in swept.done.stdout
    assert swept.measured == pairs(*FOUR)
    cancelled = (swept.folder / "cancelled").read_text().splitlines()
    assert cancelled == ["1.2"]


def test_attempts_without_progress_come_to_an_end(start: Start) -> None:
    swept = start("--stall-limit", "20", refuse="pairsweep: no route to the others")
    assert "the sweep failed 3 times without progress" in failed(swept)
    assert "no route to the others" in failed(swept)
    assert [step.split()[0] for step in swept.steps] == ["preflight", "sweep"] * 3 + [
        "preflight"
    ]


def test_a_program_that_refuses_its_options_is_not_asked_again(start: Start) -> None:
    swept = start(refuse="pairsweep: --window: expected a number", status=2)
    assert failed(swept) == (
        "seatrial.checks.pairsweep: refused: exit status 2; "
        "pairsweep: --window: expected a number"
    )
    assert len(swept.steps) == 2


def test_when_all_nodes_die_no_node_is_to_blame(start: Start) -> None:
    swept = start(later=FOUR)
    assert (
        failed(swept)
        == "seatrial.checks.pairsweep: no node can run the program, see above"
    )


def test_a_node_that_dies_unnoticed_is_named_afterwards(start: Start) -> None:
    swept = start(later=["cn03"])
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out["cn03"][0] == "after"
    assert swept.measured == pairs(*FOUR)


def test_a_controller_that_is_away_is_waited_for(start: Start) -> None:
    swept = start(away=2, no_steps=2)
    assert swept.done.returncode == 0, swept.done.stderr
    assert "Slurm's controller does not answer" in swept.done.stdout
    assert swept.left_out == {}
    assert swept.measured == pairs(*FOUR)


FORTY = [f"cn{number:02}" for number in range(1, 41)]
DRAWN = ("--rounds", str(ROUNDS))


def partners(swept: Swept) -> Counter[str]:
    """Count the partners of each node."""
    return Counter(node for row in swept.sweep.pairs for node in row.key[:2])


def test_some_rounds_are_the_same_pairs_without_a_node(start: Start) -> None:
    """In a repeat without a node, all other pairs are those of the first time."""
    first = start(*DRAWN, nodes=FORTY)
    assert first.done.returncode == 0, first.done.stderr
    assert {*partners(first).values()} == {ROUNDS}
    assert [phase.pairs for phase in first.sweep.phases] == [20 * ROUNDS]
    pairs = first.measured
    (first.folder / "out.jsonl").unlink()
    again = start(*DRAWN, nodes=FORTY, cn03="no-start")
    assert list(again.left_out) == ["cn03"]
    assert again.measured == {pair for pair in pairs if "cn03" not in pair}
    (first.folder / "out.jsonl").unlink()
    assert start(*DRAWN, "--seed=2", nodes=FORTY).measured != pairs


def test_a_list_of_pairs_is_all_that_is_measured(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("cn01 cn02 1\ncn03 cn04 1\n# again\ncn02 cn03 5\n")
    swept = start("--pairs", "pairs")
    assert swept.done.returncode == 0, swept.done.stderr
    sweep = parse_pairsweep((tmp_path / "out.jsonl").read_text())
    listed = {("cn01", "cn02"), ("cn03", "cn04"), ("cn02", "cn03")}
    assert {key[:2] for key in sweep.keys} == listed
    sweep.verify_complete(FOUR, listed=listed)
    with pytest.raises(ParseError, match="1 pairs are missing, the first is cn01 cn04"):
        sweep.verify_complete(FOUR, listed={*listed, ("cn01", "cn04")})
    assert sweep.answered(FOUR, rounds=1)["cn02"] == (2, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cn01 cn02 1\ncn03 cn99 1\n", "pairs:2: cn99 is no node of this job"),
        ("cn01 cn02\n", "pairs:1: expected NODE NODE ROUND, got 'cn01 cn02'"),
        ("cn01 cn01 1\n", "pairs:1: cn01 with itself; expected two nodes"),
        ("cn01 cn02 1\ncn03 cn02 1\n", "pairs:2: cn02 is in round 1 already"),
        ("cn01 cn02 1\ncn02 cn01 2\n", "pairs:2: cn02 and cn01 a second time"),
        ("# none\n", "pairs: no pairs; expected lines NODE NODE ROUND"),
    ],
)
def test_a_wrong_list_of_pairs_is_refused_with_its_line(
    start: Start, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "pairs").write_text(text)
    swept = start("--pairs", "pairs")
    assert swept.done.returncode == 2
    assert swept.done.stderr.splitlines()[-1].endswith(f": {problem}")


def test_suspects_get_more_rounds_and_the_others_rest(start: Start) -> None:
    swept = start(*DRAWN, "--adaptive", nodes=FORTY, slow=["cn02", "cn37"])
    assert swept.done.returncode == 0, swept.done.stderr
    counts = partners(swept)
    assert counts["cn02"] == counts["cn37"] == 2 * ROUNDS
    assert Counter(counts.values())[ROUNDS] >= len(FORTY) - 2 - 2 * ROUNDS
    assert [phase.phase for phase in swept.sweep.phases] == [1, 2]
    assert swept.sweep.answered(FORTY, ROUNDS)["cn02"] == (2 * ROUNDS, 2 * ROUNDS)


def test_a_suspect_meets_nodes_of_its_leaf(start: Start) -> None:
    options = (*DRAWN, "--adaptive")
    first = start(*options, nodes=FORTY, slow=["cn02"])
    met = {node for pair in first.measured if "cn02" in pair for node in pair}
    near = next(node for node in FORTY if node not in met)
    (first.folder / "out.jsonl").unlink()
    leafs = ("--leaf", f"one=cn02,{near}", "--leaf", "two=cn39,cn40")
    again = start(*options, *leafs, nodes=FORTY, slow=["cn02"])
    assert tuple(sorted(("cn02", near))) in again.measured


@pytest.mark.parametrize("row", [60, 120 + 4 + 2])
def test_a_node_that_dies_in_an_adaptive_sweep_is_left_out(
    start: Start, row: int
) -> None:
    """In the first phase, of 120 pairs, or in the second, behind four further rows."""
    swept = start(*DRAWN, "--adaptive", nodes=FORTY, slow=["cn02"], dies=[row, "cn03"])
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.left_out["cn03"][0] == "sweep"
    assert [phase.phase for phase in swept.sweep.phases] == [1, 2]
    lines = (swept.folder / "out.jsonl").read_text().splitlines()
    types = [json.loads(line).get("event") for line in lines]
    assert (types.index("left_out") > types.index("phase", 1)) == (row > 120)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_pair_that_is_missing_in_drawn_rounds_shows(start: Start, lost: int) -> None:
    swept = start(*DRAWN, nodes=FORTY)
    rows = [json.loads(row) for row in (swept.folder / "out.jsonl").open()]
    pairs = [row for row in rows if row["type"] == "pair"][:lost]
    kept = [row for row in rows if row not in pairs]
    for row in kept:
        if row["type"] in ("run", "end"):
            row["pairs" if row["type"] == "run" else "measured"] -= lost
    sweep = parse_pairsweep("".join(json.dumps(row) + "\n" for row in kept))
    with pytest.raises(ParseError, match=f"{120 - lost} pairs .* expected 120 or more"):
        sweep.verify_complete(FORTY, ROUNDS)


def test_hosts_with_other_names_than_nodes_are_refused(start: Start) -> None:
    swept = start(called="r1c1")
    assert swept.done.returncode == 2
    assert "runs on 'r1c1', which Slurm calls none of cn01, cn02" in swept.done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "new"], "expected a launcher and a program"),
        (["--output", "new", "--", "srun"], "expected a launcher and a program"),
        (["--", "srun", "--", "pairsweep"], "--output"),
        (["--output", "old", "--", "srun", "--", "pairsweep"], "is there already"),
        (["--output", "new", "--", "srun", "--", "pairsweep"], "this job has 1"),
    ],
)
def test_usage(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "old").touch()
    done = subprocess.run(
        [sys.executable, "-m", "seatrial.checks.pairsweep", *arguments],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{STAND_INS}:{os.environ['PATH']}",
            "SLURM_JOB_NODELIST": "cn01",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert said in done.stderr
