"""Criteria of kind `counters`: counts, rates and bounds; and their rules."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from criteria_samples import RISKS, criterion
from judge_samples import CASE, found, make_run, sample
from scipy.stats import poisson

from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.keys import ANY
from seatrial.criteria.port_limits import PortLimit
from seatrial.errors import SeatrialError
from seatrial.fabric.port_growth import PortGrowth
from seatrial.fabric.records import End
from seatrial.judge.judge import Judgement, judge
from seatrial.report.junit import junit_xml
from seatrial.runs.closed_run import Run
from seatrial.runs.counters_table import counters_table
from seatrial.runs.port_totals import ports_of_run

NODES = ("cn01", "cn02", "cn03")


def port(node: str = "cn01", errors: int = 0, **more: Any) -> PortGrowth:
    """Return the growth of a port that received 1e15 bits in an hour."""
    given = {"port": "mlx5_0:1", "source": "sysfs", "seconds": 3600.0}
    given |= {"start_time": 1.0, "bits_received": 10**15}
    given |= {"counts": {"symbol_error": errors, "link_downed": 0}}
    return PortGrowth(**{**given, "node": node, **more})


def run_of(**sessions: list[PortGrowth]) -> Run:
    """Build a run with the counters of sessions; `_` stands for `-` in their names."""
    classes = dict.fromkeys(NODES, "cpu")
    tables = [
        counters_table(growths, name.replace("_", "-"), classes)
        for name, growths in sessions.items()
    ]
    run = make_run([CASE], [sample(CASE, 100.0)], nodes=[*NODES])
    return replace(run, counters=pl.concat(tables))


def limit(text: str, quantity: str = "bit_errors", **more: Any) -> PortLimit:
    value, unit = text.split()
    given = {"where": {}, "source": "contract, 5", "seller": 0.05, "buyer": 0.05}
    name = f"counters {quantity}"
    return PortLimit(name, quantity, float(value), unit, **{**given, **more})


def judged(run: Run, *limits: PortLimit) -> Judgement:
    return judge(run, Criteria(RISKS, (criterion(),), declared=limits))


def findings(run: Run, *limits: PortLimit) -> list[tuple[str, str, str, str]]:
    return [
        (one.verdict, one.place, one.metric, one.reason)
        for one in found(judged(run, *limits), "declared")
    ]


def test_a_count_above_its_limit_names_port_and_session() -> None:
    bad = port("cn02", counts={"link_downed": 3, "symbol_error": 0})
    run = run_of(pairs_1=[port("cn01"), port("cn02")], pairs_2=[port("cn01"), bad])
    judgement = judged(run, limit("0 count", "link_downed"))
    last, first = found(judgement, "declared")
    assert (first.verdict, first.place) == ("fail", "cn02 (mlx5_0:1)")
    assert first.metric == "link_downed"
    assert first.reason == "3 in session pairs-2, allowed 0"
    assert (first.value, first.unit, first.limit) == (3.0, "count", 0.0)
    assert first.reference_source == "contract, 5"
    assert (last.verdict, last.place) == ("pass", "")
    assert last.reason == "1 port; cn01 (mlx5_0:1): at most 0 in a session, allowed 0"
    assert judgement.verdict == "fail"
    assert judgement.convicted == ("cn02",)
    xml = junit_xml(run, judgement).decode()
    assert 'name="link_downed / cn02 (mlx5_0:1)"' in xml
    assert "3 in session pairs-2, allowed 0" in xml


def test_a_bound_needs_enough_bits() -> None:
    """1e15 bits without an error bound the rate by 3e-15, not by 1e-15."""
    run = run_of(all_1=[port(node) for node in NODES])
    (one,) = found(judged(run, limit("1e-14 1/bit")), "declared")
    assert one.verdict == "pass"
    assert one.reason == (
        "3 ports; each: 0 in 1e+15 bits: below 3e-15 1/bit at 95 %, allowed 1e-14"
    )
    assert one.upper == pytest.approx(2.9957e-15, rel=1e-4)
    (one,) = found(judged(run, limit("1e-15 1/bit")), "declared")
    assert one.verdict == "undecided"
    assert one.reason == (
        "3 ports (cn01 (mlx5_0:1), cn02 (mlx5_0:1), cn03 (mlx5_0:1)); each: 0 in "
        "1e+15 bits: below 3e-15 1/bit at 95 %; it takes 3e+15 bits to show 1e-15"
    )
    more = run_of(**{f"all_{n}": [port(node) for node in NODES] for n in (1, 2, 3)})
    assert [one[0] for one in findings(more, limit("1e-15 1/bit"))] == ["pass"]


def test_a_rate_fails_only_if_the_count_shows_it() -> None:
    ports = [port("cn01"), port("cn02", 60), port("cn03", 12)]
    second, third, first = findings(run_of(all_1=ports), limit("1e-14 1/bit"))
    assert first[:3] == ("fail", "cn02 (mlx5_0:1)", "bit_errors")
    assert first[3] == ("60 in 1e+15 bits: 6e-14 1/bit, allowed 1e-14 (all-1 60)")
    assert second[0] == "undecided"
    assert "1 port; cn03 (mlx5_0:1): 12 in 1e+15 bits: below 1.9e-14" in second[3]
    assert third[0] == "pass"


def test_a_rate_per_hour_counts_all_sessions() -> None:
    ports = [port("cn01", 30, bits_received=None)]
    run = run_of(a_1=ports, a_2=ports)
    assert findings(run, limit("10 1/h", "symbol_error"))[0][0] == "fail"
    assert findings(run, limit("40 1/h", "symbol_error"))[0][0] == "pass"
    assert findings(run, limit("1e-9 1/bit"))[0][3].endswith("it received nothing")


@pytest.mark.parametrize("ports", [1, 100])
def test_compliant_ports_rarely_fail(ports: int) -> None:
    """The smallest count that fails has a chance of at most the seller's risk."""
    growths = [port(f"cn{n:03}") for n in range(ports - 1)]
    mean = 10.0
    for count in range(10, 60):
        run = run_of(all_1=[*growths, port("bad", count)])
        if findings(run, limit("1e-14 1/bit"))[-1][0] == "fail":
            break
    assert poisson.sf(count - 1, mean) <= 0.05 / ports < poisson.sf(count - 2, mean)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cleared": ("ib:symbol_error",)}, "somebody else cleared ib:symbol_error"),
        ({"full": ("symbol_error",)}, "the counter is full"),
    ],
)
def test_a_doubtful_counter_never_passes(changed: dict[str, Any], reason: str) -> None:
    run = run_of(all_1=[port("cn01", **changed)])
    for text in ("100 count", "1e-3 1/bit"):
        (one,) = findings(run, limit(text, "symbol_error"))
        assert one[0] == "undecided"
        assert one[3].endswith(f"in session all-1: {reason}")
    worse = run_of(all_1=[port("cn01", 7, **changed)])
    assert findings(worse, limit("6 count", "symbol_error"))[-1][0] == "fail"


def test_least_bits_prove_no_rate() -> None:
    """Errors in bits that wrapped, or that are not known, fail no rate per bit."""
    wrapped = port("cn01", 60, wrapped=("ib:port_rcv_data",))
    (one,) = findings(run_of(a_1=[wrapped]), limit("1e-14 1/bit"))
    assert one[0] == "undecided"
    assert one[3].endswith("in session a-1: ib:port_rcv_data wrapped: more passed")
    assert findings(run_of(a_1=[wrapped]), limit("1e-13 1/bit"))[0][0] == "pass"
    unknown = port("cn01", 60, bits_received=None)
    run = run_of(a_1=[unknown], a_2=[port("cn01")])
    assert findings(run, limit("1e-14 1/bit"))[0][0] == "pass"
    assert findings(run, limit("1 1/h"))[0][0] == "fail"


def test_a_counter_that_is_full_leaves_others() -> None:
    run = run_of(all_1=[port("cn01", full=("port_xmit_wait",))])
    assert findings(run, limit("0 count", "link_downed"))[0][0] == "pass"


def test_a_node_that_was_not_read_is_undecided() -> None:
    gone = PortGrowth(node="cn02", missing="at the end: not asked, Slurm says down*")
    run = run_of(a_1=[port("cn01"), port("cn02")], a_2=[port("cn01"), gone])
    undecided, passing = findings(run, limit("0 count", "link_downed"))
    assert undecided[0] == "undecided"
    assert undecided[3] == (
        "1 port; cn02 (mlx5_0:1): in session a-2: at the end: not asked, Slurm says "
        "down*"
    )
    assert passing[0] == "pass"
    never = run_of(a_1=[port("cn01"), gone])
    assert (
        "1 port; cn02: not measured: in session a-1: at the end"
        in (findings(never, limit("0 count", "link_downed"))[0][3])
    )


def test_bits_count_only_with_the_errors() -> None:
    """Bits of a session whose errors were not read bound nothing."""
    silent = port("cn01", counts={"link_downed": 0}, bits_received=10**18)
    run = run_of(a_1=[port("cn01")], a_2=[silent])
    total = ports_of_run(run)[End("cn01", "mlx5_0:1")]
    assert total.bits == 10**15
    assert total.bit_error_rate_below == pytest.approx(2.9957e-15, rel=1e-4)


def test_totals_of_a_run_by_port() -> None:
    switch = port("leaf01", 4, port="3", source="ibqueryerrors")
    run = run_of(a_1=[port("cn01", 1), switch], a_2=[port("cn01", 2), switch])
    totals = ports_of_run(run)
    assert [*totals] == [End("cn01", "mlx5_0:1"), End("leaf01", "3")]
    assert totals[End("cn01", "mlx5_0:1")].errors == {"symbol_error": 3}
    assert totals[End("leaf01", "3")].errors == {"symbol_error": 8}
    assert totals[End("leaf01", "3")].bits == 2 * 10**15
    assert ports_of_run(make_run([CASE], [sample(CASE, 1.0)])) == {}


def test_where_selects_ports() -> None:
    run = run_of(a_1=[port("cn01", 9), port("cn02", 0), port("leaf01", 9, port="3")])
    of = limit("0 count", "symbol_error", where={"class": "cpu", "node": "cn0[2-9]"})
    assert [one[0] for one in findings(run, of)] == ["pass"]
    none = limit("0 count", "symbol_error", where={"port": "mlx5_7:.*"})
    assert findings(run, none)[0][::3] == (
        "undecided",
        "not measured: no port of it was read",
    )


def test_a_run_without_counters_is_undecided_or_skipped() -> None:
    run = make_run([CASE], [sample(CASE, 100.0)], nodes=[*NODES])
    (one,) = findings(run, limit("0 count", "link_downed"))
    assert (one[0], one[3]) == ("undecided", "not measured: the run has no counters")


FILE = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {document: Contract, clause: '5'}
criteria:
  - kind: counters
    where: {class: cpu}
    risks: {seller: 0.01}
    limits:
      link_downed: 0 count
      bit_errors: 1e-14 1/bit
      port_rcv_errors: 2 1/h
"""


def parsed(tmp_path: Path, text: str) -> Criteria:
    file = tmp_path / "reference-data/lab/criteria.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return Criteria.load(file, ANY)


def test_criteria_of_ports_are_read(tmp_path: Path) -> None:
    first, second, third = parsed(tmp_path, FILE).declared
    assert isinstance(first, PortLimit)
    assert (first.name, first.limit, first.unit) == (
        *("counters link_downed (class=cpu)", 0.0),
        "count",
    )
    assert isinstance(second, PortLimit)
    assert isinstance(third, PortLimit)
    assert (second.name, third.unit) == ("counters bit_errors (class=cpu)", "1/h")
    assert (first.source, first.where) == ("Contract, 5", {"class": "cpu"})
    assert (first.seller, first.buyer) == (0.01, 0.05)
    other = parsed(tmp_path, FILE.replace("2 1/h", "3 1/h"))
    assert changes(parsed(tmp_path, FILE), other) == {
        "counters port_rcv_errors (class=cpu)": "limit 2, now 3"
    }


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("link_downed: 0 count", "link_down: 0 count", ":10: "),
        ("link_downed: 0 count", "link_downed: 0 us", ":10: "),
        ("link_downed: 0 count", "link_downed: 1e-9 1/bit", ":10: .*count or 1/h"),
        ("where: {class: cpu}", "where: {device: mlx5_0}", ":7: "),
        ("where: {class: cpu}", "model: every", ":7: .*kind counters has no model"),
        ("seller: 0.01", "seller: 0.1", ":8: .*at most the machine's 0.05"),
        ("0 count", "-1 count", ":10: "),
        ("2 1/h", "0 1/h", ":12: .*a rate above 0, or 0 count"),
    ],
)
def test_wrong_criteria_of_ports_are_errors(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    with pytest.raises(SeatrialError, match=rf"criteria\.yaml{error}"):
        parsed(tmp_path, FILE.replace(old, new))
