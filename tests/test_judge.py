"""The judge on constructed runs: every rule in a table."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from seatrial.judge import Finding, Judgement, judge
from seatrial.metrics import METRICS
from seatrial.old_limits import Limit, References
from seatrial.records import Case, Measurement, as_dict
from seatrial.results import SCHEMA, Run

BW = Limit(value=60.0, lower=60.0, upper=None, unit="MB/s", kind="promised", source="c")
LATENCY = Limit(
    value=100.0, lower=None, upper=100.0, unit="us", kind="promised", source="c"
)
BOTH = Limit(
    value=60.0, lower=50.0, upper=70.0, unit="MB/s", kind="promised", source="c"
)
NODES = ("cn01", "cn02", "cn03", "cn04")
CASE = Case(
    session="pairs-1",
    repeat=1,
    check="ImbRing",
    case="ImbRing",
    partition="lab:batch",
    environment="intelmpi",
    parameters={},
    result="pass",
    nodes=NODES,
    declared=("bw_4MiB",),
)


class Fake:
    """References of flat metric names alone; remembers what it was asked."""

    def __init__(self, **limits: Limit) -> None:
        self.limits = limits
        self.asked: list[tuple[Any, ...]] = []

    def limit(self, *question: Any) -> Limit | None:
        self.asked.append(question)
        return self.limits.get(question[-1])


def sample(
    case: Case,
    value: float,
    *,
    metric: str = "bw",
    size: int | None = 4 << 20,
    pair: str = "",
    node: str | None = None,
    socket: int | None = None,
    statistic: str = "mean",
) -> Measurement:
    source, _, destination = pair.partition(" ")
    return Measurement(
        run="r",
        session=case.session,
        block=case.session.rpartition("-")[0],
        repeat=case.repeat,
        system="lab",
        partition=case.partition,
        environment=case.environment,
        check=case.check,
        case=case.case,
        parameters=json.dumps(case.parameters),
        job_id="1",
        nodes=" ".join(case.nodes),
        node=node,
        socket=socket,
        source=source or None,
        destination=destination or None,
        hca=None,
        round=None,
        metric=metric,
        size_bytes=size,
        statistic=statistic,
        n=1,
        value=value,
        unit=METRICS[metric].unit,
        direction=METRICS[metric].direction,
        start_time=0.0,
    )


def make_run(
    cases: Sequence[Case],
    rows: Sequence[Measurement],
    minimum: int = 1,
    absent: str = "",
    nodes: Sequence[str] = NODES,
) -> Run:
    manifest = {
        "run": "r",
        "system": "lab",
        "campaign": "smoke",
        "minimum_samples": minimum,
        "nodes": [
            {
                "name": name,
                "facts": {},
                "state": "absent" if name == absent else "present",
                "reason": "down" if name == absent else "",
            }
            for name in nodes
        ],
    }
    frame = pl.DataFrame([as_dict(row) for row in rows], schema=SCHEMA)
    return Run(Path("r"), manifest, tuple(cases), frame)


def judged(run: Run, **limits: Limit) -> Judgement:
    return judge(run, cast(References, Fake(**limits)))


def repeats(count: int) -> list[Case]:
    return [replace(CASE, session=f"pairs-{i}", repeat=i) for i in range(1, count + 1)]


def found(judgement: Judgement, kind: str) -> list[Finding]:
    return [finding for finding in judgement.findings if finding.kind == kind]


@pytest.mark.parametrize(
    ("values", "minimum", "limit", "verdict", "reason"),
    [
        ([80, 90], 1, BW, "pass", "2 of 2 within the limit"),
        ([60], 1, BW, "pass", "1 of 1 within the limit"),
        ([50, 55], 1, BW, "fail", "0 of 2 within the limit"),
        ([50, 80, 90], 1, BW, "undecided", "2 of 3 within the limit"),
        (
            [80, 90],
            3,
            BW,
            "undecided",
            "2 of 2 within the limit; at least 3 samples are needed",
        ),
        (
            [1],
            2,
            BW,
            "undecided",
            "0 of 1 within the limit; at least 2 samples are needed",
        ),
        ([80], 1, None, "undecided", "no reference for this metric"),
        ([float("nan")], 1, BW, "fail", "0 of 1 within the limit"),
        ([float("inf")], 1, BW, "fail", "0 of 1 within the limit"),
        ([60], 1, BOTH, "pass", "1 of 1 within the limit"),
        ([71], 1, BOTH, "fail", "0 of 1 within the limit"),
        (
            [80],
            1,
            replace(BW, unit="MiB/s"),
            "undecided",
            "the reference is in MiB/s, the metric in MB/s",
        ),
    ],
)
def test_limit(
    values: list[float], minimum: int, limit: Limit | None, verdict: str, reason: str
) -> None:
    cases = repeats(len(values))
    rows = [sample(case, value) for case, value in zip(cases, values, strict=True)]
    limits = {} if limit is None else {"bw_4MiB": limit}
    judgement = judged(make_run(cases, rows, minimum), **limits)
    (finding,) = found(judgement, "limit")
    assert (finding.verdict, finding.reason) == (verdict, reason)
    assert judgement.verdict == verdict
    assert finding.n == len(values)


def test_finding_says_everything_about_its_criterion() -> None:
    cases = repeats(3)
    rows = [sample(c, v) for c, v in zip(cases, (70, 90, 80), strict=True)]
    (finding,) = found(judged(make_run(cases, rows), bw_4MiB=BW), "limit")
    assert finding == Finding(
        kind="limit",
        check="ImbRing",
        case="ImbRing",
        environment="intelmpi",
        metric="bw_4MiB",
        size_bytes=4 << 20,
        place="",
        n=3,
        value=80.0,
        unit="MB/s",
        limit=60.0,
        direction="higher",
        reference_kind="promised",
        reference_source="c",
        verdict="pass",
        reason="3 of 3 within the limit",
    )


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        ("bw", 71.0, 70.0),
        ("bw", 49.0, 50.0),
        ("bw", 60.0, 50.0),
        ("latency", 71.0, 70.0),
        ("latency", 49.0, 50.0),
        ("latency", 60.0, 70.0),
        ("latency", 50.0, 70.0),
    ],
)
def test_of_two_bounds_the_broken_one_is_shown(
    metric: str, value: float, shown: float
) -> None:
    both = replace(BOTH, unit=METRICS[metric].unit)
    case = replace(CASE, declared=(f"{metric}_4MiB",))
    run = make_run([case], [sample(case, value, metric=metric)])
    (finding,) = found(judged(run, **{f"{metric}_4MiB": both}), "limit")
    assert finding.limit == shown


def test_references_are_asked_for_the_case() -> None:
    case = replace(CASE, parameters={"benchmark": "Bcast"}, declared=())
    fake = Fake()
    judge(make_run([case], [sample(case, 1.0)]), cast(References, fake))
    assert fake.asked == [
        ("ImbRing", "lab:batch", "intelmpi", {"benchmark": "Bcast"}, 4, "bw_4MiB")
    ]


def test_undeclared_metric_without_reference_is_no_criterion() -> None:
    case = replace(CASE, declared=())
    judgement = judged(make_run([case], [sample(case, 1.0)]))
    assert found(judgement, "limit") == []
    assert judgement.verdict == "pass"


def test_undeclared_metric_with_reference_is_judged() -> None:
    case = replace(CASE, declared=())
    judgement = judged(make_run([case], [sample(case, 1.0)]), bw_4MiB=BW)
    assert judgement.verdict == "fail"


def test_declared_metric_that_is_missing_is_undecided() -> None:
    case = replace(CASE, declared=("bw_4MiB", "latency_8B"))
    judgement = judged(make_run([case], [sample(case, 80.0)]), bw_4MiB=BW)
    missing = [f for f in found(judgement, "limit") if f.metric == "latency_8B"]
    assert [f.verdict for f in missing] == ["undecided"]
    assert judgement.verdict == "undecided"


def test_sockets_are_places_of_their_own_and_name_their_node() -> None:
    rows = [
        sample(CASE, value, node=node, socket=socket)
        for node, socket, value in (
            *(("cn01", 0, 80), ("cn01", 1, 90)),
            *(("cn02", 0, 80), ("cn02", 1, 20)),
        )
    ]
    judgement = judged(make_run([CASE], rows), bw_4MiB=BW)
    assert {(f.place, f.verdict) for f in found(judgement, "limit")} == {
        ("cn01 (socket 0)", "pass"),
        ("cn01 (socket 1)", "pass"),
        ("cn02 (socket 0)", "pass"),
        ("cn02 (socket 1)", "fail"),
    }
    assert judgement.suspects == ("cn02",)


def test_many_sockets_share_a_finding() -> None:
    nodes = [f"cn{number:02}" for number in range(40)]
    rows = [sample(CASE, 80, node=n, socket=s) for n in nodes for s in (0, 1)]
    run = make_run([CASE], rows, nodes=nodes)
    (finding,) = found(judged(run, bw_4MiB=BW), "limit")
    reason = "80 sockets: all within the limit; the worst is 80 MB/s at cn00 (socket 0)"
    assert finding.reason == reason


def test_one_statistic_is_judged() -> None:
    rows = [
        sample(CASE, 10.0, statistic="min"),
        sample(CASE, 80.0, statistic="mean"),
        sample(CASE, 20.0, statistic="p99"),
    ]
    (finding,) = found(judged(make_run([CASE], rows), bw_4MiB=BW), "limit")
    assert (finding.n, finding.value) == (1, 80.0)


@pytest.mark.parametrize(
    ("changes", "verdict", "overall", "reason"),
    [
        (
            {"result": "fail", "phase": "sanity", "reason": "no rows"},
            "fail",
            "fail",
            "failed in sanity: no rows",
        ),
        ({"result": "fail"}, "fail", "fail", "failed: no reason given"),
        (
            {"result": "skip", "reason": "one node only"},
            "skipped",
            "undecided",
            "one node only",
        ),
        (
            {"result": "pass"},
            "pass",
            "pass",
            "ran and verified; it has no number to judge",
        ),
    ],
)
def test_case_without_numbers(
    changes: dict[str, Any], verdict: str, overall: str, reason: str
) -> None:
    judgement = judged(make_run([replace(CASE, declared=(), **changes)], []))
    (finding,) = found(judgement, "case")
    assert (finding.verdict, finding.reason) == (verdict, reason)
    assert judgement.verdict == overall


def test_case_that_failed_once_fails() -> None:
    first, second = repeats(2)
    second = replace(second, result="fail", phase="run", reason="lost a node")
    run = make_run([first, second], [sample(first, 80.0)])
    judgement = judged(run, bw_4MiB=BW)
    (finding,) = found(judgement, "case")
    assert finding.reason == "failed in run in 1 of 2 repeats: lost a node"
    assert judgement.verdict == "fail"


def test_performance_failure_is_the_limits_to_explain() -> None:
    case = replace(CASE, result="fail", phase="performance", reason="below reference")
    judgement = judged(make_run([case], [sample(case, 1.0)]), bw_4MiB=BW)
    assert found(judgement, "case") == []
    assert judgement.verdict == "fail"


def test_one_limit_of_several_explains_a_performance_failure() -> None:
    case = replace(CASE, result="fail", phase="performance", reason="below reference")
    pairs = [sample(case, 1.0, pair="cn01 cn02"), sample(case, 80.0, pair="cn03 cn04")]
    judgement = judged(make_run([case], pairs), bw_4MiB=BW)
    assert found(judgement, "case") == []
    assert judgement.verdict == "fail"


def test_performance_failure_that_no_limit_explains_fails() -> None:
    case = replace(CASE, result="fail", phase="performance", reason="unit differs")
    judgement = judged(make_run([case], [sample(case, 80.0)]), bw_4MiB=BW)
    (finding,) = found(judgement, "case")
    assert finding.reason == "failed in performance: unit differs"
    assert judgement.verdict == "fail"


def test_absent_node_fails_the_inventory() -> None:
    run = make_run([CASE], [sample(CASE, 80.0)], absent="cn02")
    judgement = judged(run, bw_4MiB=BW)
    (finding,) = found(judgement, "inventory")
    assert (finding.place, finding.verdict) == ("cn02", "fail")
    assert finding.reason == "delivered but absent: down"
    assert judgement.verdict == "fail"
    assert judgement.suspects == ()
    node = judgement.nodes[1]
    assert (node.name, node.state, node.verdict) == ("cn02", "absent", "fail")


def test_without_delivered_nodes_the_inventory_is_undecided() -> None:
    """An imported run does not say what was delivered."""
    run = make_run([CASE], [sample(CASE, 80.0)], nodes=[])
    judgement = judged(run, bw_4MiB=BW)
    (finding,) = found(judgement, "inventory")
    assert finding.verdict == judgement.verdict == "undecided"
    assert finding.reason == "the run does not say which nodes were delivered"


def test_nothing_judged_is_undecided() -> None:
    assert judged(make_run([], [])).verdict == "undecided"


RING = ("cn01 cn02", "cn02 cn03", "cn03 cn04", "cn04 cn01")


@pytest.mark.parametrize(
    ("values", "suspects"),
    [
        ((80, 80, 80, 80), ()),
        ((80, 20, 20, 80), ("cn03",)),
        ((80, 20, 80, 80), ()),
        ((20, 20, 20, 20), NODES),
        ((20, 20, 20, 80), ("cn02", "cn03")),
    ],
)
def test_a_node_is_as_good_as_its_best_pair(
    values: tuple[float, ...], suspects: tuple[str, ...]
) -> None:
    rows = [sample(CASE, v, pair=p) for p, v in zip(RING, values, strict=True)]
    judgement = judged(make_run([CASE], rows), bw_4MiB=BW)
    assert judgement.suspects == suspects
    assert judgement.verdict == ("pass" if min(values) >= 60 else "fail")
    best = {node.name: node.values["bw_4MiB"] for node in judgement.nodes}
    assert best["cn03"] == max(values[1], values[2])


def test_node_reasons_tell_common_causes_from_single_ones() -> None:
    single = [
        sample(CASE, v, pair=p) for p, v in zip(RING, (80, 9, 9, 80), strict=True)
    ]
    judgement = judged(make_run([CASE], single), bw_4MiB=BW)
    assert judgement.nodes[2].reason == (
        "ImbRing bw_4MiB: 0 of 1 within the limit; best of its pairs"
    )
    common = [sample(CASE, 9.0, pair=pair) for pair in RING]
    judgement = judged(make_run([CASE], common), bw_4MiB=BW)
    assert judgement.nodes[2].reason.endswith(
        "every node fails: look first at what they share"
    )
    chain = [
        sample(CASE, 9.0, pair="cn01 cn02"),
        sample(CASE, 80.0, pair="cn02 cn03"),
    ]
    judgement = judged(make_run([CASE], chain), bw_4MiB=BW)
    assert judgement.nodes[0].reason.endswith(
        "its only partner was cn02: the fault may be there"
    )


def test_latency_of_a_node_is_its_lowest() -> None:
    rows = [
        sample(CASE, value, metric="latency", size=8, pair=pair)
        for pair, value in zip(RING, (5.0, 500.0, 500.0, 5.0), strict=True)
    ]
    case = replace(CASE, declared=("latency_8B",))
    judgement = judged(make_run([case], rows), latency_8B=LATENCY)
    assert judgement.suspects == ("cn03",)
    assert judgement.nodes[1].values == {"latency_8B": 5.0}


def test_node_that_is_good_in_one_repeat_only_is_undecided() -> None:
    first, second = repeats(2)
    rows = [
        sample(case, value, pair=pair)
        for case, values in ((first, (80, 20, 20, 80)), (second, (80, 80, 80, 80)))
        for pair, value in zip(RING, values, strict=True)
    ]
    judgement = judged(make_run([first, second], rows), bw_4MiB=BW)
    assert judgement.suspects == ()
    assert judgement.nodes[2].verdict == "undecided"
    assert judgement.verdict == "undecided"


def test_number_of_one_node_names_it() -> None:
    rows = [sample(CASE, 80.0, node="cn01"), sample(CASE, 1.0, node="cn02")]
    judgement = judged(make_run([CASE], rows), bw_4MiB=BW)
    assert judgement.suspects == ("cn02",)
    assert [node.verdict for node in judgement.nodes] == [
        "pass",
        "fail",
        "undecided",
        "undecided",
    ]


def test_order_does_not_depend_on_the_order_of_the_run() -> None:
    other = replace(CASE, environment="mpich")
    rows = [
        sample(case, 80.0, pair=pair)
        for case in (CASE, other)
        for pair in ("cn10 cn2", "cn2 cn3")
    ]
    nodes = ("cn2", "cn3", "cn10")
    one = judged(make_run([CASE, other], rows, nodes=nodes), bw_4MiB=BW)
    two = judged(make_run([other, CASE], rows[::-1], nodes=nodes), bw_4MiB=BW)
    assert one == two
    places = [f.place for f in found(one, "limit") if f.environment == "mpich"]
    assert places == ["cn2 - cn3", "cn10 - cn2"]
