"""The allowance for absent nodes: `absent_nodes` of criteria.yaml."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from closed_runs import CRITERIA
from criteria_samples import criteria
from judge_samples import LIMIT, NODES, make_run, repeats, sample

from seatrial.criteria.absence import Absence
from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.presence import presence
from seatrial.runs.closed_run import KEPT_CRITERIA

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
        ("{at_most: 1}", "absent_nodes: an allowance needs the clause that grants it"),
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
