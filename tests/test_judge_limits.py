"""Limits: pass, fail or undecided, by what the allocations show."""

import math
from dataclasses import replace

import numpy as np
import pytest
from criteria_samples import criteria, criterion
from judge_samples import (
    CASE,
    LIMIT,
    NODES,
    found,
    judged,
    make_run,
    places_run,
    repeats,
    sample,
    values_run,
)
from scipy import stats

from seatrial.criteria.criteria import Criterion, Risks
from seatrial.criteria.criterion import Bears
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.judge.multiple_testing import share_of_look
from seatrial.runs.closed_run import Run

ANY = replace(LIMIT, model="any")
NORMAL = replace(LIMIT, model="normal")
COUNTED = criterion("ecc_corrected", 0.0, model="every")
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("criterion", "values", "verdict", "reason"),
    [
        (LIMIT, (80, 82, 81), "pass", "at least 75.66 MB/s with 95.9 % confidence"),
        (LIMIT, (50, 52, 51), "fail", "between 47.38 and 54.88 MB/s; 3 of 3 values"),
        (LIMIT, (58, 63, 61), "undecided", "between 52.1 and 70.56 MB/s; about 26"),
        (LIMIT, (80, 82), "undecided", "2 allocations; Student's t of logarithms"),
        (LIMIT, (80,), "undecided", "1 allocation; Student's t of logarithms takes"),
        (LIMIT, (80, 80, 80), "pass", "at least 74.73 MB/s with 95.9 % confidence"),
        (LIMIT, (62, 62, 62), "undecided", "between 57.92 and 66.37 MB/s"),
        (LIMIT, (80,) * 5, "pass", "at least 75.48 MB/s with 95.9 % confidence"),
        (LIMIT, (50,) * 5, "fail", "between 47.18 and 52.99 MB/s; 5 of 5 values"),
        (LIMIT, (80, NAN, 81, 82), "undecided", "4 allocations; order statistics"),
        (LIMIT, (80, INF, 81, 82), "undecided", "4 allocations; order statistics"),
        (LIMIT, (80, 0, 81, 82), "undecided", "4 allocations; order statistics of the"),
        (LIMIT, (80, 0, 0, 82), "undecided", "4 allocations; order statistics of the"),
        (LIMIT, (0, -1, -2, 0), "fail", "between 0 and 31.94 MB/s; 4 of 4 values miss"),
        (NORMAL, (80, 82, 81), "pass", "at least 76.91 MB/s"),
        (NORMAL, (-1, -2, 0), "fail", "between -5.085 and 3.085 MB/s; 3 of 3 values"),
        (ANY, (80, 82, 81, 90), "undecided", "4 allocations; order statistics"),
        (ANY, (80, 90, 81, 82, 85, 83, 88, 84), "pass", "at least 80 MB/s with 95.9 %"),
        (ANY, (80, 90, 81, 82, 10, 83, 88, 84), "undecided", "between 10 and 90 MB/s"),
        (ANY, (50, 52, 51, 40, 55, 41, 54, 45), "fail", "8 of 8 values miss the limit"),
        (COUNTED, (0, 0, 0), "pass", "all values of 3 allocations meet the limit"),
        (COUNTED, (0, 1, 0), "fail", "a value misses the limit in 1 of 3 allocations"),
        (COUNTED, (0,), "undecided", "1 allocation; it takes at least 2"),
        (COUNTED, (1,), "fail", "a value misses the limit in 1 of 1 allocations"),
        (
            COUNTED,
            (0, NAN, 0),
            "fail",
            "a value misses the limit in 1 of 3 allocations",
        ),
        (COUNTED, (1, NAN), "fail", "a value misses the limit in 2 of 2 allocations"),
    ],
)
def test_one_value_against_a_limit(
    criterion: Criterion, values: tuple[float, ...], verdict: str, reason: str
) -> None:
    counts = criterion is COUNTED
    run = values_run(
        *values,
        metric="ecc_corrected" if counts else "bw",
        size=None if counts else 4 << 20,
    )
    judgement = judged(run, criterion)
    (finding,) = found(judgement, "limit")
    assert finding.verdict == judgement.verdict == verdict
    assert finding.reason.startswith(reason)


def test_of_counts_each_value_of_a_job_must_meet_the_limit() -> None:
    """One of three values of a job misses it, its median does not."""
    cases = [replace(case, declared=("ecc_corrected",)) for case in repeats(3)]
    rows = [
        sample(case, value, metric="ecc_corrected", size=None)
        for case in cases
        for value in ((0.0, 0.0, 1.0) if case.repeat == 2 else (0.0,))
    ]
    (finding,) = found(judged(make_run(cases, rows), COUNTED), "limit")
    assert finding.verdict == "fail"
    assert finding.reason.startswith("a value misses the limit in 1 of 3 allocations")
    assert finding.value == 1.0


def test_lower_is_better_turns_everything_around() -> None:
    low = criterion("latency_8B", 100.0)
    good, bad = (
        judged(values_run(*values, metric="latency", size=8), low)
        for values in ((80, 82, 81), (120, 125, 122))
    )
    (finding,) = found(good, "limit")
    assert (finding.verdict, finding.limit) == ("pass", 100.0)
    assert finding.reason.startswith("at most 86.7 us with 95.9 % confidence")
    assert finding.lower is not None and finding.upper is not None
    assert finding.lower < 81 < finding.upper < 100
    assert bad.verdict == "fail"


def test_bounds_are_those_of_students_t_of_correlated_values() -> None:
    """Of a single place AR(1) 0.5 is assumed; the first look has 0.832 of the risk."""
    values = (80.0, 99.0, 70.0, 110.0)
    (finding,) = found(judged(values_run(*values), LIMIT), "limit")
    logs = np.log(values)
    correlations = 0.5 ** np.abs(np.subtract.outer(range(4), range(4)))
    inverse = np.linalg.inv(correlations)
    rest = logs - inverse.sum(axis=0) @ logs / inverse.sum()
    error = math.sqrt(rest @ inverse @ rest / 3 * correlations.sum() / 16)
    half = stats.t.isf(0.05 * share_of_look(1) * 0.98, 3) * error
    mean = logs.mean()
    assert finding.value == pytest.approx(math.exp(mean))
    assert finding.lower == pytest.approx(math.exp(mean - half))
    assert finding.upper == pytest.approx(math.exp(mean + half))
    assert finding.n == 4


def test_declared_risks_widen_and_narrow_the_bounds() -> None:
    values = (64.0, 70.0, 66.0, 70.0, 65.0)
    strict = replace(LIMIT, risks=Risks(seller=0.05, buyer=0.001))
    assert judged(values_run(*values), LIMIT).verdict == "pass"
    assert judged(values_run(*values), strict).verdict == "undecided"


def test_seller_risk_of_a_criterion_counts_beside_that_of_the_machine() -> None:
    values = (52.0, 55.5, 54.0, 53.0)
    careful = replace(LIMIT, risks=Risks(seller=1e-4, buyer=0.05))
    assert judged(values_run(*values), LIMIT).verdict == "fail"
    assert judged(values_run(*values), careful).verdict == "undecided"
    strict = Risks(seller=1e-4, buyer=0.05)
    assert judge(values_run(*values), criteria(LIMIT, risks=strict)).verdict == (
        "undecided"
    )


def test_undecided_says_how_many_more_would_decide() -> None:
    (finding,) = found(judged(values_run(58, 66, 63, 64), LIMIT), "limit")
    assert finding.verdict == "undecided"
    assert finding.more is not None and 1 <= finding.more <= 40
    assert finding.reason.endswith(f"about {finding.more} more would decide")
    (closer,) = found(judged(values_run(*[60.3, 61, 60.5, 60.9] * 3), LIMIT), "limit")
    assert "within the indifference zone around the limit" in closer.reason


@pytest.mark.parametrize(
    ("bears", "reason"),
    [("seller", "the seller bears that"), ("buyer", "the buyer bears that")],
)
def test_what_is_undecided_at_the_cap_is_not_shown(bears: Bears, reason: str) -> None:
    capped = replace(LIMIT, cap=4, bears=bears)
    judgement = judged(values_run(58, 66, 63, 60), capped)
    (finding,) = found(judgement, "limit")
    assert (finding.verdict, judgement.verdict) == ("not shown", "not shown")
    shown = "not shown by the 4 allocations that were agreed on; "
    assert finding.reason.endswith(shown + reason)
    assert (finding.bears, judgement.bears) == (bears, bears)
    assert judged(values_run(58, 66, 63), capped).verdict == "undecided"


def test_back_to_back_numbers_of_one_job_are_one_sample() -> None:
    """Thirty numbers of two jobs are no thirty samples."""
    rows = [
        sample(case, value + 0.1 * number)
        for case, value in zip(repeats(2), (80.0, 70.0), strict=True)
        for number in range(15)
    ]
    (finding,) = found(judged(make_run(repeats(2), rows), LIMIT), "limit")
    assert (finding.verdict, finding.n) == ("undecided", 2)
    assert finding.value == pytest.approx(math.sqrt(80.7 * 70.7)), "of their medians"


def test_numbers_of_a_failed_try_count() -> None:
    cases = repeats(5)
    again = replace(cases[0], attempt=2)
    rows = [sample(case, 80.0 + i) for i, case in enumerate([again, *cases[1:]])]
    rows.append(sample(cases[0], 10.0))
    tried = [replace(cases[0], result="fail", phase="performance"), again, *cases[1:]]
    (finding,) = found(judged(make_run(tried, rows), ANY), "limit")
    assert (finding.n, finding.verdict) == (6, "undecided")


def test_a_drift_is_no_gate_but_the_values_that_miss_the_limit_count() -> None:
    falling = values_run(*(100 - 5 * number for number in range(10)))
    (finding,) = found(judged(falling, replace(LIMIT, limit=72.0)), "limit")
    assert finding.verdict == "undecided"
    assert finding.reason.startswith("4 of 10 allocations miss the limit")
    (finding,) = found(judged(falling, replace(LIMIT, limit=68.0)), "limit")
    assert finding.verdict == "undecided"
    assert judged(falling, replace(LIMIT, limit=50.0)).verdict == "pass"
    assert judged(falling, replace(LIMIT, limit=130.0)).verdict == "fail"


@pytest.mark.parametrize("rule", [LIMIT, NORMAL])
def test_a_place_that_misses_in_more_than_a_third_never_passes(
    rule: Criterion,
) -> None:
    """Its mean is above the limit; 4 of 12 may miss it, 5 of 12 may not."""
    four = [70.0, 59.8, 71.0, 69.5, 59.7, 70.0] * 2
    (finding,) = found(judged(values_run(*four), rule), "limit")
    assert finding.verdict == "pass"
    (finding,) = found(judged(values_run(*four[:-1], 59.8), rule), "limit")
    assert finding.verdict == "undecided"
    assert finding.lower is not None and finding.lower > 60
    assert finding.reason.startswith("5 of 12 allocations miss the limit; with more ")


@pytest.mark.parametrize(("level", "verdict"), [(100.0, "pass"), (40.0, "fail")])
def test_what_is_not_normal_is_judged_by_order_statistics(
    level: float, verdict: str
) -> None:
    two_modes = [level + 0.1 * i if i % 7 else 0.6 * level for i in range(28)]
    two_modes[3:9], two_modes[15:21] = two_modes[15:21], two_modes[3:9]
    (finding,) = found(judged(values_run(*two_modes), LIMIT), "limit")
    assert finding.verdict == verdict
    assert finding.method.startswith(
        "order statistics of the median (the values are not"
    )


def test_every_node_must_reach_the_limit() -> None:
    scatter = (1.0, 1.02, 0.99, 1.01)
    sound = {f"cn{number:02}": 80.0 for number in range(1, 5)}
    assert judged(places_run(sound, scatter), LIMIT).verdict == "pass"
    bad = judged(places_run({**sound, "cn03": 40.0}, scatter), LIMIT)
    assert (bad.verdict, bad.convicted, bad.suspects) == ("fail", ("cn03",), ("cn03",))
    (finding,) = [each for each in bad.findings if each.verdict == "fail"]
    assert "4 of 4 values miss the limit, p = " in finding.reason
    assert finding.reason.endswith("(Holm over 4)")
    near = judged(places_run({**sound, "cn03": 60.1}, scatter), LIMIT)
    assert (near.verdict, near.convicted) == ("undecided", ())
    assert [node.verdict for node in near.nodes].count("undecided") == 1


def test_order_statistics_convict_by_allocations_that_raised_no_suspicion() -> None:
    levels = {**{f"cn{number:02}": 80.0 for number in range(1, 4)}, "cn04": 40.0}
    scatter = (1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0)
    five = judged(places_run(levels, scatter[:5]), ANY)
    assert (five.verdict, five.convicted) == ("undecided", ())
    many = judged(places_run(levels, scatter), ANY)
    assert (many.verdict, many.convicted) == ("fail", ("cn04",))
    (finding,) = [each for each in many.findings if each.verdict == "fail"]
    assert "suspected by the first 3 of 12 allocations, convicted" in finding.reason


def test_students_t_convicts_by_all_allocations() -> None:
    """Three do: the variance is that of all places."""
    levels = {**{f"cn{number:02}": 80.0 for number in range(1, 4)}, "cn04": 40.0}
    assert judged(places_run(levels, (1.0, 1.02)), LIMIT).verdict == "undecided"
    three = judged(places_run(levels, (1.0, 1.02, 0.99)), LIMIT)
    assert (three.verdict, three.suspects) == ("fail", ("cn04",))


def test_suspects_are_more_than_the_convicted() -> None:
    """One list is for a look, the other for the contract."""
    nodes = tuple(f"cn{number:02}" for number in range(1, 21))
    levels = dict.fromkeys(nodes, 80.0) | dict.fromkeys(nodes[:3], 40.0)
    levels |= {"cn04": 57.0}
    scatter = (1.0, 1.015, 0.985, 1.01, 0.99)
    judgement = judged(places_run(levels, scatter, nodes=nodes), LIMIT)
    assert judgement.convicted == nodes[:3]
    assert judgement.suspects == nodes[:4]


def test_sockets_are_places_of_their_own_and_name_their_node() -> None:
    rows = [
        sample(case, value + number, node=node, socket=socket)
        for number, case in enumerate(repeats(4))
        for node, socket, value in (
            *(("cn01", 0, 80), ("cn01", 1, 90)),
            *(("cn02", 0, 80), ("cn02", 1, 20)),
        )
    ]
    run = make_run(repeats(4), rows, nodes=("cn01", "cn02"))
    judgement = judged(run, LIMIT)
    assert {(f.place, f.verdict) for f in found(judgement, "limit")} == {
        ("cn01 (socket 0)", "pass"),
        ("cn01 (socket 1)", "pass"),
        ("cn02 (socket 0)", "pass"),
        ("cn02 (socket 1)", "fail"),
    }
    assert judgement.convicted == ("cn02",)


def test_many_places_share_a_finding_and_keep_their_verdicts() -> None:
    nodes = [f"cn{number:03}" for number in range(80)]
    levels = {node: 80.0 + number for number, node in enumerate(nodes)}
    run = places_run(levels, (1.0, 1.02, 0.99), nodes=nodes)
    judgement = judged(run, LIMIT)
    (finding,) = found(judgement, "limit")
    assert finding.reason.startswith("all 80 nodes pass; the worst is cn000: at least")
    assert {node.verdict for node in judgement.nodes} == {"pass"}
    assert finding.n == 240


def test_a_place_that_was_measured_less_often_is_not_taken_for_the_others() -> None:
    cases = repeats(4)
    rows = [
        sample(case, 80.0 + number, node=node)
        for number, case in enumerate(cases)
        for node in NODES
        if node != "cn04" or number < 2
    ]
    judgement = judged(make_run(cases, rows), LIMIT)
    open_ = [f for f in judgement.findings if f.verdict == "undecided"]
    assert [(f.place, f.n) for f in open_] == [("cn04", 4)], "two are missing"


def named(run: Run, name: str, started: str = "") -> Run:
    return replace(
        run,
        manifest={
            **run.manifest,
            "run": name,
            "started": f"2026-01-0{started}T00:00:00+00:00",
        },
    )


GOOD = named(values_run(80, 82, 81, 80, 82, 81), "good", "1")
BAD = named(values_run(40, 41, 40, 42, 41, 40), "bad", "2")
NEAR = named(values_run(58, 66, 63, 64), "near", "3")


def test_further_runs_are_further_looks_that_share_the_risk() -> None:
    judgement = judge(NEAR, criteria(LIMIT), [named(NEAR, "again", "4")])
    (finding,) = found(judgement, "limit")
    assert (finding.n, judgement.further) == (8, ("again",))
    good = named(values_run(80, 83, 81), "first", "1")
    later = named(values_run(80, 83, 81), "second", "2")
    (first,) = found(judge(good, criteria(LIMIT)), "limit")
    assert first.reason.split(" with ")[1].startswith("95.9 % confidence")
    (second,) = found(judge(good, criteria(LIMIT), [later]), "limit")
    assert "99.5 % confidence" in second.reason


def test_a_pass_is_kept_at_a_later_look() -> None:
    later = judge(GOOD, criteria(LIMIT), [BAD])
    (finding,) = found(later, "limit")
    assert finding.verdict == "pass"
    assert finding.reason.startswith("decided at an earlier look: at least ")
    assert finding.n == 12
    alone = judge(replace(BAD, manifest=GOOD.manifest), criteria(LIMIT))
    assert alone.verdict == "fail", "the second run alone would not have passed"


def test_a_conviction_is_kept_at_a_later_look() -> None:
    first = named(BAD, "bad", "1")
    later = judge(first, criteria(LIMIT), [named(values_run(*[90, 91] * 20), "g", "2")])
    (finding,) = found(later, "limit")
    assert (finding.verdict, later.verdict) == ("fail", "fail")
    assert finding.reason.startswith("decided at an earlier look: between ")


def test_an_undecided_look_is_decided_by_a_later_one() -> None:
    assert judge(NEAR, criteria(LIMIT)).verdict == "undecided"
    later = named(values_run(*[80, 82, 81, 79] * 5), "more", "4")
    assert judge(NEAR, criteria(LIMIT), [later]).verdict == "pass"


@pytest.mark.parametrize("runs", [(GOOD, BAD), (GOOD, BAD, NEAR), (BAD, NEAR)])
def test_looks_are_in_the_order_of_time(runs: tuple[Run, ...]) -> None:
    in_time = judge(runs[0], criteria(LIMIT), runs[1:])
    turned = judge(runs[-1], criteria(LIMIT), runs[-2::-1])
    assert in_time.findings == turned.findings
    assert in_time.verdict == turned.verdict
    assert {run.manifest["run"] for run in runs} == {turned.run, *turned.further}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"run": "r"}, "a run counts once; found r, r"),
        ({"run": "two", "system": "other"}, "system 'other'; expected 'lab'"),
        ({"run": "two", "campaign": "night"}, "campaign 'night'; expected 'smoke'"),
    ],
)
def test_runs_that_cannot_be_judged_together(
    change: dict[str, str], error: str
) -> None:
    run = values_run(80, 82, 81)
    other = replace(run, manifest={**run.manifest, **change})
    with pytest.raises(SeatrialError, match=error):
        judge(run, criteria(LIMIT), [other])


def test_the_statistic_of_a_criterion_is_judged() -> None:
    rows = [
        sample(case, value + number, statistic=statistic)
        for number, case in enumerate(repeats(3))
        for statistic, value in (("min", 10.0), ("mean", 80.0), ("p99", 20.0))
    ]
    run = make_run(repeats(3), rows)
    assert judged(run, LIMIT).verdict == "pass"
    assert judged(run, replace(LIMIT, statistic="p99")).verdict == "fail"
    unknown = judged(run, replace(LIMIT, statistic="p50"))
    (finding,) = found(unknown, "limit")
    assert finding.verdict == "undecided"
    assert finding.reason == "no p50 was recorded, only mean, min, p99"


def test_other_units_decide_nothing() -> None:
    run = values_run(80, 82, 81)
    judgement = judged(run, replace(LIMIT, unit="GB/s"))
    (finding,) = found(judgement, "limit")
    assert judgement.verdict == "undecided"
    assert finding.reason == "the criterion is in GB/s, the numbers are in MB/s"
    assert CASE.check == finding.check


def test_all_suspects_of_the_machine_are_one_family() -> None:
    """By order statistics five bad nodes take more allocations than one."""
    scatter = (1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.01, 0.99) * 3
    nodes = {f"cn{number:02}": 80.0 for number in range(1, 9)}
    bad = tuple(nodes)[2:7]
    one, five = {**nodes, bad[0]: 40.0}, {**nodes, **dict.fromkeys(bad, 40.0)}

    def convicted(levels: dict[str, float], allocations: int) -> tuple[str, ...]:
        run = places_run(levels, scatter[:allocations], nodes=list(nodes))
        return judged(run, ANY).convicted

    needed = [
        next(n for n in range(4, 25) if convicted(levels, n)) for levels in (one, five)
    ]
    assert needed[0] < needed[1]
    assert convicted(five, needed[1]) == bad


def test_the_own_risk_of_a_criterion_is_that_of_all_its_places() -> None:
    """Nine fresh allocations are below 0.02 for one place, not for two."""
    scatter = (1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.01, 0.99, 1.0, 1.02, 0.99)
    careful = replace(ANY, risks=Risks(seller=0.02, buyer=0.05))
    sound = {f"cn{number:02}": 80.0 for number in range(1, 9)}

    def convicted(**bad: float) -> tuple[str, ...]:
        run = places_run({**sound, **bad}, scatter, nodes=list(sound))
        return judged(run, careful).convicted

    assert convicted(cn03=40.0) == ("cn03",)
    assert convicted(cn03=40.0, cn05=40.0) == ()
