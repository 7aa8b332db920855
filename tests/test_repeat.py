"""`seatrial repeat`: the cases that a lost node spoiled, made again in a run beside."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from criteria_samples import criteria, criterion
from fake_home import CHECK, CRITERIA, write, write_home
from fake_slurm import stand_in
from judge_samples import NODES, make_run, repeats, sample

import seatrial
from seatrial.campaign import job_watch
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.node_log import attribute
from seatrial.campaign.runner import Order, run_campaign
from seatrial.campaign.schedule import read_agenda
from seatrial.campaign.spoiled_cases import spoiled_cases
from seatrial.cli import main
from seatrial.console import Terminal
from seatrial.criteria.criteria import kept_criteria
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.model.cases import Case, NodeEvent
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.ledger import read_ledger
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.runs.pack import pack
from seatrial.system.description import load_system

NOON = 1_800_014_400.0
DOWN = NodeEvent("cn02", "down", "Not responding", "slurm", NOON + 5)
DIES = """
if [ "$n" = 2 ]; then
  echo "down|slurm|$(date +%FT%T)|Not responding" > {at}/cn02.lost
  echo NODE_FAIL > {at}/$n/state
  echo cn02 > {at}/$n/node
  date +%FT%T > {at}/$n/start
  : > rfm_job.out
  rm -f seatrial.json
fi
"""
"""Job 2 dies with cn02, before its output came."""


@pytest.mark.parametrize(
    ("case", "event", "expected"),
    [
        ({"result": "fail", "phase": "sanity"}, DOWN, True),
        ({"result": "fail", "phase": "run"}, DOWN, True),
        ({"result": "pass"}, DOWN, True),  # it went on without the node
        ({"result": "fail", "phase": "sanity"}, None, False),
        ({"result": "skip"}, DOWN, False),
        ({"result": "skip", "waited_for": (DOWN,)}, None, True),
        ({"result": "fail", "phase": "sanity"}, replace(DOWN, state="drained"), False),
        ({"result": "fail", "phase": "sanity"}, replace(DOWN, node="cn09"), False),
        ({"result": "fail", "phase": "sanity"}, replace(DOWN, time=NOON - 9), False),
        ({"result": "fail", "phase": "run", "waited_for": (DOWN,)}, None, True),
    ],
)
def test_only_the_loss_of_its_node_spoils_a_case(
    case: dict[str, Any], event: NodeEvent | None, expected: bool
) -> None:
    own = Case(
        *("all-1", 1, "Echo", "Echo", "lab:batch", "mpich", {}),
        **{"nodes": ("cn01", "cn02"), "start_time": NOON, "elapsed_s": 9.0, **case},
    )
    cases, _ = attribute([own], [event] if event else [])
    assert bool(spoiled_cases(cases)) == expected
    made_up = replace(own, attempt=2, result="pass", waited_for=())
    assert spoiled_cases([*cases, made_up]) == [], "a later try passed"
    less = replace(made_up, nodes=("cn01",), whole_class=True)
    assert bool(spoiled_cases([*cases, less])) == expected, "it lacks the lost node"
    pair = replace(less, whole_class=False)
    assert spoiled_cases([*cases, pair]) == [], "any nodes would have done"


class Site:
    """A home with a stand-in for Slurm, and a run with a case that a loss spoiled."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = write_home(folder / "home", CRITERIA.replace("every", "any"))
        self.results = self.home / "results"
        self.at = stand_in(folder, self.home, monkeypatch)
        monkeypatch.setenv("SEATRIAL_HOME", str(self.home))
        monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
        write(self.home / "reframe-checks" / "campaigns" / "once.yaml", ONCE)
        monkeypatch.setattr(job_watch, "_FIRST_LOOK_S", 0.5)
        (self.at / "after.2").write_text(DIES.format(at=self.at))
        order = Order(
            *(self.home, self.results, load_system(self.home, "lab")),
            *(load_campaign(self.home, "once"), "r1"),
        )
        self.run = run_campaign(order, Terminal())
        (self.at / "cn02.lost").unlink()

    def seatrial(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments])

    def refused(self, run: str, reason: str) -> None:
        result = self.seatrial("repeat", run)
        assert result.exit_code == 2
        assert reason in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def files(self) -> dict[str, bytes]:
        return {
            str(file): file.read_bytes()
            for file in sorted(self.run.rglob("*"))
            if file.is_file()
        }


ONCE = """
blocks:
  - {name: echo, checks: [Echo], variables: {max_pending_time: 10m}}
  - {name: silent, checks: [Silent]}
"""


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_a_spoiled_case_is_made_again_beside_its_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = site.files()
    run = load_run(site.run)
    (spoiled,) = spoiled_cases(run.cases)
    failed = {case.check for case in run.cases if case.result == "fail"}
    assert failed == {"Echo", "Silent"}, "Silent fails for its own reasons"
    result = site.seatrial("repeat", "lab/r1", "--run-id", "again")
    assert site.files() == before
    again = load_run(site.results / "lab" / "again")
    (made,) = again.cases
    assert (made.key, made.session) == (spoiled.key, spoiled.session)
    assert made.result == "pass"
    assert again.manifest["repeat_of"] == "r1"
    assert read_agenda(again.path).repeat_of == "r1"
    ledger = parse_ledger(read_ledger(site.results / "lab") or b"")
    start = ledger.started("again")
    assert start is not None
    assert (start.repeat_of, start.partial, start.number) == ("r1", True, 2)
    words = "run again made 1 case again that lost nodes spoiled in run r1"
    assert words in result.output
    content = json.loads(site.seatrial("judge", "lab/r1", "--format", "json").stdout)
    assert content["further"] == ["again"]
    assert content["spoiled"] == []
    assert content["repeats"] == [words]
    verdicts = {
        (f["check"], f["verdict"]) for f in content["findings"] if f["kind"] == "case"
    }
    assert verdicts == {("Echo", "pass"), ("Echo", "skipped"), ("Silent", "fail")}
    (site.results / "lab" / "half.open").mkdir()
    packed = site.home / "r1.seatrial.tar.xz"
    pack(site.run, packed)
    site.refused("lab/r1", "run again repeats it already; a run is repeated once")
    site.refused("lab/again", "no lost node spoiled a case of this run")
    site.refused("lab/half", "half.open: this run is open; go on with it first")
    site.refused(str(packed), "a packed run; expected the folder of the run")
    with monkeypatch.context() as other:
        other.setattr(seatrial, "__version__", "9.9")
        site.refused("lab/r1", "; this is 9.9, whose checks may differ")
    alone = json.loads(site.seatrial("judge", "lab/again", "--format", "json").stdout)
    assert "spoiled in run r1: judge that one" in alone["repeats"][0]


PAIR = (
    CHECK.partition("@rfm.simple_test")[0]
    + """
@rfm.simple_test
class Pair(Base):
    valid_prog_environs = ["openmpi"]

    @run_after("setup")
    def two_nodes(self):
        usable = min(self.usable_nodes.values(), default=2)
        self.skip_if(usable < 2, f"nodes needed: 2, available: {usable}")


@rfm.simple_test
class Solo(Base):
    valid_prog_environs = ["openmpi"]


@rfm.simple_test
class Trio(Base):
    valid_prog_environs = ["openmpi"]

    @run_after("setup")
    def three_nodes(self):
        self.skip_if(True, "nodes needed: 3, available: 1")
"""
)


def test_cases_skipped_for_want_of_a_lost_node_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four sessions, the second and third lack cn02; in the fourth it is back.

    Trio needs more nodes than the class ever had: no loss explains that.
    """
    home = write_home(tmp_path / "home", CRITERIA.replace("Echo", "Pair"))
    write(home / "reframe-checks" / "checks" / "pair" / "pair.py", PAIR)
    campaign = "repeats: 4\nblocks: [{name: pair, checks: [Pair, Solo, Trio]}]\n"
    write(home / "reframe-checks" / "campaigns" / "four.yaml", campaign)
    at = stand_in(tmp_path, home, monkeypatch)
    dies = f'echo "down|root|$(date +%FT%T)|bad DIMM" > {at}/cn02.lost'
    (at / "after.2").write_text(dies)
    (at / "after.4").write_text(f"rm {at}/cn02.lost")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    order = Order(
        *(home, home / "results", load_system(home, "lab")),
        *(load_campaign(home, "four"), "r1"),
    )
    path = run_campaign(order, Terminal())
    run = load_run(path)
    results = [case.result for case in run.cases if case.check == "Pair"]
    assert results == ["pass", "skip", "skip", "pass"]
    spoiled = [case.session for case in spoiled_cases(run.cases)]
    assert spoiled == ["pair-2", "pair-3"]
    declared = kept_criteria(run)
    assert declared
    (line,) = judge(run, declared).spoiled
    assert line.startswith("node cn02 was lost at ")
    assert "(bad DIMM, by root): 2 cases spoiled: Pair (openmpi) in pair-2" in line
    result = CliRunner().invoke(main, ["repeat", str(path), "--run-id", "r2"])
    assert "run r2 made 2 cases again" in result.output
    again = load_run(home / "results" / "lab" / "r2")
    assert [case.result for case in again.cases] == ["pass", "pass"]
    both = judge(run, declared, [again])
    assert both.spoiled == ()
    reasons = [f.reason for f in both.findings if f.check == "Pair"]
    assert sum("made again in run r2; pair-" in reason for reason in reasons) == 2
    assert not any(reason.startswith("nodes needed") for reason in reasons)


# The judge, on constructed runs.

LOST = NodeEvent("cn02", "down", "", "", 5.0)
EVERY = criterion("pairs_answered", 100.0, model="every")


def run_of_three(name: str, *cases: Case, of: str = "", lost: str = "") -> Run:
    """Build a run in which each case reports what its four nodes answered."""
    rows = [
        sample(
            case,
            40.0 if node == lost and case.node_events else 100.0,
            metric="pairs_answered",
            size=None,
            node=node,
        )
        for case in cases
        for node in NODES
    ]
    rows = [replace(row, run=name) for row in rows]
    run = make_run(cases, rows)
    nodes = [
        {**node, "state": "lost", "reason": "down"} if node["name"] == lost else node
        for node in run.manifest["nodes"]
    ]
    more = {"repeat_of": of} if of else {}
    return replace(
        run,
        path=Path(name),
        manifest={**run.manifest, "run": name, "nodes": nodes, **more},
    )


def three() -> list[Case]:
    """Return three repeats of a case; the second lost cn02."""
    cases = [replace(case, declared=("pairs_answered",)) for case in repeats(3)]
    cases[1] = replace(
        cases[1],
        result="fail",
        phase="run",
        reason="lost a node: cn02",
        node_events=(LOST,),
    )
    return cases


def test_a_repeat_excuses_what_the_loss_spoiled_and_nothing_else() -> None:
    cases = three()
    run = run_of_three("r1", *cases, lost="cn02")
    alone = judge(run, criteria(EVERY))
    failing = {(f.kind, f.place) for f in alone.findings if f.verdict == "fail"}
    assert failing == {("limit", "cn02"), ("case", ""), ("inventory", "cn02")}
    assert len(alone.spoiled) == 1
    made = replace(cases[1], result="pass", phase=None, reason=None, node_events=())
    again = run_of_three("r2", made, of="r1")
    both = judge(run, criteria(EVERY), [again])
    assert [f for f in both.findings if f.verdict == "fail"] == []
    assert both.spoiled == ()
    words = [f.reason for f in both.findings if f.kind == "case"]
    assert words == ["made again in run r2; pairs-2: lost a node: cn02"]
    low = again.measurements.with_columns(value=pl.lit(90.0))
    missed = judge(run, criteria(EVERY), [replace(again, measurements=low)])
    assert missed.verdict == "fail", "a repeat hides nothing"


def test_a_run_that_repeats_other_cases_is_not_judged_with_it() -> None:
    cases = three()
    run = run_of_three("r1", *cases, lost="cn02")
    whole = run_of_three("r2", cases[0], of="r1")
    with pytest.raises(SeatrialError, match="which no lost node spoiled in run r1"):
        judge(run, criteria(EVERY), [whole])
    made = replace(cases[1], result="pass", node_events=())
    twice = [run_of_three(name, made, of="r1") for name in ("r2", "r3")]
    with pytest.raises(SeatrialError, match="expected one repeat"):
        judge(run, criteria(EVERY), twice)
