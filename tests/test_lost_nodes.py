"""Nodes that are lost while a session runs: noted, named, and gone on without."""

import os
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from criteria_samples import criteria
from fake_home import fake_program, write, write_home
from fake_slurm import LACK, stand_in
from judge_samples import CASE
from rich.console import Console

from seatrial.campaign import job_watch
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.job_watch import NodesLostError, NodeWatch
from seatrial.campaign.node_log import NodeLog, Wait, attribute, in_words
from seatrial.campaign.runner import Order, run_campaign
from seatrial.console import Terminal
from seatrial.judge.judge import judge
from seatrial.judge.summary import print_summary
from seatrial.model.cases import Case, NodeEvent
from seatrial.model.records import as_dict
from seatrial.progress import Display
from seatrial.runs.closed_run import load_run
from seatrial.system import slurm, slurm_nodes
from seatrial.system.description import load_system
from seatrial.system.slurm_nodes import JobRequest, NodeLook

NOON = 1_800_014_400.0  # 2027-01-15 12:00 UTC
DRAINED = NodeEvent("cn02", "drained", "bad DIMM", "root", NOON + 30)
SILENT = NodeEvent("cn02", "not responding", "", "", NOON + 30)
DOWN = NodeEvent("cn02", "down", "Not responding", "slurm", NOON + 330)
NAMES = ("cn01", "cn02")
IN_WORDS = "cn02 is drained (bad DIMM, by root, 12:00 UTC)"
LATER = "12:00 UTC; Slurm ends it after its SlurmdTimeout"
SLURM = "2027-01-15T12:00:30"


@pytest.fixture
def console() -> Console:
    return Console(record=True, force_terminal=False, width=200)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm prints local time; here that is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def look(*lost: NodeEvent) -> NodeLook:
    away = {event.node: event for event in lost}
    return NodeLook({"batch": frozenset(NAMES)}, frozenset(NAMES) - away.keys(), away)


# What Slurm prints, as seen of 22.05 in the lab; states with + as of 24.11.


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("idle", None),
        ("mixed", None),
        ("completing", None),
        ("powered_down", None),
        ("IDLE+POWERED_DOWN", None),
        ("maint", None),
        ("idle*", "not responding"),
        ("allocated*", "not responding"),
        ("IDLE+NOT_RESPONDING", "not responding"),
        ("down", "down"),
        ("down*", "down"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("DOWN*+DRAIN", "down"),
        ("drained", "drained"),
        ("draining", "drained"),
        ("DRAIN", "drained"),
        ("MIXED+DRAIN", "drained"),
        ("fail", "failed"),
        ("failing", "failed"),
    ],
)
def test_states_of_lost_nodes(state: str, expected: str | None) -> None:
    assert slurm_nodes.lost_state(state) == expected


def test_look_at_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "cn01|batch*|idle|Unknown|Unknown|none",
        f"cn02|batch*|drained|root|{SLURM}|bad DIMM | slot 3",
        f"cn02|big|drained|root|{SLURM}|bad DIMM | slot 3",
        "cn03|big|powered_down|Unknown|Unknown|none",
    )
    text = "\n".join(lines)
    fake_program(tmp_path, "sinfo", f"cat <<'X'\n{text}\nX")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = slurm_nodes.look()
    assert found == NodeLook(
        {"batch": frozenset(NAMES), "big": frozenset(("cn02", "cn03"))},
        frozenset(("cn01",)),
        {"cn02": replace(DRAINED, reason="bad DIMM | slot 3")},
    )
    fake_program(tmp_path, "sinfo", "exit 1")
    assert slurm_nodes.look() is None


def test_losses_in_the_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others than those of nodes are left out, and those that began before."""
    text = f"""\
|Cluster Registered TRES||2027-01-15T12:00:20|
cn02|DRAIN|root(0)|{SLURM}|bad DIMM
cn01|DOWN|root(0)|2027-01-15T11:00:00|fan
cn01|IDLE+POWERED_DOWN|slurm(64030)|{SLURM}|
"""
    fake_program(tmp_path, "sacctmgr", f"echo $@ > {tmp_path}/args; cat <<'X'\n{text}X")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert slurm_nodes.past_losses(NOON) == [DRAINED]
    assert "start=2027-01-15T12:00:00" in (tmp_path / "args").read_text()
    fake_program(tmp_path, "sacctmgr", "exit 1")
    assert slurm_nodes.past_losses(NOON) == []


def test_node_failures_that_srun_reports() -> None:
    text = "srun: error: Node failure on cn04\nsrun: error: cn03: task 2: Killed\n"
    assert slurm_nodes.node_failures(text) == ["cn04"]


# What is noted.


def test_a_loss_is_noted_once_and_a_short_silence_never() -> None:
    log = NodeLog(NAMES)
    assert log.note(look(SILENT), NOON + 31) == []
    assert log.note(look(), NOON + 40) == []
    assert log.note(look(replace(SILENT, time=NOON + 50)), NOON + 50) == []
    found = log.note(look(replace(SILENT, time=NOON + 70)), NOON + 70)
    assert found == [replace(SILENT, time=NOON + 50)]
    assert log.note(look(replace(SILENT, time=NOON + 80)), NOON + 80) == []
    assert log.note(look(DOWN), NOON + 340) == [DOWN]
    assert log.add([replace(DOWN, time=NOON + 331)]) == [], "as the accounting has it"
    assert log.add([replace(DRAINED, node="cn09")]) == [], "it was not there before"


@pytest.mark.parametrize(
    ("event", "case", "reason"),
    [
        # The node died, Slurm saw it later; the task that it ended is not the cause.
        (
            SILENT,
            {"result": "fail", "phase": "sanity", "reason": "'cn01: task 0: Killed'"},
            "lost a node: cn02 stopped responding at 12:00 UTC",
        ),
        (
            replace(DOWN, time=NOON + 5, user="root"),
            {"result": "fail", "phase": "run", "reason": "NODE_FAIL"},
            "lost a node: cn02 down at 12:00 UTC by root: Not responding",
        ),
        # A drain ends no job; a case may fail for its numbers all the same.
        (
            replace(DRAINED, time=NOON + 5),
            {"result": "fail", "phase": "sanity", "reason": "no rows"},
            "no rows",
        ),
        (
            replace(DOWN, time=NOON + 5),
            {"result": "fail", "phase": "performance", "reason": "cn02: hpcc: killed"},
            "cn02: hpcc: killed",
        ),
    ],
)
def test_a_case_fails_for_the_node_that_it_lost(
    event: NodeEvent, case: dict[str, str], reason: str
) -> None:
    own = replace(CASE, nodes=NAMES, start_time=NOON, elapsed_s=10.0, **case)  # type: ignore[arg-type]
    next_one = replace(CASE, case="Next", start_time=NOON + 10, elapsed_s=900.0)
    (failed, _), (loss,) = attribute([own, next_one], [event])
    assert failed.reason == reason
    assert failed.node_events == (event,)
    assert loss.during == "ImbRing (intelmpi)"
    assert msgspec.convert(as_dict(failed), Case) == failed


def test_losses_in_words() -> None:
    silent, down = attribute(
        [replace(CASE, start_time=NOON, elapsed_s=400.0)], [SILENT, DOWN]
    )[1]
    assert in_words([down, silent]) == (
        "stopped responding at 12:00 UTC during ImbRing (intelmpi), then down at "
        "12:05 UTC during ImbRing (intelmpi): Not responding"
    )


# Which waiting jobs are given up.


class Stuck:
    """A watch over one job of two nodes that waits for a reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
        self.seen = look(DRAINED)
        self.running: list[slurm.Job] = []
        self.blocked: dict[str, Wait] = {}
        monkeypatch.setattr(slurm_nodes, "look", lambda: self.seen)
        self.wanted = JobRequest("Halo", ("batch",), 2)
        monkeypatch.setattr(slurm_nodes, "request", lambda job: self.wanted)
        monkeypatch.setattr(
            slurm_nodes,
            "jobs_on",
            lambda nodes, comment: {"8": ("Halo", sorted(nodes))},
        )
        monkeypatch.setattr(slurm, "jobs", lambda comment, user: self.running)
        self.display = Display(console, [], {})
        log = NodeLog((*NAMES, "cn03"))
        self.watch = NodeWatch("c", log, self.blocked, self.display)

    def given_up(self, reason: str, looks: int = 2) -> bool:
        try:
            for _ in range(looks):
                self.watch.look({"7": reason})
        except NodesLostError:
            return True
        return False


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (LACK, True),
        ("ReqNodeNotAvail, UnavailableNodes:cn02", True),
        ("Resources", False),
        ("Priority", False),
        ("None", False),
        ("Dependency", False),
        ("QOSMaxNodePerUserLimit", False),
    ],
)
def test_jobs_that_wait_in_vain(
    monkeypatch: pytest.MonkeyPatch, console: Console, reason: str, expected: bool
) -> None:
    stuck = Stuck(monkeypatch, console)
    assert stuck.given_up(reason) == expected
    assert list(stuck.blocked) == ["7"] * expected


@pytest.mark.parametrize("reason", [LACK, "ReqNodeNotAvail"])
def test_jobs_that_are_left_to_wait(
    monkeypatch: pytest.MonkeyPatch, console: Console, reason: str
) -> None:
    stuck = Stuck(monkeypatch, console)
    assert not stuck.given_up(reason, looks=1), "seen once"
    stuck = Stuck(monkeypatch, console)
    stuck.seen = look()
    assert not stuck.given_up(reason), "no node is lost"
    stuck.seen = NodeLook(
        {"batch": frozenset((*NAMES, "cn03"))},
        frozenset(("cn01", "cn03")),
        {"cn02": DRAINED},
    )
    assert not stuck.given_up(reason), "there are nodes enough"
    stuck.wanted = replace(stuck.wanted, excluded=frozenset(("cn03",)))
    assert stuck.given_up(reason), "cn03 is of another class"
    stuck = Stuck(monkeypatch, console)
    stuck.seen = NodeLook({"batch": frozenset(NAMES)}, frozenset(("cn01",)), {})
    assert not stuck.given_up(reason), "cn02 is powered down, and comes back"
    stuck.seen = look(DRAINED, replace(DRAINED, node="cn01"))
    assert not stuck.given_up(reason), "nothing is left to go on with"
    stuck.seen = look(DRAINED)
    stuck.running = [slurm.Job("8", "RUNNING", "c", "cn01", "None", "/x")]
    assert not stuck.given_up(reason), "another job of the session runs"


def test_a_job_that_waits_in_vain_is_looked_at_again_soon(
    monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """Once: the next look gives it up, or another job of the session still runs."""
    stuck = Stuck(monkeypatch, console)
    stuck.running = [slurm.Job("8", "RUNNING", "c", "cn01", "None", "/x")]
    reasons = {"7": "Resources"}
    monkeypatch.setattr(slurm, "pending_reasons", lambda comment: reasons)
    now = [100.0]
    monkeypatch.setattr("seatrial.campaign.job_watch.time.monotonic", lambda: now[0])
    watch = job_watch.Watch(
        "c", NOON, {}, stuck.display, all_jobs=False, nodes=stuck.watch
    )
    looks = []
    for reason in ("Resources", LACK, LACK, LACK):
        reasons["7"] = reason
        now[0] = watch._next
        watch.silent()
        looks.append(watch._next - now[0])
    assert looks == [10.0, 2.0, 10.0, 10.0]
    watch.heard()
    assert watch._next - now[0] == 2.0, "the next case may need the lost node"


def test_the_log_says_once_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    stuck = Stuck(monkeypatch, console)
    stuck.running = [slurm.Job("8", "RUNNING", "c", "cn01", "None", "/x")]
    for reason in ("Priority", LACK):
        for _ in range(3):
            stuck.watch.look({"7": reason})
    stuck.seen = look(SILENT)
    for _ in range(3):
        stuck.watch.look({})
    assert console.export_text().splitlines() == [
        "lost: cn02 is drained (bad DIMM, by root, 12:00 UTC)",
        "waiting: job 7: Priority",
        f"waiting: job 7 (Halo) needs 2 nodes; {IN_WORDS}",
        f"waiting: job 8 (Halo) runs on cn02, which does not respond since {LATER}",
    ]


def test_silent_nodes_of_a_job_are_one_warning(
    monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    stuck = Stuck(monkeypatch, console)
    stuck.seen = look(SILENT, replace(SILENT, node="cn03", time=NOON + 90))
    for _ in range(3):
        stuck.watch.look({})
    assert console.export_text().splitlines() == [
        f"waiting: job 8 (Halo) runs on cn[02-03], which do not respond since {LATER}",
    ]


def test_one_request_names_the_jobs_of_many_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = "8|cn[01-03]|c-1|rfm_Halo_0123abcd\n9|cn04|c-1|Ring\n7|cn02|other|x"
    asked = f'echo "$*" >>{tmp_path}/asked'
    fake_program(tmp_path, "squeue", f"{asked}; printf '{jobs}\\n'")
    hosts = "case $3 in cn04) echo cn04;; *) printf 'cn01\\ncn02\\ncn03\\n';; esac"
    fake_program(tmp_path, "scontrol", hosts)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    silent = {"cn02": 1.0, "cn03": 2.0, "cn05": 3.0}
    assert slurm_nodes.jobs_on(silent, "c") == {"8": ("Halo", ["cn02", "cn03"])}
    (only,) = (tmp_path / "asked").read_text().splitlines()
    assert "-w cn[02-03,05]" in only


# The whole way: driver, ReFrame and a stand-in for Slurm.


def test_a_drained_node_does_not_stall_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """cn02 is drained after the first of three jobs; the second waits for it."""
    home = write_home(tmp_path / "home")
    at = stand_in(tmp_path, home, monkeypatch)
    drain = f'echo "drained|root|$(date +%FT%T)|bad DIMM" > {at}/cn02.lost\n'
    (at / "after.1").write_text(drain)
    monkeypatch.setattr(job_watch, "_FIRST_LOOK_S", 0.5)
    monkeypatch.setattr(job_watch, "_NEXT_LOOK_S", 1.0)
    order = Order(
        *(home, tmp_path / "results", load_system(home, "lab")),
        *(load_campaign(home, "smoke"), "r1"),
    )
    run = load_run(run_campaign(order, console))
    said = console.export_text()
    tries = [(c.case, c.environment, c.attempt, c.result, c.job_id) for c in run.cases]
    assert tries == [
        ("Echo %x=1", "openmpi", 1, "pass", "7"),
        ("Echo %x=1", "mpich", 1, "fail", "2"),
        ("Echo %x=1", "mpich", 2, "pass", "7"),
        ("Echo %x=2", "mpich", 1, "skip", None),
        ("Echo %x=2", "openmpi", 1, "pass", "7"),
    ], said
    assert len(list(at.glob("[0-9]*"))) == 4, "no job ran twice"
    first, stuck, again, _, last = run.cases
    assert len({case.raw for case in (first, stuck, again, last)}) == 4
    for case, nodes in ((first, 0), (again, 1), (last, 1)):
        output = (run.path / str(case.raw) / "rfm_job.out").read_text()
        assert f"nodes {nodes}\n" in output
    assert stuck.phase == "run"
    expected = r"job 2 (Echo) needs 2 nodes; cn02 is drained (bad DIMM, by root, "
    assert str(stuck.reason).startswith(f"the job never started: {expected}")
    assert said.count(f"waiting: {expected}") == 1
    assert "session echo-1 goes on without the lost nodes; cases left: 3" in said
    (event,) = {event for case in run.cases for event in case.node_events}
    assert (event.node, event.state, event.user) == ("cn02", "drained", "root")
    assert event.reason == "bad DIMM"
    assert run.measurements.collect()["attempt"].to_list() == [1, 2, 1], (
        "each was measured once"
    )
    (session,) = run.manifest["sessions"]
    assert session["interrupted"] == []
    node = run.manifest["nodes"][1]
    assert node["state"] == "lost"
    assert node["reason"].startswith("drained at ")
    assert ": bad DIMM; absent" not in node["reason"]
    judgement = judge(run, criteria())
    assert judgement.verdict == "fail"
    (finding,) = [f for f in judgement.findings if f.kind == "inventory"]
    assert (finding.place, finding.verdict) == ("cn02", "fail")
    lost = f"delivered but lost: {node['reason']}; absent from "
    assert finding.reason.startswith(lost)
    assert finding.reason.endswith(" UTC, measured in 1 of 1 sessions")
    terminal = Terminal()
    with terminal.capture() as capture:
        print_summary(judgement, "r1", terminal)
    assert f"lost node: cn02: {node['reason']}" in capture.get()


MANY = """

@rfm.simple_test
class Many(Base):
    valid_prog_environs = ["openmpi"]
    x = parameter(range(10))
"""


def write_patient(home: Path, check: str, repeats: int) -> None:
    """Write the campaign `patient`: its jobs may wait for long."""
    variables = "variables: {max_pending_time: 10m}"
    block = f"{{name: {check.lower()}, checks: [{check}], {variables}}}"
    text = f"repeats: {repeats}\nblocks:\n  - {block}\n"
    write(home / "reframe-checks" / "campaigns" / "patient.yaml", text)


def test_a_node_that_is_drained_in_case_5_of_10_costs_one_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """Case 6 waits for cn02, once; later cases and sessions ask for one node."""
    home = write_home(tmp_path / "home")
    checks = home / "reframe-checks" / "checks" / "fake" / "fake.py"
    checks.write_text(checks.read_text() + MANY)
    write_patient(home, "Many", 2)
    at = stand_in(tmp_path, home, monkeypatch)
    drain = f'echo "drained|root|$(date +%FT%T)|bad DIMM" > {at}/cn02.lost\n'
    (at / "after.5").write_text(drain)
    monkeypatch.setattr(job_watch, "_FIRST_LOOK_S", 0.5)
    order = Order(
        *(home, tmp_path / "results", load_system(home, "lab")),
        *(load_campaign(home, "patient"), "r1"),
    )
    run = load_run(run_campaign(order, console))
    said = console.export_text()
    failed = [case for case in run.cases if case.result == "fail"]
    assert [(case.session, case.job_id) for case in failed] == [("many-1", "6")], said
    assert len(run.cases) == 2 * 10 + 1
    assert len(list(at.glob("[0-9]*"))) == 2 * 10 + 1, "no other job waited"
    assert said.count("goes on without the lost nodes") == 1
    assert "goes on without the lost nodes; cases left: 5" in said


@pytest.mark.slow
def test_a_case_that_waits_twice_for_lost_nodes_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """cn02 seems to be back after each cut, and is lost again before the next job."""
    home = write_home(tmp_path / "home")
    write_patient(home, "Echo", 1)
    at = stand_in(tmp_path, home, monkeypatch)
    lost = "drained|root|$(date +%FT%T)|bad DIMM"
    flap = f"""
case "$*" in
  *%u*) echo "cn01|batch*|idle|Unknown|Unknown|none"; echo "cn02|batch*|{lost}";;
  *) printf 'cn01|idle|none\\ncn02|idle|none\\n';;
esac
"""
    fake_program(tmp_path / "bin", "sinfo", flap)
    (at / "cn02.lost").write_text("drained")
    monkeypatch.setattr(job_watch, "_FIRST_LOOK_S", 0.5)
    order = Order(
        *(home, tmp_path / "results", load_system(home, "lab")),
        *(load_campaign(home, "patient"), "r1"),
    )
    run = load_run(run_campaign(order, console))
    tries = [(str(c.key.listed), c.attempt) for c in run.cases if c.result == "fail"]
    assert sorted(tries) == [
        ("Echo %x=1 @lab:batch+mpich", 1),
        ("Echo %x=1 @lab:batch+mpich", 2),
        ("Echo %x=1 @lab:batch+openmpi", 1),
        ("Echo %x=1 @lab:batch+openmpi", 2),
        ("Echo %x=2 @lab:batch+openmpi", 1),
        ("Echo %x=2 @lab:batch+openmpi", 2),
    ], console.export_text()
    assert {event.node for case in run.cases for event in case.waited_for} == {"cn02"}
    judgement = judge(run, criteria())
    (line,) = judgement.spoiled
    assert line.startswith("node cn02 was lost at ")
    assert line.endswith(
        " UTC (bad DIMM, by root): 3 cases spoiled: Echo %x=1 (openmpi) in echo-1, "
        "Echo %x=2 (openmpi) in echo-1, Echo %x=1 (mpich) in echo-1; make it again: "
        "`seatrial repeat lab/r1`"
    )


def test_a_loss_that_only_the_accounting_saw_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    home = write_home(tmp_path / "home")
    at = stand_in(tmp_path, home, monkeypatch)
    flap = f'echo "cn02|DOWN|slurm(64030)|$(date +%FT%T)|Not responding" > {at}/events'
    (at / "after.1").write_text(flap)
    order = Order(
        *(home, tmp_path / "results", load_system(home, "lab")),
        *(load_campaign(home, "smoke"), "r1"),
    )
    run = load_run(run_campaign(order, console))
    assert {case.result for case in run.cases} == {"pass", "skip"}
    node = run.manifest["nodes"][1]
    assert node["state"] == "lost"
    assert node["reason"].endswith(" during Echo %x=1 (openmpi): Not responding")
    assert judge(run, criteria()).verdict == "fail"
