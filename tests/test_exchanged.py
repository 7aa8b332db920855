"""Exchanged hardware: numbers count for the hardware that they were measured on."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from criteria_samples import criteria, criterion
from judge_samples import NODES, make_run, repeats, sample

from seatrial.judge.exchanged import exchanges
from seatrial.judge.judge import Judgement, judge
from seatrial.model.cases import Case, NodeEvent
from seatrial.runs.closed_run import Run
from seatrial.runs.settings_table import SCHEMA

LIMIT = criterion("bw_4MiB", 60.0, model="every")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
DAY = 86400.0
Serials = Mapping[str, str | None]


def settings(start: Serials, end: Serials | None = None) -> pl.DataFrame:
    """Return the serial numbers of nodes at both moments; None: not readable."""
    rows = []
    for moment, nodes in (("start", start), ("end", start if end is None else end)):
        for node, serial in nodes.items():
            row: dict[str, str | None] = {"moment": moment, "node": node}
            row |= {"node_class": "cpu"}
            row |= {"subject": "node", "key": "serial", "actual": serial}
            rows.append({**row, "verdict": "none" if serial else "unknown"})
    return pl.DataFrame(rows, schema=SCHEMA)


def measured(
    name: str,
    day: int,
    serials: pl.DataFrame | None,
    *cases: Case,
    low: str = "",
    **manifest: Any,
) -> Run:
    """Build a run of a day, a number of each node in each case; `low` is too slow."""
    cases = cases or tuple(repeats(2))
    began = NOON + day * DAY
    timed = [replace(case, start_time=began + 60.0) for case in cases]
    rows = [
        replace(
            sample(case, 40.0 + day if node == low else 80.0 + day, node=node),
            run=name,
            job_id=f"{name}-{at}",
            start_time=began + 60.0 * (at + 1),
        )
        for at, case in enumerate(timed)
        for node in NODES
    ]
    run = make_run(timed, rows)
    times = [datetime.fromtimestamp(began + s, UTC).isoformat() for s in (0, 3600)]
    described = {"run": name, "started": times[0], "ended": times[1], **manifest}
    whole = {**run.manifest, **described}
    return replace(run, path=Path(name), manifest=whole, settings=serials)


OLD = {"cn01": "A1", "cn02": "A2"}
NEW = {"cn01": "A1", "cn02": "B7"}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([settings(OLD), settings(OLD)], []),
        ([settings(OLD), settings(NEW)], [("cn02", DAY)]),
        ([settings(OLD), settings({"cn02": None}), settings(NEW)], [("cn02", 2 * DAY)]),
        ([settings(OLD), None, settings(NEW)], [("cn02", 2 * DAY)]),
        ([settings(OLD, NEW)], [("cn02", 3600.0)]),
        ([settings({}), settings(NEW)], []),
        ([settings({"cn02": "None"}), settings({"cn02": "Default string"})], []),
        ([settings(OLD), settings({"cn02": "N/A"}), settings(OLD)], []),
        (
            [settings(OLD), settings({"cn02": "N/A"}), settings(NEW)],
            [("cn02", 2 * DAY)],
        ),
        (
            [settings(OLD), settings(NEW), settings(OLD)],
            [("cn02", DAY), ("cn02", 2 * DAY)],
        ),
        ([None, None], []),
    ],
)
def test_an_exchange_counts_from_the_run_that_read_the_new_hardware(
    tables: list[pl.DataFrame | None], expected: list[tuple[str, float]]
) -> None:
    runs = [measured(f"r{day}", day, table) for day, table in enumerate(tables)]
    found = [(repair.node, repair.time - NOON) for repair in exchanges(runs)]
    assert found == expected


def verdicts(judgement: Judgement, place: str) -> set[str]:
    return {f.verdict for f in judgement.findings if f.place == place}


def test_numbers_of_the_old_hardware_do_not_count_for_the_new_one() -> None:
    first = measured("r0", 0, settings(OLD), low="cn02")
    second = measured("r1", 1, settings(NEW))
    assert verdicts(judge(first, criteria(LIMIT)), "cn02") == {"fail"}
    same = judge(first, criteria(LIMIT), [replace(second, settings=settings(OLD))])
    assert verdicts(same, "cn02") == {"fail"}, "its old numbers count"
    both = judge(first, criteria(LIMIT), [second])
    assert verdicts(both, "cn02") == {"pass"}
    assert both.verdict == "pass"
    (words,) = [text for text in both.history if "exchanged" in text]
    assert words == (
        "node cn02 was repaired (exchanged: node serial A2, now B7, at the start of "
        "run r1): 2 numbers of it from before that do not count"
    )


def test_good_numbers_of_the_old_hardware_do_not_help_the_new_one() -> None:
    first = measured("r0", 0, settings(OLD))
    second = measured("r1", 1, settings(NEW), low="cn02")
    both = judge(first, criteria(LIMIT), [second])
    assert verdicts(both, "cn02") == {"fail"}
    assert verdicts(judge(first, criteria(LIMIT)), "cn02") == {"pass"}


LOSS = {"node": "cn02", "time": NOON + 90.0}
"""The node was lost after the first of two jobs."""


@pytest.mark.parametrize(
    ("more", "since"),
    [
        ({"sessions": [{"lost": [LOSS]}]}, 90.0),
        ({"sessions": [{"lost": [{**LOSS, "time": NOON + 30}, LOSS]}]}, 90.0),
        ({"sessions": [{"lost": [LOSS | {"node": "cn01"}]}]}, None),
        ({"sessions": [{"lost": [LOSS]}, {"absent": {"cn02": "down"}}]}, 100.0),
        ({"sessions": [{"lost": [LOSS]}], "starts": [0, 100]}, 100.0),
        ({"sessions": [{"lost": [LOSS]}], "starts": [0]}, 90.0),
        ({"starts": [0, 50, 100]}, 100.0),
        ({}, None),
    ],
)
def test_an_exchange_in_a_run_counts_from_when_the_node_was_last_away(
    more: dict[str, Any], since: float | None
) -> None:
    """Sessions start at second 100; the driver starts when it is stated."""

    def at(seconds: float) -> str:
        return datetime.fromtimestamp(NOON + seconds, UTC).isoformat()

    more = {key: [*value] for key, value in more.items()}
    for session in more.get("sessions", ()):
        session |= {"name": "links-1", "started": at(100), "ended": at(3600)}
    more["starts"] = [{"started": at(seconds)} for seconds in more.get("starts", ())]
    run = measured("r0", 0, settings(OLD, NEW), low="cn02", **more)
    (repair,) = exchanges([run])
    assert repair.time - NOON == (3600.0 if since is None else since)
    when = "at the end of run r0" if since is None else "in run r0"
    assert repair.reason == f"exchanged: node serial A2, now B7, {when}"


def lost_at(second: float) -> dict[str, Any]:
    """Return a session that began with the run, and lost cn02."""
    began = datetime.fromtimestamp(NOON, UTC).isoformat()
    loss = {"node": "cn02", "time": NOON + second}
    return {"sessions": [{"name": "links-1", "started": began, "lost": [loss]}]}


@pytest.mark.parametrize(("second", "count"), [(30.0, 3), (90.0, 2)])
def test_numbers_count_since_a_node_came_back_with_new_hardware(
    second: float, count: int
) -> None:
    """Its jobs started in seconds 60, 120 and 180."""
    run = measured("r0", 0, settings(OLD, NEW), *repeats(3), **lost_at(second))
    judgement = judge(run, criteria(LIMIT))
    (finding,) = [f for f in judgement.findings if f.place == "cn02"]
    assert (finding.verdict, finding.n) == ("pass", count)
    number = "0 numbers" if count == 3 else "1 number"
    assert any(f", in run r0): {number} of it" in text for text in judgement.history)


@pytest.mark.parametrize(("second", "verdict"), [(30.0, "fail"), (150.0, "undecided")])
def test_a_number_that_is_missing_on_new_hardware_counts(
    second: float, verdict: str
) -> None:
    """The second job has none of cn02."""
    run = measured("r0", 0, settings(OLD, NEW), **lost_at(second))
    late = pl.col("start_time") > NOON + 90
    rows = run.measurements.filter(~(late & (pl.col("node") == "cn02")))
    judgement = judge(replace(run, measurements=rows), criteria(LIMIT))
    assert verdicts(judgement, "cn02") == {verdict}


def test_a_node_that_was_exchanged_at_last_is_not_measured() -> None:
    run = measured("r0", 0, settings(OLD, NEW))
    judgement = judge(run, criteria(LIMIT))
    (finding,) = [f for f in judgement.findings if f.place == "cn02"]
    assert finding.reason == "nothing was measured of this node"
    assert judgement.verdict == "undecided"


LOST = NodeEvent("cn02", "down", "", "", NOON + 70)


def lossy() -> list[Case]:
    """Return four repeats of a case on a whole class; the second lost cn02."""
    cases = [replace(case, whole_class=True) for case in repeats(4)]
    words = "lost a node: cn02"
    cases[1] = replace(cases[1], result="fail", phase="run", reason=words)
    cases[1] = replace(cases[1], node_events=(LOST,))
    return cases


def test_a_repeat_on_exchanged_hardware_measures_the_new_node_only() -> None:
    """The repeat makes one allocation of the new node; the old ones do not count."""
    cases = lossy()
    states = [
        {"name": name, "facts": {}, "reason": "", "state": "present"} for name in NODES
    ]
    lost = [
        {**one, "state": "lost", "reason": "down"} if one["name"] == "cn02" else one
        for one in states
    ]
    first = measured("r0", 0, settings(OLD), *cases, low="cn02", nodes=lost)
    made = replace(cases[1], result="pass", phase=None, reason=None, node_events=())
    more: dict[str, Any] = {"repeat_of": "r0", "nodes": states}
    same = measured("r1", 1, settings(OLD), made, **more)
    other = measured("r1", 1, settings(NEW), made, **more)

    one = judge(first, criteria(LIMIT), [same])
    assert verdicts(one, "cn02") == {"fail", "pass"}, "back, and its numbers were bad"
    new = judge(first, criteria(LIMIT), [other])
    assert verdicts(new, "cn02") == {"undecided", "pass"}, "one allocation is too few"
    reasons = [f.reason for f in new.findings if f.place == "cn02" and f.criterion]
    assert any("1" in reason for reason in reasons), reasons
    assert verdicts(new, "cn01") == {"pass"}
    assert any("exchanged: node serial A2, now B7" in text for text in new.history)
