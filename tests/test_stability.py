"""Stability phases: demonstration tests, journals, incidents, events, criteria."""

import random
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from criteria_samples import RISKS
from judge_samples import CASE, make_run
from scipy.stats import binom, poisson

from seatrial.campaign.campaign_file import load_campaign, with_repeats
from seatrial.campaign.node_journal import JOURNAL, NodeJournal
from seatrial.campaign.node_log import NodeLog
from seatrial.campaign.stability_phase import mix_of
from seatrial.checks.job_mix import parse_mix
from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.keys import ANY
from seatrial.criteria.stability import StabilityCriterion
from seatrial.errors import SeatrialError
from seatrial.judge.spoiled import spoiled_of
from seatrial.judge.stability_findings import Phases, judge_phase
from seatrial.model.cases import Case, ListedCase, NodeEvent
from seatrial.model.spans import span_s, span_text
from seatrial.runs.maintenance import Maintenance
from seatrial.runs.reasons import Correction
from seatrial.stability.availability import exposure, node_hours
from seatrial.stability.causes import cause_of_job, cause_of_node
from seatrial.stability.demonstration import IntervalTest, MtbfTest, Numbers
from seatrial.stability.events import corrected, events_of
from seatrial.stability.incidents import Incident, incidents
from seatrial.stability.journal import Away, Journal, Span, read_journal
from seatrial.stability.phase import Phase
from seatrial.stability.sequential import SequentialTest
from seatrial.system.slurm_nodes import NodeLook

HOME = Path(__file__).parents[1]
NOON = 1_800_014_400.0
HOUR = 3600.0

# Tests with both risks.


def test_the_fixed_duration_plans_of_the_standard() -> None:
    """MIL-HDBK-781A, discrimination ratio 3, risks of 10 %: 9.3 m1, reject at 6."""
    test = MtbfTest(300.0, 100.0, 0.1, 0.1)
    assert test.needed_hours() == pytest.approx(927.5, abs=0.1)
    assert test.numbers(test.needed_hours()) == Numbers(5, 6)
    other = MtbfTest(200.0, 100.0, 0.1, 0.1)
    assert other.numbers(other.needed_hours()) == Numbers(14, 15)


@pytest.mark.parametrize("hours", [10.0, 50.0, 168.0, 500.0, 1000.0])
@pytest.mark.parametrize("nodes", [1.0, 64.0])
def test_both_risks_are_kept_in_any_duration(hours: float, nodes: float) -> None:
    test = MtbfTest(300.0 * nodes, 60.0 * nodes, 0.1, 0.05, nodes)
    numbers = test.numbers(hours)
    good, bad = hours / 300, hours / 60
    assert poisson.sf(numbers.fails - 1, good) <= 0.1
    assert poisson.cdf(numbers.passes, bad) <= 0.05
    assert numbers.decides == (hours >= test.needed_hours() * (1 - 1e-6))
    if not numbers.decides:
        assert poisson.sf(numbers.fails - 2, good) > 0.1, "one less would exceed it"
        assert poisson.cdf(numbers.passes + 1, bad) > 0.05


@pytest.mark.parametrize("intervals", [1, 5, 16, 40])
def test_intervals_keep_both_risks(intervals: int) -> None:
    test = IntervalTest(0.9, 0.5, 8.0, 0.1, 0.05)
    numbers = test.numbers(intervals)
    assert binom.sf(numbers.fails - 1, intervals, 0.1) <= 0.1
    assert binom.cdf(numbers.passes, intervals, 0.5) <= 0.05


def test_success_runs() -> None:
    """Five good intervals of 0.5 each show it at 5 %: 0.5^5 = 0.03; four do not."""
    test = IntervalTest(0.99, 0.5, 8.0, 0.05, 0.05)
    assert test.decide([], 40.0).verdict == "pass"
    assert test.decide([], 39.9).verdict == "undecided", "a part of one is none"
    first = test.decide([0.5, 0.6, 1.0], 40.0)
    assert (first.counted, first.verdict) == (1, "fail"), "one bad interval in 5"
    assert test.decide([41.0], 42.0).verdict == "pass", "after the last interval"


def test_a_short_test_is_undecided_and_says_what_it_needs() -> None:
    test = MtbfTest(300.0, 100.0, 0.1, 0.1)
    decision = test.decide([5.0], 100.0)
    assert decision.verdict == "undecided"
    assert decision.reason.endswith("both risks are kept from 927.5 h")
    assert "1 failure in 100 h; MTBF above 25.71 h, below 949.1 h" in decision.reason
    close = MtbfTest(100.0, 99.0, 0.01, 0.01)
    assert close.needed_hours() == inf
    assert "too close" in close.decide([5.0] * 5, 500.0).reason


def test_the_curve_is_that_of_the_test() -> None:
    test = MtbfTest(300.0, 100.0, 0.1, 0.1)
    points = {one.quality: one for one in test.curve(927.5)}
    assert points[300.0].fails <= 0.1
    assert points[100.0].passes <= 0.1
    passes = [one.passes for one in sorted(points.values())]
    assert passes == sorted(passes)


@pytest.mark.parametrize("mtbf", [100.0, 170.0, 300.0])
def test_the_sequential_curve_is_exact(mtbf: float) -> None:
    """Against drawn phases: 4,000, so within 4 standard errors of a share."""
    test, draw, hours = SequentialTest(300.0, 100.0, 0.1, 0.1), random.Random(7), 600.0
    counts = {"pass": 0, "fail": 0, "undecided": 0}
    for _ in range(4000):
        times: list[float] = []
        moment = draw.expovariate(1 / mtbf)
        while moment < hours:
            times.append(moment)
            moment += draw.expovariate(1 / mtbf)
        counts[test.decide(times, hours).verdict] += 1
    point = test.chances(mtbf, hours)
    assert counts["pass"] / 4000 == pytest.approx(point.passes, abs=0.032)
    assert counts["fail"] / 4000 == pytest.approx(point.fails, abs=0.032)
    if mtbf == 100.0:
        assert point.passes <= 0.1
    if mtbf == 300.0:
        assert point.fails <= 0.1


# What the driver saw.


def look(*lost: NodeEvent) -> NodeLook:
    away = {event.node: event for event in lost}
    names = frozenset(("cn01", "cn02"))
    return NodeLook({"batch": names}, names - away.keys(), away)


DOWN = NodeEvent("cn02", "down", "bad DIMM", "root", NOON + 50)


def test_the_journal_of_two_sessions(tmp_path: Path) -> None:
    """cn02 is lost in the first, back in the second; in between nobody looked."""
    for name, start in (("mix-1", NOON), ("mix-2.interrupted-1", NOON + 1000)):
        (tmp_path / "raw" / name).mkdir(parents=True)
        journal = NodeJournal(tmp_path / "raw" / name / JOURNAL)
        journal.begin(("cn01", "cn02"), start)
        log = NodeLog(("cn01", "cn02"), journal)
        lost = [DOWN] if name == "mix-1" else []
        log.note(look(), start + 1)
        log.note(look(*lost), start + 60)
        for beat in range(70, 200, 10):
            log.note(look(*lost), start + beat)
        if not lost:
            journal.unanswered(start + 200)
            journal.unanswered(start + 210)
            log.note(look(), start + 230)
    with (tmp_path / "raw" / "mix-2.interrupted-1" / JOURNAL).open("a") as file:
        file.write('{"t": 18000')  # the driver was killed
    journal_read = read_journal(tmp_path)
    assert journal_read.nodes == ("cn01", "cn02")
    assert journal_read.observed == (
        Span(NOON, NOON + 180),
        Span(NOON + 1000, NOON + 1230),
    )
    (away,) = journal_read.away
    assert (away.span, away.reason, away.back) == (
        Span(NOON + 60, NOON + 1001),
        "bad DIMM",
        True,
    )
    assert journal_read.silent == (Span(NOON + 1200, NOON + 1230),)
    hours = node_hours(journal_read, ())
    assert hours.down * HOUR == pytest.approx(120 + 1)
    assert hours.total == pytest.approx(hours.up + hours.down + hours.unobserved)
    assert hours.scheduler_down * HOUR == pytest.approx(30)
    damaged = tmp_path / "raw" / "mix-1" / JOURNAL
    damaged.write_text("x\n" + damaged.read_text())
    with pytest.raises(SeatrialError, match=r"nodes\.jsonl:1: damaged"):
        read_journal(tmp_path)


def test_a_short_silence_of_a_node_is_no_loss(tmp_path: Path) -> None:
    journal = NodeJournal(tmp_path / JOURNAL)
    log = NodeLog(("cn02",), journal)
    silent = NodeEvent("cn02", "not responding", "", "", NOON)
    log.note(look(silent), NOON)
    log.note(look(silent), NOON + 10)
    assert '"cn02"' not in (tmp_path / JOURNAL).read_text()
    log.note(look(silent), NOON + 20)
    assert '"cn02"' in (tmp_path / JOURNAL).read_text()


GONE = (
    NodeLook({"batch": frozenset(("cn01", "cn02"))}, frozenset(("cn01",)), {}),
    NodeLook({"batch": frozenset(("cn01",))}, frozenset(("cn01",)), {}),
)
"""cn02 is powered down, and cn02 is no longer listed: neither usable nor lost."""


@pytest.mark.parametrize("gone", GONE)
def test_a_lost_node_is_back_when_it_is_usable(tmp_path: Path, gone: NodeLook) -> None:
    """It is lost in the first session, and absent when the second begins."""
    for name, start in (("mix-1", NOON), ("mix-2", NOON + 100)):
        (tmp_path / "raw" / name).mkdir(parents=True)
        journal = NodeJournal(tmp_path / "raw" / name / JOURNAL)
        journal.begin(("cn01", "cn02"), start)
        if name == "mix-1":
            log = NodeLog(("cn01", "cn02"), journal)
            log.note(look(), start)
            assert log.note(look(DOWN), start + 20) == [DOWN]
        else:
            absent = NodeEvent("cn02", "absent", "unknown to Slurm", "", start)
            log = NodeLog(("cn01",), journal, [absent])
        log.note(gone, start + 40)
        assert log.note(gone, start + 100) == []
    (away,) = read_journal(tmp_path).away
    assert (away.span, away.back) == (Span(NOON + 20, NOON + 200), False)
    assert away.reason == "bad DIMM"
    log.note(look(), NOON + 210)
    (away,) = read_journal(tmp_path).away
    assert (away.span, away.back) == (Span(NOON + 20, NOON + 210), True)


def test_a_node_that_stays_lost_after_it_was_powered_down_is_one_loss() -> None:
    log = NodeLog(("cn01", "cn02"))
    assert log.note(look(DOWN), NOON) == [DOWN]
    log.note(GONE[0], NOON + 200)
    assert log.note(look(replace(DOWN, time=NOON + 400)), NOON + 400) == []
    log.note(look(), NOON + 500)
    again = replace(DOWN, time=NOON + 700)
    assert log.note(look(again), NOON + 700) == [again]


# From incidents to events.


def away(
    node: str, at: float, reason: str = "Not responding", state: str = "down"
) -> Away:
    return Away(node, Span(at, at + 60), state, reason, "slurm", back=True)


def job(number: int, at: float, *nodes: str, **more: Any) -> Case:
    fields = {"result": "fail", "phase": "sanity", "reason": "exit status 1", **more}
    own = replace(CASE, job_id=str(number), nodes=nodes, start_time=at, elapsed_s=30.0)
    return replace(own, **fields)


def found(
    cases: list[Case],
    *lost: Away,
    silent: tuple[Span, ...] = (),
    lines: dict[str, list[str]] | None = None,
    leafs: dict[str, str] | None = None,
) -> list[Incident]:
    observed = (Span(NOON, NOON + 10_000),)
    journal = Journal(("cn01", "cn02", "cn03", "cn04"), observed, lost, silent)
    printed = lines or {}
    return incidents(
        journal,
        cases,
        [],
        lambda case: printed.get(str(case.job_id), []),
        {"network": leafs or {}},
    )


def test_one_outage_that_ends_ten_jobs_is_one_event() -> None:
    cases = [job(n, NOON + 100, "cn01", "cn02") for n in range(10)]
    lost = [away("cn01", NOON + 120), away("cn02", NOON + 125)]
    (event,) = events_of(found(cases, *lost), burst_s=60.0)
    assert (event.cause, event.nodes, len(event.jobs)) == ("node", ("cn01", "cn02"), 10)
    assert event.name == "20270115T120200Z-cn01"
    assert len(events_of(found(cases, *lost), burst_s=1.0)) == 2


def test_jobs_without_a_node_are_grouped_by_cause() -> None:
    lines = {
        "1": ["connect() failed: No route to host", "MPI_ABORT was invoked"],
        "2": ["ls: x: Stale file handle"],
        "3": ["UCX  ERROR transport retry count exceeded"],
        "4": ["Segmentation fault (core dumped)"],
        "5": ["it went wrong"],
        "6": ["srun: error: Unable to confirm allocation for job 6: Invalid job id"],
    }
    cases = [job(n, NOON + n, "cn03", reason="failed") for n in range(1, 7)]
    events = events_of(found(cases, lines=lines), burst_s=60.0)
    assert {event.cause: len(event.jobs) for event in events} == {
        "network": 2,
        "file system": 1,
        "application": 1,
        "unknown": 1,
        "scheduler": 1,
    }
    (network,) = [event for event in events if event.cause == "network"]
    assert "it printed: connect() failed: No route to host" in network.evidence


def test_failures_that_are_none_or_ours() -> None:
    slow = job(1, NOON, "cn01", phase="performance", reason="bw: does not meet")
    waited = job(2, NOON, "cn01", waited_for=(DOWN,))
    setup = job(3, NOON, phase="setup", reason="no such module")
    assert [one.cause for one in found([slow, waited, setup])] == ["ours"]


def test_jobs_of_a_silent_controller_are_its_event() -> None:
    cases = [job(1, NOON + 100, "cn01", reason="the job never started: FAILED")]
    (event,) = events_of(found(cases, silent=(Span(NOON + 90, NOON + 190),)), 60.0)
    assert (event.cause, event.place, len(event.jobs)) == ("scheduler", "slurmctld", 1)
    assert "did not answer for" in event.evidence[0]
    brief = found([], silent=(Span(NOON + 90, NOON + 95),))
    assert brief == []


def test_a_drained_node_ends_no_job() -> None:
    drained = away("cn01", NOON + 110, "bad link", "drained")
    case = job(1, NOON + 100, "cn01", reason="Segmentation fault")
    causes = [one.cause for one in found([case], drained)]
    assert causes == ["network", "application"]


def test_a_whole_leaf_at_once_is_the_network() -> None:
    leafs = {"cn01": "leaf l1", "cn02": "leaf l1", "cn03": "leaf l2", "cn04": "leaf l2"}
    lost = [away("cn01", NOON + 5), away("cn02", NOON + 9), away("cn03", NOON + 500)]
    causes = [(one.place, one.cause) for one in found([], *lost, leafs=leafs)]
    assert causes == [("cn01", "network"), ("cn02", "network"), ("cn03", "node")]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Not responding", "node"),
        ("PSU 2 failed", "power"),
        ("lustre not mounted", "file system"),
        ("ib0 link down", "network"),
        ("Kill task failed", "scheduler"),
        ("bad DIMM", "node"),
        ("rebooted: support", "node"),
    ],
)
def test_causes_by_reasons_of_nodes(reason: str, expected: str) -> None:
    assert cause_of_node(reason)[0] == expected


def test_what_fails_before_it_runs_is_ours() -> None:
    assert cause_of_job("setup", "a reason", [])[0] == "ours"
    assert cause_of_job("run", "timed out", [])[0] == "unknown"


def test_corrections_stand_beside_the_first_cause() -> None:
    events = events_of(found([], away("cn01", NOON + 5)), 60.0)
    change = Correction(events[0].name, "power", "operator", "PDU", "o@example.org")
    other = replace(change, event="20270115T120000Z-cn09")
    (event,), notes = corrected(events, [change, other])
    assert (event.guess, event.cause) == ("node", "power")
    assert event.name == events[0].name
    (note,) = notes
    assert note.startswith("correction of an event that is none: 20270115T120000Z-cn09")


# Hours, and criteria.

WINDOW = Maintenance(NOON + 3600, NOON + 7200, (), "9", "firmware")


def phase(
    *lost: Away, hours: float = 10.0, windows: tuple[Maintenance, ...] = (), **more: Any
) -> Phase:
    journal = Journal(
        ("cn01", "cn02"), (Span(NOON, NOON + hours * HOUR),), lost, **more
    )
    found = incidents(journal, [], [], lambda _: [], {})
    campaign = load_campaign(HOME, "stability")
    assert campaign.stability is not None
    declared = replace(campaign.stability, duration_s=hours * HOUR)
    return Phase("r", declared, journal, tuple(found), windows=windows)


def lasting(node: str, start_h: float, hours: float) -> Away:
    start = NOON + start_h * HOUR
    return Away(node, Span(start, start + hours * HOUR), "down", "", "", back=True)


def test_hours_without_planned_maintenance() -> None:
    """cn01 is down for an hour in the window, and for two after it."""
    one = phase(lasting("cn01", 1.0, 1.0), lasting("cn01", 3.0, 2.0), windows=(WINDOW,))
    hours = one.hours
    assert (hours.total, hours.planned, hours.down, hours.up) == (20.0, 2.0, 2.0, 16.0)
    assert exposure(one.journal, one.windows) == [
        Span(NOON, NOON + 3600),
        Span(NOON + 7200, NOON + 36_000),
    ]
    assert [bool(event.planned) for event in one.events(60)] == [True, False]
    of_cn02 = replace(WINDOW, nodes=("cn02",))
    assert replace(one, windows=(of_cn02,)).hours.planned == 1.0
    assert replace(one, windows=(of_cn02,)).exposed == 10.0


HEAD = """schema: 1
risks: {seller: 0.1, buyer: 0.1}
defaults: {kind: promised, document: contract, clause: "3"}
criteria:
"""


def rule(text: str, more: str = "") -> StabilityCriterion:
    content = f"{HEAD}  - {{kind: stability, {text}}}\n{more}"
    (one,) = Criteria.parse(content.encode(), Path("criteria.yaml"), ANY).declared
    assert isinstance(one, StabilityCriterion)
    return one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("availability: {at_least: 0.9}", "pass"),
        ("availability: {at_least: 0.96}", "fail"),
        ("availability: {at_least: 0.8, formula: 1 - failures / hours}", "pass"),
        ("availability: {at_least: 0.8, formula: up / planned}", "undecided"),
        ("mtbf: {accepted: 10 h, rejected: 1 h}", "pass"),
        ("mtbf: {accepted: 300 h, rejected: 90 h}", "fail"),
        ("mtbf: {accepted: 20 h, rejected: 9 h}", "undecided"),
        ("mtbf: {accepted: 20 h, rejected: 2 h, of: node}", "pass"),
        ("mtbf: {accepted: 10 h, rejected: 1 h, test: sequential}", "pass"),
        ("intervals: {length: 1 h, accepted: 0.9, rejected: 0.5}", "pass"),
        ("intervals: {length: 5 h, accepted: 0.99, rejected: 0.5}", "fail"),
        ("mtbf: {accepted: 10 h, rejected: 1 h}, least_load: 0.5", "undecided"),
        ("mtbf: {accepted: 300 h, rejected: 90 h}, causes: [power]", "undecided"),
    ],
)
def test_a_phase_of_ten_hours_with_a_failure(text: str, expected: str) -> None:
    """A node is down for an hour of 20 node-hours."""
    finding = judge_phase(rule(text), phase(lasting("cn01", 3.0, 1.0)))
    assert finding.verdict == expected, finding.reason


def test_only_failed_jobs_are_events() -> None:
    """A job that ran, but whose numbers have a fault, fails the run as elsewhere."""
    cases = [
        job(1, NOON, "cn01"),
        job(2, NOON + 60, "cn01", result="pass"),
        job(3, NOON + 120, "cn01", phase="performance", reason="bw: no reference"),
    ]
    run = make_run(cases, [])
    name = run.manifest["run"]
    one = Phases({name: phase()}, (rule("availability: {at_least: 0.9}"),))
    (whole,) = spoiled_of([run], frozenset(), one.counted).whole([run])
    assert [case.job_id for case in whole.cases] == ["2", "3"]
    (failed,) = [found for found in one.findings([run]) if found.kind == "case"]
    assert (failed.verdict, failed.n) == ("pass", 2)
    assert failed.reason == (
        "failed in sanity in 1 of 2 repeats: exit status 1; counted as an event of the "
        "phase"
    )
    unjudged = replace(one, criteria=())
    assert spoiled_of([run], frozenset(), unjudged.counted).whole([run]) == [run]
    assert unjudged.findings([run]) == []


def test_a_node_that_stays_away_was_not_watched_to_the_end() -> None:
    lost = away("cn02", NOON + 60)._replace(back=False)
    rules = (rule("availability: {at_least: 0.9}"),)
    assert Phases({"r": phase(lost)}, rules).watched == {"cn01"}
    assert Phases({"r": phase(away("cn02", NOON))}, rules).watched == {"cn01", "cn02"}
    assert Phases({"r": phase()}, ()).watched == set()


def test_the_reason_has_the_numbers() -> None:
    one = phase(lasting("cn01", 3.0, 1.0))
    value = judge_phase(rule("availability: {at_least: 0.9}"), one)
    assert value.value == pytest.approx(0.95)
    assert value.reason == (
        "up / (up + down) = 0.95; node-hours: total 20, up 19, down 1, planned 0, "
        "unobserved 0"
    )
    test = judge_phase(rule("mtbf: {accepted: 10 h, rejected: 1 h}"), one)
    assert test.value == 10.0
    assert (test.accepted, test.limit) == (10.0, 1.0)
    assert (value.accepted, value.limit) == (None, 0.9)
    assert test.reason.endswith("(risks: seller 0.1, buyer 0.1)")


def test_time_without_a_driver_is_undecided() -> None:
    journal = Journal(
        ("cn01",), (Span(NOON, NOON + 18_000), Span(NOON + 21_600, NOON + 36_000))
    )
    one = replace(phase(), journal=journal)
    finding = judge_phase(rule("mtbf: {accepted: 10 h, rejected: 1 h}"), one)
    assert finding.verdict == "undecided"
    assert finding.reason.startswith("10 % of the phase was not observed, allowed 5 %")
    allowed = rule("mtbf: {accepted: 10 h, rejected: 1 h}, unobserved: 0.2")
    assert judge_phase(allowed, one).verdict == "pass"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected one of availability, mtbf and intervals, got nothing"),
        (
            "availability: {at_least: 0.9}, mtbf: {accepted: 9 h, rejected: 1 h}",
            "expected one of availability, mtbf and intervals, got 'availability, ",
        ),
        ("mtbf: {accepted: 1 h, rejected: 1 h}", "expected less than the accepted 1 h"),
        ("mtbf: {accepted: 10, rejected: 1 h}", "mtbf.accepted"),
        ("mtbf: {accepted: 0 h, rejected: 1 h}", "a time above 0 with its unit"),
        (
            "intervals: {length: 1 h, accepted: 0.5, rejected: 0.9}",
            "expected less than the accepted 0.5",
        ),
        ("availability: {at_least: 0.9, formula: up / oops}", "expected numbers, and "),
        ("availability: {at_least: 1.9}", "a share above 0, at most 1"),
        ("mtbf: {accepted: 9 h, rejected: 1 h}, causes: [nodes]", "causes[0]"),
        ("mtbf: {accepted: 9 h, rejected: 1 h}, risks: {buyer: 0.2}", "at most the"),
        (
            "mtbf: {accepted: 9 h, rejected: 1 h}, check: X",
            "kind stability has no check",
        ),
    ],
)
def test_mistakes_have_a_line(text: str, expected: str) -> None:
    with pytest.raises(SeatrialError, match=r"criteria\.yaml:5: ") as caught:
        rule(text) if text else rule("clause: '1'")
    assert expected in str(caught.value)


def test_keys_of_stability_belong_to_it() -> None:
    text = f"{HEAD}  - {{check: X, limits: {{bw_8B: 1 MB/s}}, burst: 5 min}}\n"
    with pytest.raises(SeatrialError, match="burst: belongs to kind stability"):
        Criteria.parse(text.encode(), Path("criteria.yaml"), ANY)


MAINTENANCE = """maintenance:
  - {from: 2026-12-01 06:00:00Z, until: 2026-12-01 10:00:00Z, clause: '9', reason: fw}
"""


def test_planned_maintenance_is_read() -> None:
    text = f"{HEAD}  - {{kind: stability, availability: {{at_least: 0.9}}}}\n"
    old, new = (
        Criteria.parse((text + more).encode(), Path("criteria.yaml"), ANY)
        for more in ("", MAINTENANCE)
    )
    (window,) = new.maintenance
    assert window.end - window.start == 4 * HOUR
    assert changes(old, new) == {"maintenance": "maintenance none, now fw (clause 9)"}
    for wrong, expected in (
        ("until: 2026-12-01 05:00:00Z", "expected a time after"),
        ("until: 2026-12-01 10:00:00", "expected a time with its zone"),
    ):
        content = text + MAINTENANCE.replace("until: 2026-12-01 10:00:00Z", wrong)
        with pytest.raises(SeatrialError, match=expected):
            Criteria.parse(content.encode(), Path("criteria.yaml"), ANY)


# The mix.


def test_jobs_take_the_declared_load() -> None:
    campaign = load_campaign(HOME, "stability")
    declared = campaign.stability
    assert declared is not None
    assert campaign.repeats == declared.rounds == 42
    for nodes in (64, 256, 1000):
        counts = declared.counts(nodes)
        busy = sum(
            count * kind.nodes_of(nodes) * kind.seconds
            for count, kind in zip(counts, declared.jobs, strict=True)
        )
        assert busy / (nodes * declared.round_s) == pytest.approx(0.9, rel=0.05)
    with pytest.raises(SeatrialError, match="expected no --repeats"):
        with_repeats(campaign, 3)
    with pytest.raises(SeatrialError, match="jobs in a round, expected at most 4000"):
        declared.mix({"cpu": 10_000})


def test_each_job_has_one_class_and_one_stack() -> None:
    declared = load_campaign(HOME, "stability").stability
    assert declared is not None
    classes = {"cpu": 8, "gpu": 4}
    jobs = parse_mix(declared.mix(classes))
    cases = [
        ListedCase(f"StabilityJob %mix={name}", f"s:{own}", stack)
        for name in jobs
        for own in classes
        for stack in ("openmpi", "mpich")
    ]
    other = ListedCase("Halo %protocol=x", "s:cpu", "mpich")
    chosen = declared.chosen([*cases, other], classes)
    assert chosen[-1] == other
    own = chosen[:-1]
    assert len({case.case for case in own}) == len(own) == len(jobs)
    for name, nodes in classes.items():
        mine = [case for case in own if case.partition == f"s:{name}"]
        assert len(mine) == sum(declared.counts(nodes))
        assert {case.environment for case in mine} == {"openmpi", "mpich"}
    first, second = (mix_of(f"mix-{n}", chosen) for n in (1, 2))
    assert parse_mix(first) == parse_mix(second)
    assert first != second, "another order in each round"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("duration: 10", "a time above 0 with its unit"),
        ("load: 1.5", "a share of the machine, above 0, at most 1"),
        ("round: 9 d", "expected at most the duration of 7 d"),
        ("jobs: [{nodes: 0, time: 1 min}]", "nodes from 1, or a share from 1% to 100%"),
        ("jobs: [{nodes: 200%, time: 1 min}]", "a share from 1% to 100%"),
        ("jobs: [{nodes: 1, time: 9 h}]", "a time from 1 s to the round of 4 h"),
        ("jobs: [{nodes: 1, time: 1 h}, {nodes: 1, time: 1 h}]", "is listed already"),
    ],
)
def test_mistakes_in_a_campaign_have_a_line(
    tmp_path: Path, keys: str, expected: str
) -> None:
    text = "duration: 7 d\n  jobs: [{nodes: 1, time: 1 min}]\n  load: 0.9\n  round: 4 h"
    name = keys.partition(":")[0]
    lines = [line for line in text.split("\n") if not line.strip().startswith(name)]
    body = "\n".join(f"  {line.strip()}" for line in [*lines, keys])
    folder = tmp_path / "reframe-checks" / "campaigns"
    folder.mkdir(parents=True)
    blocks = "blocks: [{name: mix, checks: [StabilityJob]}]\n"
    (folder / "p.yaml").write_text(f"stability:\n{body}\n{blocks}")
    with pytest.raises(SeatrialError, match=r"p\.yaml:\d: stability") as caught:
        load_campaign(tmp_path, "p")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (
            "blocks: [{name: mix, checks: [StabilityJob]}]\nrepeats: 3",
            "repeats: expected no such key in a stability phase (rounds follow from",
        ),
        (
            "blocks: [{name: mix, checks: [StabilityJob]}]\nretries: 1",
            "retries: expected no such key in a stability phase (a job that fails i",
        ),
        (
            "blocks: [{name: mix, checks: [OceanModel]}]",
            "blocks: expected StabilityJob, which runs the jobs of the phase, in on",
        ),
    ],
)
def test_a_phase_without_its_jobs_is_refused(
    tmp_path: Path, blocks: str, message: str
) -> None:
    folder = tmp_path / "reframe-checks" / "campaigns"
    folder.mkdir(parents=True)
    keys = "duration: 7 d, load: 0.9, round: 4 h, jobs: [{nodes: 1, time: 1 min}]"
    (folder / "p.yaml").write_text(f"stability: {{{keys}}}\n{blocks}\n")
    with pytest.raises(SeatrialError) as caught:
        load_campaign(tmp_path, "p")
    assert message in str(caught.value)


def test_spans() -> None:
    assert span_s("1.5 h") == 5400
    assert [span_text(s) for s in (30, 600, 5400, 604_800)] == [
        "30 s",
        "10 min",
        "1.5 h",
        "7 d",
    ]
    assert RISKS.seller == 0.05
