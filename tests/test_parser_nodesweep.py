"""The parser of a sweep over single nodes, and what its numbers are called."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_damage import with_values, without_key, without_line

from seatrial.checks.nodesweep.samples import samples_of, verify_sizes
from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep import parse_nodesweep

Rows = list[dict[str, Any]]
NODES = ["cn01", "cn02"]


def text_of(rows: Rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sweep_of(sockets: int = 2) -> Rows:
    """A sweep of two nodes, each with so many sockets of two cores."""
    start: dict[str, Any] = {
        "type": "run",
        "program": "nodesweep",
        "version": "0.1.0",
        "nodes": 2,
        "n": 0,
        "memory_percent": 10.0,
        "block": 192,
        "no_memlat": None,
        "memlat_min_bytes": 1 << 20,
        "memlat_max_bytes": 1 << 30,
        "no_fixedwork": None,
        "fixedwork_ms": 20000,
        "start_time": 1.0,
    }
    rows = [start]
    for node in NODES:
        rows += _rows_of(node, sockets)
    passed = len(NODES) * (3 + sockets + (sockets if sockets > 1 else 0))
    return [*rows, {"type": "end", "passed": passed, "events": 0, "elapsed_s": 9.0}]


def _rows_of(node: str, sockets: int) -> Rows:
    place: dict[str, Any] = {"type": "node", "node": node, "sockets": sockets}
    place |= {"cores": 2 * sockets, "cpus": 4 * sockets, "ranks": 2 * sockets}
    place |= {"is_bound": True, "cache_bytes": sockets << 25, "start_time": 2.0}
    place |= {"memory_bytes": 64 << 30, "available_bytes": 60 << 30}
    rows = [place]
    for socket in range(sockets):
        for phase, ghz in (("quiet", 1.5), ("hpcc", 2.5)):
            row: dict[str, Any] = {"type": "sensors", "node": node, "phase": phase}
            row |= {"socket": socket, "n": 9, "seconds": 4.5, "clock_p50_ghz": ghz}
            row |= {"clock_min_ghz": ghz - 0.1, "temperature_max_c": 50 + 9 * socket}
            rows.append(row)
        rows += [_memlat(node, socket, size) for size in range(20, 31)]
    counters: dict[str, Any] = {"type": "counters", "node": node, "seconds": 60.0}
    for name in ("throttle_events", "quota_stops", "ecc_corrected", "ecc_uncorrected"):
        counters |= {name: 0, f"{name}_before": 2}
    counters |= {"machine_checks": None, "machine_checks_before": None}
    absent = {"type": "absent", "node": node, "what": "machine_checks", "reason": "-"}
    places = [None, *range(sockets)] if sockets > 1 else [None]
    hpcc = [_hpcc(node, socket, sockets) for socket in places]
    skip = {"type": "skip", "node": node, "program": "hpcc", "reason": "one socket"}
    skips = [skip] if sockets == 1 else []
    return [*rows, counters, absent, *skips, *hpcc, _fixedwork(node, 2 * sockets)]


def _memlat(node: str, socket: int, power: int) -> dict[str, Any]:
    row: dict[str, Any] = {"type": "memlat", "node": node, "socket": socket, "cpu": 1}
    row |= {"huge_pages": "off", "cache_bytes": 1 << 25, "size_bytes": 1 << power}
    row |= {"huge_bytes": 0, "min_ns": power - 1.0, "p50_ns": float(power)}
    return row | {"p99_ns": 50.0, "max_ns": 60.0, "n": 100, "start_time": 3.0}


def _hpcc(node: str, socket: int | None, sockets: int) -> dict[str, Any]:
    share = 1 if socket is None else 1 / sockets
    row: dict[str, Any] = {"type": "hpcc", "node": node, "socket": socket}
    row |= {"ranks": round(2 * sockets * share), "n": 29184, "block": 192}
    row |= {"seconds": 60.0, "start_time": 4.0, "hpl_gflops": 80 * share}
    row |= {"dgemm_gflops": 90 * share, "dgemm_single_gflops": 50.0}
    for kernel in ("copy", "scale", "add", "triad"):
        row[f"stream_{kernel}_gb_per_s"] = 200 * share
    row |= {"stream_triad_single_gb_per_s": 20.0, "stream_bytes": round(6e9 * share)}
    for place, name in enumerate(("min", "mean", "max")):
        row |= {f"latency_{name}_us": 1 + place, f"bw_{name}_mb_per_s": 9e3 + place}
    return row | {"ring_latency_us": 2.0, "ring_bw_mb_per_s": 4000.0}


def _fixedwork(node: str, cores: int) -> dict[str, Any]:
    row: dict[str, Any] = {"type": "fixedwork", "node": node, "socket": None}
    row |= {"cores": cores, "seconds": 20.001, "gflops": 5.5 * cores}
    row |= {"slowest_gflops": 5.0, "kept_percent": 98.0, "cpu_share_percent": 99.5}
    return row | {"longest_us": 1200.0, "n": 19000 * cores, "start_time": 6.0}


def left_out(rows: Rows, **values: Any) -> Rows:
    """Leave out the rows with these values."""
    return [
        row
        for row in rows
        if any(row.get(name, "no") != value for name, value in values.items())
    ]


def event(node: str, program: str, socket: int | None = None, **more: Any) -> Rows:
    row = {"type": "event", "event": "failed", "node": node, "program": program}
    return [{**row, "socket": socket, "reason": "no end in time", "time": 5.0, **more}]


def ended(rows: Rows, passed: int, events: int) -> Rows:
    return [*rows[:-1], rows[-1] | {"passed": passed, "events": events}]


GOOD = sweep_of()
OLD = (
    Path(__file__).parent / "data" / "nodesweep" / "before-fixedwork.jsonl"
).read_text()


@pytest.mark.parametrize(("sockets", "programs"), [(1, 4), (2, 7)])
def test_whole_sweep(sockets: int, programs: int) -> None:
    sweep = parse_nodesweep(text_of(sweep_of(sockets)))
    sweep.verify_complete(NODES)
    assert sweep.passed(NODES) == dict.fromkeys(NODES, (programs, programs))
    assert sweep.nodes["cn02"].cores == 2 * sockets
    assert sweep.counters["cn01"].ecc_uncorrected == 0


def test_program_that_failed_is_counted_for_its_node() -> None:
    rows = left_out(GOOD, type="hpcc", node="cn02", socket=1)
    rows = [*rows[:-1], *event("cn02", "hpcc", 1), rows[-1]]
    sweep = parse_nodesweep(text_of(ended(rows, 13, 1)))
    sweep.verify_complete(NODES)
    assert sweep.passed(NODES) == {"cn01": (7, 7), "cn02": (6, 7)}
    assert sweep.events[0].text == "cn02: hpcc on socket 1: no end in time"


def test_node_that_never_answered() -> None:
    rows = [row for row in GOOD if row.get("node") != "cn02"]
    gone = event("cn02", "sensors", event="left_out")
    rows = [rows[0], *gone, *rows[1:]]
    sweep = parse_nodesweep(text_of(ended(rows, 7, 1)))
    sweep.verify_complete(NODES)
    assert sweep.passed(NODES) == {"cn01": (7, 7), "cn02": (0, 1)}


def test_node_that_was_left_out_owes_nothing_more() -> None:
    rows = left_out(GOOD, type="hpcc", node="cn02", socket=None)
    rows = left_out(rows, type="hpcc", node="cn02", socket=0)
    rows = left_out(rows, type="hpcc", node="cn02", socket=1)
    gone = event("cn02", "hpcc", event="left_out")
    sweep = parse_nodesweep(text_of(ended([*rows[:-1], *gone, rows[-1]], 11, 1)))
    sweep.verify_complete(NODES)
    assert sweep.passed(NODES)["cn02"] == (4, 7)


def forgotten(rows: Rows, **values: Any) -> Callable[[], Rows]:
    return lambda: ended(left_out(rows, **values), 13, 0)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            forgotten(GOOD, type="hpcc", node="cn02", socket=None),
            "cn02: hpcc: neither numbers nor why",
        ),
        (
            forgotten(GOOD, type="hpcc", node="cn01", socket=1),
            "cn01: hpcc on socket 1: neither numbers nor why",
        ),
        (
            forgotten(GOOD, type="counters", node="cn01"),
            "cn01: sensors: neither numbers nor why",
        ),
        (
            lambda: ended([*GOOD[:-1], *event("cn01", "hpcc"), GOOD[-1]], 14, 1),
            "cn01: hpcc: not expected to pass",
        ),
        (
            lambda: [row for row in GOOD if row.get("size_bytes") != 1 << 25],
            "size 67108864 after 16777216, expected 33554432",
        ),
        (
            lambda: [row for row in GOOD if row.get("size_bytes") != 1 << 30],
            "cn01: memlat on socket 0: sizes [1048576",
        ),
        (
            lambda: [row for row in GOOD if row.get("phase") != "hpcc"],
            "cn01: no readings of socket 0 in hpcc",
        ),
        (
            lambda: [row for row in GOOD if row.get("phase") != "quiet"],
            "cn01: no readings of socket 0 in quiet",
        ),
    ],
)
def test_nothing_is_forgotten(rows: Callable[[], Rows], reason: str) -> None:
    sweep = parse_nodesweep(text_of(rows()))
    with pytest.raises(ParseError) as refusal:
        sweep.verify_complete(NODES)
    assert reason in refusal.value.reason


def test_nodes_are_the_delivered_ones() -> None:
    sweep = parse_nodesweep(text_of(GOOD))
    with pytest.raises(ParseError, match="cn02 is none of the 1 nodes"):
        sweep.verify_complete(["cn01"])
    with pytest.raises(ParseError, match="cn03: sensors: neither numbers nor why"):
        sweep.verify_complete([*NODES, "cn03"])


def line_of(**values: Any) -> int:
    """The line of the first row with these values."""
    return next(
        number
        for number, row in enumerate(GOOD, start=1)
        if all(row.get(name, "no") == value for name, value in values.items())
    )


@pytest.mark.parametrize(
    ("place", "values", "reason"),
    [
        ({"type": "run"}, {"program": "pairsweep"}, "'pairsweep' is none of"),
        ({"type": "run"}, {"type": "node"}, "a row of type 'node' after None"),
        ({"type": "node"}, {"type": "run"}, "a row of type 'run' after 'run'"),
        ({"type": "node"}, {"type": "news"}, "a row of type 'news'"),
        ({"type": "node"}, {"type": None}, "a row of type None"),
        ({"type": "node"}, {"ranks": 5}, "5 ranks"),
        ({"type": "node"}, {"cores": 9}, "2 sockets, 9 cores, 8 CPUs"),
        ({"type": "node"}, {"memory_bytes": 0}, "no memory"),
        ({"type": "sensors"}, {"n": 0}, "no readings"),
        ({"type": "sensors"}, {"clock_min_ghz": None}, "one clock of two"),
        ({"type": "sensors"}, {"clock_min_ghz": 9.0}, "clocks of 9.0 and 1.5 GHz"),
        ({"type": "sensors"}, {"clock_p50_ghz": 1e9}, "clocks of 1.4 and 10000000"),
        ({"type": "counters"}, {"ecc_corrected": -1}, "ecc_corrected: -1 is not"),
        ({"type": "counters"}, {"ecc_corrected": 0.5}, "is not of type int or None"),
        ({"type": "memlat"}, {"min_ns": 0}, "out of order"),
        ({"type": "memlat"}, {"n": 0}, "no samples"),
        ({"type": "fixedwork"}, {"cores": 0}, "fewer quanta than cores"),
        ({"type": "fixedwork"}, {"n": 3}, "fewer quanta than cores"),
        ({"type": "fixedwork"}, {"seconds": 0}, "seconds is not positive"),
        ({"type": "fixedwork"}, {"slowest_gflops": 99.0}, "99.0 of 22.0 Gflop/s"),
        ({"type": "fixedwork"}, {"slowest_gflops": 0}, "0 of 22.0 Gflop/s"),
        ({"type": "fixedwork"}, {"longest_us": 2.1e7}, "a longer quantum"),
        ({"type": "fixedwork"}, {"node": "cn02"}, "fixedwork of 'cn02': a second"),
        ({"type": "hpcc"}, {"hpl_gflops": 0.0}, "hpl_gflops is not positive"),
        ({"type": "hpcc"}, {"hpl_gflops": -1.0}, "hpl_gflops: -1.0 is not"),
        ({"type": "hpcc"}, {"latency_max_us": 1.5}, "are out of order"),
        ({"type": "hpcc"}, {"bw_min_mb_per_s": None}, "4 ranks, ["),
        ({"type": "hpcc"}, {"ranks": 1}, "1 ranks, ["),
        ({"type": "hpcc", "socket": 1}, {"socket": 0}, "hpcc of 'cn01', 0: a second"),
        ({"type": "end"}, {"passed": 11}, "passed: 11 at the end, found 14"),
        ({"type": "end"}, {"events": 1}, "events: 1 at the end, found 0"),
    ],
)
def test_contradictions_are_refused(
    place: dict[str, Any], values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_nodesweep(with_values(text_of(GOOD), line_of(**place), **values))
    assert reason in refusal.value.reason


@pytest.mark.parametrize(
    "kind", ["run", "node", "sensors", "hpcc", "memlat", "fixedwork", "end"]
)
def test_missing_and_unknown_keys_are_refused(kind: str) -> None:
    line = line_of(type=kind)
    name = next(name for name in GOOD[line - 1] if name != "type")
    with pytest.raises(ParseError, match=f"line {line}: missing or unknown keys"):
        parse_nodesweep(without_key(text_of(GOOD), line, name))
    with pytest.raises(ParseError, match=f"line {line}: missing or unknown keys"):
        parse_nodesweep(with_values(text_of(GOOD), line, more=1))


def test_recording_from_before_fixedwork_is_read() -> None:
    sweep = parse_nodesweep(OLD)
    sweep.verify_complete(["cn01", "cn02", "cn03", "cn04"])
    assert sweep.run.no_fixedwork == "recorded before NodeSweep ran fixedwork"
    assert {row.quota_stops for row in sweep.counters.values()} == {None}


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("run", {"no_fixedwork": None, "fixedwork_ms": 20000}),
        ("counters", {"quota_stops": None, "quota_stops_before": None}),
    ],
)
def test_newer_keys_are_all_there_or_none(kind: str, keys: dict[str, Any]) -> None:
    line = line_of(type=kind)
    for name in keys:
        with pytest.raises(ParseError, match=f"missing or unknown keys: {name}"):
            parse_nodesweep(without_key(text_of(GOOD), line, name))
    old = without_key(OLD, 1, "version")
    with pytest.raises(ParseError, match=r"missing or unknown keys: .*version"):
        parse_nodesweep(old)


def test_sweep_without_the_keys_of_its_fixedwork_is_refused() -> None:
    rows = [{**row} for row in GOOD]
    del rows[0]["no_fixedwork"], rows[0]["fixedwork_ms"]
    with pytest.raises(ParseError, match="fixedwork: not expected to pass"):
        parse_nodesweep(text_of(rows)).verify_complete(NODES)


def test_numbers_of_a_node_without_a_row_are_refused() -> None:
    text = without_line(text_of(GOOD), line_of(type="node"))
    with pytest.raises(ParseError, match="cn01 has numbers, and no row of its own"):
        parse_nodesweep(text)


def test_every_cut_is_refused() -> None:
    text = text_of(GOOD)
    for end in range(0, len(text) - 2, 7):
        with pytest.raises(ParseError):
            parse_nodesweep(text[:end])
    with pytest.raises(ParseError, match="the sweep has no end"):
        parse_nodesweep(text_of(GOOD[:-1]))
    with pytest.raises(ParseError, match="a row of type 'run' after 'end'"):
        parse_nodesweep(text * 2)


@given(st.data())
def test_damage_is_an_error_or_a_whole_sweep_and_never_a_crash(
    data: st.DataObject,
) -> None:
    """Lines that are lost, doubled or swapped, and bytes that change."""
    text = text_of(GOOD)
    lines = text.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        i, j = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["lose", "double", "swap", "byte"])):
            case "lose" if len(lines) > 1:
                del lines[i]
                break
            case "double":
                lines.insert(i, lines[j])
            case "swap":
                lines[i], lines[j] = lines[j], lines[i]
            case _:
                at = data.draw(st.integers(0, len(lines[i]) - 1))
                char = data.draw(st.sampled_from('"{}:, 0-9.eanull'))
                lines[i] = lines[i][:at] + char + lines[i][at + 1 :]
    try:
        sweep = parse_nodesweep("".join(lines))
        sweep.verify_complete(NODES)
        samples_of(sweep, NODES)
    except ParseError as error:
        assert error.reason


def test_samples_are_placed() -> None:
    samples = samples_of(parse_nodesweep(text_of(GOOD)), NODES)
    plain = {
        (s.metric, s.size_bytes, s.statistic, s.node, s.socket): s.value
        for s in samples
        if not s.parameters
    }
    assert len(plain) == len([s for s in samples if not s.parameters])
    assert plain["mem_bw", None, "mean", "cn01", None] == 200
    assert plain["dgemm", None, "mean", "cn01", None] == 90
    assert plain["hpl", None, "mean", "cn02", None] == 80
    assert plain["socket_mem_bw", None, "mean", "cn02", 1] == 100
    assert plain["latency", 8, "mean", "cn01", None] == 2
    assert plain["latency", 8, "max", "cn01", None] == 3
    assert plain["bw", 2000000, "min", "cn01", None] == 9000
    assert plain["mem_latency", None, "p50", "cn01", 1] == 30
    assert plain["mem_latency", 1 << 20, "p50", "cn01", 1] == 20
    assert plain["clock_idle", None, "p50", "cn01", 0] == 1.5
    assert plain["clock_load", None, "min", "cn01", 0] == 2.4
    assert plain["temperature_max", None, "max", "cn01", 1] == 59
    assert plain["throttle_events", None, "mean", "cn01", None] == 0
    assert plain["programs_passed", None, "mean", "cn02", None] == 100
    ring = ("RandomlyOrderedRingBandwidth_GBytes", None, "mean", "cn01", None)
    assert plain[ring] == 4
    assert "machine_checks" not in {s.metric for s in samples}


def test_samples_that_only_describe_have_parameters() -> None:
    samples = samples_of(parse_nodesweep(text_of(GOOD)), NODES)
    described = {(s.metric, json.dumps(s.parameters)) for s in samples if s.parameters}
    assert described == {
        *(
            ("mem_bw", f'{{"kernel": "{kernel}"}}')
            for kernel in ("copy", "scale", "add")
        ),
        ("mem_bw", '{"ranks": 1}'),
        ("dgemm", '{"ranks": 1}'),
        *(
            (f"{name}", '{"since": "boot"}')
            for name in (
                "throttle_events",
                "quota_stops",
                "ecc_corrected",
                "ecc_uncorrected",
            )
        ),
    }


def test_one_rank_has_nobody_to_send_to() -> None:
    rows = sweep_of(1)
    messages = ("latency", "bw", "ring")
    for row in rows:
        if row["type"] == "hpcc":
            row |= {name: None for name in row if name.startswith(messages)}
            row["ranks"] = 1
    samples = samples_of(parse_nodesweep(text_of(rows)), NODES)
    assert not {s.metric for s in samples} & {"latency", "bw"}


def test_sizes_that_measure_memory() -> None:
    verify_sizes(parse_nodesweep(text_of(GOOD)))


@pytest.mark.parametrize(
    ("place", "values", "reason"),
    [
        (
            {"type": "hpcc", "socket": None},
            {"stream_bytes": 700_000_000},
            "cn01: each array of STREAM has 2.33e+08 bytes, its caches 6.71e+07: N = ",
        ),
        (
            {"type": "memlat", "size_bytes": 1 << 30},
            {"cache_bytes": (1 << 28) + 1},
            "cn01: the largest working set has 1073741824 bytes, its cache 268435457",
        ),
    ],
)
def test_sizes_that_measure_caches_are_refused(
    place: dict[str, Any], values: dict[str, Any], reason: str
) -> None:
    text = with_values(text_of(GOOD), line_of(**place), **values)
    with pytest.raises(ParseError) as refusal:
        verify_sizes(parse_nodesweep(text))
    assert reason in refusal.value.reason
