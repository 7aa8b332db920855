"""The allowance for absent nodes: `absent_nodes` of criteria.yaml."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from closed_runs import CRITERIA
from criteria_samples import criteria
from judge_samples import LIMIT, NODES, make_run, repeats, sample

from seatrial.campaign.schedule import Agenda
from seatrial.criteria.absence import Absence
from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.judge.absent_nodes import Inventory
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.presence import presence
from seatrial.runs.closed_run import AGENDA_FILE, KEPT_CRITERIA, Run

ALLOWED = "absent_nodes: {at_most: 1, document: Contract 4711, clause: '4.3'}\n"


def parsed(text: str) -> Criteria:
    return Criteria.parse((CRITERIA + text).encode(), Path("criteria.yaml"), known=ANY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Absence()),
        (ALLOWED, Absence(1, "machine", "Contract 4711, 4.3")),
        (
            "absent_nodes: {at_most: 2, of: class, document: d, clause: c}\n",
            Absence(2, "class", "d, c"),
        ),
    ],
)
def test_the_allowance_of_a_file(text: str, expected: Absence) -> None:
    assert parsed(text).absence == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{at_most: 1}",
            "absent_nodes.clause: expected the clause that grants the allo",
        ),
        ("{at_most: -1, clause: c}", "expected a number of nodes, 0 or more, got -1"),
        ("{clause: c}", "at_most: expected a number of nodes, 0 or more, got nothing"),
        ("{at_most: 1, clause: c, of: leaf}", "of: expected one of machine, class"),
    ],
)
def test_a_wrong_allowance_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        parsed(f"absent_nodes: {text}\n")
    assert reason in str(caught.value)


def test_diff_shows_a_change_of_the_allowance() -> None:
    differences = changes(parsed(""), parsed(ALLOWED))
    assert differences == {
        "absent nodes": "at_most none, now 1; source none, now Contract 4711, 4.3"
    }


@pytest.mark.parametrize(
    ("allowance", "away", "expected"),
    [
        (Absence(), ["a1"], set()),
        (Absence(2), ["a1", "b1"], {"a1", "b1"}),
        (Absence(1), ["a1", "b1"], set()),
        (Absence(1, "class"), ["a1", "b1"], {"a1", "b1"}),
        (Absence(1, "class"), ["a1", "a2", "b1"], {"b1"}),
        (Absence(1, "class"), ["x1"], set()),
    ],
)
def test_all_of_a_group_or_none(
    allowance: Absence, away: list[str], expected: set[str]
) -> None:
    classes = {"a": ("a1", "a2"), "b": ("b1",)}
    assert allowance.permitted(away, classes) == expected


def session(number: int, **more: Any) -> dict[str, Any]:
    """Return an hour of a run, as its manifest has it."""
    hours = [f"2026-11-24T{number + shift:02}:00:00+00:00" for shift in (0, 1)]
    return {"name": f"links-{number}", "started": hours[0], "ended": hours[1], **more}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([{}, {}, {}], ""),
        (
            [{}, {"absent": {"cn02": "down"}}, {"absent": {"cn02": "down"}}],
            "absent from 2026-11-24 02:00 to 04:00 UTC, measured in 1 of 3 sessions",
        ),
        (
            [{}, {"lost": [{"node": "cn02", "time": 1795487400.0}]}, {}],
            "absent from 2026-11-24 02:30 to 03:00 UTC, measured in 3 of 3 sessions",
        ),
    ],
)
def test_words_on_a_node_that_was_away_for_a_while(
    states: list[dict[str, Any]], expected: str
) -> None:
    away = [number for number, state in enumerate(states, 1) if state.get("absent")]
    cases = [
        replace(case, session=f"links-{number}")
        for number, case in enumerate(repeats(3), 1)
        if number not in away
    ]
    run = make_run(cases, [])
    sessions = [session(number, **state) for number, state in enumerate(states, 1)]
    run.manifest["sessions"] = sessions
    assert presence("cn02", [run]) == expected
    assert presence("cn99", [run]) == ""


def absent_judgement(now: Absence, kept: str) -> Judgement:
    """Judge a healthy run without cn04, which kept some criteria."""
    cases = repeats(8)
    rows: list[Any] = [
        sample(case, 80.0 + 0.01 * number, node=node)
        for number, case in enumerate(cases)
        for node in NODES[:3]
    ]
    run = make_run(cases, rows, absent="cn04")
    run = replace(run, kept={KEPT_CRITERIA: (CRITERIA + kept).encode()})
    return judge(run, replace(criteria(LIMIT), absence=now))


@pytest.mark.parametrize(
    ("now", "kept", "verdict", "words"),
    [
        (Absence(), "", "fail", "1 of 4, allowed 0"),
        (Absence(1, "machine", "c"), ALLOWED, "pass", "1 of 4, allowed 1 (c)"),
        # Granted after the start of the run.
        (Absence(1, "machine", "c"), "", "fail", "1 of 4, allowed 0"),
        (Absence(), ALLOWED, "fail", "1 of 4, allowed 0"),
    ],
)
def test_absent_nodes_and_their_allowance(
    now: Absence, kept: str, verdict: str, words: str
) -> None:
    judgement = absent_judgement(now, kept)
    (finding,) = [f for f in judgement.findings if f.kind == "inventory"]
    assert (finding.place, finding.verdict, judgement.verdict) == (
        "cn04",
        verdict,
        verdict,
    )
    assert judgement.absence == words
    (node,) = [node for node in judgement.nodes if node.name == "cn04"]
    assert node.verdict == ("fail" if verdict == "fail" else "undecided")


@pytest.mark.parametrize(
    ("spares", "away", "expected"),
    [
        ("b3", ["b1"], {"b1": "b3"}),
        ("b3", ["b1", "b2"], {"b1": "b3"}),
        ("b[2-3]", ["b1"], {"b1": "b2"}),
        ("b[2-3]", ["b1", "b2"], {"b1": "b3"}),
        ("b3", ["a1"], {}),  # of another class
        ("b3", ["b1", "b3"], {}),  # the spare is away itself
        ("b3", ["x1"], {}),  # in no class that the run knows
        ("", ["b1"], {}),
    ],
)
def test_a_spare_replaces_an_absent_node_of_its_classes(
    spares: str, away: list[str], expected: dict[str, str]
) -> None:
    classes = {"a": ("a1", "a2"), "b": ("b1", "b2", "b3"), "big": ("b2", "b3")}
    names = ["a1", "a2", "b1", "b2", "b3", "x1"]
    states = {name: name not in away for name in names}
    found = Absence(0, "machine", "c", spares).replaced(states, classes)
    assert found == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{at_most: 0, spares: cn9}", "expected the clause that grants the allowance"),
        ("{at_most: 0, clause: c, spares: 'cn[1-'}", "spares: 'cn[1-' is no list"),
        ("{at_most: 0, clause: c, spares: 'cn1,cn1'}", "expected each node once, got"),
        ("{at_most: 0, clause: c, spares: ['cn1']}", "spares: expected a text"),
    ],
)
def test_wrong_spares_are_refused(text: str, reason: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        parsed(f"absent_nodes: {text}\n")
    assert reason in str(caught.value)


SPARE = "absent_nodes: {at_most: 0, clause: c, spares: 'cn[04,09]'}\n"
REST = "; not in the run: cn09"


def spare_run(kept: str, *absent: str) -> Run:
    """Return a healthy run of four nodes of one class, without the absent ones."""
    cases = repeats(8)
    there = [node for node in NODES if node not in absent]
    rows: list[Any] = [
        sample(case, 80.0 + 0.01 * number, node=node)
        for number, case in enumerate(cases)
        for node in there
    ]
    run = make_run([replace(case, nodes=()) for case in cases], rows, nodes=there)
    gone = [
        {"name": name, "facts": {}, "state": "absent", "reason": "down"}
        for name in absent
    ]
    run.manifest["nodes"] += gone
    agenda = Agenda(
        "r", "lab", "", {"name": "smoke"}, (), nodes={"batch": tuple(NODES)}
    )
    text = {KEPT_CRITERIA: CRITERIA + kept, AGENDA_FILE: agenda.write().decode()}
    return replace(run, kept={name: one.encode() for name, one in text.items()})


@pytest.mark.parametrize(
    ("kept", "absent", "verdicts", "words"),
    [
        (
            SPARE,
            ["cn02"],
            {"cn02": ("pass", "absent: down; spare cn04 replaces it")},
            "0 of 3, allowed 0 (d, c); spares in use: 1 of 2 (cn04 for cn02)" + REST,
        ),
        (
            SPARE,
            ["cn01", "cn02"],
            {
                "cn01": ("pass", "absent: down; spare cn04 replaces it"),
                "cn02": ("fail", "delivered but absent: down"),
            },
            "1 of 3, allowed 0 (d, c); spares in use: 1 of 2 (cn04 for cn01)" + REST,
        ),
        (
            SPARE,
            ["cn04"],
            {"cn04": ("pass", "absent: down; a spare")},
            "0 of 3, allowed 0 (d, c); spares in use: 0 of 2" + REST,
        ),
        # Declared after the start of the run.
        (
            "",
            ["cn02"],
            {"cn02": ("fail", "delivered but absent: down")},
            "1 of 4, allowed 0 (d, c)",
        ),
    ],
)
def test_spares_in_a_verdict(
    kept: str, absent: list[str], verdicts: dict[str, tuple[str, str]], words: str
) -> None:
    rules = replace(criteria(LIMIT), absence=parsed(SPARE).absence)
    judgement = judge(spare_run(kept, *absent), rules)
    inventory = [f for f in judgement.findings if f.kind == "inventory" and f.place]
    assert {f.place: (f.verdict, f.reason) for f in inventory} == verdicts
    assert judgement.absence == words
    fails = any(verdict == "fail" for verdict, _ in verdicts.values())
    assert judgement.verdict == ("fail" if fails else "pass")


def test_a_lost_node_that_is_back_takes_no_spare() -> None:
    run = spare_run(SPARE, "cn01", "cn02")
    rules = replace(criteria(LIMIT), absence=parsed(SPARE).absence)
    nodes = run.manifest["nodes"]
    inventory = Inventory.of([run], nodes, rules, returned={"cn01"})
    assert inventory.spares == {"cn02": "spare cn04 replaces it"}
    assert inventory.permitted == {"cn02"}
    assert inventory.words.startswith("0 of 3, allowed 0")
